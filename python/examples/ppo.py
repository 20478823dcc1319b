"""Trains an agent for congestion control with PPO in JAX, writes it as ONNX, and judges it on links it has not seen.

    pip install "./python[learn]"
    python python/examples/ppo.py --out agent

``agent/ppo.onnx`` is the model: ``brakelight compare --trace lte-driving --schemes cubic,onnx:model=agent/ppo.onnx``.
Beside it lie the curve of the training (``curve.csv``, ``curve.svg``) and what the judge found (``judged.json``,
``judged.md``).

The agent is a Gaussian whose mean is a network of two layers of 64 tanh units. It learns on synthetic links that are
drawn anew for each episode, of constant and of varying rate, some with losses; the judge's links are drawn from seeds
that training does not have, and half are of kinds that it does not have.

``--train-on arena`` trains on links like the arena's in their place, by the arena's utility of each interval.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import brakelight as bl
from brakelight.envs import Links

# What is trained on: a third of the environments each. Observations are ratios, so that slow links, which are quick to
# simulate, also teach what to do on fast ones; the judge's are up to four times as fast and twice as long.
RATE, RTT, BUFFER = ("1Mbps", "12Mbps"), ("10ms", "100ms"), (0.5, 4.0)
TRAINING = [
    Links(rate=RATE, rtt=RTT, buffer=BUFFER),
    Links(rate=RATE, rtt=RTT, buffer=BUFFER, hold=("0.2s", "4s")),
    Links(rate=RATE, rtt=RTT, buffer=BUFFER, hold=("0.5s", "5s"), loss=(0.0, 0.01)),
]
ENVIRONMENTS = 66
"""Of all kinds of links together."""


def arena_links() -> list[Links]:
    """Return links like those of the arena: rates that fade, with outages or without, steps, recipes, other flows."""
    rate, rtt, buffer = ("1Mbps", "12Mbps"), ("10ms", "200ms"), (0.5, 8.0)
    fading = [fade(number) for number in range(16)]
    recipes = ["lte-walking", "wifi", *fading[:4]]
    return [
        Links(rate=rate, rtt=rtt, buffer=buffer),
        Links(rate=rate, rtt=rtt, buffer=buffer, hold=("0.2s", "4s")),
        Links(traces=fading, rtt=rtt, buffer=buffer),
        Links(traces=recipes, rtt=rtt, buffer=buffer),
        Links(rate=rate, rtt=rtt, buffer=buffer, hold=("0.2s", "4s"), against="cubic"),
        Links(traces=fading, rtt=rtt, buffer=buffer, against="bbr3"),
    ]


def fade(number: int) -> bl.Trace:
    """Return a radio's rate in steps of 50 ms: slow and fast fading in dB; every second one has outages."""
    random = np.random.default_rng(number)
    steps = 600
    level = np.zeros((2, steps))
    # Slow over 1 to 15 s and fast over 50 to 500 ms, as of the arena's radios.
    over = np.array([random.uniform(1.0, 15.0), random.uniform(0.05, 0.5)])
    deviation = np.array([random.uniform(3.0, 8.0), random.uniform(1.0, 4.0)])
    keep = np.exp(-0.05 / over)
    for step in range(1, steps):
        level[:, step] = keep * level[:, step - 1] + np.sqrt(1 - keep**2) * deviation * random.normal(size=2)
    # Shannon's share of a band: the SNR's mean is 3 to 18 dB.
    shares = np.log2(1 + 10 ** ((random.uniform(3.0, 18.0) + level.sum(axis=0)) / 10))
    mean = math.exp(random.uniform(math.log(1), math.log(12)))
    rates = np.clip(mean * shares / shares.mean(), 0.1, 50.0)
    if number % 2:
        for _ in range(4):
            begin = int(random.integers(steps - 20))
            rates[begin : begin + int(random.integers(1, 20))] = 0.01
    return bl.Trace.from_numpy(np.round(rates, 3), step_ms=50, name=f"fade-{number}")


def utility(info: dict[str, np.ndarray], beside: bool) -> np.ndarray:
    """Return the arena's utility of an interval: logarithms, each no lower than that of 0.05.

    Beside another flow half of the link is enough, and delay does not count (docs/arena.md).
    """
    share = info["throughput_mbps"] / np.maximum(info["capacity_mbps"], 1e-3)
    used = np.log(np.clip(share * (2 if beside else 1), 0.05, 1.0))
    # The preset's part for delay is -q / (q + rtt).
    delay = 0.0 if beside else np.log(np.clip(1 + info["reward_delay"], 0.05, 1.0))
    return np.asarray(used + delay + np.log(np.clip(1 - info["loss"], 0.05, 1.0)))


