"""Controllers and queues in Python."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from typing import Any

import brakelight as bl
import pytest


class Transcript(bl.Controller):
    """NewReno, written down again (RFC 5681, RFC 6582, RFC 3465), as the built-in one is."""

    def __init__(self, connection: bl.controller.ConnectionInfo) -> None:
        super().__init__(connection)
        self.initial_window = connection.initial_window
        self.ssthresh: int = 2**64 - 1
        self.cwnd: int
        self.credit = 0
        self.after_timeout = False
        self.before: tuple[int, int] | None = None

    def reduced(self) -> int:
        return max(int(self.cwnd * 0.5), 2 * self.mss)

    def on_ack(self, event: bl.controller.AckInfo) -> None:
        if event.in_recovery or not event.cwnd_limited:
            return
        acked = event.growth
        if self.cwnd < self.ssthresh:
            limited = min(acked, (1 if self.after_timeout else 2) * self.mss)
            growth = min(limited, max(self.ssthresh - self.cwnd, 0))
            self.cwnd += growth
            acked = limited - growth
            if self.cwnd < self.ssthresh:
                return
            self.after_timeout = False
        self.credit += acked
        while self.credit >= self.cwnd:
            self.credit -= self.cwnd
            self.cwnd += self.mss

    def on_loss(self, event: Any) -> None:
        self.before = self.cwnd, self.ssthresh
        self.ssthresh = self.reduced()
        self.cwnd = self.ssthresh
        self.credit = 0

    def on_timeout(self, event: bl.controller.TimeoutInfo) -> None:
        if event.kind == "pto":
            return
        if event.kind == "rto":
            if not event.repeated:
                self.before = self.cwnd, self.ssthresh
                self.ssthresh = self.reduced()
            self.cwnd = self.mss
            self.after_timeout = True
        else:
            self.cwnd = min(self.cwnd, 2 * self.mss)
        self.credit = 0

    def on_spurious_loss(self, now: float, timeout: bool) -> None:
        if self.before is not None:
            self.cwnd = max(self.cwnd, self.before[0])
            self.ssthresh = self.before[1]
            self.after_timeout = False
            self.before = None

    def on_recovery_exit(self, now: float) -> None:
        self.before = None

    def on_idle_restart(self, event: bl.controller.IdleInfo) -> None:
        restart, left = min(self.initial_window, self.cwnd), self.cwnd
        idle, rto = round(event.idle * 1e9), round(event.rto * 1e9)
        idle = max(idle - rto, 0)
        while idle > 0 and left > restart and rto > 0:
            left //= 2
            idle = max(idle - rto, 0)
        self.ssthresh = max(self.ssthresh, self.cwnd // 4 * 3)
        self.cwnd = max(left, restart, self.mss)
        self.credit = 0


@pytest.mark.parametrize("trace", ["lte-driving", "step", "fixed"])
def test_a_transcript_of_newreno_gives_the_same_packets(trace: str) -> None:
    setup: dict[str, Any] = {"duration": "8s", "rtt": "60ms", "buffer": "80pkt", "runs": 1}
    built_in = bl.compare(trace, "newreno,newreno+codel,newreno+red", **setup)
    own = bl.compare(trace, [Transcript, "transcript+codel,transcript+red"], **setup)
    as_text = repr(own.rows).replace("transcript", "newreno")
    for mine, its in zip(eval(as_text), built_in.rows, strict=True):
        mine.pop("run_id"), its.pop("run_id")
        assert mine == its
    assert built_in.rows[0]["dropped_packets"] > 0 or trace != "lte-driving"


def test_a_transcript_is_the_same_where_the_application_pauses_and_timers_fire() -> None:
    def rows(controller: Any) -> list[dict[str, Any]]:
        scenario = {
            "name": "pauses",
            "duration": "20s",
            "link": [{"name": "l", "rate": "6Mbps", "buffer": "20pkt"}],
            "flow": [
                {
                    "name": "f",
                    "controller": controller,
                    "rtt": "80ms",
                    "path": ["loss:rate=0.03", "l"],
                    "traffic": {"kind": "on-off", "on": "1s", "off": "3s"},
                }
            ],
        }
        return bl.run(scenario).rows

    mine, its = rows(Transcript), rows("newreno")
    for row in (mine[0], its[0]):
        row.pop("run_id")
    assert repr(mine).replace("transcript", "newreno") == repr(its)
    assert its[0]["retransmitted_packets"] > 10


class Fails(bl.Controller):
    """Fails at its tenth ACK."""

    acks = 0

    def on_ack(self, event: Any) -> None:
        self.acks += 1
        if self.acks == 10:
            raise KeyError("no more")


def test_what_a_controller_raises_ends_the_work() -> None:
    with pytest.raises(KeyError, match="no more"):
        bl.compare("step", Fails, duration="5s", runs=50)
    simulation = bl.Simulation(
        {
            "link": [bl.Link("l", rate="12Mbps")],
            "flow": [bl.Flow("f", controller=Fails, rtt="40ms", path=["l"])],
        }
    )
    with pytest.raises(KeyError, match="no more"):
        simulation.advance(10.0)
    # Others are not affected.
    assert len(bl.compare("step", "cubic", duration="1s")) == 1


def test_decisions_that_no_flow_can_have_are_refused_by_name() -> None:
    class TooSmall(bl.Controller):
        def on_ack(self, event: Any) -> None:
            self.cwnd = 3

    class TooFast(bl.Controller):
        def on_ack(self, event: Any) -> None:
            self.pacing_rate = float("nan")

    with pytest.raises(bl.InputError, match="controller `too-small`: cwnd = `3` is out of range: valid is one packet"):
        bl.compare("step", TooSmall, duration="2s")
    with pytest.raises(bl.InputError, match="controller `too-fast`: pacing_rate = `nan`"):
        bl.compare("step", TooFast, duration="2s")


def test_names_are_checked_and_the_last_class_of_a_name_counts() -> None:
    def make(window: int) -> type[bl.Controller]:
        class Again(bl.Controller):
            def on_ack(self, event: Any) -> None:
                self.cwnd = window * self.mss

        return Again

    small = bl.compare("fixed", make(2), duration="2s").rows[0]["throughput_mbps"]
    large = bl.compare("fixed", make(50), duration="2s").rows[0]["throughput_mbps"]
    assert large > 5 * small

    class Taken(bl.Controller):
        name = "cubic"

    with pytest.raises(bl.InputError, match="`cubic` is the name of another controller"):
        bl.register(Taken)
    Taken.name = "Not A Name"
    with pytest.raises(bl.InputError, match="cannot be the name of a controller"):
        bl.register(Taken)


def test_keywords_of_a_constructor_are_options() -> None:
    class Tuned(bl.Controller):
        """Has an option of every kind."""

        seen: list[Any] = []  # noqa: RUF012

        def __init__(self, connection: Any, packets: int = 40, gain: float = 1.5, paced: bool = False, mode: str = "fast", log: Any = None) -> None:
            super().__init__(connection)
            self.packets = packets
            self.seen.append((packets, gain, paced, mode, log))

        def on_ack(self, event: Any) -> None:
            self.cwnd = self.packets * self.mss

    bl.register(Tuned)
    listed = next(each for each in bl.controllers() if each["name"] == "tuned")
    assert [(each["name"], each["default"], each["unit"]) for each in listed["parameters"]] == [
        ("packets", "40", "whole number"),
        ("gain", "1.5", "number"),
        ("paced", "false", "true | false"),
        ("mode", "fast", "text"),
    ]
    Tuned.seen.clear()
    rows = bl.compare("fixed", "tuned,tuned:packets=4,tuned+codel:packets=4,gain=50%,paced=true,mode=slow", duration="2s", runs=1).rows
    assert [row["scheme"] for row in rows] == ["tuned", "tuned:packets=4", "tuned+codel:packets=4,gain=50%,paced=true,mode=slow"]
    assert rows[0]["throughput_mbps"] > 2 * rows[1]["throughput_mbps"]
    assert rows[0]["run_id"] != rows[1]["run_id"]
    assert set(Tuned.seen) == {(40, 1.5, False, "fast", None), (4, 1.5, False, "fast", None), (4, 0.5, True, "slow", None)}
    swept = bl.sweep({"axes": {"scheme": Tuned, "trace": "fixed", "duration": "1s", "option.packets": [4, 40]}})
    assert swept["option.packets"] == [4.0, 40.0] and swept[0]["throughput_mbps"] < swept[1]["throughput_mbps"]
    scenario = bl.Scenario(link=[bl.Link("l", rate="1Mbps")], flow=[bl.Flow("f", controller="tuned:packets=7", path=["l"])])
    assert "tuned:packets=7" in scenario.to_toml()
    for wrong, said in (
        ("packets=much", "packets = `much` is not a whole number"),
        ("packets=1.5", "packets = `1.5` is not a whole number"),
        ("gain=x", "gain = `x` is not a number"),
        ("paced=yes", "paced = `yes` is not `true` or `false`"),
        ("log=3", "unknown option `log`"),
        ("pakets=3", "unknown option `pakets` .did you mean `packets`"),
    ):
        with pytest.raises(bl.InputError, match=said):
            bl.compare("fixed", f"tuned:{wrong}", duration="1s")


def test_queues_have_options_too() -> None:
    class Short(bl.Queue):
        """Holds so many packets."""

        def __init__(self, place: Any, most: int = 100) -> None:
            super().__init__(place)
            self.most, self.held = most, 0

        def enqueue(self, now: float, packet: Any, capacity: float) -> None:
            if self.held >= self.most:
                self.drop(packet.id)
            else:
                self.held += 1

        def dequeue(self, now: float, capacity: float) -> None:
            self.held -= 1

    bl.register(Short)
    rows = bl.compare("fixed", "cubic+short,cubic+short:most=5", duration="3s", runs=1).rows
    assert rows[1]["queueing_delay_ms"]["p95"] < 0.5 * rows[0]["queueing_delay_ms"]["p95"]
    with pytest.raises(bl.InputError, match="unknown option `least`"):
        bl.compare("fixed", "cubic+short:least=5", duration="1s")


def test_a_constructor_that_refuses_an_option_says_so() -> None:
    class Picky(bl.Controller):
        def __init__(self, connection: Any, packets: int = 40) -> None:
            super().__init__(connection)
            if packets < 1:
                raise ValueError("packets: at least one")

    with pytest.raises(ValueError, match="packets: at least one"):
        bl.compare("fixed", [Picky, "picky:packets=0"], duration="1s")


@pytest.mark.parametrize(
    ("method", "meant"),
    [("on_acks", "on_ack"), ("onAck", "on_ack"), ("on_los", "on_loss"), ("on_everything", None), ("cap_cwmd", "cap_cwnd")],
)
def test_a_hook_that_nobody_calls_is_refused(method: str, meant: str | None) -> None:
    mistyped = type("Mistyped", (bl.Controller,), {method: lambda self, event: None})
    hint = f" .did you mean `{meant}`.." if meant else ""
    with pytest.raises(bl.InputError, match=f"controller `mistyped`: nobody calls `{method}`{hint}: valid are on_send, on_ack"):
        bl.register(mistyped)
    with pytest.raises(bl.InputError, match=f"nobody calls `{method}`"):
        bl.compare("step", [type("Child", (mistyped,), {})], duration="1s")


def test_helpers_of_a_class_are_its_own() -> None:
    class Helped(bl.Controller):
        def reduced(self) -> int:
            return 3

        def _on_each(self) -> None:
            pass

        onset = 3

    class HelpedQueue(bl.Queue):
        def oldest(self) -> int:
            return 3

    bl.register(Helped)
    bl.register(HelpedQueue)
    with pytest.raises(bl.InputError, match="queue `mistyped-queue`: nobody calls `enque` .did you mean `enqueue`..: valid are enqueue, dequeue"):
        bl.register(type("MistypedQueue", (bl.Queue,), {"enque": lambda self, *_: None}))


def test_timers_marks_and_pacing_reach_the_class() -> None:
    class Sees(bl.Controller):
        """Notes what it is told."""

        ecn = True
        seen: set[str] = set()  # noqa: RUF012

        def __init__(self, connection: Any) -> None:
            super().__init__(connection)
            self.next_timer = connection.now + 0.5

        def on_send(self, event: Any) -> None:
            self.seen.add("send")

        def on_ack(self, event: Any) -> None:
            assert event.inflight <= event.inflight_before and len(event.acked) * 1448 >= event.newly_acked
            if event.ce_packets:
                self.seen.add("marks")
            self.cwnd = 300 * self.mss
            self.pacing_rate = 20e6

        def on_ce(self, event: Any) -> None:
            self.seen.add("ce")

        def on_timer(self, now: float) -> None:
            self.seen.add("timer")

    bl.compare("step", [bl.register(Sees) and "sees+codel:ecn=true"], duration="3s")
    assert Sees.seen == {"send", "marks", "ce", "timer"}


def test_a_clone_has_a_controller_of_its_own() -> None:
    scenario = {
        "duration": "6s",
        "link": [bl.Link("l", rate="12Mbps", buffer="50pkt")],
        "flow": [bl.Flow("f", controller=Transcript, rtt="40ms", path=["l"])],
    }
    simulation = bl.Simulation(scenario)
    simulation.advance(2.0)
    other = simulation.clone()
    for each in (simulation, other):
        each.advance(each.end)
    assert simulation.finish().rows == other.finish().rows == bl.run(scenario).rows


class Plain(bl.Queue):
    """Drop-tail, which the host is by itself."""


class Early(bl.Queue):
    """Drops, or marks, a tenth of the packets by a generator of its own."""

    def __init__(self, place: Any) -> None:
        super().__init__(place)
        self.random = random.Random(place.seed)

    def enqueue(self, now: float, packet: Any, capacity: float) -> None:
        assert capacity >= 0
        if self.random.random() < 0.1:
            if packet.ecn_capable:
                self.mark(packet.id)
            else:
                self.drop(packet.id)


def test_a_queue_that_does_nothing_is_drop_tail() -> None:
    bl.register(Plain)
    own, built_in = (bl.compare("lte-driving", name, duration="5s").rows[0] for name in ("cubic+plain", "cubic"))
    for name in ("throughput_mbps", "queueing_delay_ms", "dropped_packets", "delivered_packets"):
        assert own[name] == built_in[name], name


def test_a_queue_drops_marks_and_is_the_same_for_the_same_seed() -> None:
    bl.register(Early)
    rows = bl.compare("fixed", "cubic+early", duration="5s").rows
    assert 5 < rows[0]["loss_percent"] < 15
    assert rows == bl.compare("fixed", "cubic+early", duration="5s").rows
    marked = bl.compare("fixed", "cubic+early:ecn=true", duration="5s").rows[0]
    assert marked["marks"]["ce"] > 10 and marked["dropped_packets"] == 0

    class Wrong(bl.Queue):
        def dequeue(self, now: float, capacity: float) -> int:
            return -1 & (2**63)

    bl.register(Wrong)
    with pytest.raises(bl.InputError, match="queue `wrong`: there is no packet"):
        bl.compare("step", "cubic+wrong", duration="1s")


def test_in_development_mode_the_host_is_held_to_the_contract() -> None:
    program = (
        "import brakelight as bl\n"
        "class Mine(bl.Controller):\n"
        "    def on_ack(self, event):\n"
        "        self.cwnd = 30 * self.mss\n"
        "print(bl.compare('lte-driving', [Mine, 'mine+codel'], duration='3s').rows)\n"
    )
    plain, checked = (
        subprocess.run([sys.executable, *mode, "-c", program], capture_output=True, text=True, check=True)
        for mode in ([], ["-X", "dev"])
    )
    assert checked.stdout == plain.stdout and "mine+codel" in plain.stdout


def test_what_a_thread_keeps_outlives_a_call() -> None:
    # Context variables too, as those of decimal and NumPy, are of a thread.
    kept = threading.local()
    most = 0

    class Counts(bl.Controller):
        def on_ack(self, event: bl.controller.AckInfo) -> None:
            nonlocal most
            kept.calls = getattr(kept, "calls", 0) + 1
            most = max(most, kept.calls)

    bl.compare("step", Counts, duration="1s")
    assert most > 1
