"""Grids of runs, here or on a cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brakelight import _brakelight, engines
from brakelight._progress import Progress, watching
from brakelight.results import Rows
from brakelight.scenario import Scenario
from brakelight.trace import Trace


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

    def __len__(self) -> int:
        return len(self.runs)

    def _repr_html_(self) -> str:
        return self.runs._repr_html_()


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
            of a dict are in their order, the last changes fastest. ``scenario`` may be a :class:`Scenario` or
            the dict of one.
        out: a folder for ``runs``, ``flows`` and ``links`` as CSV and Parquet; without it they are returned.
        runs: seeds of every combination, instead of the grid's own.
        traces: traces made in the program, which the axis ``trace`` may name.
        shard: ``(i, n)`` runs the ``i``-th of ``n`` parts, counted from 1.
        resume: whether to keep the runs that the folder has already.
        force: whether to run it even if it may take hours or fill the memory.
        engine: ``"local"`` (threads), ``"joblib"`` (processes), ``"ray"`` (a cluster) or ``"submitit"`` (Slurm).
            All give the same tables, to the byte. All but the first need ``out``.
        shards: into how many parts an engine cuts the grid; about a minute each, if None.
        options: for the engine: of ``joblib.Parallel``, ``ray.remote``, or submitit's executor (with ``folder``
            for its logs and ``cluster``).
        progress: as of :func:`compare`.

    Returns:
        The rows, or the files written.

    Raises:
        InputError: if the grid is wrong, or the folder has a sweep and ``resume`` is not set.
    """
    made = list(traces)
    planned = _plan(grid, runs, made)
    if not force:
        planned.check()
    if engine != "local":
        if out is None or shard != (1, 1):
            raise _brakelight.InputError(f"engine = `{engine}`: it needs the folder `out`, and makes shards of its own")
        spec = engines.Spec(planned.spec(), [*made, *_traces_of(grid)])
        with watching(progress) as told:
            return engines.run(
                spec, engine, Path(out), shards=shards, resume=resume, options=dict(options or {}), progress=told
            )
    with watching(progress) as told:
        if out is not None:
            _, _, files = planned.write(os.fspath(out), shard, resume, told)
            return [Path(file) for file in files]
        index, of = shard
        if not 1 <= index <= of:
            raise _brakelight.InputError(f"`{index}/{of}` is not a shard such as `2/8`: the second of eight")
        wanted = list(range(index - 1, planned.runs, of))
        return SweepResult(*map(Rows, planned.rows(wanted, told)))


def _traces_of(grid: Mapping[str, Any] | str | os.PathLike[str]) -> list[Trace]:
    scenario = grid.get("scenario") if isinstance(grid, Mapping) else None
    return [Trace._of(trace) for trace in scenario._scenario.traces()] if isinstance(scenario, Scenario) else []


def _plan(
    grid: Mapping[str, Any] | str | os.PathLike[str], runs: int | None, traces: Iterable[Trace]
) -> _brakelight.Sweep:
    given = [trace._trace for trace in traces]
    if not isinstance(grid, Mapping):
        return _brakelight.Sweep.read(os.fspath(grid), runs, given)
    keys = ("axes", "runs", "seed", "scenario")
    unknown = [key for key in grid if key not in keys]
    if unknown:
        raise _brakelight.InputError(f"grid: unknown key `{unknown[0]}`: valid are {', '.join(keys)}")
    axes = [
        (name, list(values) if isinstance(values, Sequence) and not isinstance(values, str) else [values])
        for name, values in grid.get("axes", {}).items()
    ]
    scenario = grid.get("scenario")
    if isinstance(scenario, (str, os.PathLike)):
        scenario = Scenario.read(scenario)
    elif isinstance(scenario, Mapping):
        scenario = Scenario(scenario)
    if scenario is not None:
        given += scenario._scenario.traces()
    return _brakelight.Sweep.of_axes(
        json.dumps(axes),
        int(grid.get("runs", 1)) if runs is None else runs,
        int(grid.get("seed", 1)),
        None if scenario is None else scenario.to_toml(),
        given,
    )
