"""Several environments in the extension, with the arrays that it writes into."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from brakelight import _brakelight
from brakelight.controller import Algorithm, named_in, register
from brakelight.envs._settings import Functions, Settings

INFO = _brakelight.Environments.info_names()
"""What a step measures, by column."""


class MonitorInterval(NamedTuple):
    """What a flow saw in a step: what functions for observations and rewards are given.

    All but the last two are also in ``info``.
    """

    throughput_mbps: float
    """Payload that was acknowledged."""
    rtt_ms: float
    """Mean of the RTT samples; the smoothed RTT if there was none."""
    loss: float
    """Packets declared lost, as a share of those lost or acknowledged: 0 to 1."""
    capacity_mbps: float
    """What the slowest link of the path could have carried, used or not. A sender cannot know it."""
    cwnd_bytes: float
    """The window at the end of the step."""
    pacing_mbps: float
    """The pacing rate at the end; 0 without one."""
    delivered_packets: float
    """Packets that were acknowledged."""
    interval_ms: float
    """How long the step was; 0 before the flow starts."""
    time_s: float
    """The end of the step, since the beginning of the run."""
    reward_throughput: float
    """What throughput adds to the preset's reward."""
    reward_delay: float
    """What delay adds to it; none is above 0."""
    reward_loss: float
    """What losses add to it; none is above 0."""
    sent_packets: float
    """Packets that were sent, retransmissions included."""
    lost_packets: float
    """Packets that were declared lost."""
    min_rtt_ms: float
    """The smallest RTT of the connection so far."""
    srtt_ms: float
    """The smoothed RTT."""
    rtt_gradient: float
    """By how much the mean RTT of the second half is above that of the first, over the length."""
    inflight_bytes: float
    """Payload in flight at the end."""
    action: float
    """The action that led to the step."""
    application: Mapping[str, float]
    """What the flow's application says of itself so far, by names with units; empty for downloads."""


