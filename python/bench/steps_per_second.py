"""Environment steps a second, beside a gym in pure Python of the kind that PCC-RL has, in one run.

The gym was written for this comparison: a heap of events, a packet a handful of them, one link with a queue and a
sender that paces. Both have a link of 12 Mbit/s that is in full use and steps of 139 packets. One core is measured
by the time of the processor, what threads gain by the wall. Where other programs run, the threads do not get two whole
cores. So it is printed how many they got, and what they gained in those calls for which they got almost all.

    python bench/steps_per_second.py
"""

from __future__ import annotations

import heapq
import os
import random
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from brakelight.envs import CongestionControlEnv, Links

PACKETS = 139
RATE_PPS = 1000.0
RTT_S = 0.04
TURNS = 7


class PurePythonGym:
    """A sender that paces over one link with a queue: a heap of events in Python."""

    def __init__(self, step_s: float, limit: int) -> None:
        self.step_s, self.limit = step_s, limit
        self.now, self.rate, self.free_at, self.number = 0.0, RATE_PPS, 0.0, 0
        self.events: list[tuple[float, int, str, float]] = []
        self.random = random.Random(1)
        self._push(0.0, "send", 0.0)

    def _push(self, at: float, kind: str, sent: float) -> None:
        self.number += 1
        heapq.heappush(self.events, (at, self.number, kind, sent))

    def step(self, action: float) -> tuple[np.ndarray, float]:
        """Advance by a step."""
        self.rate *= 1 + 0.025 * action if action >= 0 else 1 / (1 - 0.025 * action)
        end, rtts, sent_packets, lost = self.now + self.step_s, [], 0, 0
        while self.events[0][0] < end:
            self.now, _, kind, sent = heapq.heappop(self.events)
            if kind == "send":
                sent_packets += 1
                self._push(self.now + 1 / self.rate * self.random.uniform(0.99, 1.01), "send", 0.0)
                self._push(self.now + RTT_S / 2 * self.random.uniform(1.0, 1.001), "arrive", self.now)
            elif kind == "arrive":
                waits = max(0.0, self.free_at - self.now)
                if waits * RATE_PPS >= self.limit:
                    self._push(self.now + waits + RTT_S / 2, "lost", sent)
                else:
                    self.free_at = self.now + waits + 1 / RATE_PPS
                    self._push(self.free_at + RTT_S / 2, "ack", sent)
            elif kind == "ack":
                rtts.append(self.now - sent)
            else:
                lost += 1
        self.now = end
        half = len(rtts) // 2
        mean = float(np.mean(rtts)) if rtts else RTT_S
        gradient = (float(np.mean(rtts[half:])) - float(np.mean(rtts[:half]))) / self.step_s if half else 0.0
        ratio = sent_packets / max(len(rtts), 1)
        reward = 1e-3 * (10 * len(rtts) / self.step_s - 1e3 * mean - 2e3 * lost / max(sent_packets, 1))
        return np.array([gradient, mean / RTT_S, ratio]), reward


class Window(NamedTuple):
    """64 steps: seconds of the wall and of the processor."""

    wall: float
    processor: float


def windows(step: Callable[[], Any], calls: int, seconds: float = 1.0) -> list[Window]:
    """Call ``step`` for ``seconds``, and return what every ``calls`` calls took."""
    taken, end = [], time.perf_counter() + seconds
    while (begin := time.perf_counter()) < end:
        used = time.process_time()
        for _ in range(calls):
            step()
        used = time.process_time() - used
        taken.append(Window(time.perf_counter() - begin, used))
    return taken


def per_second(taken: list[Window]) -> Window:
    """Return the steps in a second of the wall, and of the processor."""
    return Window(*(64 * len(taken) / sum(column) for column in zip(*taken, strict=True)))


def undisturbed(taken: list[Window], cores: int) -> list[float]:
    """Return the walls of the windows that had nine tenths of this many cores or more."""
    return [window.wall for window in taken if window.processor >= 0.9 * cores * window.wall]


def main() -> None:
    """Measure in turns, so that what else the machine does meets all alike, and print the medians."""
    step_s = PACKETS / RATE_PPS
    links = Links(rate=("12Mbps", "12Mbps"), rtt=("40ms", "40ms"), buffer=("100pkt", "100pkt"))
    kind = {"links": links, "interval": f"{step_s * 1e3:.3f}ms", "steps": 1_000_000}

    pure = PurePythonGym(step_s, 100)
    env = CongestionControlEnv(**kind)
    env.reset(seed=1)
    for _ in range(30):
        *_, info = env.step([0.2 if env._native.row(0)["cwnd_bytes"] < 100_000 else 0.0])
    many = gymnasium.make_vec("brakelight/CongestionControl-v0", num_envs=64, **kind)
    many.reset(seed=1)
    for _ in range(30):
        many.step(np.where(many._native.info[:, 4:5] < 100_000, 0.2, 0.0))
    actions = np.zeros((64, 1))
    # Steps in which almost nothing happens: what is left is the way from Python and back.
    empty = CongestionControlEnv(links=links, interval="0.1ms", steps=1_000_000_000)
    empty.reset(seed=1)

    turns: dict[str, list[list[Window]]] = {name: [] for name in ("pure", "one", "many", "empty")}
    for _ in range(TURNS):
        turns["pure"].append(windows(lambda: pure.step(0.0), 64))
        turns["one"].append(windows(lambda: env.step([0.0]), 64))
        turns["many"].append(windows(lambda: many.step(actions), 1, seconds=2.0))
        turns["empty"].append(windows(lambda: empty.step([0.0]), 64))
    rates = {name: [per_second(turn) for turn in taken] for name, taken in turns.items()}
    middle = {name: statistics.median(each.processor for each in values) for name, values in rates.items()}
    walls = {name: statistics.median(each.wall for each in values) for name, values in rates.items()}
    pairs = list(zip(rates["many"], rates["one"], strict=True))
    packets = env.step([0.0])[4]["delivered_packets"]
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg()) if hasattr(os, "getloadavg") else "not known"
    print(f"load averages:          {load}, on {os.cpu_count()} processors; medians of {TURNS} turns")
    print(f"pure Python:            {middle['pure']:10.0f} steps/s of the processor")
    times = middle["one"] / middle["pure"]
    print(f"one environment:        {middle['one']:10.0f} steps/s of the processor, {packets:.0f} packets a step, {times:.1f} times as many")
    print(f"one environment:        {walls['one']:10.0f} steps/s by the wall")
    gain = statistics.median(many.wall / one.wall for many, one in pairs)
    print(f"64 in a vector:         {walls['many']:10.0f} steps/s by the wall, {gain:.2f} times one in the same turn")
    cores = statistics.median(many.wall / many.processor for many, _ in pairs)
    alike = statistics.median(many.processor / one.processor for many, one in pairs)
    print(f"                        it got {cores:.2f} cores, and made {alike:.2f} times as many in a second of one")
    every = sum(turns["many"], [])
    alone, together = undisturbed(sum(turns["one"], []), 1), undisturbed(every, os.cpu_count() or 1)
    if alone and together:
        gain = statistics.median(alone) / statistics.median(together)
        print(f"                        where it got nine tenths of all cores ({len(together)} of {len(every)} calls): {gain:.2f} times one")
    print(f"of which Python costs   {1e6 / middle['empty']:10.1f} us a step")


if __name__ == "__main__":
    main()
