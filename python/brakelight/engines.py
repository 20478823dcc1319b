"""Where the shards of a sweep run: joblib's processes, a Ray cluster, Slurm by submitit.

The grid is cut into shards of about a minute, and of no more than some thousand runs. A worker runs one into a folder
of its own and sends back its journal; the caller keeps it as a part. Once all are there, the tables are made of the
parts in the order of the grid, so they have the same bytes as those of one machine. Parts that are there are not run
again. No more than some thousand lines of the parts are in memory at once, however many there are.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from brakelight import _brakelight
from brakelight._lists import traces
from brakelight._progress import Progress
from brakelight.controller import Algorithm, named_in, register
from brakelight._trace import Trace

Files = dict[str, bytes]
"""The files of a part, by name."""

Engine = Callable[["Spec", list[int], int, dict[str, Any]], Iterator[tuple[int, Files]]]
"""Runs shards, and gives the files of each as soon as it is done."""

_SHARD_S = 60.0
"""About how long a shard should take on one core."""

_JOURNAL = "runs.jsonl"

_LINES = 8_192
"""Lines of the parts that are in memory at once, and runs of the largest part: about 15 MB."""


class Spec:
    """A grid as workers get it: they need nothing else, neither files nor modules of the program."""

    def __init__(self, text: str, traces: list[Trace], classes: Iterable[Algorithm] = ()) -> None:
        self.text = text
        self.traces = traces
        self.classes = list(classes)
        self.known_in: Path | None = None
        """The caller's folder of runs that need not be made again."""

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "known_in": None}

    def known(self, index: int) -> bytes:
        """Return the runs of a shard that need not be made again, as lines of a journal."""
        file = None if self.known_in is None else self.known_in / f"{index:05}"
        return b"" if file is None or not file.exists() else file.read_bytes()

    @classmethod
    def of(cls, plan: _brakelight.Sweep) -> Spec:
        """Return a grid with the traces that it names, but those that the package brings, and its classes."""
        brought = {each["name"] for each in traces() if each["embedded"]}
        named = [Trace._of(trace) for trace in plan.traces()]
        text = plan.spec()
        return cls(text, [trace for trace in named if trace.name not in brought or trace != Trace.named(trace.name)], named_in(text))

    def plan(self) -> _brakelight.Sweep:
        """Return the grid, checked."""
        for algorithm in self.classes:
            register(algorithm)
        return _brakelight.Sweep.of_spec(self.text, [trace._trace for trace in self.traces])

    def digest(self) -> str:
        """Return a hash of it."""
        parts = [self.text] + [f"{trace.name} {trace._trace.to_mahimahi()}" for trace in self.traces]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def shard(spec: Spec, index: int, of: int, known: bytes = b"") -> Files:
    """Run shard ``index`` of ``of`` in this process, on one core, and return its files.

    ``known`` are lines of a journal: runs that need not be made again.
    """
    # Workers are as many as cores; what was set counts.
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory(prefix="brakelight-shard-") as folder:
        if known:
            Path(folder, _JOURNAL).write_bytes(known)
        spec.plan().write(folder, (index, of), bool(known), None)
        return {_JOURNAL: Path(folder, _JOURNAL).read_bytes()}


def _joblib(spec: Spec, missing: list[int], of: int, options: dict[str, Any]) -> Iterator[tuple[int, Files]]:
    from joblib import Parallel, delayed

    pool: Any = Parallel(**{"n_jobs": -1, **options}, return_as="generator_unordered")
    yield from pool(delayed(_numbered)(spec, index, of, spec.known(index)) for index in missing)


def _numbered(spec: Spec, index: int, of: int, known: bytes) -> tuple[int, Files]:
    return index, shard(spec, index, of, known)


def _ray(spec: Spec, missing: list[int], of: int, options: dict[str, Any]) -> Iterator[tuple[int, Files]]:
    import ray  # pyright: ignore[reportMissingImports]
    from ray import exceptions  # pyright: ignore[reportMissingImports]

    if not ray.is_initialized():
        ray.init()
    # A worker or a node that dies takes its shards with it: they are run again.
    task = ray.remote(**{"num_cpus": 1, "max_retries": 5, **options})(shard)
    shared = ray.put(spec)
    running = {task.remote(shared, index, of, spec.known(index)): index for index in missing}
    while running:
        done, _ = ray.wait(list(running), num_returns=1)
        for reference in done:
            index = running.pop(reference)
            try:
                yield index, ray.get(reference)
            except (exceptions.ObjectLostError, exceptions.OwnerDiedError):
                # Its result went with the node that had it.
                running[task.remote(shared, index, of, spec.known(index))] = index