class Native:
    """Environments that are stepped together, and their arrays."""

    def __init__(self, settings: Settings, count: int) -> None:
        self._made_of = settings, count
        steered = settings.steered
        self._environments = _brakelight.Environments(
            settings.text,
            [0] * count,
            list(settings.given),
            None if steered is None else (steered[0]._scenario, steered[1]),
        )
        bounds = np.asarray(self._environments.bounds, dtype=np.float32)
        self.specification = self._environments.specification
        self.action_low, self.action_high = self._environments.action_bounds
        self.scale = settings.scale
        if settings.normalized:
            self.action_low, self.action_high = -1.0, 1.0
        rows = count * settings.agents
        seen = np.zeros((rows, len(bounds) * settings.history), np.float32)
        self.rewards = np.zeros(rows, np.float64)
        self.info = np.zeros((rows, len(INFO)), np.float64)
        self.truncated = np.zeros(count, np.bool_)
        self._fresh = np.zeros(count, np.bool_)
        self._arrays = (seen, self.rewards, self.info, self.truncated)
        self._functions = functions = settings.functions
        self.observations = seen
        if functions.observation is not None:
            width = len(self._observed(functions, _EXAMPLE))
            low, high = functions.bounds
            bounds = np.tile(np.array([[low, high]], np.float32), (width, 1))
            self.observations = np.zeros((rows, width * settings.history), np.float32)
        self.low: npt.NDArray[np.float32] = np.tile(bounds[:, 0], settings.history)
        self.high: npt.NDArray[np.float32] = np.tile(bounds[:, 1], settings.history)
        self._width = len(bounds)

    def __reduce__(self) -> tuple[Any, ...]:
        # What was done is done again: the same actions give the same episodes.
        kept = [array.copy() for array in (*self._arrays, self.observations)]
        settings, count = self._made_of
        return _again, (settings, count, self._environments.state(), kept, named_in(settings.text))

    def reset(self, which: list[tuple[bool, int | None]]) -> None:
        """Begin an episode of those environments that ``which`` says, with the seeds that it says."""
        self._environments.reset(which, self._arrays)
        if self._functions:
            self._begun(row for row, (wanted, _) in enumerate(which) if wanted)

    def step(self, actions: Any, fresh: npt.NDArray[np.bool_] | None = None) -> None:
        """Step all; those that ``fresh`` says begin an episode instead."""
        flat = np.ascontiguousarray(actions, dtype=np.float64).reshape(-1)
        scaled = flat if self.scale == 1.0 else np.clip(flat, -1.0, 1.0) * self.scale
        new = self._fresh if fresh is None else fresh
        self._environments.step(scaled, new, self._arrays)
        if self._functions:
            self._seen(flat, new)

    def _begun(self, rows: Iterable[int]) -> None:
        if self._functions.observation is not None:
            self.observations[list(rows)] = 0.0

    def _seen(self, actions: npt.NDArray[np.float64], fresh: npt.NDArray[np.bool_]) -> None:
        """Call the functions with what each environment measured. An episode begins with zeros."""
        functions, width = self._functions, self._width
        self._begun(np.flatnonzero(fresh).tolist())
        for row in np.flatnonzero(~fresh).tolist():
            application = self._environments.flow(row).application
            interval = MonitorInterval._make([*self.info[row].tolist(), float(actions[row]), application])
            if functions.observation is not None:
                own = self.observations[row]
                own[:-width] = own[width:].copy()
                own[-width:] = self._observed(functions, interval)
            if functions.reward is not None:
                self.rewards[row] = _number("reward", functions.reward(interval))

    def _observed(self, functions: Functions, interval: MonitorInterval) -> npt.NDArray[np.float32]:
        """Return what the function makes of an interval, within the bounds."""
        assert functions.observation is not None
        given = functions.observation(interval)
        try:
            seen = np.asarray(given, dtype=np.float32).reshape(-1)
        except (TypeError, ValueError):
            seen = np.zeros(0, np.float32)
        if not len(seen) or not np.isfinite(seen).all():
            raise _brakelight.InputError(
                f"observation returned `{given!r}`: valid is a sequence of finite numbers, always of the same length"
            )
        return np.clip(seen, *functions.bounds)

    def scenario(self, number: int) -> str:
        """Return the scenario of the episode that an environment is in, as TOML."""
        return self._environments.scenario(number)

    def row(self, row: int) -> dict[str, float]:
        """Return what was measured of an agent."""
        return dict(zip(INFO, self.info[row].tolist(), strict=True))


_EXAMPLE = MonitorInterval(
    throughput_mbps=9.0,
    rtt_ms=50.0,
    loss=0.01,
    capacity_mbps=12.0,
    cwnd_bytes=57_920.0,
    pacing_mbps=0.0,
    delivered_packets=39.0,
    interval_ms=50.0,
    time_s=1.0,
    reward_throughput=0.75,
    reward_delay=-0.2,
    reward_loss=-0.02,
    sent_packets=40.0,
    lost_packets=1.0,
    min_rtt_ms=40.0,
    srtt_ms=48.0,
    rtt_gradient=0.0,
    inflight_bytes=50_000.0,
    action=0.0,
    application={},
)
"""What a function for observations is called with once, to know how many numbers it returns."""


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not np.isfinite(number):
        raise _brakelight.InputError(f"{name} returned `{value!r}`: valid is a finite number")
    return number


def _again(settings: Settings, count: int, state: list[Any], arrays: list[Any], classes: list[Algorithm]) -> Native:
    """Return environments that stand where others stood."""
    for algorithm in classes:
        register(algorithm)
    made = Native(settings, count)
    own_arrays: tuple[npt.NDArray[Any], ...] = (*made._arrays, made.observations)
    for own, kept in zip(own_arrays, arrays, strict=True):
        own[...] = kept
    made._environments.restore(state, made._arrays)
    return made
