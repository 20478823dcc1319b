"""What a controller and a queue in Python cost, beside the built-in ones that do the same.

The controller is the transcript of NewReno that the tests hold to the built-in one, byte for byte; the queue is
drop-tail, which a class that does nothing is. Both runs have the same packets, so the times can be compared.

    python bench/controllers.py
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path
from typing import Any

import brakelight as bl

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from test_algorithms import Plain, Transcript  # noqa: E402

TURNS = 7


def scenario(controller: Any, queue: str) -> dict[str, Any]:
    """Return one flow over a link of 12 Mbit/s."""
    return {
        "name": "cost",
        "duration": "200s",
        "link": [{"name": "link", "rate": "12Mbps", "buffer": "100pkt", "queue": queue}],
        "flow": [{"name": "flow", "controller": controller, "rtt": "40ms", "path": ["link"]}],
    }


def seconds(made: bl.Scenario) -> tuple[float, int]:
    """Run a scenario; return the time of the processor and the packets that were delivered."""
    begin = time.process_time()
    rows = bl.run(made, progress=False).rows
    return time.process_time() - begin, int(rows[0]["delivered_packets"])


def main() -> None:
    """Measure in turns, and print the medians."""
    bl.register(Plain)
    made = {
        "built in": bl.Scenario(scenario("newreno", "droptail")),
        "the controller in Python": bl.Scenario(scenario(Transcript, "droptail")),
        "the queue in Python": bl.Scenario(scenario("newreno", "plain")),
    }
    times: dict[str, list[float]] = {name: [] for name in made}
    packets = set()
    for _ in range(TURNS):
        for name, each in made.items():
            taken, delivered = seconds(each)
            times[name].append(taken)
            packets.add(delivered)
    assert len(packets) == 1, "the packets differ"
    count = packets.pop()
    base = times["built in"]
    for name, taken in times.items():
        ratio = statistics.median(one / other for one, other in zip(taken, base, strict=True))
        each = 1e6 * statistics.median(taken) / count
        print(f"{name:26} {each:7.2f} us a packet, {ratio:6.1f} times the built-in one")


if __name__ == "__main__":
    main()
