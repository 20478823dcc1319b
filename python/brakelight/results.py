"""Results: rows, and the same as columns for other libraries, without copies where they speak Arrow."""

from __future__ import annotations

import difflib
import html
import importlib
import json
import operator
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from brakelight import _brakelight

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    from brakelight.plot import Plot

_SHOWN = 20
"""Rows that a notebook shows."""


def _library(name: str, extra: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ImportError(f"this needs {name}: `pip install brakelight[{extra}]`") from error


class Rows:
    """Columns of equal length. Any library that knows the Arrow PyCapsule interface takes them without a copy.

    A column goes by its name, a row by its place. They can be pickled.

    >>> import brakelight as bl
    >>> runs = bl.compare(traces="step", schemes="cubic", duration="2s").runs
    >>> len(runs), runs["scheme"], runs[-1]["scheme"], "scheme" in runs
    (1, ['cubic'], 'cubic', True)
    """

    __slots__ = ("_columns", "_frame")

    def __init__(self, frame: _brakelight.Frame) -> None:
        self._frame = frame
        self._columns: dict[str, list[Any]] | None = None

    @property
    def columns(self) -> list[str]:
        """The names of the columns; a number's unit ends its name."""
        return self._frame.column_names

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists; a value that is missing is ``None``."""
        if self._columns is None:
            self._columns = self._frame.to_pydict()
        return self._columns

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow table, without a copy.

        Raises:
            ImportError: if pyarrow is not installed.
        """
        return _library("pyarrow", "pandas").table(self)

    def to_polars(self) -> pl.DataFrame:
        """Return a polars DataFrame, without a copy.

        Raises:
            ImportError: if polars is not installed.
        """
        return _library("polars", "polars").DataFrame(self)

    def to_pandas(self) -> pd.DataFrame:
        """Return a pandas DataFrame whose columns are Arrow's (``pandas.ArrowDtype``), without a copy.

        Raises:
            ImportError: if pandas or pyarrow is not installed.
        """
        pandas = _library("pandas", "pandas")
        return self.to_arrow().to_pandas(types_mapper=pandas.ArrowDtype)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        """The older DataFrame interchange protocol. Needs pyarrow."""
        return self.to_arrow().__dataframe__(nan_as_null, allow_copy)

    def __narwhals_dataframe__(self) -> Any:
        """What Altair and Plotly ask for, by Narwhals. Needs pyarrow."""
        narwhals = _library("narwhals", "altair")
        return narwhals.from_native(self.to_arrow(), eager_only=True)._compliant_frame

    def __len__(self) -> int:
        return self._frame.num_rows

    @overload
    def __getitem__(self, which: str) -> list[Any]: ...
    @overload
    def __getitem__(self, which: SupportsIndex) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, which: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, which: str | SupportsIndex | slice) -> list[Any] | dict[str, Any]:
        """Return the column of this name, the row at this place (below 0 from the last), or some rows.

        Raises:
            KeyError: if there is no such column.
            IndexError: if there is no such row.
        """
        if isinstance(which, str):
            if which not in self:
                near = difflib.get_close_matches(which, self.columns, n=1)
                meant = f" (did you mean `{near[0]}`?)" if near else ""
                raise KeyError(f"there is no column `{which}`{meant}: valid are {', '.join(self.columns)}")
            return self.to_dict()[which]
        if isinstance(which, slice):
            return [self._row(place) for place in range(*which.indices(len(self)))]
        return self._row(_place(which, len(self)))

    def _row(self, place: int) -> dict[str, Any]:
        return {name: values[place] for name, values in self.to_dict().items()}

    def __contains__(self, column: object) -> bool:
        return column in self.columns

    def __iter__(self) -> Iterator[dict[str, Any]]:
        columns = self.to_dict()
        return (dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True))

    def __reduce__(self) -> tuple[Any, ...]:
        return Rows, (self._frame,)

    def __copy__(self) -> Rows:
        return Rows(self._frame)

    def __deepcopy__(self, memo: dict[int, Any]) -> Rows:
        # What it holds does not change.
        return Rows(self._frame)

    def __repr__(self) -> str:
        return f"Rows({len(self)} of {len(self.columns)} columns: {', '.join(self.columns)})"

    def _repr_html_(self) -> str:
        return _table(self.columns, [list(row.values()) for row in self], len(self))