ROLLOUT, EPOCHS, BATCH = 128, 4, 2112
GAMMA, LAMBDA, CLIP, RATE_OF_LEARNING, ENTROPY = 0.95, 0.95, 0.2, 5e-4, 1e-3
HIDDEN = 64

# How it is judged.
JUDGED_BESIDE = ["cubic", "bbr3", "copa", "abc"]
HELD_BACK = 48
"""Links of the judge, a quarter of each kind."""
FIRST_SEED = 1_000_000_000
"""The judge's links are drawn from this seed on; training has those from 0 to 999,999,999."""


# --- the network: a list of (weights, biases) for the mean, one for the value, and the logarithm of the deviation.


def initial(random: np.random.Generator, width: int) -> dict[str, Any]:
    """Return a policy that does almost nothing, and a value."""

    def layers(last: float) -> list[tuple[Any, Any]]:
        sizes = [(width, HIDDEN, math.sqrt(2.0)), (HIDDEN, HIDDEN, math.sqrt(2.0)), (HIDDEN, 1, last)]
        made = []
        for rows, columns, gain in sizes:
            square, _ = np.linalg.qr(random.normal(size=(max(rows, columns), min(rows, columns))))
            square = square if rows >= columns else square.T
            made.append(((gain * square).astype(np.float32), np.zeros(columns, np.float32)))
        return made

    return {"mean": layers(0.01), "value": layers(1.0), "log_std": np.full(1, -0.7, np.float32)}


def forward(layers: Any, x: Any, tanh: Any) -> Any:
    """Return the network's number for each row of ``x``."""
    for weights, biases in layers[:-1]:
        x = tanh(x @ weights + biases)
    weights, biases = layers[-1]
    return (x @ weights + biases)[:, 0]


class Learner:
    """Proximal policy optimisation (J. Schulman and others, 2017), with Adam."""

    def __init__(self, parameters: Any, updates: int) -> None:
        import jax
        import jax.numpy as jnp

        def losses(parameters: Any, batch: Any) -> Any:
            observed, actions, logs, advantages, returns, weights = batch
            mean = forward(parameters["mean"], observed, jnp.tanh)
            value = forward(parameters["value"], observed, jnp.tanh)
            deviation = jnp.exp(parameters["log_std"][0])
            new = -0.5 * ((actions - mean) / deviation) ** 2 - parameters["log_std"][0]
            ratio = jnp.exp(new - logs)
            gain = jnp.minimum(ratio * advantages, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * advantages)
            each = -gain + 0.5 * (value - returns) ** 2
            return (each * weights).sum() / weights.sum() - ENTROPY * parameters["log_std"][0]

        def update(state: Any, batch: Any) -> Any:
            parameters, first, second, count = state
            gradient = jax.grad(losses)(parameters, batch)
            norm = jnp.sqrt(sum((leaf**2).sum() for leaf in jax.tree.leaves(gradient)))
            gradient = jax.tree.map(lambda leaf: leaf * jnp.minimum(1.0, 0.5 / (norm + 1e-8)), gradient)
            count = count + 1
            first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
            second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
            rate = RATE_OF_LEARNING * jnp.maximum(0.05, 1.0 - count / updates)

            def step(p: Any, m: Any, v: Any) -> Any:
                return p - rate * (m / (1 - 0.9**count)) / (jnp.sqrt(v / (1 - 0.999**count)) + 1e-8)

            return jax.tree.map(step, parameters, first, second), first, second, count

        zeros = jax.tree.map(jnp.zeros_like, parameters)
        self._state = (parameters, zeros, zeros, 0.0)
        self._update = jax.jit(update)

    def parameters(self) -> Any:
        """Return the networks as NumPy arrays."""
        import jax

        return jax.tree.map(np.asarray, self._state[0])

    def learn(self, random: np.random.Generator, batch: list[Any]) -> None:
        """Go over a rollout several times, in batches in random order."""
        rows = len(batch[0])
        for _ in range(EPOCHS):
            order = random.permutation(rows)
            for begin in range(0, rows - BATCH + 1, BATCH):
                chosen = order[begin : begin + BATCH]
                self._state = self._update(self._state, [each[chosen] for each in batch])


