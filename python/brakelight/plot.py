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
        groups = _by(self._result.link_series, "scheme", "trace", "link")
        ax = ax or _matplotlib().subplots(figsize=(7, 3), layout="constrained")[1]
        shown: str | None = trace
        drawn: set[str] = set()
        for (scheme, on, _link), columns in groups.items():
            shown = on if shown is None else shown
            if on != shown or scheme in drawn:
                continue
            times = columns["time_s"]
            if what == "rate" and not drawn:
                ax.fill_between(times, columns["capacity_mbps"], color="0.9", label="capacity")
            values = [float("nan") if value is None else value for value in columns[column]]
            ax.plot(times, values, label=scheme, linewidth=1)
            drawn.add(scheme)
        ax.set_xlabel("time (s)")
        ax.set_ylabel(label)
        ax.legend(fontsize="small")
        return ax

    def interactive(self) -> Any:
        """Return :meth:`scatter` as a plotly figure, for notebooks.

        Raises:
            ImportError: if plotly is not installed.
        """
        plotly = _plotly()
        figure = plotly.Figure()
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


def _named(what: str) -> tuple[str, str]:
    if what not in _COLUMNS:
        from brakelight._brakelight import InputError

        raise InputError(f"what = `{what}`: valid are {', '.join(_COLUMNS)}")
    return _COLUMNS[what]
