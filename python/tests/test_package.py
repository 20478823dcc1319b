"""The package: what type checkers see, what its wheel has, and other libraries that take its tables."""

from __future__ import annotations

import importlib
import re
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import brakelight as bl
import pytest
from brakelight._keys import FlowKeys, LinkKeys

ROOT = Path(__file__).parents[2]


def test_modules_and_functions_do_not_share_names() -> None:
    for name in bl.__all__:
        try:
            module = importlib.import_module(f"brakelight.{name}")
        except ModuleNotFoundError:
            continue
        if getattr(bl, name) is not module:
            pytest.fail(f"`import brakelight.{name}` gives a module, and `brakelight.{name}` is something else")


@pytest.mark.parametrize(("kind", "keys", "make"), [("link", LinkKeys, bl.Link), ("flow", FlowKeys, bl.Flow)])
def test_the_keys_of_links_and_flows_are_those_of_scenario_files(kind: str, keys: Any, make: Any) -> None:
    scenario = {"link": [{"name": "l", "rate": "1Mbps"}], "flow": [{"controller": "cubic", "path": ["l"]}]}
    scenario[kind][0]["nonsense"] = 1
    with pytest.raises(bl.InputError) as refused:
        bl.Scenario(scenario)
    known = re.findall(r"[a-z_]+", str(refused.value).split("valid are ")[1])
    assert sorted(known) == sorted(["name", *keys.__annotations__])
    with pytest.raises(bl.InputError, match=rf"{kind} `x`: unknown key `dleay`|unknown key `contrller` .did you mean `controller`"):
        make("x", **{"dleay" if kind == "link" else "contrller": "cubic"})


CHECKED = """
import brakelight as bl
from typing_extensions import assert_type
from pathlib import Path

grid = {"axes": {"scheme": "cubic", "trace": "step"}}
assert_type(bl.sweep(grid), bl.SweepResult)
assert_type(bl.sweep(grid).runs, bl.Rows)
assert_type(bl.sweep(grid, out="x"), list[Path])
bl.Flow("f", controller="cubic", rtt="40ms", path=["l"])
bl.Link("l", rate="12Mbps")
"""

WRONG = ['bl.Flow("f", contrller="cubic")', 'bl.Link("l", rate=12)', 'bl.sweep(grid, out="x").runs', 'bl.sweep(grid).exists()']


def test_type_checkers_find_what_is_mistyped(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "right.py").write_text(CHECKED)
    for number, line in enumerate(WRONG):
        (tmp_path / f"wrong_{number}.py").write_text(f"import brakelight as bl\ngrid = {{'axes': {{'scheme': 'cubic'}}}}\n{line}\n")
    files = sorted(str(path) for path in tmp_path.glob("*.py"))
    words = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "python" / "pyproject.toml"), "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run([*words, *files], capture_output=True, text=True, check=False, cwd=tmp_path)
    found = {Path(line.split(":")[0]).stem for line in done.stdout.splitlines() if ": error:" in line}
    assert found == {f"wrong_{number}" for number in range(len(WRONG))}, done.stdout + done.stderr


def test_logs_of_links_are_there_where_they_were_asked_for(dumbbell: dict[str, Any]) -> None:
    with pytest.raises(bl.InputError, match="there are no logs of links: ask for them by `record = { link_logs = true }`"):
        _ = bl.run(dumbbell).link_logs
    result = bl.run(dumbbell, runs=2)
    row = result.rows[0]
    logs = bl.run({**dumbbell, "record": {"link_logs": True}}).link_logs
    assert logs.columns == ["run", "scheme", "trace", "link", "event", "time_ms", "packets", "bytes", "delay_ms"]
    counted = {event: sum(packets or 0 for each, packets in zip(logs["event"], logs["packets"], strict=True) if each == event) for event in set(logs["event"])}
    one = bl.run(dumbbell).rows[0]
    assert counted["drop"] == one["dropped_packets"] > 0 and counted["departure"] >= one["delivered_packets"] > 100
    assert logs["time_ms"] == sorted(logs["time_ms"]) and set(logs["link"]) == {"bottleneck"}
    assert all((delay is None) == (event != "departure") for event, delay in zip(logs["event"], logs["delay_ms"], strict=True))
    assert row["run_id"]


