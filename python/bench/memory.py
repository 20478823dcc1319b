"""Whether the process grows: a million environment steps, then 1,000 environments that are made and dropped.

Prints the resident memory on the way; ends with 1 if it grew by more than 16 MB.

    python bench/memory.py
"""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path

import gymnasium
import numpy as np
from brakelight.envs import CongestionControlEnv, Links

LINKS = Links(rate=("1Mbps", "2Mbps"), rtt=("10ms", "20ms"))
ENVIRONMENTS = 64


def resident_mb() -> float:
    """Return the resident memory of this process."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def main() -> None:
    """Measure, and print."""
    envs = gymnasium.make_vec("brakelight/CongestionControl-v0", num_envs=ENVIRONMENTS, links=LINKS, steps=400)
    envs.reset(seed=1)
    random, begin = np.random.default_rng(1), time.perf_counter()
    sizes = []
    for hundred_thousand in range(11):
        for _ in range(100_000 // ENVIRONMENTS + 1):
            envs.step(random.uniform(-0.1, 0.1, (ENVIRONMENTS, 1)))
        sizes.append(resident_mb())
        print(f"{(hundred_thousand + 1) * 100_000:>9,} steps: {sizes[-1]:7.1f} MB, {time.perf_counter() - begin:5.0f} s")
    # The first 100,000 steps make what stays.
    grown = sizes[-1] - sizes[0]
    before = resident_mb()
    for seed in range(1000):
        env = CongestionControlEnv(links=LINKS, steps=100)
        env.reset(seed=seed)
        env.step([0.0])
    del env
    left = resident_mb() - before
    print(f"a million steps more: {grown:+.1f} MB; 1,000 environments made and dropped: {left:+.1f} MB")
    sys.exit(grown > 16 or left > 16)


if __name__ == "__main__":
    main()