def _submitit(spec: Spec, missing: list[int], of: int, options: dict[str, Any]) -> Iterator[tuple[int, Files]]:
    import submitit

    settings = {"timeout_min": 60, "cpus_per_task": 1, **options}
    executor = submitit.AutoExecutor(
        folder=settings.pop("folder", "submitit-logs"), cluster=settings.pop("cluster", None)
    )
    executor.update_parameters(**settings)
    known = [spec.known(index) for index in missing]
    jobs = executor.map_array(_numbered, [spec] * len(missing), missing, [of] * len(missing), known)
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

    With ``resume`` the grid may have grown: runs that the folder has are kept.

    Raises:
        InputError: if there is no such engine, or the folder has a sweep and ``resume`` is not set, or one that has no
            run in common with this one.
    """
    if engine not in ENGINES:
        raise _brakelight.InputError(f"engine = `{engine}`: valid are local, {', '.join(ENGINES)}")
    plan = spec.plan()
    out.mkdir(parents=True, exist_ok=True)
    note, parts, grown = out / "sweep.json", out / "parts", False
    if note.exists() or (out / _JOURNAL).exists():
        if not resume:
            raise _brakelight.InputError(f"{out}: there is a sweep already; resume it, or give another folder")
        before = json.loads(note.read_text()) if note.exists() else {}
        grown = before.get("grid") != spec.digest()
        shards = shards if grown else int(before["shards"])
    if shards is None:
        shards = _shards(plan)
    if not 1 <= shards <= plan.runs:
        raise _brakelight.InputError(f"shards = `{shards}` is out of range: valid is 1 to {plan.runs}, the runs")
    if grown or not note.exists():
        # A part comes back whole. Those that are there stay as they were cut.
        shards = max(shards, -(-plan.runs // _LINES))
    if grown:
        _keep_known(plan, out, shards)
        shutil.rmtree(parts, ignore_errors=True)
    note.write_text(json.dumps({"grid": spec.digest(), "shards": shards}) + "\n")
    spec.known_in = out / "known" if (out / "known").exists() else None
    parts.mkdir(exist_ok=True)
    places = {index: parts / f"{index:05}-of-{shards:05}" for index in range(1, shards + 1)}
    missing = [index for index, place in places.items() if not place.exists()]
    if progress is not None:
        progress.begin("sweeping", len(missing))
    for index, files in ENGINES[engine](spec, missing, shards, options) if missing else ():
        _keep(places[index], files)
        # Not while the next ones come.
        files.clear()
        if progress is not None:
            progress.step(f"shard {index}")
    _merge([place / _JOURNAL for place in places.values()], out / _JOURNAL)
    _, _, written = plan.write(os.fspath(out), (1, 1), True, None)
    shutil.rmtree(out / "known", ignore_errors=True)
    (out / "known.jsonl").unlink(missing_ok=True)
    return [Path(file) for file in written]


def _keep_known(plan: _brakelight.Sweep, out: Path, shards: int) -> None:
    """Write the lines of the runs that a folder has of this grid, those of each shard into a file of ``known``."""
    gathered = out / "known.jsonl"
    there = [gathered, out / _JOURNAL, *sorted((out / "parts").glob(f"*/{_JOURNAL}"))]
    making = out / "known.jsonl.part"
    with making.open("wb") as file:
        for journal in filter(Path.exists, there):
            with journal.open("rb") as lines:
                shutil.copyfileobj(lines, file)
    kept = plan.kept(os.fspath(making))
    if not kept:
        making.unlink()
        raise _brakelight.InputError(f"{out}: the sweep there has no run of this grid; give another folder")
    making.replace(gathered)
    known = out / "known"
    shutil.rmtree(known, ignore_errors=True)
    made = out / "known.part"
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    # The runs of a shard together, in their order.
    kept.sort(key=lambda pair: pair[0] % shards)
    with gathered.open("rb") as lines:
        for index, pairs in itertools.groupby(kept, lambda pair: pair[0] % shards + 1):
            with (made / f"{index:05}").open("wb") as file:
                for _, place in pairs:
                    lines.seek(place)
                    file.write(lines.readline())
    made.rename(known)
    (out / _JOURNAL).unlink(missing_ok=True)


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
    each = max(1, _LINES // len(journals))
    places = [0] * len(journals)

    def following(number: int) -> list[bytes]:
        # As many files may not be open at once.
        with journals[number].open("rb") as file:
            file.seek(places[number])
            lines = [line for line in itertools.islice(file, each) if line.endswith(b"\n")]
        places[number] += sum(map(len, lines))
        return lines

    with making.open("wb") as file:
        while True:
            some = map(following, range(len(journals)))
            # Where each has one line, none waits for the others: there may be more parts than lines may be in memory.
            rows: Iterable[Iterable[bytes | None]] = some if each == 1 else itertools.zip_longest(*some)
            if not sum(file.write(line) for row in rows for line in row if line is not None):
                break
    making.rename(into)
