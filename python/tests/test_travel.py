"""What can be pickled and copied, and comes out as it went in."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import brakelight as bl
import pytest
from travelling import Steady

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def ways(thing: Any) -> list[Any]:
    """Return copies of a thing, made in every way."""
    return [*(pickle.loads(pickle.dumps(thing, protocol)) for protocol in PROTOCOLS), copy.copy(thing), copy.deepcopy(thing)]


@pytest.fixture(scope="module")
def result() -> bl.Result:
    return bl.compare(["step", "lte-driving"], "abc,cubic", duration="1s", runs=3, series=True, against="cubic")


def test_a_result_travels_with_all_it_says(result: bl.Result) -> None:
    for other in ways(result):
        assert other.rows == result.rows and str(other) == str(result)
        assert (other.title, other.setting, other.notes, other.warnings) == (
            result.title,
            result.setting,
            result.notes,
            result.warnings,
        )
        for table in ("runs", "flows", "links", "link_series", "flow_series"):
            assert getattr(other, table).to_dict() == getattr(result, table).to_dict(), table
        assert other.to_csv() == result.to_csv()
        assert body(other.to_html()) == body(result.to_html())


def body(page: str) -> str:
    """Return a report without the time at which it was made."""
    import re

    return re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z?", "", page)


def test_rows_travel_with_types_and_gaps(result: bl.Result) -> None:
    pa = pytest.importorskip("pyarrow")
    for rows in (result.runs, result.link_series, result.flows):
        for other in ways(rows):
            assert other.to_dict() == rows.to_dict() and other.columns == rows.columns
            assert pa.table(other).equals(pa.table(rows)) and pa.table(other).schema.equals(pa.table(rows).schema)


def test_the_rows_of_a_sweep_travel() -> None:
    rows = bl.sweep({"axes": {"scheme": ["abc", "cubic"], "trace": "step", "duration": "1s"}})
    for other in ways(rows):
        assert [other.runs.to_dict(), other.flows.to_dict(), other.links.to_dict()] == [
            rows.runs.to_dict(),
            rows.flows.to_dict(),
            rows.links.to_dict(),
        ]


def advanced(dumbbell: dict[str, Any], controller: Any) -> bl.Simulation:
    """Return a simulation in which everything was done that can be."""
    dumbbell["flow"] = [{**dumbbell["flow"][0], "controller": controller}, bl.Flow("other", controller="cubic", path=["bottleneck"])]
    simulation = bl.Simulation(dumbbell)
    simulation.hold_flow("other")
    for _ in range(40):
        simulation.step()
    simulation.advance(0.3)
    simulation.advance(0.2)
    simulation.start_flow(-1)
    simulation.advance_to_flow("main")
    simulation.advance_to_flow("main")
    simulation.step()
    if controller == "external":
        simulation.set_window("main", 40 * 1448)
        simulation.set_pacing_rate("main", 4e6)
    simulation.set_link_rate("bottleneck", 5e6)
    simulation.set_delay(0, "forward", 0.05, keep_order=False)
    simulation.advance(1.1)
    simulation.stop_flow("other")
    return simulation


@pytest.mark.parametrize("controller", ["external", "bbr3", Steady, "steady:packets=9"])
def test_a_simulation_goes_on_where_it_was(dumbbell: dict[str, Any], controller: Any) -> None:
    bl.register(Steady)
    simulation = advanced(dumbbell, controller)
    others = ways(simulation)
    others += ways(pickle.loads(pickle.dumps(simulation)))
    for other in others:
        assert other.now == simulation.now and repr(other.flows()) == repr(simulation.flows())
    simulation.advance(simulation.end)
    expected = simulation.finish().rows
    for other in others:
        while other.step() is not None:
            pass
        assert other.finish().rows == expected
    for other in (pickle.loads(pickle.dumps(simulation)),):
        with pytest.raises(bl.RunError, match="finished"):
            other.advance(2.0)


def test_long_runs_have_short_pickles(dumbbell: dict[str, Any]) -> None:
    simulation = bl.Simulation({**dumbbell, "duration": "30s"})
    for step in range(20_000):
        simulation.advance(step * 1e-3)
        simulation.flow(0)
    while simulation.step() is not None:
        pass
    assert len(pickle.dumps(simulation)) < 2_000


def test_views_travel(dumbbell: dict[str, Any]) -> None:
    simulation = bl.Simulation(dumbbell)
    simulation.advance(1.0)
    for view in (simulation.flow(0), simulation.link(0)):
        for other in ways(view):
            assert repr(other) == repr(view) and other.state == view.state and type(other) is type(view)


def test_what_a_class_is_told_can_be_made_without_a_run() -> None:
    connection = bl.controller.ConnectionInfo(mss=1448, overhead=52, initial_window=14480, now=0.0, seed=1)
    assert Steady(connection, packets=3).cwnd == 14480
    assert ways(connection)[0].initial_window == 14480
    loss = bl.controller.LossInfo(now=1.0, sent_at=0.9, inflight=10, lost=1448, srtt=0.1, min_rtt=0.1)
    assert loss.lost == 1448
    with pytest.raises(TypeError, match="LossInfo: missing keyword `sent_at`: valid are now, sent_at"):
        bl.controller.LossInfo(now=1.0)
    with pytest.raises(TypeError, match="ConnectionInfo: unknown keyword `rate`"):
        bl.controller.ConnectionInfo(mss=1448, overhead=52, initial_window=14480, now=0.0, seed=1, rate=3)
    with pytest.raises(TypeError, match="ConnectionInfo: mss = `x`"):
        bl.controller.ConnectionInfo(mss="x", overhead=52, initial_window=14480, now=0.0, seed=1)


def test_scenarios_are_equal_if_their_traces_hold_the_same(dumbbell: dict[str, Any]) -> None:
    def scenario(*mbps: float) -> bl.Scenario:
        return bl.Scenario(dumbbell, link=[bl.Link("bottleneck", trace=bl.Trace.from_numpy(mbps, name="mine"))])

    assert scenario(6.0) == scenario(6.0) != scenario(6.0, 3.0)
    for other in ways(scenario(6.0, 3.0)):
        assert other == scenario(6.0, 3.0)


RUNS = """
import pickle, sys
with open(sys.argv[1], "rb") as file:
    scenario, simulation, flow = pickle.load(file)
