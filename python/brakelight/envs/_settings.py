"""What environments are made with: presets, and the links that episodes are drawn from."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Union

from brakelight import _brakelight
from brakelight._arguments import Time, each, number, refused, text, time_text, whole
from brakelight.controller import Algorithm, Controller, Queue, is_algorithm, name_of, named_in, register
from brakelight._trace import Trace
from brakelight.scenario import Scenario
from brakelight.scenario import scenario as read_scenario

if TYPE_CHECKING:
    from brakelight.envs._native import MonitorInterval

Pair = tuple[Any, Any]

ScenarioLike = Union[Scenario, Mapping[str, Any], str, "os.PathLike[str]"]
"""A scenario, a dict with the keys of its file, the path of one, or its text."""


@dataclass(frozen=True)
class Links:
    """What the link of an episode is drawn from, by the environment's seed.

    Ranges are pairs of the least and the most. Rates, delays and buffers in packets are log-uniform, the others
    uniform. A link that never varies has a range of no width: ``rate=("12Mbps", "12Mbps")``.
    """

    rate: tuple[str, str] = ("2Mbps", "50Mbps")
    """The link's rate."""
    rtt: tuple[Time, Time] = ("10ms", "200ms")
    """Propagation delay of the round trip."""
    buffer: Pair = (0.5, 4.0)
    """The buffer: in bandwidth-delay products, or as text in packets (``("10pkt", "1000pkt")``)."""
    loss: tuple[float, float] = (0.0, 0.0)
    """Share of packets that are lost whatever the queue does, below 1."""
    hold: tuple[Time, Time] | None = None
    """How long each rate lasts before another is drawn; None for a rate that stays."""
    traces: Sequence[str | Trace] = ()
    """Traces, each as likely, that give the rates in place of ``rate``; each episode starts anywhere in them."""
    queue: str | type[Queue] = "droptail"
    """The queue, with options after a colon; or a class."""
    against: str | type[Controller] | Sequence[str | type[Controller]] = ()
    """Controllers of flows that share the queue, with options after a colon; classes, too."""

    def _plain(self) -> tuple[dict[str, Any], list[_brakelight.Trace]]:
        traces = [self.traces] if isinstance(self.traces, (str, Trace)) else self.traces
        against = [self.against] if isinstance(self.against, (str, type)) else self.against
        given = [trace._trace for trace in traces if isinstance(trace, Trace)]
        buffer = _pair("buffer", self.buffer)
        in_packets = isinstance(buffer[0], str)
        plain = {
            "rate_mbps": _range("rate", [_rate(each) / 1e6 for each in _pair("rate", self.rate)], 1e-3, 1e6),
            "rtt_ms": _range("rtt", [_time("rtt", each) * 1e3 for each in _pair("rtt", self.rtt)], 1e-3, 6e4),
            "buffer_packets": _range("buffer", [_packets(each) for each in buffer], 1, 1e6) if in_packets else None,
            "buffer_bdp": [1.0, 1.0] if in_packets else _range("buffer", buffer, 0.0, 1e3),
            "loss": _range("loss", _pair("loss", self.loss), 0.0, 0.99),
            "hold_s": None
            if self.hold is None
            else _range("hold", [_time("hold", each) for each in _pair("hold", self.hold)], 1e-3, 3600.0),
            "traces": [trace.name if isinstance(trace, Trace) else os.fsdecode(trace) for trace in traces],
            "queue": algorithm("queue", self.queue),
            "against": [algorithm("against", one) for one in against],
        }
        return plain, given

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {field: getattr(self, field) for field in self.__dataclass_fields__}
        named = [self.queue, *([self.against] if isinstance(self.against, (str, type)) else self.against)]
        words = " ".join(each for each in named if isinstance(each, str))
        return _links_again, (fields, named_in(words))


def _links_again(fields: dict[str, Any], classes: list[Algorithm]) -> Links:
    for one in classes:
        register(one)
    return Links(**fields)


def _pair(name: str, value: Any) -> list[Any]:
    pair = each(value)
    if pair is None or len(pair) != 2:
        raise refused(name, value, "a pair: the least and the most")
    return pair


def _rate(value: Any) -> float:
    return _brakelight.quantity("rate", text("rate", value, "text such as `12Mbps`"))


def _time(name: str, value: Any) -> float:
    return _brakelight.quantity("time", time_text(name, value))


def algorithm(name: str, value: Any) -> str:
    if is_algorithm(value):
        return name_of(register(value))
    return text(name, value, "a name, or a class of Controller or Queue")


def _packets(text: Any) -> float:
    number = str(text).strip().removesuffix("pkt")
    if not number.isdigit() or number == str(text).strip():
        raise _brakelight.InputError(f"buffer = `{text}` is not a number of packets such as `250pkt`")
    return float(number)


def _range(name: str, pair: list[Any], least: float, most: float) -> list[float]:
    low, high = (float(each) for each in pair)
    if not least <= low <= high <= most:
        raise _brakelight.InputError(
            f"{name} = ({low:g}, {high:g}) is out of range: valid is {least:g} to {most:g}, the least first"
        )
    return [low, high]


