"""Sweeps by other engines have the bytes of the local one."""

from __future__ import annotations

import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import brakelight as bl
import pytest
from brakelight import engines

TRACE = bl.Trace.from_numpy([12.0, 3.0, 6.0], step_ms=200, name="mine")
GRID: dict[str, Any] = {
    "axes": {"scheme": ["abc", "cubic"], "trace": ["mine"], "duration": "1s", "rtt": ["20ms", "40ms"]},
    "runs": 5,
}
TABLES = [f"{name}.{kind}" for name in ("runs", "flows", "links") for kind in ("csv", "parquet")] + ["runs.jsonl"]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("local") / "sweep"
    bl.sweep(GRID, out=out, traces=[TRACE])
    return {name: (out / name).read_bytes() for name in TABLES}


def same(out: Path, local: dict[str, bytes]) -> None:
    for name in TABLES:
        assert (out / name).read_bytes() == local[name], name


@pytest.mark.parametrize("engine", ["joblib", "submitit"])
def test_an_engine_gives_the_bytes_of_the_local_one(engine: str, tmp_path: Path, local: dict[str, bytes]) -> None:
    pytest.importorskip(engine)
    options = {"joblib": {"n_jobs": 2}, "submitit": {"cluster": "debug", "folder": tmp_path / "logs"}}[engine]
    files = bl.sweep(GRID, out=tmp_path / "out", traces=[TRACE], engine=engine, shards=3, options=options)
    assert isinstance(files, list) and len(files) == 6
    same(tmp_path / "out", local)


def test_ray_gives_the_bytes_of_the_local_engine(tmp_path: Path, local: dict[str, bytes]) -> None:
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        bl.sweep(GRID, out=tmp_path / "out", traces=[TRACE], engine="ray", shards=3)
    finally:
        ray.shutdown()
    same(tmp_path / "out", local)


