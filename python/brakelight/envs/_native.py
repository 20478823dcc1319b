"""Several environments in the extension, with the arrays that it writes into."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from brakelight import _brakelight
from brakelight.controller import Algorithm, named_in, register

INFO = _brakelight.Environments.info_names()
"""What a step measures, by column."""


class Native:
    """Environments that are stepped together, and their arrays."""

    def __init__(self, settings: str, given: list[_brakelight.Trace], count: int, agents: int, history: int) -> None:
        self._made_of = settings, given, count, agents, history
        self._environments = _brakelight.Environments(settings, [0] * count, given)
        bounds = np.asarray(self._environments.bounds, dtype=np.float32)
        self.low: npt.NDArray[np.float32] = np.tile(bounds[:, 0], history)
        self.high: npt.NDArray[np.float32] = np.tile(bounds[:, 1], history)
        self.action_low, self.action_high = self._environments.action_bounds
        self.specification = self._environments.specification
        rows = count * agents
        self.observations = np.zeros((rows, len(self.low)), np.float32)
        self.rewards = np.zeros(rows, np.float64)
        self.info = np.zeros((rows, len(INFO)), np.float64)
        self.truncated = np.zeros(count, np.bool_)
        self._fresh = np.zeros(count, np.bool_)
        self._arrays = (self.observations, self.rewards, self.info, self.truncated)

    def __reduce__(self) -> tuple[Any, ...]:
        # What was done is done again: the same actions give the same episodes.
        kept = [array.copy() for array in self._arrays]
        return _again, (self._made_of, self._environments.state(), kept, named_in(self._made_of[0]))

    def reset(self, which: list[tuple[bool, int | None]]) -> None:
        """Begin an episode of those environments that ``which`` says, with the seeds that it says."""
        self._environments.reset(which, self._arrays)

    def step(self, actions: Any, fresh: npt.NDArray[np.bool_] | None = None) -> None:
        """Step all; those that ``fresh`` says begin an episode instead."""
        flat = np.ascontiguousarray(actions, dtype=np.float64).reshape(-1)
        self._environments.step(flat, self._fresh if fresh is None else fresh, self._arrays)

    def scenario(self, number: int) -> str:
        """Return the scenario of the episode that an environment is in, as TOML."""
        return self._environments.scenario(number)

    def row(self, row: int) -> dict[str, float]:
        """Return what was measured of an agent."""
        return dict(zip(INFO, self.info[row].tolist(), strict=True))


def _again(made_of: tuple[Any, ...], state: list[Any], arrays: list[Any], classes: list[Algorithm]) -> Native:
    """Return environments that stand where others stood."""
    for algorithm in classes:
        register(algorithm)
    made = Native(*made_of)
    own_arrays: tuple[npt.NDArray[Any], ...] = made._arrays
    for own, kept in zip(own_arrays, arrays, strict=True):
        own[...] = kept
    made._environments.restore(state, made._arrays)
    return made