import brakelight as bl
simulation.advance(simulation.end)
rows = bl.run(scenario).rows
assert simulation.finish().rows == rows, "the simulation went on elsewhere"
print(rows[0]["run_id"], rows[0]["throughput_mbps"], flow["name"])
"""


def test_another_process_runs_what_was_sent_to_it(dumbbell: dict[str, Any], tmp_path: Path) -> None:
    trace = bl.Trace.from_numpy([12.0, 3.0], step_ms=300, name="mine")
    flow = bl.Flow("main", controller=Steady, rtt="40ms", path=["bottleneck"])
    scenario = bl.Scenario(dumbbell, link=[bl.Link("bottleneck", trace=trace)], flow=[flow])
    simulation = bl.Simulation(scenario)
    simulation.advance(1.0)
    file = tmp_path / "sent"
    # The class goes by its module, as pickle has it.
    flow["controller"] = "steady"
    file.write_bytes(pickle.dumps((scenario, simulation, flow)))
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    words = [sys.executable, "-c", RUNS, str(file)]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    row = bl.run(scenario).rows[0]
    assert done.stdout == f"{row['run_id']} {row['throughput_mbps']} main\n"


@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_results_come_back_from_other_processes(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if method not in multiprocessing.get_all_start_methods():
        pytest.skip(f"there is no {method} here")
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    with multiprocessing.get_context(method).Pool(2) as pool:
        made = [pool.apply_async(bl.compare, ("step", "abc"), {"duration": "1s", "runs": 2, "seed": seed}) for seed in (1, 2, 1)]
        rows = [each.get(timeout=120).rows for each in made]
    assert rows[0] == rows[2] != rows[1]
    assert rows[0] == bl.compare("step", "abc", duration="1s", runs=2).rows


def stepped(env: Any, steps: int, seed: int) -> list[Any]:
    """Return what an environment says to some steps."""
    np = pytest.importorskip("numpy")
    random = np.random.default_rng(seed)
    seen: list[Any] = []
    for _ in range(steps):
        if hasattr(env, "possible_agents"):
            if not env.agents:
                env.reset()
            step = env.step({agent: random.uniform(-1, 1, 1) for agent in env.agents})
        else:
            shape = (env.num_envs, 1) if hasattr(env, "num_envs") else (1,)
            step = env.step(random.uniform(-0.5, 0.5, shape))
            if not hasattr(env, "num_envs") and step[3]:
                env.reset()
        seen.append(repr(step))
    return seen


def environments() -> dict[str, Any]:
    gymnasium = pytest.importorskip("gymnasium")
    pytest.importorskip("pettingzoo")
    from brakelight.envs import CongestionControlEnv, Links, RouterEnv, SharedLink

    trace = bl.Trace.from_numpy([12.0, 3.0], step_ms=300, name="mine")
    return {
        "one": CongestionControlEnv(steps=7, links=Links(traces=[trace, "step"], against=[Steady, "cubic"])),
        "made": gymnasium.make("brakelight/CongestionControl-v0", steps=7),
        "many": gymnasium.make_vec("brakelight/CongestionControl-v0", num_envs=3, steps=7),
        "shared": SharedLink(agents=2, steps=7),
        "router": RouterEnv(steps=7, links=Links(traces=[trace])),
        "target": RouterEnv("target", steps=7),
    }


@pytest.mark.parametrize("which", ["one", "made", "many", "shared", "router", "target"])
def test_an_environment_goes_on_where_it_was(which: str) -> None:
    env = environments()[which]
    fresh = pickle.loads(pickle.dumps(env))
    assert repr(fresh.reset(seed=3)) == repr(env.reset(seed=3))
    stepped(env, 17, 1)
    others = [pickle.loads(pickle.dumps(env)), copy.deepcopy(env)]
    others.append(pickle.loads(pickle.dumps(others[0])))
    expected = stepped(env, 20, 2)
    for other in others:
        assert stepped(other, 20, 2) == expected


def test_environments_of_a_closure_run_in_other_processes() -> None:
    gymnasium = pytest.importorskip("gymnasium")
    np = pytest.importorskip("numpy")
    from brakelight.envs import CongestionControlEnv, Links

    links = Links(traces=[bl.Trace.from_numpy([12.0, 3.0], name="mine")], against=["cubic"])
    template = CongestionControlEnv(links=links, steps=9)
    # Gymnasium sends these by cloudpickle, as Stable-Baselines3 does.
    make = [lambda: CongestionControlEnv(links=links, steps=9), lambda: copy.deepcopy(template)]
    envs = gymnasium.vector.AsyncVectorEnv(make, context="spawn")
    try:
        observations, _ = envs.reset(seed=5)
        _, rewards, *_ = envs.step(np.zeros((2, 1), np.float32))
    finally:
        envs.close()
    alone = CongestionControlEnv(links=links, steps=9)
    for place in range(2):
        assert observations[place].tobytes() == alone.reset(seed=5 + place)[0].tobytes()
        assert rewards[place] == alone.step(np.zeros(1))[1]
