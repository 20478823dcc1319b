"""One agent decides for one flow: ``brakelight/CongestionControl-v0``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from brakelight._arguments import Time, whole
from brakelight._gymnasium import spec_of
from brakelight.envs._native import INFO, MonitorInterval, Native
from brakelight.envs._settings import Links, Pair, ScenarioLike, settings

Array = npt.NDArray[np.float32]


Observe = Callable[[MonitorInterval], Any]
Reward = Callable[[MonitorInterval], float]


class CongestionControlEnv(gymnasium.Env[Array, Array]):
    """One flow over a link that is drawn anew for each episode, or in a scenario. A step is a monitor interval.

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

    With ``scenario``, each episode is the scenario with another seed; the agent has the place of the controller of
    ``flow``. An episode ends where the scenario does, or where the flow stops.

    >>> import brakelight as bl
    >>> scenario = bl.Scenario(
    ...     duration="5s",
    ...     link=[bl.Link("cell", trace="lte-driving"), bl.Link("core", rate="20Mbps")],
    ...     flow=[
    ...         bl.Flow("mine", controller="cubic", rtt="40ms", path=["core", "cell"]),
    ...         bl.Flow("other", controller="bbr3", rtt="20ms", path=["core"]),
    ...     ],
    ... )
    >>> env = CongestionControlEnv(
    ...     scenario=scenario,
    ...     flow="mine",
    ...     observation=lambda seen: [seen.rtt_ms / seen.min_rtt_ms - 1, seen.loss],
    ...     reward=lambda seen: seen.throughput_mbps - 0.1 * seen.rtt_ms,
    ...     history=2,
    ... )
    >>> env.reset(seed=1)[0]
    array([0., 0., 0., 0.], dtype=float32)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        preset: str = "default",
        *,
        links: Links | None = None,
        scenario: ScenarioLike | None = None,
        flow: str | None = None,
        history: int | None = None,
        steps: int | None = None,
        interval: Time | None = None,
        observation: Observe | None = None,
        observation_bounds: Pair = (-math.inf, math.inf),
        reward: Reward | None = None,
        normalized: bool = False,
        render_mode: str | None = None,
    ) -> None:
        """Make an environment.

        Args:
            preset: ``"default"``, ``"aurora"`` or ``"orca"``: observations, action and reward, and defaults of
                what follows.
            links: what links are drawn from.
            scenario: what happens in an episode, in the place of links: a :class:`brakelight.Scenario`, or what
                stands for one.
            flow: the name of the scenario's flow that the agent steers. None stands for its only flow.
            history: intervals in an observation.
            steps: steps of an episode; of a scenario at most.
            interval: the length of a monitor interval, a time (``"20ms"``) or in RTTs (``"0.5rtt"``).
            observation: a function that makes numbers of an interval, always as many, in the place of the preset.
                They are stacked to ``history``. An episode begins with zeros.
            observation_bounds: the least and the most of these numbers; what is beyond is brought within.
            reward: a function that makes the reward of an interval, in the place of the preset.
            normalized: whether actions are within -1 and 1 whatever the preset is. Aurora's are then multiplied
                by 40, so that 1 doubles the rate.
            render_mode: None; there is nothing to render.

        Raises:
            InputError: if an argument is wrong.
        """
        arguments: dict[str, Any] = {
            "preset": preset,
            "links": links,
            "scenario": scenario,
            "flow": flow,
            "history": history,
            "steps": steps,
            "interval": interval,
            "observation": observation,
            "observation_bounds": observation_bounds,
            "reward": reward,
            "normalized": normalized,
            "render_mode": render_mode,
        }
        self._native = Native(settings(agents=1, **arguments), 1)
        self.spec = spec_of("CongestionControl", arguments)
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
        scenario: ScenarioLike | None = None,
        flow: str | None = None,
        history: int | None = None,
        steps: int | None = None,
        interval: Time | None = None,
        observation: Observe | None = None,
        observation_bounds: Pair = (-math.inf, math.inf),
        reward: Reward | None = None,
        normalized: bool = False,
        copy: bool = True,
        render_mode: str | None = None,
    ) -> None:
        """Make ``num_envs`` environments, as :class:`CongestionControlEnv`.

        Args:
            copy: whether every call returns arrays of its own; otherwise the next call overwrites them.
        """
        num_envs = whole("num_envs", num_envs, 1, 100_000)
        arguments: dict[str, Any] = {
            "preset": preset,
            "links": links,
            "scenario": scenario,
            "flow": flow,
            "history": history,
            "steps": steps,
            "interval": interval,
            "observation": observation,
            "observation_bounds": observation_bounds,
            "reward": reward,
            "normalized": normalized,
            "render_mode": render_mode,
        }
        self._native = Native(settings(agents=1, **arguments), num_envs)
        self.spec = spec_of("CongestionControl", arguments)
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

    def scenario(self, number: int) -> str:
        """Return the scenario of the episode that environment ``number`` is in: see :class:`CongestionControlEnv`.

        Raises:
            InputError: before the first :meth:`reset`.
        """
        return self._native.scenario(number)

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

    def single(self, number: int) -> dict[str, Any]:
        """Return what environment ``number`` measured in its last step: a row of ``info``."""
        return self._native.row(number)

    def _own(self, array: Any) -> Any:
        return array.copy() if self._copy else array

    def _infos(self) -> dict[str, Any]:
        columns = self._own(self._native.info).T
        infos: dict[str, Any] = dict(zip(INFO, columns, strict=True))
        infos.update({f"_{name}": self._known for name in INFO})
        return infos
