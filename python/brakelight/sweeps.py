"""Grids of runs, here or on a cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from brakelight import _brakelight, engines
from brakelight._arguments import each, refused, whole
from brakelight._progress import Progress, watching
from brakelight.controller import is_algorithm
from brakelight.lab import _schemes
from brakelight.results import Rows
from brakelight.scenario import Scenario, plain_of, several
from brakelight._trace import Trace

if TYPE_CHECKING:
    from brakelight.plot import SweepPlot


@dataclass(frozen=True)
class SweepResult:
    """The rows of a sweep that was kept in memory."""

    runs: Rows
    """A row per run: ``run_id``, every axis, every metric."""
    flows: Rows
    """A row per flow, with the ``run_id`` of its run."""
    links: Rows
    """A row per link, with the ``run_id`` of its run."""

    def to_arrow(self) -> Any:
        """Return :attr:`runs` as a pyarrow table."""
        return self.runs.to_arrow()

    def to_polars(self) -> Any:
        """Return :attr:`runs` as a polars DataFrame."""
        return self.runs.to_polars()

    def to_pandas(self) -> Any:
        """Return :attr:`runs` as a pandas DataFrame."""
        return self.runs.to_pandas()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.runs.__arrow_c_stream__(requested_schema)

    def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
        return self.runs.__dataframe__(nan_as_null, allow_copy)

    def __narwhals_dataframe__(self) -> Any:
        return self.runs.__narwhals_dataframe__()

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.runs)

    @overload
    def __getitem__(self, which: str) -> list[Any]: ...
    @overload
    def __getitem__(self, which: SupportsIndex) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, which: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, which: str | SupportsIndex | slice) -> list[Any] | dict[str, Any]:
        """Return the column of :attr:`runs` of this name, the row at this place, or some rows."""
        return self.runs[which]

    def __contains__(self, column: object) -> bool:
        return column in self.runs

    @property
    def plot(self) -> SweepPlot:
        """Figures: ``rows.plot.scatter()``, ``rows.plot.axis("rtt")``. Needs matplotlib or plotly."""
        from brakelight.plot import SweepPlot

        return SweepPlot(self.runs)

    def _repr_html_(self) -> str:
        return self.runs._repr_html_()


@overload
def sweep(
    grid: Mapping[str, Any] | str | os.PathLike[str],
    *,
    out: None = None,
    runs: int | None = None,
    traces: Iterable[Trace] = (),
    shard: tuple[int, int] = (1, 1),
    resume: bool = False,
    force: bool = False,
    engine: str = "local",
    shards: int | None = None,
    options: Mapping[str, Any] | None = None,
    progress: bool | Progress | None = None,
) -> SweepResult: ...
@overload
def sweep(
    grid: Mapping[str, Any] | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str],
    runs: int | None = None,
    traces: Iterable[Trace] = (),
    shard: tuple[int, int] = (1, 1),
    resume: bool = False,
    force: bool = False,
    engine: str = "local",
    shards: int | None = None,
    options: Mapping[str, Any] | None = None,
    progress: bool | Progress | None = None,
) -> list[Path]: ...
def sweep(
    grid: Mapping[str, Any] | str | os.PathLike[str],
    *,
    out: str | os.PathLike[str] | None = None,
    runs: int | None = None,
    traces: Iterable[Trace] = (),
    shard: tuple[int, int] = (1, 1),
    resume: bool = False,
    force: bool = False,
    engine: str = "local",
    shards: int | None = None,
    options: Mapping[str, Any] | None = None,
    progress: bool | Progress | None = None,
) -> SweepResult | list[Path]:
    """Run every combination of the values of some axes.

    >>> import brakelight as bl
    >>> rows = bl.sweep({"axes": {"scheme": ["abc", "cubic"], "trace": "step", "duration": "2s"}, "runs": 2})
    >>> len(rows), rows.runs.columns[:3]
    (4, ['run_id', 'duration', 'scheme'])

    Args:
        grid: a dict with the keys of a grid file (``axes``, ``runs``, ``seed``, ``scenario``), or the file. Axes
            of a dict are in their order, the last changes fastest; their values may be traces, classes of
            controllers, times, arrays and ranges. ``scenario`` may be a :class:`Scenario` or the dict of one.
        out: a folder for ``runs``, ``flows`` and ``links`` as CSV and Parquet; without it they are returned.
        runs: seeds of every combination, instead of the grid's own.
        traces: traces made in the program, which the axis ``trace`` may name.
        shard: ``(i, n)`` runs the ``i``-th of ``n`` parts, counted from 1.
        resume: whether to keep the runs that the folder has already. The grid may have grown since.
        force: whether to run it even if it may take hours or fill the memory.
        engine: ``"local"`` (threads), ``"joblib"`` (processes), ``"ray"`` (a cluster) or ``"submitit"`` (Slurm).
            All give the same tables, to the byte. All but the first need ``out``.
        shards: into how many parts an engine cuts the grid; about a minute each, if None. There are more where a part
            would have more than 8,192 runs.
        options: for the engine: of ``joblib.Parallel``, ``ray.remote``, or submitit's executor (with ``folder``
            for its logs and ``cluster``).
        progress: as of :func:`compare`.

    Returns:
        The rows, or the files written.

    Raises:
        InputError: if the grid is wrong, or the folder has a sweep and ``resume`` is not set.
    """
    planned = _plan(grid, None if runs is None else whole("runs", runs, 1), several(traces))
    index, of = _shard(shard)
    if not force:
        planned.check()
    if engine != "local":
        if out is None or (index, of) != (1, 1):
            raise _brakelight.InputError(f"engine = `{engine}`: it needs the folder `out`, and makes shards of its own")
        spec = engines.Spec.of(planned)
        with watching(progress) as told:
            return engines.run(
                spec,
                engine,
                Path(out),
                shards=None if shards is None else whole("shards", shards, 0),
                resume=resume,
                options=dict(options or {}),
                progress=told,
            )
    with watching(progress) as told:
        if out is not None:
            _, _, files = planned.write(os.fspath(out), (index, of), bool(resume), told)
            return [Path(file) for file in files]
        wanted = list(range(index - 1, planned.runs, of))
        return SweepResult(*map(Rows, planned.rows(wanted, told)))


def _shard(shard: Any) -> tuple[int, int]:
    parts = each(shard)
    if parts is None or len(parts) != 2:
        raise refused("shard", shard, "a pair such as `(2, 8)`: the second of eight")
    index, of = (whole("shard", part, 0, 2**63 - 1) for part in parts)
    if not 1 <= index <= of:
        raise _brakelight.InputError(f"`{index}/{of}` is not a shard such as `2/8`: the second of eight")
    return index, of


def _plan(
    grid: Mapping[str, Any] | str | os.PathLike[str], runs: int | None, traces: Iterable[Trace]
) -> _brakelight.Sweep:
    given = [trace._trace for trace in traces]
    if isinstance(grid, (str, os.PathLike)):
        return _brakelight.Sweep.read(os.fspath(grid), runs, given)
    if not isinstance(grid, Mapping):
        raise refused("grid", grid, "a dict with `axes`, or the path of a grid file")
    keys = ("axes", "runs", "seed", "scenario")
    unknown = [key for key in grid if key not in keys]
    if unknown:
        raise _brakelight.InputError(f"grid: unknown key `{unknown[0]}`: valid are {', '.join(keys)}")
    made = {trace.name: trace for trace in traces}
    named = grid.get("axes", {})
    if not isinstance(named, Mapping):
        raise refused("axes", named, "a dict of names and values")
    axes = [(str(name), _values(str(name), values, made)) for name, values in named.items()]
    scenario = grid.get("scenario")
    if isinstance(scenario, (str, os.PathLike)):
        scenario = Scenario.read(scenario)
    elif isinstance(scenario, Mapping):
        scenario = Scenario(scenario)
    elif scenario is not None and not isinstance(scenario, Scenario):
        raise refused("scenario", scenario, "a Scenario, a dict, or the path of a file")
    if scenario is not None:
        for trace in scenario._traces().values():
            if made.setdefault(trace.name, trace) != trace:
                raise _brakelight.InputError(f"two traces are called `{trace.name}`: give each a name of its own")
    return _brakelight.Sweep.of_axes(
        json.dumps(axes),
        whole("runs", grid.get("runs", 1), 1) if runs is None else runs,
        whole("seed", grid.get("seed", 1), 0, 2**63 - 1),
        None if scenario is None else scenario.to_toml(),
        [trace._trace for trace in made.values()],
    )


def _values(axis: str, values: Any, made: dict[str, Trace]) -> list[Any]:
    """Return the values of an axis as JSON has them. Traces are added to ``made``."""
    if not isinstance(values, Trace):
        listed = each(values)
        if listed is not None:
            return [_value(axis, value, made) for value in listed]
    return [_value(axis, values, made)]


def _value(axis: str, value: Any, made: dict[str, Trace]) -> Any:
    if axis in ("scheme", "against") and is_algorithm(value):
        return _schemes(value)[0]
    return plain_of(f"axes.{axis}", value, made)
