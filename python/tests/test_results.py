"""Results in other libraries, traces, scenarios."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import brakelight as bl
import pytest


@pytest.fixture(scope="module")
def result() -> bl.Result:
    return bl.compare(["step", "lte-driving"], "abc,cubic", setup="mahimahi", duration="1s", series=True)


def test_libraries_take_the_rows_and_agree(result: bl.Result) -> None:
    pa = pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    pytest.importorskip("pandas")
    lists = result.runs.to_dict()
    assert result.to_arrow().to_pydict() == lists
    assert result.to_polars().to_dict(as_series=False) == lists
    assert list(result.to_pandas()["scheme"]) == lists["scheme"]
    assert pa.table(result).num_rows == len(result) == 4
    assert pl.DataFrame(result.link_series).height == len(result.link_series)
    # A missing value is null, not NaN.
    assert result.to_arrow().column("jain").null_count == 4


def address(column: Any) -> int:
    """Return where the values of a column of numbers are."""
    pa = pytest.importorskip("pyarrow")
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    assert len(chunks) == 1
    return int(chunks[0].buffers()[1].address)


def test_libraries_share_the_memory_of_the_rows(result: bl.Result) -> None:
    pa = pytest.importorskip("pyarrow")
    pl = pytest.importorskip("polars")
    pytest.importorskip("pandas")
    rows = result.link_series
    place = address(pa.table(rows).column("time_s"))
    assert address(rows.to_arrow().column("time_s")) == place
    assert address(pl.DataFrame(rows)["time_s"].to_arrow()) == place
    assert address(pa.array(rows.to_pandas()["time_s"])) == place


def test_duckdb_asks_the_rows(result: bl.Result) -> None:
    duckdb = pytest.importorskip("duckdb")
    rows = result.runs
    assert len(rows) == 4
    answer = duckdb.sql("select scheme, count(*), max(utilization) from rows group by scheme order by scheme").fetchall()
    utilization = dict(zip(rows["scheme"], rows["utilization"], strict=True))
    assert [(scheme, count) for scheme, count, _ in answer] == [("abc", 2), ("cubic", 2)]
    assert all(most >= utilization[scheme] for scheme, _, most in answer)


def test_a_library_that_is_missing_is_asked_for_by_its_extra() -> None:
    program = (
        "import sys\n"
        "for name in ('pandas', 'polars', 'pyarrow'):\n"
        "    sys.modules[name] = None\n"
        "import brakelight as bl\n"
        "rows = bl.compare('step', 'cubic', duration='1s', runs=1).runs\n"
        "for kind in ('arrow', 'polars', 'pandas'):\n"
        "    try:\n"
        "        getattr(rows, 'to_' + kind)()\n"
        "    except ImportError as error:\n"
        "        print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert [line.split("`")[1] for line in done.stdout.splitlines()] == [
        "pip install brakelight[pandas]",
        "pip install brakelight[polars]",
        "pip install brakelight[pandas]",
    ]


def test_rows_are_lists_and_dicts_without_any_library(result: bl.Result) -> None:
    assert result.flows["controller"] == ["abc", "cubic"] * 2
    assert result.links["run"] == [0, 0, 1, 1, 2, 2, 3, 3]
    assert next(iter(result.runs))["scheme"] == "abc"
    assert "utilization" in repr(result.runs)


def test_notebooks_show_a_table_and_a_figure(result: bl.Result) -> None:
    shown = result._repr_html_()
    assert shown.count("<tr>") == 5 and shown.count("<circle") == 4
    assert "cubic" in str(result) and result.to_html().startswith("<!")
    assert repr(result) == "Result('2 schemes on 2 traces', 4 rows)"


def test_figures_are_drawn(result: bl.Result) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    assert len(result.plot.scatter().lines) == 2
    assert len(result.plot.series("delay", trace="lte-driving").lines) == 2
    with pytest.raises(bl.InputError, match="valid are rate, delay"):
        result.plot.series("speed")
    pytest.importorskip("plotly")
    assert len(result.plot.interactive().data) == 2
    assert [line.name for line in result.plot.interactive("rate").data] == ["capacity", "abc", "cubic"]
    assert len(result.plot.interactive("delay", trace="lte-driving").data) == 2
    with pytest.raises(bl.InputError, match="valid are scatter, rate, delay"):
        result.plot.interactive("speed")


def test_traces_are_made_read_and_written(tmp_path: Path) -> None:
    np = pytest.importorskip("numpy")
    pd = pytest.importorskip("pandas")
    trace = bl.Trace.from_numpy(np.array([12.0, 24.0]), step_ms=1000, name="mine")
    assert trace.duration_s == 2.0 and trace.mean_mbps == pytest.approx(18.0, rel=0.01)
    assert trace.to_numpy(step_ms=1000) == pytest.approx([12.0, 24.0], rel=0.01)
    trace.write(tmp_path / "mine.up")
    assert bl.Trace.read(tmp_path / "mine.up").millis() == trace.millis()
    frame = pd.DataFrame({"t": [0.0, 1.0, 2.0], "mbps": [12.0, 24.0, 24.0]})
    made = bl.Trace.from_dataframe(frame, time="t", step_ms=500)
    assert made.to_numpy(step_ms=1000) == pytest.approx([12.0, 24.0, 24.0], rel=0.01)
    (tmp_path / "rates.csv").write_text("time_s,mbps\n0,12\n1,24\n2,24\n")
    assert bl.Trace.read(tmp_path / "rates.csv", name="r").name == "r"
    assert pickle.loads(pickle.dumps(trace)) == trace
    for wrong in ([-1.0], [float("nan")], [], [1e12]):
        with pytest.raises(bl.InputError):
            bl.Trace.from_numpy(wrong)
    (tmp_path / "bad.up").write_text("1\nx\n")
    with pytest.raises(bl.InputError, match="bad.up.*line 2"):
        bl.Trace.read(tmp_path / "bad.up")


def test_scenarios_go_through_dicts_toml_and_pickles(dumbbell: dict[str, Any]) -> None:
    scenario = bl.Scenario(dumbbell)
    assert bl.Scenario(scenario.to_dict()) == scenario == bl.Scenario.from_toml(scenario.to_toml())
    assert pickle.loads(pickle.dumps(scenario)) == scenario
    assert scenario.with_(duration="1s", seed=7).seed == 7
    words = bl.Scenario(
        duration="3s",
        link=[bl.Link("bottleneck", rate="12Mbps", buffer="100pkt")],
        flow=[bl.Flow("main", controller="cubic", rtt="40ms", path=["bottleneck"])],
    )
    assert words == scenario
    with pytest.raises(bl.InputError, match="unknown key `lnik`"):
        bl.Scenario({**dumbbell, "lnik": []})
    with pytest.raises(bl.InputError, match=r"mine.toml:1"):
        bl.Scenario.from_toml("duration = 3", name="mine.toml")


def test_a_trace_stands_where_its_name_would(dumbbell: dict[str, Any]) -> None:
    trace = bl.Trace.from_numpy([6.0], name="six")
    scenario = bl.Scenario(dumbbell, link=[bl.Link("bottleneck", trace=trace)])
    assert bl.run(scenario).rows[0]["capacity_mbps"] == pytest.approx(6.0, rel=0.02)
    assert bl.run(pickle.loads(pickle.dumps(scenario))).rows == bl.run(scenario).rows


def test_steps_do_not_change_what_comes_out(dumbbell: dict[str, Any]) -> None:
    whole = bl.run(dumbbell)
    simulation = bl.Simulation(dumbbell)
    assert simulation.step() is not None
    while simulation.now < 1.0:
        simulation.advance(simulation.now + 0.013)
    other = copy.copy(simulation)
    assert simulation.advance_to_flow("main") == pytest.approx(simulation.now)
    simulation.advance(simulation.end)
    while other.step() is not None:
        pass
    assert simulation.finish().rows == other.finish().rows == whole.rows
    with pytest.raises(bl.RunError, match="finished"):
        simulation.flows()


def test_a_run_is_looked_into_and_acted_upon(dumbbell: dict[str, Any]) -> None:
    dumbbell["flow"][0]["controller"] = "external"
    simulation = bl.Simulation(dumbbell)
    simulation.set_window("main", 30 * 1448)
    simulation.advance(1.0)
    flow, link = simulation.flow(0), simulation.link("bottleneck")
    assert (flow.name, flow.phase, flow.cwnd, flow.recovery) == ("main", "running", 30 * 1448, "open")
    assert flow.srtt_s == pytest.approx(0.04, rel=0.2) and link.capacity == pytest.approx(12e6, rel=0.01)
    assert simulation.capacity_between(0, 0.0, 1.0) == pytest.approx(1.5e6, rel=0.01)
    simulation.set_link_rate(0, 1e6)
    simulation.set_delay("main", "forward", 0.1)
    simulation.set_pacing_rate(0, 5e5)
    simulation.advance(2.0)
    assert simulation.link(0).capacity == pytest.approx(1e6, rel=0.01)
    assert simulation.flow(0).pacing_rate == 5e5
    simulation.stop_flow(0)
    assert [flow.phase for flow in simulation.flows()] == ["stopped"]
    with pytest.raises(IndexError, match="there is no flow `other`: valid are 0 to 0, or `main`"):
        simulation.flow("other")
    with pytest.raises(bl.InputError, match="out of range"):
        simulation.set_window(0, 1)
    with pytest.raises(bl.InputError, match="valid are forward, reverse"):
        simulation.set_delay(0, "sideways", 0.1)
    with pytest.raises(bl.InputError, match="until"):
        simulation.advance(-1.0)
