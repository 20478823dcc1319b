"""Environments to learn congestion control in. Needs NumPy and Gymnasium (``pip install brakelight[envs]``).

>>> import gymnasium
>>> import brakelight.envs
>>> env = gymnasium.make("brakelight/CongestionControl-v1", preset="aurora")
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
>>> observation.shape, terminated
((30,), False)

Many at once, in threads, by one call:

>>> envs = gymnasium.make_vec("brakelight/CongestionControl-v1", num_envs=8)
>>> observations, infos = envs.reset(seed=1)
>>> observations.shape
(8, 32)

An episode can be any :class:`brakelight.Scenario`, in which the agent steers one flow
(:class:`CongestionControlEnv`). :class:`SharedLink` has several agents on one link (PettingZoo),
``brakelight/Router-v0`` an agent in a router. :class:`SB3VecEnv` is for Stable-Baselines3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from brakelight.envs._register import register_environments
from brakelight.envs._model import Model
from brakelight.envs._native import MonitorInterval
from brakelight.envs._settings import PRESETS, Links
from brakelight.envs.congestion import CongestionControlEnv, CongestionControlVectorEnv
from brakelight.envs.router import RouterEnv

if TYPE_CHECKING:
    from brakelight.envs.sb3 import SB3VecEnv
    from brakelight.envs.shared import SharedLink

register_environments()

__all__ = [
    "PRESETS",
    "CongestionControlEnv",
    "CongestionControlVectorEnv",
    "Links",
    "Model",
    "MonitorInterval",
    "RouterEnv",
    "SB3VecEnv",
    "SharedLink",
]


def __getattr__(name: str) -> Any:
    # PettingZoo is needed by this one alone.
    if name == "SharedLink":
        from brakelight.envs.shared import SharedLink

        return SharedLink
    # So is Stable-Baselines3.
    if name == "SB3VecEnv":
        from brakelight.envs.sb3 import SB3VecEnv

        return SB3VecEnv
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
