"""A run that is advanced step by step, looked into, acted upon and cloned."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from brakelight import _brakelight
from brakelight._arguments import Time, number, seconds
from brakelight._brakelight import FlowView, InputError, LinkView
from brakelight.results import Result, Rows
from brakelight.scenario import Scenario
from brakelight.scenario import scenario as _scenario


class Simulation:
    """A run in progress. Steps and looks do not change what comes out.

    Times are seconds since the beginning, rates bit/s, sizes bytes; a time may be text or a timedelta, too. Flows and
    links go by number, below 0 from the last, or by name.

    It can be copied, and pickled: a pickle holds the scenario and what was done, and is done again where it is read.

    >>> import brakelight as bl
    >>> simulation = bl.Simulation({
    ...     "duration": "10s",
    ...     "link": [{"name": "bottleneck", "rate": "12Mbps"}],
    ...     "flow": [{"name": "agent", "controller": "external", "rtt": "40ms", "path": ["bottleneck"]}],
    ... })
    >>> while simulation.now < simulation.end:
    ...     simulation.advance(simulation.now + 0.05)
    ...     agent = simulation.flow("agent")
    ...     if agent.srtt_s is not None:
    ...         low = agent.srtt_s < agent.min_rtt_s + 0.01
    ...         simulation.set_window("agent", agent.cwnd + 1448 if low else max(1448, agent.cwnd * 3 // 4))
    >>> simulation.finish().rows[0]["utilization"] > 0.8
    True
    """

    __slots__ = ("_done", "_run", "_scenario")
    _run: _brakelight.Simulation
    _done: list[tuple[Any, ...]]
    """What was done: a method with its arguments each. Steps follow from how many there were."""

    def __init__(self, scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str]) -> None:
        """Return a run at its beginning.

        Raises:
            InputError: if the scenario is wrong.
        """
        self._scenario = _scenario(scenario)
        self._run = _brakelight.Simulation(self._scenario._scenario)
        self._done = []

    @property
    def now(self) -> float:
        """The time until which the run has been advanced, in seconds."""
        return self._run.now

    @property
    def end(self) -> float:
        """The end of the scenario, in seconds."""
        return self._run.end

    @property
    def delivered_packets(self) -> int:
        """Data packets delivered so far, in the measured interval."""
        return self._run.delivered_packets

    def advance(self, until: float | Time) -> None:
        """Perform every event due at or before ``until``, in seconds. A time before now changes nothing."""
        at = seconds("until", until)
        self._run.advance(at)
        # Where it stands does not depend on where it stood in between.
        if self._done and self._done[-1][0] == "advance":
            at = max(at, self._done.pop()[1])
        self._done.append(("advance", at))

    def step(self) -> float | None:
        """Perform the next event and return its time; ``None`` at the end of the scenario."""
        at = self._run.step()
        self._repeated("step")
        return at

    def advance_to_flow(self, flow: int | str) -> float | None:
        """Advance to the next event that changes what the flow's sender knows, and return its time."""
        at = self._run.advance_to_flow(flow)
        self._repeated("advance_to_flow", flow)
        return at

    def _repeated(self, *act: Any) -> None:
        """Note what is often done several times in a row."""
        if self._done and self._done[-1][0] == "again" and self._done[-1][2:] == act:
            act = ("again", self._done.pop()[1] + 1, *act)
        else:
            act = ("again", 1, *act)
        self._done.append(act)

    def _act(self, method: str, *arguments: Any) -> None:
        getattr(self._run, method)(*arguments)
        self._done.append((method, *arguments))

    def flow(self, flow: int | str) -> FlowView:
        """Return a flow as it stands. Raises IndexError if there is none."""
        return self._run.flow(flow)

    def flows(self) -> list[FlowView]:
        """Return every flow as it stands, by number."""
        return self._run.flows()

    def link(self, link: int | str) -> LinkView:
        """Return a link as it stands. Raises IndexError if there is none."""
        return self._run.link(link)

    def links(self) -> list[LinkView]:
        """Return every link as it stands, by number."""
        return self._run.links()

    def packets(self) -> Rows:
        """Return the packets that are on their way, a row each, element by element.

        Libraries that know Arrow take the table without a copy. ``link`` is empty in elements that are none, such
        as delays; ``number`` is that of the transmission, None of what is no data; ``mark`` is what routers said:
        ``none``, ``accelerate``, ``brake`` or ``ce``.

        >>> import brakelight as bl
        >>> link, flow = bl.Link("cell", rate="12Mbps"), bl.Flow("main", controller="cubic", rtt="40ms", path=["cell"])
        >>> simulation = bl.Simulation(bl.Scenario(duration="5s", link=[link], flow=[flow]))
        >>> simulation.advance(1.0)
        >>> packets = simulation.packets()
        >>> waiting = [packet for packet in packets if packet["link"] == "cell"]
        >>> len(waiting) >= simulation.link("cell").queue_packets > 0
        True
        """
        return Rows(self._run.packets())

    def capacity_between(self, link: int | str, start: float | Time, stop: float | Time) -> int:
        """Return the bytes that a link can carry in ``start <= t < stop``, used or not; it may lie ahead."""
        return self._run.capacity_between(link, seconds("start", start), seconds("stop", stop))

    def set_window(self, flow: int | str, cwnd: float) -> None:
        """Set the window, in payload bytes, of a flow whose controller is ``external``.

        Raises:
            InputError: if another controller decides, or it is below one packet or above 1 TB.
        """
        cwnd = number("cwnd", cwnd, "a number of bytes")
        if not 0 <= cwnd < 2**63:
            raise InputError(f"cwnd = `{cwnd:g}` is out of range: valid is one packet to 1 TB")
        self._act("set_window", flow, int(cwnd))

    def set_pacing_rate(self, flow: int | str, rate: float | None) -> None:
        """Set the pacing rate, in bit/s of payload, of such a flow; ``None`` leaves it to the host."""
        if rate is not None:
            rate = number("rate", rate, "a number of bit/s, or None")
        self._act("set_pacing_rate", flow, rate)

    def set_link_rate(self, link: int | str, rate: float) -> None:
        """Give a link another rate from now on, in bit/s, from 0 to 10 Tbit/s. Its trace ends there."""
        self._act("set_link_rate", link, number("rate", rate, "a number of bit/s"))

    def set_delay(self, flow: int | str, direction: str, delay: float | Time, *, keep_order: bool = True) -> None:
        """Change the propagation delay of a flow ``"forward"`` or ``"reverse"``, in seconds, up to an hour."""
        self._act("set_delay", flow, direction, seconds("delay", delay), bool(keep_order))

    def start_flow(self, flow: int | str) -> None:
        """Start a flow now."""
        self._act("start_flow", flow)

    def hold_flow(self, flow: int | str) -> None:
        """Keep a flow that has not started from starting by itself."""
        self._act("hold_flow", flow)

    def stop_flow(self, flow: int | str) -> None:
        """Stop a flow now."""
        self._act("stop_flow", flow)

    def clone(self) -> Simulation:
        """Return a second run in the same state: both go on as if each had been run alone."""
        made = Simulation.__new__(Simulation)
        made._scenario, made._run, made._done = self._scenario, self._run.clone(), list(self._done)
        return made

    __copy__ = clone

    def __deepcopy__(self, memo: dict[int, Any]) -> Simulation:
        return self.clone()

    def finish(self) -> Result:
        """End the run, and return what came out of it until now.

        Raises:
            RunError: if it was finished before.
        """
        result = Result(self._run.finish())
        # It stands nowhere any more.
        self._done = [("finish",)]
        return result

    def __reduce__(self) -> tuple[Any, ...]:
        return _redone, (self._scenario, self._done)

    def __repr__(self) -> str:
        return repr(self._run)


def _redone(scenario: Scenario, done: list[tuple[Any, ...]]) -> Simulation:
    """Return a run in which the same was done."""
    made = Simulation(scenario)
    for method, *arguments in done:
        if method == "again":
            times, again, *rest = arguments
            for _ in range(times):
                getattr(made._run, again)(*rest)
        else:
            getattr(made._run, method)(*arguments)
    made._done = list(done)
    return made