class Environments:
    """The vectors of all kinds of links, as one."""

    def __init__(self, links: str, seed: int) -> None:
        make = gymnasium.make_vec
        name = "brakelight/CongestionControl-v0"
        self._kinds = arena_links() if links == "arena" else TRAINING
        self._for_arena = links == "arena"
        self._count = count = ENVIRONMENTS // len(self._kinds)
        self._parts = [make(name, num_envs=count, links=kind, steps=200) for kind in self._kinds]
        # Seeds of environments that are side by side must not overlap.
        self.observed = np.concatenate(
            [part.reset(seed=seed + 10_000 * number)[0] for number, part in enumerate(self._parts)]
        )
        self.over = np.zeros(count * len(self._parts), bool)

    @property
    def specification(self) -> str:
        """What an agent of these environments is made for."""
        return self._parts[0].unwrapped.specification

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Act in all; return the rewards and which of them count: those of a reset do not."""
        counts = ~self.over
        rewards = []
        for number, part in enumerate(self._parts):
            rows = slice(number * self._count, (number + 1) * self._count)
            observed, reward, _, over, info = part.step(actions[rows, None])
            self.observed[rows], self.over[rows] = observed, over
            if self._for_arena:
                reward = utility(info, bool(self._kinds[number].against))
            rewards.append(reward)
        return np.concatenate(rewards).astype(np.float32), counts


def rollout(environments: Environments, parameters: Any, random: np.random.Generator) -> tuple[list[Any], float]:
    """Let the policy act; return what it did, with advantages, and the mean reward of a step."""
    kept: dict[str, list[np.ndarray]] = {name: [] for name in ("observed", "actions", "logs", "values", "rewards")}
    counts, over = [], []
    deviation = float(np.exp(parameters["log_std"][0]))
    for _ in range(ROLLOUT):
        observed = environments.observed.copy()
        mean = forward(parameters["mean"], observed, np.tanh)
        noise = random.normal(size=len(mean)).astype(np.float32)
        actions = mean + deviation * noise
        rewards, valid = environments.step(actions)
        kept["observed"].append(observed)
        kept["actions"].append(actions)
        kept["logs"].append(-0.5 * noise**2 - parameters["log_std"][0])
        kept["values"].append(forward(parameters["value"], observed, np.tanh))
        kept["rewards"].append(rewards)
        counts.append(valid)
        over.append(environments.over.copy())
    following = forward(parameters["value"], environments.observed, np.tanh)
    advantage = np.zeros_like(following)
    advantages = []
    for step in reversed(range(ROLLOUT)):
        # The end of an episode is the end of its time: what follows is worth what the value says of it.
        delta = kept["rewards"][step] + GAMMA * following - kept["values"][step]
        advantage = np.where(counts[step], delta + GAMMA * LAMBDA * advantage * ~over[step], 0.0).astype(np.float32)
        advantages.append(advantage)
        following = kept["values"][step]
    advantages.reverse()
    weights = np.concatenate(counts).astype(np.float32)
    flat = {name: np.concatenate(rows) for name, rows in kept.items()}
    gains = np.concatenate(advantages)
    returns = gains + flat["values"]
    gains = (gains - gains[weights > 0].mean()) / (gains[weights > 0].std() + 1e-8)
    mean_reward = float(flat["rewards"][weights > 0].mean())
    return [flat["observed"], flat["actions"], flat["logs"], gains, returns, weights], mean_reward


def train(steps: int, seed: int, links: str) -> tuple[Any, str, list[tuple[int, float, float]]]:
    """Train for ``steps`` steps; return the networks, the specification, and rows of step, seconds and reward."""
    random = np.random.default_rng(seed)
    environments = Environments(links, seed)
    count = len(environments.over)
    iterations = max(1, round(steps / (ROLLOUT * count)))
    parameters = initial(random, environments.observed.shape[1])
    learner = Learner(parameters, iterations * EPOCHS * (ROLLOUT * count // BATCH))
    curve, begin = [], time.perf_counter()
    for iteration in range(1, iterations + 1):
        batch, reward = rollout(environments, parameters, random)
        learner.learn(random, batch)
        parameters = learner.parameters()
        curve.append((iteration * ROLLOUT * count, time.perf_counter() - begin, reward))
        if iteration % 10 == 0 or iteration == iterations:
            print(
                f"{curve[-1][0]:>9,} steps  {curve[-1][1]:6.0f} s  reward {reward:+.3f}"
                f"  deviation {float(np.exp(parameters['log_std'][0])):.3f}",
                flush=True,
            )
    return parameters, environments.specification, curve


def export(parameters: Any, specification: str, path: Path) -> None:
    """Write the mean of the policy as ONNX, with what it was made for.

    The limits of training save time where an agent runs away. Faster links need higher ones.
    """
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    nodes, weights, name = [], [], "observation"
    layers = parameters["mean"]
    for number, (matrix, bias) in enumerate(layers):
        weights += [
            numpy_helper.from_array(np.ascontiguousarray(matrix, np.float32), f"weights_{number}"),
            numpy_helper.from_array(np.ascontiguousarray(bias, np.float32), f"biases_{number}"),
        ]
        last = number == len(layers) - 1
        output = "action" if last else f"sum_{number}"
        nodes.append(helper.make_node("Gemm", [name, f"weights_{number}", f"biases_{number}"], [output]))
        if not last:
            name = f"layer_{number}"
            nodes.append(helper.make_node("Tanh", [output], [name]))
    width = layers[0][0].shape[0]
    graph = helper.make_graph(
        nodes,
        "policy",
        [helper.make_tensor_value_info("observation", TensorProto.FLOAT, [1, width])],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, [1, 1])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    limits = {"least_bps": 1e4, "most_bps": 1e10, "most_cwnd": 1e8}
    helper.set_model_props(model, {"brakelight": json.dumps(json.loads(specification) | {"limits": limits})})
    onnx.checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.SerializeToString())


# --- the judge


def held_back(number: int) -> tuple[str, bl.Trace, float, float]:
    """Return the kind of the judge's link ``number``, its trace, its RTT in ms and its buffer in BDP."""
    random = np.random.default_rng(FIRST_SEED + number)
    kind = ("constant", "steps", "walk", "cellular")[number % 4]
    mean = math.exp(random.uniform(math.log(2), math.log(50)))
    steps = 600
    if kind == "constant":
        rates = np.full(steps, mean)
    elif kind == "steps":
        rates, at = np.empty(steps), 0
        while at < steps:
            lasts = int(20 * random.uniform(0.2, 4.0))
            rates[at : at + lasts] = math.exp(random.uniform(math.log(2), math.log(50)))
            at += max(lasts, 1)
    elif kind == "walk":
        # The logarithm walks, and is drawn back to its mean.
        level, levels = 0.0, []
        for _ in range(steps):
            level += -0.02 * level + 0.12 * random.normal()
            levels.append(level)
        rates = np.clip(mean * np.exp(levels), 1.0, 60.0)
    else:
        # Fast fading over slow shadowing, with outages.
        fading = np.abs(random.normal(size=steps) + 1j * random.normal(size=steps)) / 1.25
        shadow = np.exp(0.6 * np.interp(np.arange(steps), np.arange(0, steps + 20, 20), random.normal(size=steps // 20 + 1)))
        rates = np.clip(mean * fading * shadow, 0.5, 60.0)
        for _ in range(3):
            begin = int(random.integers(steps - 10))
            rates[begin : begin + int(random.integers(2, 8))] = 0.1
    rtt_ms = math.exp(random.uniform(math.log(10), math.log(200)))
    trace = bl.Trace.from_numpy(np.round(rates, 3), step_ms=50, name=f"{kind}-{number}")
    return kind, trace, rtt_ms, float(random.uniform(0.5, 4.0))


def judge(path: Path, links: int) -> list[dict[str, Any]]:
    """Run the model and the others over the judge's links; return a row for each scheme and link."""
    schemes = [f"onnx:model={path}", *JUDGED_BESIDE]
    rows = []
    for number in range(links):
        kind, trace, rtt_ms, buffer = held_back(number)
        result = bl.compare(
            trace,
            schemes,
            rtt=f"{rtt_ms:.3f}ms",
            buffer=f"{buffer:.3f}BDP",
            duration="30s",
            runs=1,
            progress=False,
        )
        for scheme, row in zip(["learned", *JUDGED_BESIDE], in_order(result, schemes), strict=True):
            delay = row["queueing_delay_ms"]["p95"]
            rows.append(
                {
                    "kind": kind,
                    "link": trace.name,
                    "rtt_ms": rtt_ms,
                    "scheme": scheme,
                    "utilization": row["utilization"],
                    "queueing_delay_p95_ms": delay,
                    "power": row["utilization"] / (rtt_ms + delay),
                }
            )
    return rows


def in_order(result: bl.Result, schemes: list[str]) -> list[dict[str, Any]]:
    """Return the rows of a result in the order of the schemes."""
    rows = {row["scheme"]: row for row in result.rows}
    return [rows[scheme] for scheme in schemes]


def interval(random: np.random.Generator, values: np.ndarray, of: Any = np.mean) -> tuple[float, float, float]:
    """Return a statistic of ``values`` with its 95 % interval, by a bootstrap over links."""
    drawn = [of(values[random.integers(len(values), size=len(values))]) for _ in range(2000)]
    return float(of(values)), float(np.quantile(drawn, 0.025)), float(np.quantile(drawn, 0.975))


def summary(rows: list[dict[str, Any]]) -> str:
    """Return a table for people: every scheme over all links, then the learned one by kind of link."""
    random = np.random.default_rng(1)

    def geometric(values: np.ndarray) -> float:
        return float(np.exp(np.log(values).mean()))

    def column(scheme: str, name: str, kind: str | None) -> np.ndarray:
        return np.array([row[name] for row in rows if row["scheme"] == scheme and kind in (None, row["kind"])])

    def line(label: str, scheme: str, kind: str | None) -> str:
        used = interval(random, 100 * column(scheme, "utilization", kind))
        delay = interval(random, np.maximum(column(scheme, "queueing_delay_p95_ms", kind), 0.01), geometric)
        power = interval(random, column(scheme, "power", kind) / column("cubic", "power", kind), geometric)
        return (
            f"| {label} | {used[0]:.1f} ({used[1]:.1f} to {used[2]:.1f})"
            f" | {delay[0]:.1f} ({delay[1]:.1f} to {delay[2]:.1f})"
            f" | {power[0]:.2f} ({power[1]:.2f} to {power[2]:.2f}) |"
        )

    head = ["| | utilization, % | p95 of queueing delay, ms | power over Cubic's |", "|---|---|---|---|"]
    table = head + [line(scheme, scheme, None) for scheme in ["learned", *JUDGED_BESIDE]]
    table += [""] + head
    for kind in sorted({row["kind"] for row in rows}):
        table += [line(f"{scheme}, {kind}", scheme, kind) for scheme in ("learned", "abc")]
    return "\n".join(table) + "\n"


def draw(curve: list[tuple[int, float, float]], path: Path) -> None:
    """Draw the curve of the training."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "brakelight"})
    figure, place = plt.subplots(figsize=(6, 3), layout="constrained")
    steps, _, rewards = np.array(curve).T
    place.plot(steps / 1e6, rewards, color="#0072b2", linewidth=1.2)
    place.set(xlabel="steps (millions)", ylabel="mean reward of a step")
    place.grid(alpha=0.3)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    """Train, write, judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("agent"), help="the folder of what is written")
    parser.add_argument("--steps", type=int, default=1_000_000, help="steps of training; 0 judges what is there")
    parser.add_argument("--seed", type=int, default=1, help="of the training")
    parser.add_argument(
        "--train-on",
        choices=["drawn", "arena"],
        default="drawn",
        help="the links of training; `arena` also takes the arena's utility as the reward",
    )
    parser.add_argument("--links", type=int, default=HELD_BACK, help="links of the judge; 0 for no judgement")
    given = parser.parse_args()
    model = given.out / "ppo.onnx"
    if given.steps > 0:
        parameters, specification, curve = train(given.steps, given.seed, given.train_on)
        export(parameters, specification, model)
        rows = ["steps,seconds,reward", *(f"{step},{seconds:.1f},{reward:.4f}" for step, seconds, reward in curve)]
        (given.out / "curve.csv").write_text("\n".join(rows) + "\n")
        draw(curve, given.out / "curve.svg")
        print(f"trained in {curve[-1][1]:.0f} s: {model}, {model.stat().st_size / 1000:.0f} kB")
    if given.links > 0:
        judged = judge(model, given.links)
        (given.out / "judged.json").write_text(json.dumps(judged, indent=1) + "\n")
        table = summary(judged)
        (given.out / "judged.md").write_text(table)
        print(table)


if __name__ == "__main__":
    main()
