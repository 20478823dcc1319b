"""Trains with Stable-Baselines3's PPO, without wrappers, and says what it gained.

    pip install "./python[envs]" stable-baselines3
    python python/examples/sb3.py [STEPS]
"""

from __future__ import annotations

import sys
import time

import gymnasium
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

from brakelight.envs import Links

LINKS = Links(rate=("1Mbps", "12Mbps"), rtt=("10ms", "100ms"), hold=("0.2s", "4s"))


def environment(seed: int) -> gymnasium.Env:
    """Return an environment whose episodes follow from ``seed``."""
    env = gymnasium.make("brakelight/CongestionControl-v0", links=LINKS, steps=200)
    env.reset(seed=seed)
    return env


def main(steps: int) -> None:
    """Train, and print the mean reward of a step on links that were held back, before and after."""
    agent = PPO("MlpPolicy", environment(1), seed=1, n_steps=1024, batch_size=256, gamma=0.95, device="cpu")

    def reward() -> float:
        mean, _ = evaluate_policy(agent, environment(1_000_000), n_eval_episodes=20, warn=False)
        return float(mean) / 200

    before, begin = reward(), time.perf_counter()
    agent.learn(steps)
    print(f"{steps} steps in {time.perf_counter() - begin:.0f} s: reward of a step {before:+.3f} before, {reward():+.3f} after")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
