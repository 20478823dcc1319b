"""Environments: what Gymnasium and PettingZoo ask of them, seeds, episodes, memory."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import brakelight as bl
import pytest

np = pytest.importorskip("numpy")
gymnasium = pytest.importorskip("gymnasium")
pettingzoo = pytest.importorskip("pettingzoo")

from brakelight.envs import (  # noqa: E402
    PRESETS,
    CongestionControlEnv,
    Links,
    MonitorInterval,
    RouterEnv,
    SharedLink,
)
from brakelight.envs._native import INFO  # noqa: E402
from gymnasium.utils.env_checker import check_env  # noqa: E402
from pettingzoo.test import parallel_api_test, parallel_seed_test  # noqa: E402

CONGESTION = "brakelight/CongestionControl-v0"
NORMALIZED = "brakelight/CongestionControl-v1"


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
    for env in (
        gymnasium.make(NORMALIZED, preset=preset, steps=20).unwrapped,
        CongestionControlEnv(preset, steps=20, normalized=True),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check_env(env)
    # The actions of version 0 are Aurora's own, which have no bounds to speak of.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message=".*is out of date")
        warnings.filterwarnings("ignore", message=".*symmetric.*" if preset == "aurora" else "nothing")
        check_env(gymnasium.make(CONGESTION, preset=preset, steps=20).unwrapped)


def test_an_action_of_version_1_is_one_of_version_0() -> None:
    for preset, times in (("aurora", 40.0), ("default", 1.0), ("orca", 1.0)):
        old, new = gymnasium.make(CONGESTION, preset=preset), gymnasium.make(NORMALIZED, preset=preset)
        assert (new.action_space.low[0], new.action_space.high[0]) == (-1.0, 1.0)
        old.reset(seed=3)
        new.reset(seed=3)
        for act in (0.25, -0.5, 1.0, 0.125):
            here, there = old.step(np.array([act * times], np.float32)), new.step(np.array([act], np.float32))
            assert here[0].tobytes() == there[0].tobytes() and here[4] == there[4]
    shared = SharedLink(2, "aurora", normalized=True)
    assert shared.action_space("flow_0").high[0] == 1.0


def test_an_environment_says_what_makes_it_again() -> None:
    made = CongestionControlEnv("aurora", steps=7, normalized=True)
    again = gymnasium.make(made.spec)
    assert again.unwrapped.spec.id == NORMALIZED and roll(made, 2, 6) == roll(again, 2, 6)
    assert RouterEnv("rate").spec.id == "brakelight/Router-v0"
    assert gymnasium.make(RouterEnv("rate", steps=3).spec).unwrapped._knob == "rate"
    for kind in (CongestionControlEnv, RouterEnv, SharedLink):
        with pytest.raises(bl.InputError, match="render_mode = `human`: valid is None"):
            kind(render_mode="human")


def two_links(**keys: Any) -> bl.Scenario:
    """A radio behind a core with other traffic, and a path element."""
    document = {
        "name": "two-links",
        "duration": "2s",
        "link": [
            bl.Link("core", rate="30Mbps", buffer="200pkt"),
            bl.Link("cell", radio="cellular:users=1", queue="codel", buffer="300pkt"),
        ],
        "flow": [
            bl.Flow("other", controller="cubic", rtt="20ms", path=["core"], count=2),
            bl.Flow("mine", controller="bbr3", rtt="30ms", start="0.2s", path=["loss:rate=0.001", "core", "cell"]),
        ],
    }
    return bl.Scenario({**document, **keys})


def seen_by_mine(interval: MonitorInterval) -> list[float]:
    return [interval.rtt_ms / max(interval.min_rtt_ms, 1.0) - 1.0, interval.loss, interval.action]


def reward_of_mine(interval: MonitorInterval) -> float:
    return interval.throughput_mbps - 0.1 * interval.rtt_ms


def test_an_agent_steers_a_flow_of_any_scenario() -> None:
    env = gymnasium.make(NORMALIZED, scenario=two_links(), flow="mine").unwrapped
    check_env(env)
    env.reset(seed=1)
    infos = []
    while True:
        _, _, terminated, truncated, info = env.step([0.3 if info_low(infos) else -0.3])
        infos.append(info)
        assert not terminated
        if truncated:
            break
    # From the start of the flow, which is drawn within 10 ms, to the end of the scenario. The first step is 100 ms.
    assert 0.3 <= infos[0]["time_s"] <= 0.31 and infos[-1]["time_s"] == 2.0
    assert sum(info["delivered_packets"] for info in infos) > 100
    # The slowest link of the path is the radio.
    assert 0 < np.mean([info["capacity_mbps"] for info in infos]) < 30
    with pytest.raises(bl.RunError, match="the episode is over"):
        env.step([0.0])
    again = CongestionControlEnv(scenario=two_links(), flow="mine")
    assert roll(env, 7, 8) == roll(again, 7, 8) != roll(env, 8, 8)
    # Another controller in the agent's place meets the same episode.
    text = env.scenario
    assert 'controller = "agent-0"' in text and 'controller = "cubic"' in text
    assert bl.run(text.replace("agent-0", "vegas")).flows["controller"][-1] == "vegas"


def info_low(infos: list[dict[str, float]]) -> bool:
    return not infos or infos[-1]["rtt_ms"] < 1.5 * max(infos[-1]["min_rtt_ms"], 1.0)


def test_a_steered_flow_has_the_packets_of_a_simulation_that_is_stepped() -> None:
    scenario = two_links(flow=[bl.Flow("mine", controller="external", rtt="30ms", path=["core", "cell"])])
    env = CongestionControlEnv(scenario=scenario, interval="50ms")
    env.reset(seed=4)
    text = env.scenario.replace("agent-0", "external")
    by_hand = bl.Simulation(text)
    for act in (0.5, 1.0, -0.5, 0.0, -1.0, 0.25):
        info = env.step([act])[4]
        by_hand.set_window("mine", int(info["cwnd_bytes"]))
        by_hand.advance(info["time_s"])
        flow = by_hand.flow("mine")
        assert flow.inflight == info["inflight_bytes"] and flow.cwnd == int(info["cwnd_bytes"])
        assert flow.srtt_s is None or flow.srtt_s * 1e3 == pytest.approx(info["srtt_ms"], rel=1e-6)
    assert by_hand.flow("mine").delivered_packets > 50


def test_an_observation_and_a_reward_are_functions_of_what_the_flow_saw() -> None:
    assert list(MonitorInterval._fields[:-2]) == INFO
    kind: dict[str, Any] = {
        "scenario": two_links(),
        "flow": "mine",
        "observation": seen_by_mine,
        "observation_bounds": (-1.0, 0.25),
        "reward": reward_of_mine,
        "history": 3,
    }
    env = CongestionControlEnv(**kind)
    assert env.observation_space == gymnasium.spaces.Box(-1.0, 0.25, (9,), np.float32)
    check_env(env)
    before, _ = env.reset(seed=1)
    assert before.tolist() == [0.0] * 9
    for step, act in enumerate((0.5, -0.25, 0.125, -1.0)):
        observation, reward, _, _, info = env.step([act])
        assert reward == reward_of_mine(MonitorInterval(**info, action=act, application={}))
        assert observation[-1] == min(act, 0.25)
        assert observation[:6].tolist() == before[3:].tolist()
        before = observation
    # Copied and pickled in the middle of an episode, alone and in a vector.
    copied, pickled = copy.deepcopy(env), pickle.loads(pickle.dumps(env))
    for act in (0.1, -0.2):
        here, *others = (made.step([act]) for made in (env, copied, pickled))
        assert all(here[0].tobytes() == one[0].tobytes() and here[1] == one[1] for one in others)
    envs = gymnasium.make_vec(CONGESTION, num_envs=2, **kind)
    envs.reset(seed=1)
    alone = CongestionControlEnv(**kind)
    alone.reset(seed=2)
    for act in (0.5, -0.25, 0.125):
        observations, rewards, *_ = envs.step(np.full((2, 1), act))
        observation, reward, *_ = alone.step([act])
        assert observations[1].tobytes() == observation.tobytes() and rewards[1] == reward


def test_a_reward_may_come_from_what_a_viewer_sees() -> None:
    scenario = bl.Scenario(
        duration="2s",
        link=[bl.Link("cell", rate="6Mbps", buffer="100pkt")],
        flow=[bl.Flow("call", controller="external", rtt="30ms", path=["cell"], traffic={"kind": "call"})],
    )
    seen: list[dict[str, float]] = []

    def keep(interval: MonitorInterval) -> float:
        seen.append(dict(interval.application))
        return float(len(interval.application))

    env = CongestionControlEnv(scenario=scenario, reward=keep)
    env.reset(seed=1)
    rewards = [env.step([0.0])[1] for _ in range(10)]
    assert rewards[-1] > 0 and any("frame" in name for name in seen[-1])


def test_wrong_scenarios_and_functions_are_refused_by_name() -> None:
    for wrong, words in (
        ({"flow": "other"}, "flow = `other`: there are 2 of it: valid is a flow whose `count` is 1"),
        ({"flow": "minee"}, "flow = `minee`: the scenario has no flow of that name: valid are `other`, `mine`"),
        ({}, "flow = `None`: valid is the name of one of the scenario's flows: `other`, `mine`"),
        ({"flow": "mine", "links": Links()}, "links = .*: valid is None with a scenario"),
        ({"scenario": None, "flow": "mine"}, "flow = `mine`: valid is None without a scenario"),
        ({"scenario": 3, "flow": "mine"}, "scenario = `3`: valid is a Scenario"),
        ({"flow": "mine", "reward": 3}, "reward = `3`: valid is a function"),
        ({"flow": "mine", "observation": lambda seen: "word"}, "observation returned `'word'`: valid is a sequence"),
        ({"flow": "mine", "observation": lambda seen: []}, "observation returned `..`: valid is a sequence"),
        ({"flow": "mine", "observation_bounds": (1.0, 0.0)}, "observation_bounds = `.1.0, 0.0.`: valid is a pair"),
    ):
        with pytest.raises(bl.InputError, match=words):
            CongestionControlEnv(**{"scenario": two_links(), **wrong})  # type: ignore[arg-type]
    env = CongestionControlEnv(scenario=two_links(), flow="mine", reward=lambda seen: float("nan"))
    env.reset(seed=1)
    with pytest.raises(bl.InputError, match="reward returned `nan`: valid is a finite number"):
        env.step([0.0])


class StandIn:
    """The abstract class of Stable-Baselines3 as far as an adapter sees it: it is not among what the tests install."""

    def __init__(self, num_envs: int, observation_space: Any, action_space: Any) -> None:
        self.num_envs, self.observation_space, self.action_space = num_envs, observation_space, action_space
        self.reset_infos: list[dict[str, Any]] = [{} for _ in range(num_envs)]
        self._reset_seeds()
        self._reset_options()
        self.render_mode = self.get_attr("render_mode")[0]  # type: ignore[attr-defined]

    def _reset_seeds(self) -> None:
        self._seeds: list[int | None] = [None] * self.num_envs

    def _reset_options(self) -> None:
        self._options: list[dict[str, Any]] = [{} for _ in range(self.num_envs)]

    def seed(self, seed: int) -> list[int | None]:
        self._seeds = [seed + number for number in range(self.num_envs)]
        return self._seeds

    def step(self, actions: Any) -> Any:
        self.step_async(actions)  # type: ignore[attr-defined]
        return self.step_wait()  # type: ignore[attr-defined]


@pytest.fixture
def sb3(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The adapter, over Stable-Baselines3 if it is installed, else over the stand-in."""
    try:
        import stable_baselines3.common.vec_env  # noqa: F401
    except ImportError:
        for name in ("stable_baselines3", "stable_baselines3.common", "stable_baselines3.common.vec_env"):
            monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
        monkeypatch.setattr(sys.modules["stable_baselines3.common.vec_env"], "VecEnv", StandIn, raising=False)
    monkeypatch.delitem(sys.modules, "brakelight.envs.sb3", raising=False)
    import brakelight.envs.sb3 as module

    yield module.SB3VecEnv
    sys.modules.pop("brakelight.envs.sb3", None)


