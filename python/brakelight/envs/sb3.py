"""Many environments for Stable-Baselines3. Only this module imports it, if it is installed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from brakelight._arguments import refused
from brakelight._brakelight import RunError
from brakelight.envs.congestion import CongestionControlVectorEnv


def _base() -> Any:
    try:
        from stable_baselines3.common.vec_env import VecEnv  # pyright: ignore[reportMissingImports]
    except ImportError:
        return object
    return VecEnv


_VecEnv: Any = _base()


class SB3VecEnv(_VecEnv):
    """A vector of environments as Stable-Baselines3 takes it: all are stepped in threads, by one call.

    A step at which an episode ends returns the first observation of the next, and the last one of the old as
    ``terminal_observation`` in its info. Environment ``i`` of those seeded with ``s`` has the seed ``s + i``.

    ::

        envs = gymnasium.make_vec("brakelight/CongestionControl-v1", num_envs=8)
        PPO("MlpPolicy", VecMonitor(SB3VecEnv(envs))).learn(100_000)
    """

    def __init__(self, envs: CongestionControlVectorEnv) -> None:
        """Take the environments over: whoever steps them otherwise steps these, too.

        Args:
            envs: what ``gymnasium.make_vec`` makes of ``brakelight/CongestionControl``.

        Raises:
            ImportError: if Stable-Baselines3 is not installed.
            InputError: if it is something else.
        """
        if _VecEnv is object:
            raise ImportError("this needs stable_baselines3: `pip install stable-baselines3`")
        if not isinstance(envs, CongestionControlVectorEnv):
            raise refused("envs", envs, "what `gymnasium.make_vec` makes of `brakelight/CongestionControl-v1`")
        self.envs = envs
        self._native = envs._native
        self._actions: Any = None
        super().__init__(envs.num_envs, envs.single_observation_space, envs.single_action_space)

    def reset(self) -> Any:
        """Begin an episode in every environment, with the seeds of :meth:`seed`."""
        seeds = None if all(seed is None for seed in self._seeds) else list(self._seeds)
        observations, _ = self.envs.reset(seed=seeds)
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [self._native.row(number) for number in range(self.num_envs)]
        return np.array(observations)

    def step_async(self, actions: Any) -> None:
        """Say what to do in every environment."""
        self._actions = actions

    def step_wait(self) -> Any:
        """Do it: observations, rewards, whether an episode is over, infos.

        Raises:
            RunError: if nobody said what to do.
        """
        if self._actions is None:
            raise RunError("step_wait: step_async comes first")
        native = self._native
        native.step(self._actions)
        self._actions = None
        infos = [native.row(number) for number in range(self.num_envs)]
        answered: list[dict[str, Any]] = [{**info, "TimeLimit.truncated": False} for info in infos]
        rewards, over = native.rewards.astype(np.float32), native.truncated.copy()
        if over.any():
            for number in np.flatnonzero(over).tolist():
                answered[number]["TimeLimit.truncated"] = True
                answered[number]["terminal_observation"] = native.observations[number].copy()
            native.reset([(bool(one), None) for one in over])
            for number in np.flatnonzero(over).tolist():
                self.reset_infos[number] = native.row(number)
        return native.observations.copy(), rewards, over, answered

    def close(self) -> None:
        """Nothing is left open."""
        self.envs.close()

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        """Return an attribute of each environment: ``scenario``, or what all have alike."""
        numbers = self._numbers(indices)
        if attr_name == "scenario":
            return [self.envs.scenario(number) for number in numbers]
        return [getattr(self.envs, attr_name)] * len(numbers)

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        """Set an attribute of all; one alone has none of its own.

        Raises:
            InputError: if it is to be set for some alone.
        """
        if len(self._numbers(indices)) != self.num_envs:
            raise refused("indices", indices, "None: the environments share their attributes")
        setattr(self.envs, attr_name, value)

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        """Call a method for each environment, with its number as the first argument: ``scenario``, ``single``.

        Raises:
            AttributeError: if there is no such method.
        """
        method = getattr(self.envs, method_name)
        return [method(number, *method_args, **method_kwargs) for number in self._numbers(indices)]

    def env_is_wrapped(self, wrapper_class: type[Any], indices: Any = None) -> list[bool]:
        """Return False for each: none is wrapped."""
        return [False] * len(self._numbers(indices))

    def get_images(self) -> list[Any]:
        """Return None for each: there is nothing to render."""
        return [None] * self.num_envs

    def _numbers(self, indices: int | Iterable[int] | None) -> list[int]:
        if indices is None:
            return list(range(self.num_envs))
        return [indices] if isinstance(indices, int) else list(indices)