class Result:
    """What came out: a row per scheme and trace, or one of a scenario.

    >>> import brakelight as bl
    >>> result = bl.compare(traces="step", schemes="abc,cubic", duration="2s", series=True)
    >>> result.runs.columns[:3]
    ['scheme', 'trace', 'seed']
    >>> sorted(set(result.link_series["scheme"]))
    ['abc', 'cubic']

    Rows go by their place, columns of :attr:`runs` by their name. A result can be pickled.

    >>> [row["scheme"] for row in result], result[0]["scheme"], result["seed"]
    (['abc', 'cubic'], 'abc', [1, 1])
    """

    __slots__ = ("_rows", "_table")

    def __init__(self, table: _brakelight.Table) -> None:
        self._table = table
        self._rows: list[dict[str, Any]] | None = None

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows with all they hold, as ``--format json`` prints them."""
        rows = self._rows
        if rows is None:
            rows = self._rows = json.loads(self._table.json())
        return rows

    @property
    def decision(self) -> dict[str, Any] | None:
        """What to deploy, by what you can change, as ``--format json`` prints it; None without a choice.

        >>> import brakelight as bl
        >>> decision = bl.compare("step", "cubic,copa", duration="2s", runs=2).decision
        >>> [(choice["change"], choice["significant"]) for choice in decision["choices"]]
        [('senders', None)]

        ``today`` is the scheme that runs today. ``against`` is the scheme of the flow beside each, None where each
        had the link to itself. Each of ``choices`` has ``change``, the ``best`` scheme and the
        ``next``, by how much the best is ``ahead`` in power and whether that is ``significant``, and its
        ``throughput`` and ``p95`` over today's.
        """
        decision: dict[str, Any] | None = json.loads(self._table.decision())
        return decision

    @property
    def runs(self) -> Rows:
        """A row per scheme and trace: medians where there were several runs.

        What the application of a flow saw has a column for each number, such as ``main.frame_delay_ms_p95``.
        """
        return Rows(self._table.frame("runs"))

    @property
    def flows(self) -> Rows:
        """A row per flow; ``run`` is the place of its row in :attr:`runs`."""
        return Rows(self._table.frame("flows"))

    @property
    def links(self) -> Rows:
        """A row per link; ``run`` is the place of its row in :attr:`runs`."""
        return Rows(self._table.frame("links"))

    @property
    def link_series(self) -> Rows:
        """A row per bin of each link, of each row's first seed.

        Raises:
            InputError: if no series were asked for (``series=True``).
        """
        return Rows(self._table.frame("link_series"))

    @property
    def flow_series(self) -> Rows:
        """A row per bin of each flow, of each row's first seed; as :attr:`link_series`."""
        return Rows(self._table.frame("flow_series"))

    @property
    def frames(self) -> Rows:
        """A row per frame of each simulated call, of each row's first seed.

        ``taken_s`` is when the camera took it, and ``delay_ms`` how long it took until it could be shown: whole, and
        with the frames that it builds on (NaN or null if it never could). ``playout_delay_ms`` is the same until it
        was shown. A frame of 0 bytes was skipped, and ``key_frame`` is True of a key frame.

        Raises:
            InputError: if no series were asked for (``series=True``), or nothing was a call.
        """
        return Rows(self._table.frame("frames"))

    @property
    def link_logs(self) -> Rows:
        """A row per event of each link, of each row's first seed: opportunities, arrivals, departures, drops.

        Raises:
            InputError: if no logs were asked for (``record={"link_logs": True}`` in the scenario).
        """
        return Rows(self._table.frame("link_logs"))

    @property
    def title(self) -> str:
        """What it is about, in a few words."""
        return self._table.title

    @property
    def setting(self) -> dict[str, str]:
        """What was the same for every run."""
        return dict(self._table.setting)

    @property
    def notes(self) -> list[str]:
        """What a reader should know."""
        return self._table.notes

    @property
    def warnings(self) -> list[str]:
        """What a reader of the numbers should be told with them."""
        return self._table.warnings()

    @property
    def plot(self) -> Plot:
        """Figures: ``result.plot.scatter()``, ``result.plot.series()``. Needs matplotlib or plotly."""
        from brakelight.plot import Plot

        return Plot(self)

    def to_arrow(self) -> pa.Table:
        """Return :attr:`runs` as a pyarrow table."""
        return self.runs.to_arrow()

    def to_polars(self) -> pl.DataFrame:
        """Return :attr:`runs` as a polars DataFrame."""
        return self.runs.to_polars()

    def to_pandas(self) -> pd.DataFrame:
        """Return :attr:`runs` as a pandas DataFrame."""
        return self.runs.to_pandas()

    def to_csv(self) -> str:
        """Return the rows as CSV, as ``--format csv`` prints them."""
        return self._table.csv()

    def to_html(self) -> str:
        """Return the report: a page that needs nothing else."""
        return self._table.html(int(self.rows[0]["seed"]) if self.rows else 1)

    def write_report(self, path: str | os.PathLike[str]) -> None:
        """Write the report into a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.to_html())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.runs.__arrow_c_stream__(requested_schema)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        return self.runs.__dataframe__(nan_as_null, allow_copy)

    def __narwhals_dataframe__(self) -> Any:
        return self.runs.__narwhals_dataframe__()

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    @overload
    def __getitem__(self, which: str) -> list[Any]: ...
    @overload
    def __getitem__(self, which: SupportsIndex) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, which: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, which: str | SupportsIndex | slice) -> list[Any] | dict[str, Any]:
        """Return the column of :attr:`runs` of this name, the row at this place, or some rows."""
        if isinstance(which, str):
            return self.runs[which]
        if isinstance(which, slice):
            return self.rows[which]
        return self.rows[_place(which, len(self))]

    def __contains__(self, column: object) -> bool:
        return column in self.runs

    def __reduce__(self) -> tuple[Any, ...]:
        return Result, (self._table,)

    def __copy__(self) -> Result:
        return Result(self._table)

    def __deepcopy__(self, memo: dict[int, Any]) -> Result:
        return Result(self._table)

    def __str__(self) -> str:
        return self._table.text(110)

    def __repr__(self) -> str:
        return f"Result({self.title!r}, {len(self)} rows)"

    def _repr_html_(self) -> str:
        heading = ["scheme", "trace", "utilization", "throughput Mbit/s", "p95 queueing ms", "loss %"]
        cells = []
        for row in self.rows:
            delay = row.get("queueing_delay_ms") or {}
            cells.append([row["scheme"], row["trace"], row["utilization"], row["throughput_mbps"], delay.get("p95"), row["loss_percent"]])
        return _table(heading, cells, len(cells)) + _scatter(self.rows)


def _place(which: SupportsIndex, count: int) -> int:
    """Return the place of a row, which counts from the last if it is below 0."""
    try:
        place = operator.index(which)
    except TypeError:
        raise TypeError(f"`{which!r}` is no place of a row, and no name of a column") from None
    if not -count <= place < count:
        raise IndexError(f"there is no row {place}: there are {count}")
    return place % count


def _shown(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))


def _table(heading: list[str], rows: list[list[Any]], count: int) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heading)
    body = "".join(
        "<tr>" + "".join(f"<td>{_shown(value)}</td>" for value in row) + "</tr>" for row in rows[:_SHOWN]
    )
    more = f"<p>{count - _SHOWN} more rows</p>" if count > _SHOWN else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def _scatter(rows: list[dict[str, Any]]) -> str:
    """Draw throughput over the 95th percentile of the queueing delay, which falls to the right."""
    points = [
        (row["queueing_delay_ms"]["p95"], row["throughput_mbps"], row["scheme"], row["trace"])
        for row in rows
        if row.get("queueing_delay_ms")
    ]
    if len(points) < 2:
        return ""
    slowest = max(point[0] for point in points) or 1.0
    fastest = max(point[1] for point in points) or 1.0
    marks = []
    for delay, rate, scheme, trace in points:
        x, y = 40 + 400 * (1 - delay / slowest), 210 - 190 * rate / fastest
        words = html.escape(f"{scheme} on {trace}: {rate:.3g} Mbit/s, {delay:.3g} ms")
        marks.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{words}</title></circle>'
            f'<text x="{x + 6:.1f}" y="{y + 3:.1f}" font-size="10">{html.escape(scheme)}</text>'
        )
    return (
        '<svg viewBox="0 0 520 240" width="520" fill="currentColor" role="img">'
        '<path d="M40 10V210H450" fill="none" stroke="currentColor"/>' + "".join(marks) + f'<text x="40" y="228" font-size="10">{slowest:.3g} ms</text>'
        '<text x="300" y="228" font-size="10">p95 queueing delay → 0 ms</text>'
        f'<text x="44" y="14" font-size="10">{fastest:.3g} Mbit/s</text></svg>'
    )
