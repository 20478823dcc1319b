"""Sweeps by other engines have the bytes of the local one."""

from __future__ import annotations

import os
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
    with pytest.raises(bl.InputError, match="has another grid"):
        bl.sweep({**GRID, "runs": 6}, out=out, traces=[TRACE], engine="here", resume=True)
    # What was being written when it died is no part.
    (out / "parts" / "00003-of-00004.part").mkdir()
    bl.sweep(GRID, out=out, traces=[TRACE], engine="here", resume=True)
    assert sorted(ran) == [1, 2, 3, 4]
    same(out, local)


def test_engines_say_what_they_need(tmp_path: Path) -> None:
    with pytest.raises(bl.InputError, match="valid are local, joblib, ray, submitit"):
        bl.sweep(GRID, out=tmp_path, traces=[TRACE], engine="slurm")
    with pytest.raises(bl.InputError, match="it needs the folder `out`"):
        bl.sweep(GRID, traces=[TRACE], engine="joblib")
    with pytest.raises(bl.InputError, match="shards = `99` is out of range: valid is 1 to 20"):
        bl.sweep(GRID, out=tmp_path, traces=[TRACE], engine="joblib", shards=99)
