"""Figures of results: matplotlib for papers, plotly for notebooks. Either is an optional extra."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

from brakelight._brakelight import InputError

if TYPE_CHECKING:
    from brakelight.results import Result, Rows

_COLUMNS = {
    "rate": ("throughput_mbps", "throughput (Mbit/s)"),
    "delay": ("queueing_delay_p95_ms", "p95 queueing delay (ms)"),
}


def _matplotlib() -> Any:
    try:
        import matplotlib.pyplot
    except ImportError as error:
        raise ImportError("figures need matplotlib: `pip install brakelight[plot]`") from error
    return matplotlib.pyplot


def _plotly() -> Any:
    try:
        import plotly.graph_objects
    except ImportError as error:
        raise ImportError("interactive figures need plotly: `pip install brakelight[notebook]`") from error
    return plotly.graph_objects


def _by(rows: Rows, *keys: str) -> dict[tuple[Any, ...], dict[str, list[Any]]]:
    """Return the columns of ``rows``, apart for each combination of the values of ``keys``."""
    columns = rows.to_dict()
    groups: dict[tuple[Any, ...], dict[str, list[Any]]] = {}
    for place, key in enumerate(zip(*(columns[name] for name in keys), strict=True)):
        group = groups.setdefault(key, {name: [] for name in columns})
        for name, values in columns.items():
            group[name].append(values[place])
    return groups


class Plot:
    """The figures of a result."""

    def __init__(self, result: Result) -> None:
        self._result = result

    def scatter(self, *, ax: Any = None) -> Any:
        """Draw throughput over p95 queueing delay, a point per row; better is up and to the right.

        Args:
            ax: matplotlib axes to draw into; new ones otherwise.

        Returns:
            The axes.

        Raises:
            ImportError: if matplotlib is not installed.
        """
        return _scatter(self._result.runs, ax)

    def series(self, what: str = "rate", *, trace: str | None = None, ax: Any = None) -> Any:
        """Draw the first link over time, a line per scheme.

        Args:
            what: ``"rate"`` (with the capacity behind) or ``"delay"``.
            trace: of this trace; the first otherwise.
            ax: matplotlib axes to draw into; new ones otherwise.

        Returns:
            The axes.

        Raises:
            InputError: if no series were asked for (``series=True``).
            ImportError: if matplotlib is not installed.
        """
        column, label = _named(what)
        lines = self._lines(trace)
        ax = ax or _matplotlib().subplots(figsize=(7, 3), layout="constrained")[1]
        for number, (scheme, columns) in enumerate(lines.items()):
            times = columns["time_s"]
            if what == "rate" and number == 0:
                ax.fill_between(times, columns["capacity_mbps"], color="0.9", label="capacity")
            values = [float("nan") if value is None else value for value in columns[column]]
            ax.plot(times, values, label=scheme, linewidth=1)
        ax.set_xlabel("time (s)")
        ax.set_ylabel(label)
        ax.legend(fontsize="small")
        return ax

    def _lines(self, trace: str | None) -> dict[str, dict[str, list[Any]]]:
        """Return the first link's columns by scheme, on ``trace`` or the first."""
        groups = _by(self._result.link_series, "scheme", "trace", "link")
        lines: dict[str, dict[str, list[Any]]] = {}
        for (scheme, on, _link), columns in groups.items():
            trace = on if trace is None else trace
            if on == trace:
                lines.setdefault(scheme, columns)
        return lines

    def interactive(self, what: str = "scatter", *, trace: str | None = None) -> Any:
        """Return a plotly figure, for notebooks: one to zoom into, and to point at.

        Args:
            what: ``"scatter"`` as :meth:`scatter`, ``"rate"`` or ``"delay"`` as :meth:`series`.
            trace: of this trace, for lines over time; the first otherwise.

        Raises:
            InputError: if no series were asked for (``series=True``) and ``what`` needs them.
            ImportError: if plotly is not installed.
        """
        plotly = _plotly()
        figure = plotly.Figure()
        if what != "scatter":
            column, label = _named(what, "scatter")
            for number, (scheme, columns) in enumerate(self._lines(trace).items()):
                if what == "rate" and number == 0:
                    capacity = columns["capacity_mbps"]
                    figure.add_scatter(
                        x=columns["time_s"], y=capacity, fill="tozeroy", line={"color": "lightgray"}, name="capacity"
                    )
                figure.add_scatter(x=columns["time_s"], y=columns[column], mode="lines", name=scheme)
            figure.update_layout(xaxis={"title": "time (s)"}, yaxis={"title": label})
            return figure
        return _interactive_scatter(figure, self._result.runs)


