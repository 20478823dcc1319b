"""Traces: when a link can send."""

from __future__ import annotations

import json
import os
import warnings
from typing import TYPE_CHECKING, Any

from brakelight import _brakelight
from brakelight._arguments import refused

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Trace:
    """The delivery opportunities of a link, each of 1,504 bytes, by millisecond; they repeat from the start.

    >>> import brakelight as bl
    >>> trace = bl.Trace.from_numpy([12.0, 6.0], step_ms=500, name="halved")
    >>> round(trace.mean_mbps, 1), trace.duration_s
    (9.0, 1.0)
    >>> result = bl.compare(traces=trace, schemes="cubic", duration="2s")
    """

    __slots__ = ("_trace",)
    _trace: _brakelight.Trace

    def __init__(self, millis: npt.ArrayLike | list[int], name: str = "trace") -> None:
        """Make a trace of opportunities at ``millis``.

        Args:
            millis: the millisecond of each opportunity, shape ``(n,)``, not falling; the last is the period.
            name: what it is called in results and scenarios.

        Raises:
            InputError: if there is none, or they fall.
        """
        self._trace = _brakelight.Trace(_integers(millis), name)

    @classmethod
    def _of(cls, trace: _brakelight.Trace) -> Trace:
        made = cls.__new__(cls)
        made._trace = trace
        return made

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        format: str | None = None,
        column: str | None = None,
        time_column: str | None = None,
        unit: str | None = None,
        direction: str | None = None,
        flow: str | None = None,
        without_idle: bool = False,
    ) -> Trace:
        """Read a trace of any format that ``brakelight trace convert`` reads, with its options.

        Mahimahi's format, our own, tables, packet captures, what iperf3, nuttcp, flent and others write; packed by
        gzip, too. What it warns of is a :class:`UserWarning`.

        Args:
            path: the file.
            name: what it is called; the file's name otherwise.
            format: the format, such as ``"csv"`` or ``"pcap"``; what the file looks like, if None.
            column: the column of the rates in a table; the one whose name tells so, if None.
            time_column: the column of the times, likewise.
            unit: the unit of the rates, such as ``"kbit/s"``; what the file says, if None.
            direction: of a file that holds both: ``"up"``, ``"down"``, ``"all"``; ``"from:ADDRESS"`` or
                ``"to:ADDRESS"`` of a capture.
            flow: one flow of a capture: ``"ADDRESS:PORT-ADDRESS:PORT"``.
            without_idle: whether to leave out the rows of a table in which the application was idle.

        Raises:
            InputError: if the file cannot be read or holds no trace; the message names the line.
        """
        if not isinstance(path, (str, os.PathLike)):
            raise refused("path", path, "the path of a file")
        trace, warned = _brakelight.Trace.read(
            os.fsdecode(path), format, column, time_column, unit, direction, flow, bool(without_idle)
        )
        for warning in warned:
            warnings.warn(f"{os.fsdecode(path)}: {warning}", UserWarning, stacklevel=2)
        return cls._of(trace if name is None else trace.renamed(name))

    @classmethod
    def named(cls, name: str) -> Trace:
        """Return an embedded trace, a file of the folder ``BRAKELIGHT_TRACES``, or the file of that path.

        >>> import brakelight as bl
        >>> bl.Trace.named("step").duration_s
        60.0

        Raises:
            InputError: if there is no such trace.
        """
        return cls._of(_brakelight.Trace.named(name))

    @classmethod
    def from_numpy(cls, mbps: npt.ArrayLike, *, step_ms: int = 100, name: str = "trace") -> Trace:
        """Make a trace of rates.

        Args:
            mbps: rates in Mbit/s, shape ``(n,)``, each zero or more. Any sequence will do; NumPy is not needed.
            step_ms: how long each rate lasts, in ms, at least 1.
            name: what it is called.

        Raises:
            InputError: if a rate is negative or not finite, or the trace is longer than a day.
        """
        return cls._of(_brakelight.Trace.from_rates(_floats(mbps), step_ms, name))

    @classmethod
    def from_dataframe(
        cls, frame: Any, *, rate: str = "mbps", time: str | None = None, step_ms: int = 100, name: str = "trace"
    ) -> Trace:
        """Make a trace of a column of rates of a pandas or polars DataFrame.

        Args:
            frame: anything whose columns are had by ``frame[name]``.
            rate: the column of rates, in Mbit/s.
            time: the column of times in seconds, rising; each rate holds until the next. Without it every rate
                lasts ``step_ms``.
            step_ms: the resolution, in ms.
            name: what it is called.

        Raises:
            InputError: if a rate is negative, or times do not rise.
        """
        rates = _floats(frame[rate])
        if time is None:
            return cls.from_numpy(rates, step_ms=step_ms, name=name)
        times = _floats(frame[time])
        lasts = [later - earlier for earlier, later in zip(times, times[1:], strict=False)]
        if not lasts or min(lasts) <= 0:
            raise _brakelight.InputError(f"{time}: times must rise, and there must be two at least")
        held: list[float] = []
        steps = round((times[-1] - times[0] + lasts[-1]) * 1000 / step_ms)
        place = 0
        for step in range(steps):
            at = times[0] + step * step_ms / 1000
            while place + 1 < len(times) and times[place + 1] <= at + 1e-9:
                place += 1
            held.append(rates[place])
        return cls.from_numpy(held, step_ms=step_ms, name=name)

    def to_numpy(self, *, step_ms: int = 100) -> npt.NDArray[np.float64]:
        """Return the mean rates of steps of ``step_ms`` ms, in Mbit/s, shape ``(n,)``. Needs NumPy."""
        import numpy as np

        return np.asarray(self._trace.rates(step_ms), dtype=np.float64)

    def millis(self) -> list[int]:
        """Return the millisecond of every opportunity of one period."""
        return self._trace.millis()

    def statistics(self) -> dict[str, Any]:
        """Return what is known of its rate, as ``brakelight trace show --format json``: mean, variation, outages."""
        known: dict[str, Any] = json.loads(self._trace.statistics())
        return known

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write it in Mahimahi's format."""
        with open(path, "w", encoding="ascii") as file:
            file.write(self._trace.to_mahimahi())

    @property
    def name(self) -> str:
        """What it is called in results and scenarios."""
        return self._trace.name

    @property
    def duration_s(self) -> float:
        """Its period, in seconds."""
        return self._trace.duration_s

    @property
    def mean_mbps(self) -> float:
        """Its mean rate, in Mbit/s."""
        return self._trace.mean_mbps

    @property
    def opportunities(self) -> int:
        """Delivery opportunities in one period."""
        return self._trace.opportunities

    def __eq__(self, other: object) -> bool:
        return self._trace == other._trace if isinstance(other, Trace) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.name, self.opportunities, self.duration_s))

    def __reduce__(self) -> tuple[Any, ...]:
        return Trace, (self.millis(), self.name)

    def __repr__(self) -> str:
        return repr(self._trace)


def trace(name: str | os.PathLike[str]) -> Trace:
    """Return the trace that has this name, or that a file holds: :meth:`Trace.named`, :meth:`Trace.read`.

    >>> import brakelight as bl
    >>> bl.trace("lte-driving").name
    'lte-driving'
    """
    return Trace.named(name) if isinstance(name, str) else Trace.read(name)


def _list(values: Any) -> list[Any]:
    # NumPy arrays, polars and pandas columns.
    for method in ("tolist", "to_list"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    return list(values)


def _floats(values: Any) -> list[float]:
    return [float(value) for value in _list(values)]


def _integers(values: Any) -> list[int]:
    return [int(value) for value in _list(values)]
