"""What people pass: numbers of NumPy, times, paths, classes, ranges. It is taken, or refused in one line by name."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import brakelight as bl
import pytest
from travelling import Steady

MS = datetime.timedelta(milliseconds=1)
QUICK: dict[str, Any] = {"duration": "1s", "runs": 1}


def refusal(act: Any, *arguments: Any, **keywords: Any) -> str:
    """Return what a call says is wrong: one line, in an InputError."""
    with pytest.raises(bl.InputError) as refused:
        act(*arguments, **keywords)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_time_without_a_unit_is_refused_with_the_valid_form() -> None:
    np = pytest.importorskip("numpy")
    valid = "valid is text with its unit such as `40ms`, or a timedelta"
    for value in (0.04, 40, np.float64(0.04), np.int64(40), True, None, [1], ["40ms"]):
        assert f"rtt = `{value.item() if hasattr(value, 'item') else value!r}`: {valid}" == refusal(bl.compare, "step", "cubic", rtt=value, **QUICK)
    for name in ("duration", "trace_offset"):
        assert refusal(bl.compare, "step", "cubic", **{name: 3.0}) == f"{name} = `3.0`: {valid}"
    assert valid in refusal(bl.compare, "step", "cubic", rtt=-MS)


def test_times_may_be_timedeltas(dumbbell: dict[str, Any]) -> None:
    np = pytest.importorskip("numpy")
    pd = pytest.importorskip("pandas")
    expected = bl.compare("step", "cubic", rtt="40ms", **QUICK).rows
    for rtt in (40 * MS, np.timedelta64(40, "ms"), np.timedelta64(40_000_000, "ns"), pd.Timedelta("40ms")):
        assert bl.compare("step", "cubic", rtt=rtt, duration=1000 * MS, runs=1).rows == expected
    whole = bl.run(dumbbell).rows
    dumbbell["flow"][0]["rtt"] = 40 * MS
    dumbbell["duration"] = np.timedelta64(3, "s")
    assert bl.run(dumbbell).rows == whole
    simulation = bl.Simulation(dumbbell)
    simulation.advance(500 * MS)
    simulation.advance("1.5s")
    simulation.advance(np.float32(1.75))
    assert simulation.now == 1.75
    assert simulation.capacity_between(0, "0.5s", 1000 * MS) == simulation.capacity_between(0, 0.5, 1)


def test_numbers_of_numpy_are_numbers(dumbbell: dict[str, Any]) -> None:
    np = pytest.importorskip("numpy")
    rows = bl.compare("step", "cubic", duration="1s", runs=2, seed=3).rows
    assert bl.compare(np.array(["step"]), np.array(["cubic"]), duration="1s", runs=np.int64(2), seed=np.uint8(3)).rows == rows
    dumbbell["seed"] = np.int32(7)
    dumbbell["flow"][0]["count"] = np.int64(2)
    dumbbell["flow"][0]["path"] = np.array(["bottleneck"])
    assert len(bl.run(dumbbell, runs=np.int8(1)).flows) == 2
    simulation = bl.Simulation(dumbbell)
    assert simulation.flow(np.int64(-1)).name == simulation.flow(1).name
    for name, value in (("runs", 2.0), ("runs", "3"), ("runs", True), ("seed", -1), ("runs", 0), ("seed", 2**70), ("runs", 2**40)):
        assert refusal(bl.compare, "step", "cubic", **{name: value}).startswith(f"{name} = `{value}`"), name
    assert refusal(bl.run, dumbbell, runs=1.5).startswith("runs = `1.5`: valid is a whole number from 1 on")


def test_sizes_and_rates_need_their_units(dumbbell: dict[str, Any]) -> None:
    assert refusal(bl.compare, "step", "cubic", buffer=100) == "buffer = `100`: valid is text such as `250pkt`, `30kB` or `2BDP`"
    assert refusal(bl.compare, "step", "cubic", reverse=3) == "reverse = `3`: valid is a name, a file, or a Trace"
    said = refusal(bl.run, {**dumbbell, "link": [bl.Link("bottleneck", rate=12)]})  # type: ignore[typeddict-item]
    assert "rate" in said and "12Mbps" in said
    dumbbell["flow"][0]["rtt"] = 0.04
    said = refusal(bl.run, dumbbell)
    assert said.startswith("flow `main`: rtt = ") and "100ms" in said


def test_what_has_no_place_in_a_scenario_is_named(dumbbell: dict[str, Any]) -> None:
    dumbbell["flow"][0]["rtt"] = object()
    assert refusal(bl.Scenario, dumbbell).startswith("flow[0].rtt = `<object object at")
    dumbbell["flow"][0]["rtt"] = float("nan")
    assert refusal(bl.Scenario, dumbbell) == "flow[0].rtt = `nan`: valid is a finite number"
    assert refusal(bl.Scenario, [1]) == "scenario = `[1]`: valid is a dict with the keys of a scenario file"
    assert refusal(bl.run, 3).startswith("scenario = `3`: valid is a Scenario, a dict")
    assert refusal(bl.Scenario, dumbbell, traces=["step"]) == "traces = `step`: valid is a Trace, or a list of them"


def test_files_may_be_paths(dumbbell: dict[str, Any], tmp_path: Path) -> None:
    trace = bl.Trace.from_numpy([12.0, 3.0], step_ms=300, name="mine")
    trace.write(tmp_path / "mine.up")
    by_path = bl.compare([tmp_path / "mine.up"], "cubic", **QUICK).rows
    assert by_path == bl.compare(str(tmp_path / "mine.up"), "cubic", **QUICK).rows
    link = bl.Link("bottleneck", trace=tmp_path / "mine.up")
    assert bl.run({**dumbbell, "link": [link]}).rows[0]["capacity_mbps"] == pytest.approx(7.5, rel=0.1)
    rows = bl.sweep({"axes": {"scheme": "cubic", "trace": tmp_path / "mine.up", "duration": "1s"}})
    assert rows.runs["trace"] == [str(tmp_path / "mine.up")]
    narrow = bl.Trace.from_numpy([0.1], name="narrow")
    free, held = (bl.compare("fixed", "cubic", reverse=back, **QUICK).rows[0]["throughput_mbps"] for back in (trace, narrow))
    assert held < 0.9 * free


def test_axes_may_be_traces_classes_ranges_and_arrays() -> None:
    np = pytest.importorskip("numpy")
    traces = [bl.Trace.from_numpy([12.0, 3.0], name="one"), bl.Trace.from_numpy([6.0], name="two")]
    grid = {
        "axes": {
            "scheme": (Steady, "steady:packets=9", "cubic"),
            "trace": traces,
            "duration": datetime.timedelta(seconds=1),
            "rtt": np.array([20, 40], dtype="timedelta64[ms]"),
            "seed": range(3, 5),
        }
    }
    rows = bl.sweep(grid)
    assert len(rows) == 24 and set(rows["scheme"]) == {"steady", "steady:packets=9", "cubic"}
    assert sorted(set(rows["rtt_ms"])) == [20.0, 40.0] and set(rows["seed"]) == {3, 4}
    assert set(rows["trace"]) == {"one", "two"}
    again = bl.sweep({"axes": {**grid["axes"], "seed": np.arange(3, 5), "rtt": ["20ms", "40ms"]}})
    assert again.runs["run_id"] == rows.runs["run_id"]
    one = bl.sweep({"axes": {"scheme": "cubic", "trace": traces[0], "duration": "1s"}, "runs": np.int64(2)}, traces=traces[0])
    assert len(one) == 2
    axes = {"scheme": "cubic", "trace": "step", "duration": "1s"}
    assert refusal(bl.sweep, {"axes": {**axes, "rtt": object()}}).startswith("axes.rtt = `<object")
    assert refusal(bl.sweep, {"axes": {**axes, "rtt": 0.04}}) == "grid: axes: rtt = `0.04`: valid is a time such as `100ms`"
    assert refusal(bl.sweep, {"axes": [1]}) == "axes = `[1]`: valid is a dict of names and values"
    assert refusal(bl.sweep, 3) == "grid = `3`: valid is a dict with `axes`, or the path of a grid file"
    assert refusal(bl.sweep, {"axes": axes, "runs": 1.5}).startswith("runs = `1.5`: valid is a whole number")
    assert refusal(bl.sweep, {"axes": axes}, shard=3).startswith("shard = `3`: valid is a pair")


def test_schemes_are_names_and_classes() -> None:
    assert refusal(bl.compare, "step", 3) == "schemes = `3`: valid is text such as `abc,cubic+codel`, a class of Controller, or a list of them"
    assert refusal(bl.compare, 3, "cubic") == "traces = `3`: valid is a name, a file, a Trace, or a list of them"
    assert refusal(bl.compare, ["step", 3], "cubic") == "traces = `3`: valid is a name, a file, or a Trace"
    assert refusal(bl.compare, "step", [int]).startswith("schemes = `<class 'int'>`")
    row = bl.compare("step", "cubic", against=Steady, **QUICK).rows[0]
    assert [flow["controller"] for flow in row["flows"]] == ["cubic", "steady"]
    assert "one scheme" in refusal(bl.compare, "step", "cubic", against=["abc", "cubic"])
    with pytest.raises(bl.InputError, match="is not a class of Controller or Queue"):
        bl.register(int)  # type: ignore[type-var]
    assert refusal(bl.reproduce, 3) == "ids = `3`: valid is the id of a claim, or a list of them"


def test_flows_and_links_count_from_the_last(dumbbell: dict[str, Any]) -> None:
    dumbbell["flow"].append({"name": "other", "controller": "cubic", "path": ["bottleneck"]})
    simulation = bl.Simulation(dumbbell)
    assert (simulation.flow(-1).name, simulation.flow(-2).name, simulation.link(-1).name) == ("other", "main", "bottleneck")
    simulation.stop_flow(-1)
    for wrong in (2, -3, 2**40):
        with pytest.raises(IndexError, match=f"there is no flow number {wrong}: valid are 0 to 1"):
            simulation.flow(wrong)
    for wrong in (1.5, None, []):
        assert refusal(simulation.flow, wrong).endswith("is no flow or link: valid is its number or its name")
    assert refusal(simulation.advance, "soon").startswith("until: ")
    assert refusal(simulation.advance, None).startswith("until = `None`: valid is a number of seconds")
    assert refusal(simulation.set_link_rate, 0, "12Mbps") == "rate = `12Mbps`: valid is a number of bit/s"


def test_rows_are_a_table(dumbbell: dict[str, Any]) -> None:
    result = bl.compare("step", "abc,cubic,bbr", **QUICK)
    runs = result.runs
    assert runs[0] == next(iter(runs)) and runs[-1]["scheme"] == "bbr" and [row["scheme"] for row in runs[1:]] == ["cubic", "bbr"]
    assert "scheme" in runs and "speed" not in runs and 0 not in runs
    with pytest.raises(IndexError, match="there is no row 3: there are 3"):
        runs[3]
    with pytest.raises(KeyError, match="there is no column `shceme` .did you mean `scheme`"):
        runs["shceme"]
    with pytest.raises(TypeError, match="is no place of a row, and no name of a column"):
        runs[1.5]  # type: ignore[call-overload]
    assert [row["scheme"] for row in result] == result["scheme"] == ["abc", "cubic", "bbr"]
    assert result[-1]["scheme"] == "bbr" and len(result[:2]) == 2 and "utilization" in result
    with pytest.raises(IndexError):
        result[3]
    rows = bl.sweep({"axes": {"scheme": ["abc", "cubic"], "trace": "step", "duration": "1s"}})
    assert rows[1]["scheme"] == "cubic" and "rtt_p95_ms" in rows and [row["scheme"] for row in rows] == rows["scheme"]


def test_text_of_one_line_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = refusal(bl.run, 'link = [{ name = "l", rate = "1Mbps" }]')
    assert "flow" in said and "cannot be read" not in said
    assert "no-such-file.toml" in refusal(bl.run, "no-such-file.toml")
    (tmp_path / "a=b.toml").write_text(
        'link = [{ name = "l", rate = "1Mbps" }]\nflow = [{ controller = "cubic", path = ["l"] }]\nduration = "1s"\n'
    )
    assert len(bl.run("a=b.toml")) == 1


def test_environments_take_classes_and_times() -> None:
    pytest.importorskip("gymnasium")
    from brakelight.envs import CongestionControlEnv, Links, RouterEnv

    env = CongestionControlEnv(links=Links(rtt=(20 * MS, 40 * MS), against=Steady), interval=20 * MS, steps=3)
    env.reset(seed=1)
    env.step([0.1])
    RouterEnv(controllers=["cubic", Steady], interval=20 * MS).reset(seed=1)
    for wrong, said in (
        (Links(rate=12), "rate = `12`: valid is a pair: the least and the most"),  # type: ignore[arg-type]
        (Links(rtt=(0.01, 0.1)), "rtt = `0.01`: valid is text with its unit"),  # type: ignore[arg-type]
        (Links(rate=(1e6, 2e6)), "rate = `1000000.0`: valid is text such as `12Mbps`"),  # type: ignore[arg-type]
    ):
        assert said in refusal(CongestionControlEnv, links=wrong)