def test_traces_are_read_in_every_format_with_the_options_of_the_command(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    table = tmp_path / "drive.tsv"
    table.write_text("t\tdown_rate\tup_rate\n" + "".join(f"{second}\t{12000 + second}\t{3000}\n" for second in range(10)))
    with pytest.raises(bl.InputError, match="drive.tsv"):
        bl.Trace.read(table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        up = bl.Trace.read(table, column="up_rate", time_column="t", unit="kbit/s", name="up")
        down = bl.Trace.read(table, format="csv", column="down_rate", time_column="t", unit="kbit/s")
    assert (up.name, up.mean_mbps) == ("up", pytest.approx(3.0, rel=0.02)) and down.mean_mbps == pytest.approx(12.0, rel=0.02)
    converted = subprocess.run(
        [sys.executable, "-m", "brakelight", "trace", "convert", str(table), "--column", "up_rate", "--time-column", "t", "--unit", "kbit/s"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [int(line) for line in converted.stdout.split()] == up.millis()
    with pytest.warns(UserWarning, match="drive.tsv: "):
        bl.Trace.read(table, column="up_rate", time_column="t", unit="kbit/s")
    # A name that says nothing, and a file that is no list of milliseconds.
    (tmp_path / "log").write_text("".join(f"{second} {rate}\n" for second, rate in enumerate(np.linspace(5.5, 7.5, 12))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        assert bl.Trace.read(tmp_path / "log", unit="Mbit/s").mean_mbps == pytest.approx(6.5, rel=0.05)
    for option, value, said in (
        ("format", "excel", "format: unknown format `excel`: valid are `mahimahi`, `csv`"),
        ("unit", "parsecs", "unit: `parsecs` is not a unit of rates"),
        ("direction", "left", "direction: unknown direction `left`: valid are "),
        ("flow", "all", "flow: `all` is not a flow"),
        ("column", "speed", "speed"),
    ):
        with pytest.raises(bl.InputError, match=said):
            bl.Trace.read(table, **{option: value})
    with pytest.raises(bl.InputError, match="give one of the two"):
        bl.Trace.read(table, direction="up", flow="192.0.2.1:443-192.0.2.2:50000")


def test_present_versions_of_libraries_take_results() -> None:
    pa = pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    pd = pytest.importorskip("pandas")
    duckdb = pytest.importorskip("duckdb")
    alt = pytest.importorskip("altair")
    express = pytest.importorskip("plotly.express")
    result = bl.compare("step", "abc,cubic", duration="1s", runs=1)
    sweep = bl.sweep({"axes": {"scheme": ["abc", "cubic"], "trace": "step", "duration": "1s"}})
    for rows in (result, result.runs, sweep):
        assert pl.DataFrame(rows)["scheme"].to_list() == ["abc", "cubic"]
        assert list(pd.DataFrame.from_arrow(rows)["scheme"]) == ["abc", "cubic"]
        assert pa.table(rows).column("scheme").to_pylist() == ["abc", "cubic"]
        assert duckdb.sql("select scheme from rows order by scheme").fetchall() == [("abc",), ("cubic",)]
        chart = alt.Chart(rows).mark_point().encode(x="queueing_delay_p95_ms", y="throughput_mbps", color="scheme").to_dict()
        (data,) = chart["datasets"].values()
        assert [row["scheme"] for row in data] == ["abc", "cubic"]
        assert [line.name for line in express.scatter(rows, x="rtt_p95_ms", y="throughput_mbps", color="scheme").data] == ["abc", "cubic"]
        assert pl.from_dataframe(rows).height == 2 and rows.__dataframe__().num_rows() == 2
        assert chart["encoding"]["x"]["type"] == "quantitative" and chart["encoding"]["color"]["type"] == "nominal"


def test_sweeps_are_drawn() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = {"scheme": ["abc", "cubic"], "trace": "step", "duration": "1s", "rtt": ["100ms", "20ms"], "buffer": ["20pkt", "100pkt"]}
    rows = bl.sweep({"axes": axes, "runs": 2})
    assert len(rows.plot.scatter().lines) == 2
    drawn = rows.plot.axis("rtt", "queueing_delay_p95_ms")
    assert [list(line.get_xdata()) for line in drawn.lines] == [[20.0, 100.0]] * 2 and drawn.get_xlabel() == "rtt (ms)"
    assert [line.get_label() for line in rows.plot.axis("buffer").lines] == ["abc", "cubic"]
    assert list(rows.plot.axis("trace").lines[0].get_xdata()) == ["step"]
    for keywords, said in (({"axis": "rttt"}, "axis = `rttt`: valid are run_id"), ({"axis": "rtt", "what": "speed"}, "what = `speed`"), ({"axis": "rtt", "what": "trace"}, "a column of numbers")):
        with pytest.raises(bl.InputError, match=said):
            rows.plot.axis(**keywords)
    pytest.importorskip("plotly")
    assert len(rows.plot.interactive().data) == 2
    assert [list(line.x) for line in rows.plot.interactive("rtt").data] == [[20.0, 100.0]] * 2


@pytest.mark.skipif(shutil.which("cargo") is None, reason="there is no cargo")
def test_the_licences_of_what_the_wheel_links_are_all_there(tmp_path: Path) -> None:
    file = tmp_path / "LICENSE-THIRD-PARTY.txt"
    subprocess.run([ROOT / "scripts" / "licences", file], check=True, timeout=300)
    text = file.read_text()
    words = ["cargo", "tree", "--locked", "-p", "brakelight-python", "--features", "brakelight-python/onnx,brakelight-python/wasm"]
    words += ["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]
    tree = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    linked = {" ".join(line.split()[:2]) for line in tree.splitlines() if line and "(/" not in line}
    assert len(linked) > 100
    missing = {name for name in linked if re.search(rf"^{re.escape(name.replace(' v', ' '))} \(", text, re.MULTILINE) is None}
    assert not missing
    assert "LICENSE-*" in (ROOT / "python" / "pyproject.toml").read_text()
