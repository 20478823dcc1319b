"""Figures of results: matplotlib for papers, plotly for notebooks. Either is an optional extra."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
        ax = ax or _matplotlib().subplots(figsize=(5, 3.5), layout="constrained")[1]
        for (scheme,), columns in _by(self._result.runs, "scheme").items():
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
        for (scheme,), columns in _by(self._result.runs, "scheme").items():
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
        from brakelight._brakelight import InputError

        raise InputError(f"what = `{what}`: valid are {', '.join([*others, *_COLUMNS])}")
    return _COLUMNS[what]