PRESETS: dict[str, dict[str, Any]] = {
    "default": {
        "interval_rtts": 1.0,
        "interval_ms": 10.0,
        "history": 4,
        "steps": 400,
        "start": [1.0, 1.0],
        "links": Links(),
    },
    # N. Jay and others, ICML 2019, as PCC-RL src/gym/network_sim.py has it: 100 to 500 packets/s of 1500 bytes.
    "aurora": {
        "interval_rtts": 0.5,
        "interval_ms": 1.0,
        "history": 10,
        "steps": 400,
        "start": [0.3, 1.5],
        "links": Links(
            rate=("1.2Mbps", "6Mbps"), rtt=("100ms", "1s"), buffer=("2pkt", "2981pkt"), loss=(0.0, 0.05)
        ),
    },
    # S. Abbasloo and others, SIGCOMM 2020: 20 ms as in src/orca-server-mahimahi.cc, 10 as in params_base_eval.json.
    # docs/learning.md says what is not from their program.
    "orca": {
        "interval_rtts": None,
        "interval_ms": 20.0,
        "history": 10,
        "steps": 500,
        "start": [1.0, 1.0],
        "links": Links(rate=("6Mbps", "192Mbps"), rtt=("4ms", "400ms"), buffer=(0.5, 4.0)),
    },
}
"""Monitor intervals, history, episode length and links of each preset; ``docs/learning.md`` has all of them."""


NORMALIZED = {"aurora": 40.0}
"""By what a normalized action is multiplied, where that is not 1: with Aurora's, 1 doubles the rate."""


@dataclass(frozen=True)
class Functions:
    """What Python decides of an environment, in the place of its preset."""

    observation: Callable[[MonitorInterval], Any] | None = None
    bounds: tuple[float, float] = (-math.inf, math.inf)
    reward: Callable[[MonitorInterval], float] | None = None

    def __bool__(self) -> bool:
        return self.observation is not None or self.reward is not None


@dataclass(frozen=True)
class Settings:
    """Settings as the extension takes them, and what it does not know of."""

    text: str
    given: tuple[_brakelight.Trace, ...]
    agents: int
    history: int
    steered: tuple[Scenario, str] | None
    normalized: bool
    scale: float
    functions: Functions = field(default_factory=Functions)


def settings(
    preset: str,
    agents: int,
    *,
    links: Links | None,
    history: int | None,
    steps: int | None,
    interval: Time | None,
    stagger: Time = "0s",
    scenario: ScenarioLike | None = None,
    flow: str | None = None,
    normalized: bool = False,
    observation: Callable[[MonitorInterval], Any] | None = None,
    observation_bounds: Pair = (-math.inf, math.inf),
    reward: Callable[[MonitorInterval], float] | None = None,
    render_mode: str | None = None,
) -> Settings:
    """Return checked settings. Raises InputError for what is wrong."""
    if preset not in PRESETS:
        raise _brakelight.InputError(f"preset = `{preset}`: valid are {', '.join(PRESETS)}")
    check_render_mode(render_mode)
    made = dict(PRESETS[preset])
    steered, given, domain = None, [], None
    if scenario is not None:
        if links is not None:
            raise refused("links", links, "None with a scenario, which has links of its own")
        steered = _steered(read_scenario(scenario), flow)
        # The scenario ends it.
        made["steps"] = None
    elif flow is not None:
        raise refused("flow", flow, "None without a scenario")
    else:
        domain, given = (links or made["links"])._plain()
    made.update(preset=preset, agents=agents, links=domain, stagger_s=_time("stagger", stagger))
    if interval is not None:
        interval = time_text("interval", interval)
        rtts = interval.removesuffix("rtt")
        if rtts != interval:
            made.update(interval_rtts=_number("interval", rtts), interval_ms=1.0)
        else:
            made.update(interval_rtts=None, interval_ms=_brakelight.quantity("time", interval) * 1e3)
            if made["interval_ms"] < 0.1:
                raise _brakelight.InputError(f"interval = `{interval}` is out of range: valid is 0.1 ms or more")
    for name, value in (("history", history), ("steps", steps)):
        if value is not None:
            made[name] = whole(name, value, 1, 2**31)
    for name, function in (("observation", observation), ("reward", reward)):
        if function is not None and not callable(function):
            raise refused(name, function, "a function of a MonitorInterval, or None")
    low, high = (_bound(one) for one in _pair("observation_bounds", observation_bounds))
    if not low < high:
        raise refused("observation_bounds", observation_bounds, "a pair of numbers, the least first")
    return Settings(
        json.dumps(made),
        tuple(given),
        agents,
        int(made["history"]),
        steered,
        bool(normalized),
        NORMALIZED.get(preset, 1.0) if normalized else 1.0,
        Functions(observation, (low, high), reward),
    )


def check_render_mode(mode: str | None) -> None:
    """Refuse a way to render: there is none."""
    if mode is not None:
        raise refused("render_mode", mode, "None: there is nothing to render")


def _bound(value: Any) -> float:
    return number("observation_bounds", value, "a pair of numbers")


def _steered(scenario: Scenario, flow: str | None) -> tuple[Scenario, str]:
    """Return a scenario with the name of the flow to steer: its only one, if none is given."""
    flows = [str(one.get("name")) for one in scenario.to_dict().get("flow", [])]
    if flow is None:
        if len(flows) != 1:
            valid = "the name of one of the scenario's flows: " + ", ".join(f"`{name}`" for name in flows)
            raise refused("flow", flow, valid)
        return scenario, flows[0]
    return scenario, text("flow", flow, "the name of one of the scenario's flows")


def _number(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number <= 100.0:
        raise _brakelight.InputError(f"{name} = `{text}rtt` is out of range: valid is above 0 to 100 RTTs, or a time")
    return number
