"""Where the shards of a sweep run: joblib's processes, a Ray cluster, Slurm by submitit.

The grid is cut into shards of about a minute. A worker runs one into a folder of its own and sends back what is in
it; the caller keeps it as a part. Once all are there, the tables are made of the parts in the order of the grid, so
they have the same bytes as those of one machine. Parts that are there are not run again.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from brakelight import _brakelight
from brakelight._progress import Progress
from brakelight.trace import Trace

Files = dict[str, bytes]
"""The files of a part, by name."""

Engine = Callable[["Spec", list[int], int, dict[str, Any]], Iterator[tuple[int, Files]]]
"""Runs shards, and gives the files of each as soon as it is done."""

_SHARD_S = 60.0
"""About how long a shard should take on one core."""

_JOURNAL = "runs.jsonl"


class Spec:
    """A grid as workers get it."""

    def __init__(self, text: str, traces: list[Trace]) -> None:
        self.text = text
        self.traces = traces

    def plan(self) -> _brakelight.Sweep:
        """Return the grid, checked."""
        return _brakelight.Sweep.of_spec(self.text, [trace._trace for trace in self.traces])

    def digest(self) -> str:
        """Return a hash of it."""
        parts = [self.text] + [f"{trace.name} {trace._trace.to_mahimahi()}" for trace in self.traces]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def shard(spec: Spec, index: int, of: int) -> Files:
    """Run shard ``index`` of ``of`` in this process, on one core, and return its files."""
    # Workers are as many as cores; what was set counts.
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory(prefix="brakelight-shard-") as folder:
        spec.plan().write(folder, (index, of), False, None)
        return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def _joblib(spec: Spec, missing: list[int], of: int, options: dict[str, Any]) -> Iterator[tuple[int, Files]]:
    from joblib import Parallel, delayed

    pool: Any = Parallel(**{"n_jobs": -1, **options}, return_as="generator_unordered")
    yield from pool(delayed(_numbered)(spec, index, of) for index in missing)


def _numbered(spec: Spec, index: int, of: int) -> tuple[int, Files]:
    return index, shard(spec, index, of)


def _ray(spec: Spec, missing: list[int], of: int, options: dict[str, Any]) -> Iterator[tuple[int, Files]]:
    import ray  # pyright: ignore[reportMissingImports]
    from ray import exceptions  # pyright: ignore[reportMissingImports]

    if not ray.is_initialized():
        ray.init()
    # A worker or a node that dies takes its shards with it: they are run again.
    task = ray.remote(**{"num_cpus": 1, "max_retries": 5, **options})(shard)
    shared = ray.put(spec)
    running = {task.remote(shared, index, of): index for index in missing}
    while running:
        done, _ = ray.wait(list(running), num_returns=1)
        for reference in done:
            index = running.pop(reference)
            try:
                yield index, ray.get(reference)
            except (exceptions.ObjectLostError, exceptions.OwnerDiedError):
                # Its result went with the node that had it.
                running[task.remote(shared, index, of)] = index


def _submitit(spec: Spec, missing: list[int], of: int, options: dict[str, Any]) -> Iterator[tuple[int, Files]]:
    import submitit

    settings = {"timeout_min": 60, "cpus_per_task": 1, **options}
    executor = submitit.AutoExecutor(
        folder=settings.pop("folder", "submitit-logs"), cluster=settings.pop("cluster", None)
    )
    executor.update_parameters(**settings)
    jobs = executor.map_array(_numbered, [spec] * len(missing), missing, [of] * len(missing))
    for job in submitit.helpers.as_completed(jobs):
        yield job.result()


ENGINES: dict[str, Engine] = {"joblib": _joblib, "ray": _ray, "submitit": _submitit}
"""What ``engine=`` names, beside ``"local"``."""


def run(
    spec: Spec,
    engine: str,
    out: Path,
    *,
    shards: int | None,
    resume: bool,
    options: dict[str, Any],
    progress: Progress | None,
) -> list[Path]:
    """Run a grid by an engine into a folder, and return its tables.

    Raises:
        InputError: if there is no such engine, or the folder has another sweep, or this one and ``resume`` is not
            set.
    """
    if engine not in ENGINES:
        raise _brakelight.InputError(f"engine = `{engine}`: valid are local, {', '.join(ENGINES)}")
    plan = spec.plan()
    out.mkdir(parents=True, exist_ok=True)
    note = out / "sweep.json"
    if note.exists() or (out / _JOURNAL).exists():
        if not resume:
            raise _brakelight.InputError(f"{out}: there is a sweep already; resume it, or give another folder")
        known = json.loads(note.read_text()) if note.exists() else {}
        if known.get("grid") != spec.digest():
            raise _brakelight.InputError(f"{out}: the sweep there has another grid; give another folder")
        shards = int(known["shards"])
    if shards is None:
        shards = _shards(plan)
    if not 1 <= shards <= plan.runs:
        raise _brakelight.InputError(f"shards = `{shards}` is out of range: valid is 1 to {plan.runs}, the runs")
    note.write_text(json.dumps({"grid": spec.digest(), "shards": shards}) + "\n")
    parts = out / "parts"
    parts.mkdir(exist_ok=True)
    places = {index: parts / f"{index:05}-of-{shards:05}" for index in range(1, shards + 1)}
    missing = [index for index, place in places.items() if not place.exists()]
    if progress is not None:
        progress.begin("sweeping", len(missing))
    for index, files in ENGINES[engine](spec, missing, shards, options) if missing else ():
        _keep(places[index], files)
        if progress is not None:
            progress.step(f"shard {index}")
    _merge([place / _JOURNAL for place in places.values()], out / _JOURNAL)
    _, _, written = plan.write(os.fspath(out), (1, 1), True, None)
    return [Path(file) for file in written]


def _shards(plan: _brakelight.Sweep) -> int:
    """Return how many shards take about a minute each, as a few runs tell, and are enough for many workers."""
    begin, tried = time.perf_counter(), 0
    for run in range(0, plan.runs, max(1, plan.runs // 8)):
        plan.rows([run], None)
        tried += 1
        if time.perf_counter() - begin > 5.0:
            break
    each = (time.perf_counter() - begin) / tried
    wanted = max(round(plan.runs * each / _SHARD_S), 4 * (os.cpu_count() or 1))
    return max(1, min(wanted, plan.runs))


def _keep(place: Path, files: Files) -> None:
    """Write a part: all of it, or nothing."""
    making = place.with_name(place.name + ".part")
    shutil.rmtree(making, ignore_errors=True)
    making.mkdir()
    for name, contents in files.items():
        (making / name).write_bytes(contents)
    making.rename(place)


def _merge(journals: list[Path], into: Path) -> None:
    """Write the lines of all shards in the order of the grid: run ``k * n + i`` is line ``k`` of shard ``i``."""
    making = into.with_name(into.name + ".part")
    # As many files may not be open at once.
    lines = [iter(journal.read_bytes().splitlines(keepends=True)) for journal in journals]
    with making.open("wb") as file:
        for row in itertools.zip_longest(*lines):
            file.writelines(line for line in row if line is not None)
    making.rename(into)