def test_without_stable_baselines_its_vector_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    monkeypatch.delitem(sys.modules, "brakelight.envs.sb3", raising=False)
    import brakelight.envs.sb3 as module

    with pytest.raises(ImportError, match="this needs stable_baselines3: `pip install stable-baselines3`"):
        module.SB3VecEnv(gymnasium.make_vec(NORMALIZED, num_envs=2))
    sys.modules.pop("brakelight.envs.sb3", None)


def test_stable_baselines_gets_a_vector_of_its_kind(sb3: Any) -> None:
    envs = sb3(gymnasium.make_vec(NORMALIZED, num_envs=3, preset="aurora", steps=4))
    assert (envs.num_envs, envs.action_space.shape, envs.render_mode) == (3, (1,), None)
    envs.seed(11)
    observations = envs.reset()
    singles = [gymnasium.make(NORMALIZED, preset="aurora", steps=4) for _ in range(3)]
    for number, single in enumerate(singles):
        assert single.reset(seed=11 + number)[0].tobytes() == observations[number].tobytes()
    random = np.random.default_rng(1)
    for step in range(1, 11):
        actions = random.uniform(-1, 1, (3, 1)).astype(np.float32)
        observations, rewards, over, infos = envs.step(actions)
        assert rewards.dtype == np.float32 and over.dtype == np.bool_ and len(infos) == 3
        for number, single in enumerate(singles):
            observation, reward, _, truncated, info = single.step(actions[number])
            assert (rewards[number], over[number]) == (np.float32(reward), truncated)
            assert truncated == (step % 4 == 0) == infos[number]["TimeLimit.truncated"]
            assert infos[number]["capacity_mbps"] == info["capacity_mbps"]
            if truncated:
                assert infos[number]["terminal_observation"].tobytes() == observation.tobytes()
                observation, _ = single.reset()
            else:
                assert "terminal_observation" not in infos[number]
            assert observation.tobytes() == observations[number].tobytes()
    assert envs.get_attr("scenario", [2]) == [singles[2].unwrapped.scenario] == envs.env_method("scenario", indices=2)
    assert envs.env_method("single", indices=[0])[0]["time_s"] > 0
    assert envs.env_is_wrapped(gymnasium.Wrapper) == [False] * 3 and envs.get_images() == [None] * 3
    envs.set_attr("note", "kept")
    assert envs.get_attr("note") == ["kept"] * 3
    with pytest.raises(bl.InputError, match="indices = `1`"):
        envs.set_attr("note", "other", 1)
    with pytest.raises(AttributeError):
        envs.get_attr("nothing")
    with pytest.raises(bl.RunError, match="step_async comes first"):
        envs.step_wait()
    with pytest.raises(bl.InputError, match="envs = `7`: valid is what `gymnasium.make_vec`"):
        sb3(7)
    envs.close()


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
