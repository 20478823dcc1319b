"""Compare, run, reproduce, sweep."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import brakelight as bl
import pytest


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", "brakelight", *arguments]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def test_compare_gives_the_rows_of_the_command() -> None:
    result = bl.compare("lte-driving", "abc,cubic", duration="2s", runs=2)
    arguments = ["--trace", "lte-driving", "--schemes", "abc,cubic", "--duration", "2s", "--runs", "2"]
    printed = command("compare", *arguments, "--format", "json")
    assert printed.returncode == 0, printed.stderr
    assert result.rows == json.loads(printed.stdout)["runs"]


def test_the_decision_is_that_of_the_command() -> None:
    result = bl.compare("fixed", "cubic,copa,bbr3,cubic+fq_codel,abc", duration="2s", runs=2)
    arguments = ["--trace", "fixed", "--schemes", "cubic,copa,bbr3,cubic+fq_codel,abc", "--duration", "2s", "--runs", "2"]
    printed = command("compare", *arguments, "--format", "json")
    assert printed.returncode == 0, printed.stderr
    assert result.decision == json.loads(printed.stdout)["decision"]
    assert result.decision is not None
    assert [choice["change"] for choice in result.decision["choices"]] == ["senders", "queue", "both"]
    assert bl.compare("fixed", "cubic", duration="1s", runs=1).decision is None


def test_only_what_can_be_changed_is_compared() -> None:
    schemes = ["cubic", "copa", "cubic+fq_codel", "abc"]
    compared = {
        can: bl.compare("fixed", schemes, can=can, duration="1s", runs=1).runs["scheme"] for can in ("senders", "queue", "both")
    }
    assert compared == {"senders": ["cubic", "copa"], "queue": ["cubic", "cubic+fq_codel"], "both": schemes}
    defaults = bl.compare("fixed", can="queue", duration="1s", runs=1).runs["scheme"]
    assert defaults[0] == "cubic" and all(name.startswith("cubic") for name in defaults), defaults
    with pytest.raises(bl.InputError, match="can = `routers`: valid are `senders`, `queue` and `both`, or None"):
        bl.compare("fixed", "cubic", can="routers")  # type: ignore[arg-type]
    with pytest.raises(bl.InputError, match="can = `senders`: none of the schemes"):
        bl.compare("fixed", "abc", can="senders")


def test_what_the_frames_of_a_call_show_stands_in_columns() -> None:
    call = {"kind": "call", "max_rate": "2Mbps", "statistical": True, "jitter_buffer": True}
    result = bl.compare("lte-walking", "gcc,nada,cubic", traffic=call, duration="6s", runs=2)
    assert result.runs["scheme"] == ["gcc", "nada", "cubic"]
    for measure in ("frame_delay_ms_p95", "playout_delay_ms_p95", "frames_missed_percent", "freezes_per_minute", "bitrate_mbps"):
        column = result.runs[f"main.{measure}"]
        assert column == [row["flows"][0]["application"][measure] for row in result.rows], measure
    assert all(delay > 25.0 for delay in result.runs["main.frame_delay_ms_p95"]), "half a round trip is 50 ms, less by jitter"
    assert all(0.1 < rate < 2.0 for rate in result.runs["main.bitrate_mbps"])
    assert 'kind = "call"' in result.setting["traffic"]
    arguments = ["--trace", "lte-walking", "--schemes", "gcc,nada,cubic", "--duration", "6s", "--runs", "2"]
    told = '{ kind = "call", max_rate = "2Mbps", statistical = true, jitter_buffer = true }'
    printed = command("compare", *arguments, "--traffic", told, "--format", "json")
    assert printed.returncode == 0, printed.stderr
    assert result.rows == json.loads(printed.stdout)["runs"]
    assert "fps = 30" in bl.compare("step", "gcc", traffic="call", duration="2s", runs=1).setting["traffic"]
    assert "main.frame_delay_ms_p95" not in bl.compare("step", "cubic", duration="1s", runs=1).runs


def test_wrong_traffic_is_refused_with_what_would_be_valid() -> None:
    for wrong, said in (
        ("torrent", "traffic = `torrent`"),
        ({"kind": "call", "frames": 60}, "frames"),
        ({"kind": "call", "fps": 0}, "fps"),
        ({"kind": "call", "fps": object()}, "a dict of text, numbers and booleans"),
        ("size", "`size` needs numbers"),
    ):
        with pytest.raises(bl.InputError, match=said):
            bl.compare("step", "gcc", traffic=wrong, duration="1s", runs=1)  # type: ignore[arg-type]


def test_the_milliseconds_of_a_trace_decide_unless_spread_is_given() -> None:
    grid = bl.Trace.from_numpy([48.0], step_ms=1000, name="grid")
    spread = {asked: bl.compare(grid, "cubic", spread=asked, duration="1s", runs=1).rows[0]["setup"].get("spread", False) for asked in (None, True, False)}
    assert spread == {None: True, True: True, False: False}


def test_wrong_arguments_are_refused_in_the_words_of_the_command() -> None:
    with pytest.raises(bl.InputError, match="unknown controller `cubik`") as refused:
        bl.compare("step", "cubik")
    printed = command("compare", "--trace", "step", "--schemes", "cubik")
    assert printed.returncode == 2
    # Up to the names, of which other tests may have registered more.
    assert str(refused.value).split(" valid are ")[0] in printed.stderr
    assert isinstance(refused.value, ValueError)
    for wrong in ({"rtt": "100"}, {"buffer": "many"}, {"duration": "-1s"}, {"runs": 0}, {"trace_offset": "x"}):
        with pytest.raises(bl.InputError, match=next(iter(wrong))):
            bl.compare("step", "cubic", **wrong)  # type: ignore[arg-type]
    with pytest.raises(bl.InputError, match="unknown trace `nowhere`"):
        bl.compare("nowhere", "cubic")


def test_a_run_is_that_of_the_command(dumbbell: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "dumbbell.toml"
    file.write_text(bl.Scenario(dumbbell, name="dumbbell").to_toml())
    rows = bl.run(file, runs=3).rows
    printed = command("run", str(file), "--runs", "3", "--format", "json")
    assert printed.returncode == 0, printed.stderr
    assert rows == json.loads(printed.stdout)["runs"]
    assert bl.run(file.read_text(), runs=3).rows == rows


def test_series_are_there_where_they_were_asked_for(dumbbell: dict[str, Any]) -> None:
    with pytest.raises(bl.InputError, match="series=True"):
        _ = bl.run(dumbbell).link_series
    result = bl.run(dumbbell, series=True)
    assert result.rows == bl.run(dumbbell).rows
    assert len(result.link_series) == 150
    times = result.flow_series["time_s"]
    assert times == sorted(times) and len(times) == 150
    assert {"cwnd_pkts", "rtt_ms", "w_max_pkts"} <= set(result.flow_series.columns)


def test_frames_of_a_call_are_rows() -> None:
    call = {"kind": "call", "repair": "nack", "max_rate": "1Mbps"}
    flow = {"name": "call", "controller": "gcc", "host": "quic", "rtt": "60ms", "path": ["loss:rate=0.02", "line"]}
    line = {"name": "line", "rate": "4Mbps"}
    scenario = {"duration": "20s", "link": [line], "flow": [{**flow, "traffic": call}]}
    result = bl.run(scenario, series=True)
    frames = result.frames
    seen = result.rows[0]["flows"][0]["application"]
    shown = [delay for delay in frames["playout_delay_ms"] if delay is not None]
    assert len(frames) == 600 and len(shown) == seen["frames_shown"]
    assert frames["key_frame"][0] is True and set(frames["run"]) == {0} and set(frames["flow"]) == {"call"}
    assert frames["taken_s"] == sorted(frames["taken_s"])
    delays = sorted(delay for delay in frames["delay_ms"] if delay is not None)
    assert abs(sum(delays) / len(delays) - seen["frame_delay_ms_mean"]) < 0.1
    # Thirty milliseconds of path, and a round trip more for one that was asked for again.
    assert delays[0] >= 30 and delays[-1] > 90
    with pytest.raises(bl.InputError, match="there are no frames"):
        _ = bl.compare("step", "cubic", runs=1, duration="2s", series=True).frames
    compared = bl.compare("step", "cubic", runs=1, duration="2s", series=True, traffic="call").frames
    # Its flow starts up to a round trip late.
    assert 55 < len(compared) <= 60


def test_a_worst_link_is_found_and_replayed() -> None:
    bounds = "duration=2s,rate=1Mbps..6Mbps,rtt=20ms..60ms"
    attacked = bl.attack("newreno", space="steps", bounds=bounds, budget=16)
    assert attacked.found == bl.attack("newreno", space="steps", bounds=bounds, budget=16).found
    found, reference = attacked.found, attacked.reference
    assert found["links"] == 16 and found["damage"] >= found["damage_random_median"]
    # What was found is what runs again.
    assert reference is not None
    own, best = (bl.run(scenario).rows[0]["flows"][0] for scenario in (attacked.worst, reference))
    assert own["throughput_mbps"] == pytest.approx(found["own"]["throughput_mbps"])
    assert best["throughput_mbps"] == pytest.approx(found["beside"]["throughput_mbps"])
    shared = bl.attack("cubic", against="bbr", objective="unfair", space="delay", bounds="duration=1s", budget=16)
    assert shared.reference is None and shared.found["unit"] == "times"


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"objective": "pain"}, "objective: .*`pain`"),
        ({"space": "outer"}, "space: .*`outer`"),
        ({"bounds": "rate=fast"}, "bounds: .*fast"),
        ({"budget": 1}, "budget: "),
        ({"budget": -1}, "budget: "),
        ({"against": "nobody"}, "nobody"),
    ],
)
def test_a_wrong_attack_is_refused(keywords: dict[str, Any], words: str) -> None:
    with pytest.raises(bl.InputError, match=words):
        bl.attack("abc", **keywords)
    with pytest.raises(bl.InputError, match="valid is one scheme"):
        bl.attack(["abc", "cubic"])  # type: ignore[arg-type]


def test_claims_are_judged() -> None:
    claims = bl.reproduce("B-U1")
    assert claims.columns == ["id", "claim", "paper", "measured", "verdict", "note"]
    assert set(claims["verdict"]) == {"holds"} and all(claim.startswith("B-U1") for claim in claims["id"])
    assert bl.reproduce("B-U1", quick=True)["verdict"] == claims["verdict"]
    with pytest.raises(bl.InputError, match="unknown claim `nothing`: the nearest of "):
        bl.reproduce("nothing")


def test_progress_is_told_in_the_thread_that_asked() -> None:
    class Notes:
        def __init__(self) -> None:
            self.begun: list[tuple[str, int]] = []
            self.steps: list[str] = []
            self.threads: set[int] = set()

        def begin(self, what: str, steps: int) -> None:
            self.begun.append((what, steps))

        def step(self, label: str) -> None:
            self.steps.append(label)
            self.threads.add(threading.get_ident())

    notes = Notes()
    bl.compare("step", "abc,cubic", duration="1s", runs=3, progress=notes)
    assert notes.begun == [("comparing", 6)]
    assert len(notes.steps) == 6 and "cubic on step" in notes.steps
    assert notes.threads == {threading.get_ident()}


def test_what_progress_raises_stops_the_work() -> None:
    class Stops:
        def begin(self, what: str, steps: int) -> None:
            raise KeyError(what)

        def step(self, label: str) -> None:
            pass

    with pytest.raises(KeyError, match="comparing"):
        bl.compare("step", "cubic", duration="60s", runs=1000, progress=Stops())


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_an_interrupt_stops_a_long_run() -> None:
    program = "import brakelight as bl; print('ready', flush=True); bl.compare('fixed', 'bbr', duration='3000s', runs=100, force=True)"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    _, said = process.communicate(timeout=20)
    assert process.returncode != 0 and "KeyboardInterrupt" in said
    assert time.monotonic() - begin < 10


def test_other_threads_of_python_go_on_meanwhile() -> None:
    ticks = 0
    stop = threading.Event()

    def tick() -> None:
        nonlocal ticks
        while not stop.is_set():
            ticks += 1
            time.sleep(0.001)

    def compare() -> int:
        before = ticks
        bl.compare("lte-driving", "abc,cubic", duration="20s")
        return ticks - before

    thread = threading.Thread(target=tick)
    interval = sys.getswitchinterval()
    # No thread takes the GIL from another, so that none ticks unless the call lets go of it.
    sys.setswitchinterval(1000)
    thread.start()
    try:
        # On a busy machine a thread may get no processor during a call.
        assert any(compare() > 20 for _ in range(20))
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        thread.join()


AXES = {"scheme": ["abc", "cubic"], "trace": ["step"], "duration": ["1s"], "rtt": ["20ms", "100ms"]}


def test_a_sweep_in_memory_and_one_in_a_folder_have_the_same_rows(tmp_path: Path) -> None:
    grid = {"axes": AXES, "runs": 2}
    rows = bl.sweep(grid)
    assert isinstance(rows, bl.SweepResult) and len(rows) == 8
    assert len(set(rows.runs["run_id"])) == 8
    files = bl.sweep(grid, out=tmp_path / "whole")
    assert isinstance(files, list)
    assert {file.name for file in files} >= {"runs.csv", "runs.parquet", "flows.csv", "links.csv"}
    again = tmp_path / "in-two"
    with pytest.raises(bl.InputError, match="there is a sweep already"):
        bl.sweep(grid, out=tmp_path / "whole")
    bl.sweep(grid, out=again, shard=(1, 2))
    assert (again / "runs.csv").read_text().count("\n") == 5
    bl.sweep(grid, out=again, resume=True)
    for name in ("runs.csv", "flows.csv", "links.csv"):
        assert (again / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_a_grid_may_change_a_scenario_and_use_traces_of_the_program(dumbbell: dict[str, Any]) -> None:
    rows = bl.sweep({"scenario": dumbbell, "axes": {"link.bottleneck.buffer": ["10pkt", "100pkt"]}})
    assert isinstance(rows, bl.SweepResult)
    assert rows.runs["link.bottleneck.buffer"] == ["10pkt", "100pkt"]
    mine = bl.Trace.from_numpy([12.0, 3.0], step_ms=500, name="mine")
    rows = bl.sweep({"axes": {"scheme": "cubic", "trace": "mine", "duration": "2s"}}, traces=[mine])
    assert isinstance(rows, bl.SweepResult) and rows.runs["trace"] == ["mine"]
    with pytest.raises(bl.InputError, match="unknown key `axis`"):
        bl.sweep({"axis": {}})
    with pytest.raises(bl.InputError, match="`3/2` is not a shard"):
        bl.sweep({"axes": AXES}, shard=(3, 2))


def test_lists_have_what_the_command_lists() -> None:
    for kind in ("schemes", "controllers", "queues", "traces"):
        printed = command("list", kind, "--format", "json")
        listed = json.loads(printed.stdout)[kind]
        # Other tests may have registered more.
        assert [each for each in getattr(bl, kind)() if each in listed] == listed


def test_the_command_says_what_is_wrong_and_with_which_code() -> None:
    assert command("--version").stdout.startswith("brakelight ")
    wrong = command("compare", "--trace", "nowhere")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("error: ")
    printed = command("compare", "--trace", "step", "--schemes", "cubic", "--duration", "1s", "--format", "json")
    origin = json.loads(printed.stdout)["origin"]
    assert origin["command"] == "brakelight compare --trace step --schemes cubic --duration 1s --format json"


def test_the_package_needs_neither_numpy_nor_anything_else() -> None:
    program = (
        "import sys\n"
        "for name in ('numpy', 'pandas', 'polars', 'pyarrow', 'matplotlib', 'plotly', 'tqdm', 'gymnasium'):\n"
        "    sys.modules[name] = None\n"
        "import brakelight as bl\n"
        "rows = bl.compare(bl.Trace.from_numpy([12.0, 6.0]), 'cubic', duration='1s', progress=True)\n"
        "print(len(rows), rows._repr_html_()[:6])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "1 <table\n", done.stderr
