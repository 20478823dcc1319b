"""Environments: what Gymnasium and PettingZoo ask of them, seeds, episodes, memory."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path
from typing import Any

import brakelight as bl
import pytest

np = pytest.importorskip("numpy")
gymnasium = pytest.importorskip("gymnasium")
pettingzoo = pytest.importorskip("pettingzoo")

from brakelight.envs import PRESETS, CongestionControlEnv, Links, RouterEnv, SharedLink  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402
from pettingzoo.test import parallel_api_test, parallel_seed_test  # noqa: E402

CONGESTION = "brakelight/CongestionControl-v0"


def roll(env: Any, seed: int, steps: int, act: Any = None) -> list[tuple[bytes, float]]:
    """Observations and rewards of an episode whose actions follow from the seed."""
    random = np.random.default_rng(seed)
    observation, _ = env.reset(seed=seed)
    seen = [(observation.tobytes(), 0.0)]
    for _ in range(steps):
        action = random.uniform(-1, 1, 1) if act is None else [act]
        observation, reward, _, _, _ = env.step(action)
        seen.append((observation.tobytes(), reward))
    return seen


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_gymnasium_s_checker_finds_nothing(preset: str) -> None:
    env = gymnasium.make(CONGESTION, preset=preset, steps=20).unwrapped
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # It warns of spaces that are not symmetric; Aurora's actions have no bounds to speak of.
        warnings.filterwarnings("ignore", message=".*(symmetric|Box action space|render).*")
        check_env(env)


@pytest.mark.parametrize("knob", ["drop", "rate", "target"])
def test_gymnasium_s_checker_finds_nothing_wrong_with_the_router(knob: str) -> None:
    check_env(gymnasium.make("brakelight/Router-v0", knob=knob, steps=20).unwrapped, skip_render_check=True)
    make = lambda: RouterEnv(knob, steps=50)  # noqa: E731
    assert roll(make(), 3, 50) == roll(make(), 3, 50) != roll(make(), 4, 50)


def test_pettingzoo_s_tests_pass() -> None:
    parallel_api_test(SharedLink(agents=3, steps=50), num_cycles=120)
    parallel_seed_test(lambda: SharedLink(agents=2, steps=50), num_cycles=60)


def test_an_episode_follows_from_its_seed_in_any_number_of_environments() -> None:
    alone = [roll(CongestionControlEnv(steps=10), 7 + place, 25, 0.1) for place in range(3)]
    assert alone[0] == roll(CongestionControlEnv(steps=10), 7, 25, 0.1) and alone[0] != alone[1]
    for count in (3, 1):
        envs = gymnasium.make_vec(CONGESTION, num_envs=count, steps=10)
        observations, _ = envs.reset(seed=7)
        seen = [[(observations[place].tobytes(), 0.0)] for place in range(count)]
        for _ in range(9):
            observations, rewards, *_ = envs.step(np.full((count, 1), 0.1))
            for place in range(count):
                seen[place].append((observations[place].tobytes(), rewards[place]))
        for place in range(count):
            assert seen[place] == alone[place][:10]


def test_a_vector_begins_the_next_episode_at_the_step_after_the_last() -> None:
    envs = gymnasium.make_vec(CONGESTION, num_envs=2, steps=3)
    assert envs.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.NEXT_STEP
    envs.reset(seed=1)
    action = np.zeros((2, 1))
    over = [envs.step(action)[3].tolist() for _ in range(8)]
    assert over == [[False] * 2, [False] * 2, [True] * 2, [False] * 2] * 2
    single = CongestionControlEnv(steps=3)
    single.reset(seed=1)
    second, _ = single.reset()
    envs.reset(seed=1)
    for _ in range(4):
        observations, rewards, *_ = envs.step(action)
    assert observations[0].tobytes() == second.tobytes() and rewards[0] == 0.0


def test_episodes_are_truncated_never_terminated_and_differ() -> None:
    env = CongestionControlEnv(steps=5)
    capacities = set()
    env.reset(seed=3)
    for _ in range(4):
        for step in range(5):
            _, _, terminated, truncated, info = env.step([0.0])
            assert (terminated, truncated) == (False, step == 4)
        capacities.add(info["capacity_mbps"])
        env.reset()
    assert len(capacities) == 4


def test_the_reward_is_made_of_what_info_says() -> None:
    for preset in PRESETS:
        env = CongestionControlEnv(preset, steps=50)
        env.reset(seed=2)
        for _ in range(50):
            _, reward, _, _, info = env.step([0.2])
            parts = sum(info[f"reward_{part}"] for part in ("throughput", "delay", "loss"))
            assert reward == pytest.approx(parts)
            assert info["reward_delay"] <= 0 and info["reward_loss"] <= 0


def test_aurora_s_numbers_are_those_of_its_paper() -> None:
    links = Links(rate=("6Mbps", "6Mbps"), rtt=("100ms", "100ms"), buffer=("500pkt", "500pkt"))
    env = CongestionControlEnv("aurora", links=links)
    observation, _ = env.reset(seed=1)
    assert observation.tolist() == [0.0, 1.0, 1.0] * 10
    before = None
    for _ in range(200):
        _, reward, _, _, info = env.step([4.0])
        # x (1 + alpha a), alpha 0.025; at most twice the rate of the fastest link
        assert before is None or info["pacing_mbps"] == pytest.approx(min(1.1 * before, 12.0), rel=1e-6)
        before = info["pacing_mbps"]
        if info["rtt_ms"] > 200:
            break
    packets = info["throughput_mbps"] * 1e6 / 8 / 1448
    loss = info["loss"]
    assert reward == pytest.approx(1e-3 * (10 * packets - info["rtt_ms"] - 2000 * loss), rel=1e-6)
    _, _, _, _, info = env.step([-4.0])
    assert info["pacing_mbps"] == pytest.approx(before / 1.1, rel=1e-6)


def test_a_policy_that_fills_the_window_sees_what_it_does() -> None:
    links = Links(rate=("12Mbps", "12Mbps"), rtt=("40ms", "40ms"), buffer=("100pkt", "100pkt"))
    env = CongestionControlEnv(links=links, steps=300, history=1)
    env.reset(seed=5)
    for _ in range(40):
        observation, reward, _, _, info = env.step([-1.0 if info_full(env) else 0.3])
    assert info["throughput_mbps"] == pytest.approx(11.5, rel=0.1)
    for _ in range(20):
        observation, worse, _, _, info = env.step([1.0])
    assert info["loss"] > 0.1 and worse < reward and info["rtt_ms"] > 100
    assert observation[4] == pytest.approx(info["loss"], rel=1e-6)


def info_full(env: Any) -> bool:
    """Whether the window is as large as the path and half as much."""
    row = env._native.row(0)
    return bool(row["cwnd_bytes"] > 1.3 * 12e6 / 8 * 0.04)


def test_links_are_drawn_as_they_were_asked_for() -> None:
    mine = bl.Trace.from_numpy([6.0], name="six")
    env = CongestionControlEnv(links=Links(traces=[mine, "step"], loss=(0.01, 0.02), against=["cubic"]), steps=30)
    means = set()
    for seed in range(12):
        env.reset(seed=seed)
        for _ in range(30):
            *_, info = env.step([0.1])
            means.add(round(info["capacity_mbps"]))
    assert 6 in means and len(means) > 2
    varying = CongestionControlEnv(links=Links(hold=("100ms", "200ms")), interval="50ms", steps=40)
    varying.reset(seed=1)
    assert len({varying.step([0.0])[4]["capacity_mbps"] for _ in range(40)}) > 5


def test_agents_share_the_link() -> None:
    links = Links(rate=("12Mbps", "12Mbps"), rtt=("40ms", "40ms"), buffer=(2.0, 2.0))
    env = SharedLink(agents=3, links=links, steps=100)
    env.reset(seed=1)
    for _ in range(60):
        _, rewards, _, _, infos = env.step({agent: [0.05 if agent == "flow_0" else -0.02] for agent in env.agents})
    shares = [info["share"] for info in infos.values()]
    assert sum(shares) == pytest.approx(1.0) and shares[0] > 0.5
    assert set(rewards) == {"flow_0", "flow_1", "flow_2"}


def test_wrong_settings_are_refused_by_name() -> None:
    for wrong, words in (
        ({"preset": "other"}, "valid are default, aurora, orca"),
        ({"links": Links(rate=("9Mbps", "3Mbps"))}, "rate = .9, 3. is out of range"),
        ({"links": Links(rate=("fast", "3Mbps"))}, "`fast` is not a rate"),
        ({"links": Links(loss=(0.0, 1.0))}, "loss"),
        ({"links": Links(buffer=("3", "9pkt"))}, "`3` is not a number of packets"),
        ({"links": Links(traces=["nowhere"])}, "unknown trace `nowhere`"),
        ({"interval": "0rtt"}, "interval"),
        ({"history": 0}, "history"),
        ({"steps": 0}, "steps"),
        ({"links": Links(queue="nothing")}, "queue = `nothing`: unknown queue"),
        ({"links": Links(against=["cubic", "cubik"])}, "against = `cubik`: unknown controller `cubik` .did you mean"),
        ({"links": Links(against=["cubic:x=1"])}, "against = `cubic:x=1`: .*unknown option `x`"),
        ({"links": Links(against="")}, "against = ``"),
    ):
        with pytest.raises(bl.InputError, match=words):
            CongestionControlEnv(**wrong)  # type: ignore[arg-type]
        if "preset" not in wrong and "history" not in wrong and "steps" not in wrong and "interval" not in wrong:
            with pytest.raises(bl.InputError, match=words):
                SharedLink(**wrong)  # type: ignore[arg-type]
    with pytest.raises(bl.InputError, match="unknown controller `cubik`"):
        RouterEnv(controllers=("cubik",))
    with pytest.raises(bl.InputError, match="links.against = `cubic`: valid is none here"):
        RouterEnv(links=Links(against=["cubic"]))
    with pytest.raises(bl.InputError, match="unknown trace `nowhere`"):
        RouterEnv(links=Links(traces=["nowhere"]))
    with pytest.raises(bl.RunError, match="not reset"):
        CongestionControlEnv().step([0.0])
    with pytest.raises(bl.InputError, match="one for every agent"):
        env = gymnasium.make_vec(CONGESTION, num_envs=2)
        env.reset()
        env.step(np.zeros((3, 1)))


def test_classes_compete_in_environments_and_what_they_raise_is_raised() -> None:
    class Rival(bl.Controller):
        def __init__(self, connection: Any, packets: int = 60) -> None:
            super().__init__(connection)
            self.cwnd = packets * self.mss

    class Breaks(bl.Controller):
        def on_ack(self, event: Any) -> None:
            raise KeyError("broken")

    one = Links(rate=("12Mbps", "12Mbps"), rtt=("40ms", "40ms"), buffer=("100pkt", "100pkt"))
    shares = []
    for against in ([], [Rival], ["rival:packets=200"]):
        bl.register(Rival)
        links = Links(**{**vars(one), "against": against})
        env = CongestionControlEnv(links=links, steps=100)
        env.reset(seed=1)
        shares.append(np.mean([env.step([0.05])[4]["throughput_mbps"] for _ in range(60)][20:]))
    assert shares[0] > 1.3 * shares[1] > 1.3 * shares[2]
    for count in (1, 3):
        envs = gymnasium.make_vec(CONGESTION, num_envs=count, links=Links(**{**vars(one), "against": [Breaks]}))
        envs.reset(seed=1)
        with pytest.raises(KeyError, match="broken"):
            for _ in range(5):
                envs.step(np.zeros((count, 1)))


def resident_mb() -> float:
    text = Path("/proc/self/statm").read_text().split()[1]
    return int(text) * 4096 / 1e6


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
def test_environments_leave_no_memory_behind() -> None:
    links = Links(rate=("1Mbps", "2Mbps"), rtt=("10ms", "20ms"))

    def work(environments: int, steps: int) -> None:
        for seed in range(environments):
            env = CongestionControlEnv(links=links, steps=100)
            env.reset(seed=seed)
            env.step([0.0])
        envs = gymnasium.make_vec(CONGESTION, num_envs=16, links=links, steps=100)
        envs.reset(seed=1)
        for _ in range(steps // 16):
            envs.step(np.zeros((16, 1)))

    work(50, 20_000)
    gc.collect()
    before = resident_mb()
    work(300, 60_000)
    gc.collect()
    assert resident_mb() - before < 8.0


def test_a_tiny_policy_learns() -> None:
    """Random search over a linear policy, in NumPy: after it the reward is higher than of doing nothing."""
    links = Links(rate=("8Mbps", "16Mbps"), rtt=("30ms", "60ms"), buffer=(2.0, 2.0))
    envs = gymnasium.make_vec(CONGESTION, num_envs=16, links=links, steps=80, history=1)

    def score(weights: Any) -> float:
        observations, _ = envs.reset(seed=100)
        total = 0.0
        for _ in range(60):
            actions = np.tanh(observations @ weights[:-1] + weights[-1])[:, None]
            observations, rewards, *_ = envs.step(actions)
            total += float(rewards.mean())
        return total / 60

    random = np.random.default_rng(1)
    best = np.zeros(9)
    first = reached = score(best)
    for _ in range(60):
        tried = best + random.normal(0, 0.3, 9)
        if (value := score(tried)) > reached:
            best, reached = tried, value
    assert reached > first + 0.1