def test_a_sweep_whose_driver_died_goes_on_with_the_parts_that_are_missing(
    tmp_path: Path, local: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[int] = []

    def here(spec: engines.Spec, missing: list[int], of: int, options: dict[str, Any]) -> Any:
        for index in missing:
            if options.get("dies") and len(ran) == 2:
                raise KeyboardInterrupt
            ran.append(index)
            yield index, engines.shard(spec, index, of)

    monkeypatch.setitem(engines.ENGINES, "here", here)
    monkeypatch.setenv("RAYON_NUM_THREADS", os.environ.get("RAYON_NUM_THREADS", ""))
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        bl.sweep(GRID, out=out, traces=[TRACE], engine="here", shards=4, options={"dies": True})
    with pytest.raises(bl.InputError, match="there is a sweep already"):
        bl.sweep(GRID, out=out, traces=[TRACE], engine="here")
    other = {**GRID, "axes": {**GRID["axes"], "rtt": "60ms"}}
    with pytest.raises(bl.InputError, match="has no run of this grid"):
        bl.sweep(other, out=out, traces=[TRACE], engine="here", resume=True)
    # What was being written when it died is no part.
    (out / "parts" / "00003-of-00004.part").mkdir()
    bl.sweep(GRID, out=out, traces=[TRACE], engine="here", resume=True)
    assert sorted(ran) == [1, 2, 3, 4]
    same(out, local)


def test_a_sweep_that_has_grown_keeps_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def here(spec: engines.Spec, missing: list[int], of: int, options: dict[str, Any]) -> Any:
        for index in missing:
            known = spec.known(index)
            ran.append(f"{index}/{of}")
            files = engines.shard(spec, index, of, known)
            lines.append((known.count(b"\n"), files["runs.jsonl"].count(b"\n")))
            yield index, files

    lines: list[tuple[int, int]] = []
    monkeypatch.setitem(engines.ENGINES, "here", here)
    monkeypatch.setenv("RAYON_NUM_THREADS", os.environ.get("RAYON_NUM_THREADS", ""))
    axes = {**GRID["axes"], "scheme": ["abc", "bbr", "cubic"], "rtt": ["20ms", "30ms", "40ms"]}
    grown: dict[str, Any] = {"axes": axes, "runs": 7}
    bl.sweep(grown, out=tmp_path / "whole", traces=[TRACE])
    wanted = {name: (tmp_path / "whole" / name).read_bytes() for name in TABLES if name != "runs.jsonl"}
    for engine in ("local", "here"):
        out = tmp_path / f"from-{engine}"
        bl.sweep(GRID, out=out, traces=[TRACE], engine=engine, shards=None if engine == "local" else 3)
        for again in ("here", "here"):
            lines.clear()
            bl.sweep(grown, out=out, traces=[TRACE], engine=again, shards=4, resume=True)
            assert {name: (out / name).read_bytes() for name in wanted} == wanted
            # The second time everything is there.
            assert sum(known for known, _ in lines) == (20 if lines else 0)
            assert sum(all_ for _, all_ in lines) == (63 if lines else 0)
        assert not lines and not (out / "known").exists()
    local = tmp_path / "local-grown"
    bl.sweep(GRID, out=local, traces=[TRACE])
    bl.sweep(grown, out=local, traces=[TRACE], resume=True)
    assert {name: (local / name).read_bytes() for name in wanted} == wanted


def test_workers_need_neither_files_nor_modules_of_the_caller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    joblib = pytest.importorskip("joblib")
    home = tmp_path / "home"
    home.mkdir()
    TRACE.write(home / "cell.up")
    flow = 'name = "main"\ncontroller = "cubic"\nrtt = "40ms"\npath = ["l"]\n'
    (home / "cell.toml").write_text(f'duration = "1s"\n[[link]]\nname = "l"\ntrace = "cell.up"\n[[flow]]\n{flow}')
    (home / "grid.toml").write_text('scenario = "cell.toml"\n[axes]\n"link.l.buffer" = ["10pkt", "50pkt"]\n')

    class Mine(bl.Controller):
        def __init__(self, connection: Any, packets: int = 20) -> None:
            super().__init__(connection)
            self.cwnd = packets * self.mss

    scenario = {"duration": "1s", "link": [{"name": "l", "trace": TRACE}], "flow": [{"name": "f", "controller": Mine, "path": ["l"]}]}
    grids: list[Any] = [
        home / "grid.toml",
        {"scenario": scenario, "axes": {"link.l.buffer": ["10pkt", "50pkt"]}},
        {"scenario": bl.Scenario(scenario), "axes": {"flow.f.controller": ["mine:packets=5", "mine"]}},
        {"axes": {"scheme": ["mine", "mine+codel:packets=3"], "trace": home / "cell.up", "duration": "1s"}},
    ]
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for number, grid in enumerate(grids):
        bl.sweep(grid, out=tmp_path / f"local-{number}")
        here = tmp_path / f"joblib-{number}"
        with monkeypatch.context() as context:
            # Workers begin where the caller's files cannot be seen, neither by name nor by path.
            spec: list[engines.Spec] = []
            plain = engines.ENGINES["joblib"]

            def hidden(given: engines.Spec, *rest: Any, plain: Any = plain, spec: Any = spec) -> Any:
                spec.append(given)
                home.rename(tmp_path / "hidden")
                try:
                    yield from plain(given, *rest)
                finally:
                    (tmp_path / "hidden").rename(home)

            context.setitem(engines.ENGINES, "joblib", hidden)
            context.chdir(elsewhere)
            bl.sweep(grid, out=here, engine="joblib", shards=2, options={"n_jobs": 2})
        for name in TABLES:
            assert (here / name).read_bytes() == (tmp_path / f"local-{number}" / name).read_bytes(), (number, name)
    assert joblib.__version__


def test_parts_are_merged_a_few_lines_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_LINES", 6)
    journals = []
    for shard, count in enumerate((5, 5, 4)):
        journal = tmp_path / f"{shard}.jsonl"
        journal.write_text("".join(f"{shard + 3 * line}\n" for line in range(count)))
        journals.append(journal)
    engines._merge(journals, tmp_path / "all.jsonl")
    assert (tmp_path / "all.jsonl").read_text().split() == [str(line) for line in range(14)]


def test_a_merge_holds_no_more_lines_than_it_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_LINES", 4)
    line = b"x" * 99_999 + b"\n"
    journals = [tmp_path / f"{shard}.jsonl" for shard in range(60)]
    for journal in journals:
        journal.write_bytes(line)
    tracemalloc.start()
    engines._merge(journals, tmp_path / "all.jsonl")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (tmp_path / "all.jsonl").read_bytes() == line * 60
    assert most < 10 * len(line)


def test_no_part_has_more_lines_than_may_be_in_memory(
    tmp_path: Path, local: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[int] = []

    def here(spec: engines.Spec, missing: list[int], of: int, options: dict[str, Any]) -> Any:
        for index in missing:
            files = engines.shard(spec, index, of)
            sent.append(files["runs.jsonl"].count(b"\n"))
            yield index, files

    monkeypatch.setitem(engines.ENGINES, "here", here)
    monkeypatch.setattr(engines, "_LINES", 6)
    monkeypatch.setenv("RAYON_NUM_THREADS", os.environ.get("RAYON_NUM_THREADS", ""))
    bl.sweep(GRID, out=tmp_path / "out", traces=[TRACE], engine="here", shards=1)
    assert sent == [5, 5, 5, 5]
    same(tmp_path / "out", local)
    # The parts of a sweep that goes on are those that it had.
    monkeypatch.setattr(engines, "_LINES", 2)
    bl.sweep(GRID, out=tmp_path / "out", traces=[TRACE], engine="here", resume=True)
    assert len(sent) == 4
    same(tmp_path / "out", local)


def test_tables_are_compressed_and_axes_are_numbers_too(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    axes = {"scheme": "cubic", "trace": ["mine"], "duration": "1s", "rtt": ["100ms", "20ms", "5ms"], "buffer": ["50pkt", "30kB"]}
    bl.sweep({"axes": axes}, out=tmp_path, traces=[TRACE])
    for table in ("runs", "flows", "links"):
        file = parquet.ParquetFile(tmp_path / f"{table}.parquet")
        metadata = file.metadata.metadata
        assert metadata[b"brakelight.version"].decode() == bl.__version__
        assert metadata[b"brakelight.table"].decode() == table
        assert json.loads(metadata[b"brakelight.axes"]) == [*axes, "seed"]
        assert "ms" in json.loads(metadata[b"brakelight.units"]).values()
        columns = [file.metadata.row_group(0).column(place) for place in range(file.metadata.num_columns)]
        assert {column.compression for column in columns} == {"ZSTD"}
    runs = parquet.read_table(tmp_path / "runs.parquet").sort_by("rtt_ms").to_pydict()
    assert runs["rtt_ms"] == [5.0, 5.0, 20.0, 20.0, 100.0, 100.0]
    assert runs["rtt"] == ["5ms", "5ms", "20ms", "20ms", "100ms", "100ms"]
    assert {(text, packets, size) for text, packets, size in zip(runs["buffer"], runs["buffer_packets"], runs["buffer_bytes"], strict=True)} == {
        ("50pkt", 50.0, None),
        ("30kB", None, 30_000.0),
    }


def test_engines_say_what_they_need(tmp_path: Path) -> None:
    with pytest.raises(bl.InputError, match="valid are local, joblib, ray, submitit"):
        bl.sweep(GRID, out=tmp_path, traces=[TRACE], engine="slurm")
    with pytest.raises(bl.InputError, match="it needs the folder `out`"):
        bl.sweep(GRID, traces=[TRACE], engine="joblib")
    with pytest.raises(bl.InputError, match="shards = `99` is out of range: valid is 1 to 20"):
        bl.sweep(GRID, out=tmp_path, traces=[TRACE], engine="joblib", shards=99)
