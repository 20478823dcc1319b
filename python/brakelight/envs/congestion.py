"""One agent decides for one flow: ``brakelight/CongestionControl-v0``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from brakelight._arguments import Time
from brakelight.envs._native import INFO, Native
from brakelight.envs._settings import Links, settings

Array = npt.NDArray[np.float32]


class CongestionControlEnv(gymnasium.Env[Array, Array]):
    """One flow over a link that is drawn anew for each episode. A step is a monitor interval.

    Observations are ``history`` intervals of what the preset observes, the newest last, shape ``(n,)``, float32.
    An action is one number, shape ``(1,)``. An episode is never terminated: it is truncated after ``steps`` steps.
    ``info`` has what was measured, in the units of its names, and what the reward is made of
    (``reward_throughput + reward_delay + reward_loss``). The same seed gives the same episodes, whatever number of
    environments there are.

    >>> from brakelight.envs import CongestionControlEnv, Links
    >>> env = CongestionControlEnv(links=Links(rate=("12Mbps", "12Mbps"), rtt=("40ms", "40ms")), steps=2)
    >>> _ = env.reset(seed=7)
    >>> observation, reward, terminated, truncated, info = env.step([1.0])
    >>> info["capacity_mbps"], info["cwnd_bytes"]
    (12.0, 28960.0)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        preset: str = "default",
        *,
        links: Links | None = None,
        history: int | None = None,
        steps: int | None = None,
        interval: Time | None = None,
        render_mode: str | None = None,
    ) -> None:
        """Make an environment.

        Args:
            preset: ``"default"``, ``"aurora"`` or ``"orca"``: observations, action and reward, and defaults of
                what follows.
            links: what links are drawn from.
            history: intervals in an observation.
            steps: steps of an episode.
            interval: the length of a monitor interval, a time (``"20ms"``) or in RTTs (``"0.5rtt"``).
            render_mode: None; there is nothing to render.

        Raises:
            InputError: if an argument is wrong.
        """
        plain, given, history = settings(preset, 1, links=links, history=history, steps=steps, interval=interval)
        self._native = Native(plain, given, 1, 1, history)
        self.observation_space = gymnasium.spaces.Box(self._native.low, self._native.high, dtype=np.float32)
        low, high = self._native.action_low, self._native.action_high
        self.action_space = gymnasium.spaces.Box(low, high, (1,), np.float32)
        self.render_mode = render_mode
        self._seeded = False

    @property
    def specification(self) -> str:
        """What an agent of this environment is made for, as JSON: the metadata of its model in ONNX."""
        return self._native.specification

    @property
    def scenario(self) -> str:
        """The scenario of the present episode, as a file in TOML, in which the agent is the controller ``agent-0``.

        With another controller in its place, that one meets the same link, with the same random numbers.

        Raises:
            InputError: before the first :meth:`reset`.
        """
        return self._native.scenario(0)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode: the first of ``seed``, or the next."""
        super().reset(seed=seed)
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**63))
        self._seeded = True
        self._native.reset([(True, seed)])
        return self._native.observations[0].copy(), self._native.row(0)

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Act, and advance by a monitor interval."""
        native = self._native
        native.step(action)
        return native.observations[0].copy(), float(native.rewards[0]), False, bool(native.truncated[0]), native.row(0)


class CongestionControlVectorEnv(VectorEnv[Array, Array, npt.NDArray[Any]]):
    """Many :class:`CongestionControlEnv`, in threads, stepped by one call.

    Environment ``i`` of those reset with ``seed=s`` is the environment reset with ``seed=s + i``. One whose episode
    is over begins the next at the following step, whose action it ignores (Gymnasium's ``NEXT_STEP``).
    """

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(
        self,
        num_envs: int = 1,
        preset: str = "default",
        *,
        links: Links | None = None,
        history: int | None = None,
        steps: int | None = None,
        interval: Time | None = None,
        copy: bool = True,
        render_mode: str | None = None,
    ) -> None:
        """Make ``num_envs`` environments, as :class:`CongestionControlEnv`.

        Args:
            copy: whether every call returns arrays of its own; otherwise the next call overwrites them.
        """
        plain, given, history = settings(preset, 1, links=links, history=history, steps=steps, interval=interval)
        self._native = Native(plain, given, num_envs, 1, history)
        self.num_envs = num_envs
        self.render_mode = render_mode
        low, high = self._native.action_low, self._native.action_high
        self.single_observation_space = gymnasium.spaces.Box(self._native.low, self._native.high, dtype=np.float32)
        self.single_action_space = gymnasium.spaces.Box(low, high, (1,), np.float32)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._copy = copy
        self._seeded = False
        self._over = np.zeros(num_envs, np.bool_)
        self._never = np.zeros(num_envs, np.bool_)
        self._known = np.ones(num_envs, np.bool_)

    @property
    def specification(self) -> str:
        """What an agent of this environment is made for, as JSON: the metadata of its model in ONNX."""
        return self._native.specification

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode in every environment; with ``options={"reset_mask": ...}`` in some."""
        super().reset(seed=seed if isinstance(seed, int) else None)
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**62))
        self._seeded = True
        if seed is None or isinstance(seed, int):
            seeds: list[int | None] = [None if seed is None else seed + place for place in range(self.num_envs)]
        else:
            seeds = list(seed)
        mask = (options or {}).get("reset_mask")
        which = [True] * self.num_envs if mask is None else [bool(each) for each in mask]
        self._native.reset(list(zip(which, seeds, strict=True)))
        self._over &= ~np.asarray(which)
        return self._own(self._native.observations), self._infos()

    def step(
        self, actions: Any
    ) -> tuple[Array, npt.NDArray[np.float64], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]:
        """Act in every environment, shape ``(num_envs, 1)``, and advance each by a monitor interval."""
        native = self._native
        native.step(actions, self._over)
        self._over = native.truncated.copy()
        terminated = self._never.copy() if self._copy else self._never
        rewards = self._own(native.rewards)
        return self._own(native.observations), rewards, terminated, self._own(native.truncated), self._infos()

    def _own(self, array: Any) -> Any:
        return array.copy() if self._copy else array

    def _infos(self) -> dict[str, Any]:
        columns = self._own(self._native.info).T
        infos: dict[str, Any] = dict(zip(INFO, columns, strict=True))
        infos.update({f"_{name}": self._known for name in INFO})
        return infos
