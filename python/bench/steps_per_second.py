"""Environment steps a second, beside a gym in pure Python of the kind that PCC-RL has, in one run.

The gym was written for this comparison: a heap of events, a packet a handful of them, one link with a queue and a
sender that paces. Both have a link of 12 Mbit/s that is in full use and steps of 139 packets. One core is measured
by the time of the processor, what threads gain by the wall. Where other programs run, the threads do not get two whole
cores; how many they got is printed, too.

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


class Rate(NamedTuple):
    """Calls in a second of the processor, and of the wall."""

    processor: float
    wall: float


def rate(step: Callable[[], Any], *, seconds: float = 1.0) -> Rate:
    """Call ``step`` for ``seconds``, and return how often a second."""
    count, begin, used = 0, time.perf_counter(), time.process_time()
    while (elapsed := time.perf_counter() - begin) < seconds:
        for _ in range(20):
            step()
        count += 20
    return Rate(count / (time.process_time() - used), count / elapsed)


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

    turns: dict[str, list[Rate]] = {name: [] for name in ("pure", "one", "many", "empty")}
    for _ in range(TURNS):
        turns["pure"].append(rate(lambda: pure.step(0.0)))
        turns["one"].append(rate(lambda: env.step([0.0])))
        turns["many"].append(rate(lambda: many.step(actions), seconds=2.0))
        turns["empty"].append(rate(lambda: empty.step([0.0])))
    middle = {name: statistics.median(each.processor for each in rates) for name, rates in turns.items()}
    walls = {name: statistics.median(each.wall for each in rates) for name, rates in turns.items()}
    pairs = list(zip(turns["many"], turns["one"], strict=True))
    gain = statistics.median(64 * many.wall / one.wall for many, one in pairs)
    cores = statistics.median(many.wall / many.processor for many, _ in pairs)
    each_core = statistics.median(64 * many.processor / one.processor for many, one in pairs)
    packets = env.step([0.0])[4]["delivered_packets"]
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg()) if hasattr(os, "getloadavg") else "not known"
    print(f"load averages:          {load}, on {os.cpu_count()} processors; medians of {TURNS} turns")
    print(f"pure Python:            {middle['pure']:10.0f} steps/s of the processor")
    times = middle["one"] / middle["pure"]
    print(f"one environment:        {middle['one']:10.0f} steps/s of the processor, {packets:.0f} packets a step, {times:.1f} times as many")
    print(f"one environment:        {walls['one']:10.0f} steps/s by the wall")
    print(f"64 in a vector:         {64 * walls['many']:10.0f} steps/s by the wall, {gain:.2f} times one in the same turn")
    print(f"                        it got {cores:.2f} cores, and in a second of one made {each_core:.2f} times as many as one alone")
    print(f"of which Python costs   {1e6 / middle['empty']:10.1f} us a step")


if __name__ == "__main__":
    main()