class SweepPlot:
    """The figures of a sweep."""

    def __init__(self, runs: Rows) -> None:
        self._runs = runs

    def scatter(self, *, ax: Any = None) -> Any:
        """Draw throughput over p95 queueing delay, a point per run; better is up and to the right.

        Args:
            ax: matplotlib axes to draw into; new ones otherwise.

        Returns:
            The axes.

        Raises:
            ImportError: if matplotlib is not installed.
        """
        return _scatter(self._runs, ax)

    def axis(self, axis: str, what: str = "utilization", *, ax: Any = None) -> Any:
        """Draw a metric over an axis of the grid, a line per scheme: the median, between the least and the most.

        Args:
            axis: the axis: ``"rtt"``, or a key such as ``"link.l.buffer"``. Times, rates and sizes have a scale.
            what: the column of the metric.
            ax: matplotlib axes to draw into; new ones otherwise.

        Returns:
            The axes.

        Raises:
            InputError: if there is no such axis or metric.
            ImportError: if matplotlib is not installed.
        """
        place, label = self._place(axis)
        lines = self._lines(place, what)
        ax = ax or _matplotlib().subplots(figsize=(5, 3.5), layout="constrained")[1]
        for scheme, points in lines.items():
            places = list(points)
            middle = [statistics.median(values) for values in points.values()]
            (line,) = ax.plot(places, middle, "o-", label=scheme, linewidth=1)
            least, most = ([end(values) for values in points.values()] for end in (min, max))
            ax.fill_between(places, least, most, alpha=0.15, color=line.get_color())
        ax.set_xlabel(label)
        ax.set_ylabel(what)
        ax.legend(fontsize="small")
        return ax

    def interactive(self, axis: str | None = None, what: str = "utilization") -> Any:
        """Return a plotly figure, for notebooks: as :meth:`scatter`, or over an axis as :meth:`axis`.

        Raises:
            InputError: if there is no such axis or metric.
            ImportError: if plotly is not installed.
        """
        figure = _plotly().Figure()
        if axis is None:
            return _interactive_scatter(figure, self._runs)
        place, label = self._place(axis)
        for scheme, points in self._lines(place, what).items():
            middle = [statistics.median(values) for values in points.values()]
            figure.add_scatter(x=list(points), y=middle, mode="lines+markers", name=scheme)
        figure.update_layout(xaxis={"title": label}, yaxis={"title": what})
        return figure

    def _place(self, axis: str) -> tuple[str, str]:
        """Return the column that says where runs are on an axis, and the words for it."""
        for unit, words in (("ms", "ms"), ("mbps", "Mbit/s"), ("packets", "packets"), ("bytes", "bytes"), ("s", "s")):
            # A column with gaps has values in another unit, too.
            if f"{axis}_{unit}" in self._runs and None not in self._runs[f"{axis}_{unit}"]:
                return f"{axis}_{unit}", f"{axis} ({words})"
        self._known("axis", axis)
        return axis, axis

    def _lines(self, place: str, what: str) -> dict[str, dict[Any, list[float]]]:
        """Return the values of a metric by scheme and place, in the order of the places."""
        self._known("what", what)
        lines: dict[str, dict[Any, list[float]]] = {}
        for (scheme, at), columns in _by(self._runs, "scheme", place).items():
            values = [float(value) for value in columns[what] if isinstance(value, (int, float))]
            if values:
                lines.setdefault(scheme, {})[at] = values
        if not lines:
            raise InputError(f"what = `{what}`: valid is a column of numbers that has some")
        return {scheme: dict(sorted(points.items())) for scheme, points in lines.items()}

    def _known(self, name: str, column: str) -> None:
        if column not in self._runs:
            raise InputError(f"{name} = `{column}`: valid are {', '.join(self._runs.columns)}")


def _scatter(runs: Rows, ax: Any) -> Any:
    ax = ax or _matplotlib().subplots(figsize=(5, 3.5), layout="constrained")[1]
    for (scheme,), columns in _by(runs, "scheme").items():
        points = [
            point
            for point in zip(columns["queueing_delay_p95_ms"], columns["throughput_mbps"], strict=True)
            if point[0] is not None
        ]
        if points:
            ax.plot(*zip(*points, strict=True), "o", label=scheme)
    ax.set_xlabel("p95 queueing delay (ms)")
    ax.set_ylabel("throughput (Mbit/s)")
    ax.invert_xaxis()
    ax.legend(fontsize="small")
    return ax


def _interactive_scatter(figure: Any, runs: Rows) -> Any:
    for (scheme,), columns in _by(runs, "scheme").items():
        figure.add_scatter(
            x=columns["queueing_delay_p95_ms"],
            y=columns["throughput_mbps"],
            text=columns["trace"],
            mode="markers",
            name=scheme,
        )
    figure.update_layout(
        xaxis={"title": "p95 queueing delay (ms)", "autorange": "reversed"},
        yaxis={"title": "throughput (Mbit/s)"},
    )
    return figure


def _named(what: str, *others: str) -> tuple[str, str]:
    if what not in _COLUMNS:
        raise InputError(f"what = `{what}`: valid are {', '.join([*others, *_COLUMNS])}")
    return _COLUMNS[what]
