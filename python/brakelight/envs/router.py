"""An agent in a router: ``brakelight/Router-v0``."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from brakelight import _brakelight
from brakelight._arguments import Time, each, refused, time_text, whole
from brakelight.controller import Algorithm, Controller, named_in, register
from brakelight._gymnasium import spec_of
from brakelight.envs._settings import Links, algorithm, check_render_mode

Array = npt.NDArray[np.float32]

KNOBS = ("drop", "rate", "target")
"""What an agent can set."""

_QUEUES = {"drop": "dial", "target": "dial-abc"}
"""The queue of the link, where the agent sets it and not a shaper before it."""

_FEATURES = 6


class RouterEnv(gymnasium.Env[Array, Array]):
    """The agent sets what a router does with the flows that pass it. A step is ``interval`` long.

    An action is one number of -1 to 1, shape ``(1,)``:

    - ``knob="drop"``: the probability with which an arriving packet is dropped, or marked if its flow speaks ECN:
      0 at -1, else ``10 ** (2 * action - 2)``, which is 1e-4 to 1.
    - ``knob="target"``: the delay at which ABC's router begins to drain its queue, ``0.03 * 10 ** action`` seconds,
      which is 3 to 300 ms. The flows are ABC's.
    - ``knob="rate"``: the rate of a shaper before the link, ``2 ** action`` times the link's capacity of the last
      100 ms, so that the queue stands in the router.

    An observation is ``history`` times six numbers, the newest last: how long the packet has waited that has waited
    longest, in 100 ms; what waits, as a share of the buffer; utilization; capacity, as a share of the mean; share of
    packets dropped; the last action. The reward is utilization less ``q / (q + rtt)``, with the wait ``q`` and the
    propagation delay ``rtt``; ``info`` has both as ``reward_throughput`` and ``reward_delay``. An episode is never
    terminated: it is truncated after ``steps`` steps.

    >>> from brakelight.envs import RouterEnv
    >>> env = RouterEnv(knob="rate", controllers=("cubic",), steps=2)
    >>> observation, info = env.reset(seed=1)
    >>> observation.shape, env.step([0.0])[3], env.step([0.0])[3]
    ((24,), False, True)
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012

    def __init__(
        self,
        knob: str = "drop",
        *,
        controllers: Sequence[str | type[Controller]] | None = None,
        links: Links | None = None,
        history: int = 4,
        steps: int = 400,
        interval: Time = "20ms",
        render_mode: str | None = None,
    ) -> None:
        """Make an environment.

        Args:
            knob: ``"drop"``, ``"rate"`` or ``"target"``.
            controllers: of the flows that pass the router, one for each: names, or classes. None stands for Cubic
                and NewReno, and with ``knob="target"`` for two of ABC's, whose header and marks its queue speaks.
            links: what links are drawn from; their queue is the agent's, and ``controllers`` are all flows.
            history: intervals in an observation.
            steps: steps of an episode.
            interval: the length of a step.
            render_mode: None; there is nothing to render.

        Raises:
            InputError: if an argument is wrong.
        """
        check_render_mode(render_mode)
        if knob not in KNOBS:
            raise _brakelight.InputError(f"knob = `{knob}`: valid are {', '.join(KNOBS)}")
        if controllers is None:
            controllers = ("abc", "abc") if knob == "target" else ("cubic", "newreno")
        several = [controllers] if isinstance(controllers, (str, type)) else each(controllers)
        if not several:
            raise refused("controllers", controllers, "a list of controllers, at least one")
        links = links or Links(rate=("4Mbps", "40Mbps"), hold=("0.5s", "5s"))
        self._made_of = {
            "knob": knob,
            "controllers": several,
            "links": links,
            "history": history,
            "steps": steps,
            "interval": interval,
            "render_mode": render_mode,
        }
        self._knob = knob
        self._controllers = [algorithm("controllers", one) for one in several]
        self._links, self._given = links._plain()
        if self._links["against"]:
            raise refused("links.against", ", ".join(self._links["against"]), "none here: `controllers` are all flows")
        self._history, self._steps = whole("history", history, 1, 2**31), whole("steps", steps, 1, 2**31)
        self._interval = _brakelight.quantity("time", time_text("interval", interval))
        if not 1e-3 <= self._interval <= 10.0:
            raise _brakelight.InputError(f"interval = `{interval}` is out of range: valid is 1 ms to 10 s")
        low = np.tile(np.array([0, 0, 0, 0, 0, -1], np.float32), history)
        high = np.tile(np.array([100, 1, 2, 10, 1, 1], np.float32), history)
        self.observation_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self.action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
        self.render_mode = render_mode
        self.spec = spec_of("Router", self._made_of)
        self._run: _brakelight.Simulation | None = None
        self._begun_with: Any = None
        self._acted: list[float] = []
        # What is wrong with the controllers is wrong now, not at the first episode.
        self._check()

    def _check(self) -> None:
        link = {"name": "link", "rate": "12Mbps", "queue": _QUEUES.get(self._knob, "droptail")}
        flows = [
            {"name": f"flow-{number}", "controller": controller, "path": ["link"]}
            for number, controller in enumerate(self._controllers)
        ]
        dial = _brakelight.Dial()
        _brakelight.Scenario.from_json(json.dumps({"link": [link], "flow": flows}), [], dial)
        for trace in self._links["traces"]:
            if trace not in {given.name for given in self._given}:
                _brakelight.Trace.named(trace)

    def __reduce__(self) -> tuple[Any, ...]:
        # What was done is done again: the same actions give the same episode.
        state = self._np_random, self._np_random_seed, self._begun_with, self._acted
        words = " ".join(self._controllers)
        return _again, (type(self), self._made_of, state, named_in(words))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Array, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        self._begun_with = copy.deepcopy(self.np_random)
        self._begin()
        return self._observed.reshape(-1).copy(), {"rtt_ms": self._rtt * 1e3, "mean_mbps": self._mean / 1e6}

    def _begin(self) -> None:
        self._acted = []
        self._dial = _brakelight.Dial()
        scenario = self._scenario()
        self._run = _brakelight.Simulation(_brakelight.Scenario.from_json(json.dumps(scenario), self._given, self._dial))
        self._cell = "link"
        self._router = "router" if self._knob == "rate" else "link"
        self._done = 0
        self._observed = np.zeros((self._history, _FEATURES), np.float32)
        self._before = (0, 0, 0)

    def step(self, action: Any) -> tuple[Array, float, bool, bool, dict[str, Any]]:
        """Set the knob, and advance by an interval."""
        run = self._run
        if run is None:
            raise _brakelight.RunError("the environment was not reset")
        act = float(np.clip(np.nan_to_num(np.asarray(action, np.float64).reshape(-1)[0]), -1.0, 1.0))
        self._acted.append(act)
        if self._knob == "drop":
            self._dial.set(0.0 if act <= -1.0 else 10.0 ** (2.0 * act - 2.0))
        elif self._knob == "target":
            self._dial.set_target(0.03 * 10.0**act)
        elif run.now > 0:
            run.set_link_rate("router", max(run.link("link").capacity, 1e5) * 2.0**act)
        begin = run.now
        run.advance(begin + self._interval)
        cell, router = run.link(self._cell), run.link(self._router)
        capacity = run.capacity_between(self._cell, begin, run.now) * 8 / self._interval
        sent, dropped = cell.delivered_bytes, router.dropped_packets
        passed = router.delivered_packets
        rate = (sent - self._before[0]) * 8 / self._interval
        drops, packets = dropped - self._before[1], passed - self._before[2]
        self._before = sent, dropped, passed
        waits = (cell.sojourn_s or 0.0) + (router.sojourn_s or 0.0 if router.name != cell.name else 0.0)
        waiting = router.queue_packets
        utilization = min(rate / capacity, 1.0) if capacity > 0 else 1.0
        features = (
            min(waits / 0.1, 100.0),
            min(waiting / self._buffer, 1.0),
            min(rate / max(capacity, 1e4), 2.0),
            min(capacity / self._mean, 10.0),
            drops / (drops + packets) if drops else 0.0,
            act,
        )
        self._observed = np.roll(self._observed, -1, axis=0)
        self._observed[-1] = features
        delay = -waits / (waits + self._rtt)
        self._done += 1
        info = {
            "utilization": utilization,
            "sojourn_ms": waits * 1e3,
            "capacity_mbps": capacity / 1e6,
            "throughput_mbps": rate / 1e6,
            "dropped_packets": drops,
            "time_s": run.now,
            "reward_throughput": utilization,
            "reward_delay": delay,
        }
        over = self._done >= self._steps
        return self._observed.reshape(-1).copy(), utilization + delay, False, over, info

    def _log_uniform(self, pair: list[float]) -> float:
        return float(np.exp(self.np_random.uniform(np.log(pair[0]), np.log(pair[1]))))

    def _scenario(self) -> dict[str, Any]:
        """Draw a link, and return the scenario of an episode over it."""
        links = self._links
        rate, self._rtt = self._log_uniform(links["rate_mbps"]), self._log_uniform(links["rtt_ms"]) / 1e3
        link: dict[str, Any] = {"name": "link"}
        self._mean = rate * 1e6
        if links["traces"]:
            name = links["traces"][int(self.np_random.integers(len(links["traces"])))]
            link["trace"] = name
            known = {trace.name: trace for trace in self._given}
            self._mean = (known.get(name) or _brakelight.Trace.named(name)).mean_mbps * 1e6
        elif links["hold_s"] is not None:
            steps = [
                [f"{self.np_random.uniform(*links['hold_s']):.6f}s", f"{self._log_uniform(links['rate_mbps']):.6f}Mbps"]
                for _ in range(64)
            ]
            link["steps"] = steps
            link["repeat"] = True
        else:
            link["rate"] = f"{rate:.6f}Mbps"
        if links["buffer_packets"] is None:
            bdp = self._mean * self._rtt / 8 / 1500
            buffer = bdp * float(self.np_random.uniform(*links["buffer_bdp"]))
        else:
            buffer = self._log_uniform(links["buffer_packets"])
        self._buffer = max(2, round(buffer))
        link["buffer"] = f"{self._buffer}pkt"
        made, path = [link], ["link"]
        if self._knob in _QUEUES:
            link["queue"] = _QUEUES[self._knob]
        else:
            router = {"name": "router", "rate": f"{self._mean / 1e6:.6f}Mbps", "buffer": link["buffer"]}
            made, path = [router, link], ["router", "link"]
        flows = [
            {
                "name": f"flow-{number}",
                "controller": controller,
                "rtt": f"{self._rtt * 1e3:.6f}ms",
                "path": path,
            }
            for number, controller in enumerate(self._controllers)
        ]
        return {
            "name": "router",
            "duration": "1h",
            "seed": int(self.np_random.integers(2**62)),
            "trace_offset": "random",
            "link": made,
            "flow": flows,
        }


def _again(kind: type[RouterEnv], made_of: dict[str, Any], state: tuple[Any, ...], classes: list[Algorithm]) -> RouterEnv:
    """Return an environment that stands where another one stood."""
    for each_class in classes:
        register(each_class)
    made = kind(**made_of)
    random, random_seed, begun_with, acted = state
    if begun_with is not None:
        made._np_random, made._begun_with = copy.deepcopy(begun_with), begun_with
        made._begin()
        for act in acted:
            made.step([act])
    made._np_random, made._np_random_seed = random, random_seed
    return made
