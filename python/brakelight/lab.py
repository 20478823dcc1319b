"""Compare schemes, run scenarios, search for the worst link, judge the papers' claims."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Union

from brakelight import _brakelight
from brakelight._progress import Progress, watching
from brakelight._arguments import Time, each, refused, text, time_text, whole
from brakelight.controller import Controller, Queue, is_algorithm, name_of, register
from brakelight.results import Result, Rows
from brakelight.scenario import Scenario
from brakelight.scenario import scenario as _scenario
from brakelight._trace import Trace

TraceLike = Union[str, "os.PathLike[str]", Trace]
"""A name, a file in Mahimahi's format, or a trace made in the program."""

SchemeLike = Union[str, "type[Controller]", "type[Queue]"]
"""``controller``, ``controller+queue``, options after a colon, several with commas between; or a class."""


def compare(
    traces: TraceLike | Sequence[TraceLike] = (),
    schemes: SchemeLike | Sequence[SchemeLike] = (),
    *,
    can: Literal["senders", "queue", "both"] | None = None,
    against: SchemeLike | None = None,
    traffic: str | Mapping[str, Any] | None = None,
    rtt: Time = "100ms",
    buffer: str | None = None,
    reverse: TraceLike | None = None,
    spread: bool | None = None,
    setup: str | None = None,
    duration: Time | None = None,
    runs: int | None = None,
    seed: int = 1,
    trace_offset: Time | None = None,
    series: bool = False,
    force: bool = False,
    progress: bool | Progress | None = None,
) -> Result:
    """Run every scheme on every trace. Uses all cores, without the GIL; Ctrl-C stops it.

    >>> import brakelight as bl
    >>> result = bl.compare("step", ["abc", "cubic+codel"], duration="2s", runs=2)
    >>> [row["spread"]["n"] for row in result.rows]
    [2, 2]

    Args:
        traces: one or several: names, files in Mahimahi's format, :class:`Trace`. None stands for the embedded
            traces that are meant for comparisons.
        schemes: one or several: ``"abc,cubic+codel"`` or a list; ``"all"`` is every one that :func:`schemes`
            has. None stands for those that it marks as default.
        can: what you can change: ``"senders"``, ``"queue"`` or ``"both"``. Only schemes that need no more are
            compared, and today's. None stands for all.
        against: the scheme of one competing flow at the same queue; or a class.
        traffic: what the schemes' application does, as a scenario has it: ``"call"``, ``"video"``, or a dict such
            as ``{"kind": "call", "fps": 60}``. None stands for a flow that always has more to send.
        rtt: propagation delay of the round trip: text with its unit, or a timedelta.
        buffer: the bottleneck's buffer, or ``"2BDP"``. None stands for one bandwidth-delay product of the
            trace's fastest second, at least 250 packets.
        reverse: what limits the way back: a rate, a trace. None stands for nothing.
        spread: whether the opportunities of a trace's millisecond come one after another in it, not all at
            its end. None stands for what suits each trace: so, where the milliseconds are only its file's grid.
        setup: where what is None comes from: ``"mahimahi"`` is the setup of the papers. None stands for what
            suits each trace.
        duration: length of a run. None stands for a recording's own, and 6 to 30 s of a generated trace.
        runs: runs of each scheme on each trace, every one with a seed of its own; rows are medians, with
            confidence intervals. None stands for 8.
        seed: the first seed.
        trace_offset: where in its period a trace starts; ``"random"`` draws it from the seed. None stands for
            evenly spaced places, one for each run.
        series: whether to keep the time series of each row's first seed.
        force: whether to run it even if it may take hours or fill the memory.
        progress: whether to show a bar (needs tqdm), or an object with ``begin(what, steps)`` and
            ``step(label)``. None shows one where there is a terminal or a notebook.

    Raises:
        InputError: if an argument is wrong; the message names it, its value and what is valid.
        RunError: if a run failed.
    """
    back = () if reverse is None else reverse
    names, given = _traces(traces, back)
    competitor = () if against is None else _schemes(against, "against")
    if len(competitor) > 1:
        raise refused("against", against, "one scheme, or a class")
    with watching(progress) as told:
        table = _brakelight.compare(
            names,
            given,
            _schemes(schemes),
            None if can is None else text("can", can, "`senders`, `queue` or `both`, or None"),
            competitor[0] if competitor else None,
            None if traffic is None else _traffic(traffic),
            time_text("rtt", rtt),
            None if buffer is None else text("buffer", buffer, "text such as `250pkt`, `30kB` or `2BDP`"),
            None if reverse is None else _trace_name("reverse", reverse),
            None if spread is None else bool(spread),
            None if setup is None else text("setup", setup, "`mahimahi`, or None"),
            None if duration is None else time_text("duration", duration),
            None if runs is None else whole("runs", runs, 1),
            whole("seed", seed, 0, 2**63 - 1),
            None if trace_offset is None else time_text("trace_offset", trace_offset),
            bool(series),
            bool(force),
            told,
        )
    return Result(table)


def _traffic(given: str | Mapping[str, Any]) -> str:
    """Return ``traffic`` as text."""
    if isinstance(given, Mapping):
        try:
            return json.dumps(dict(given))
        except (TypeError, ValueError) as error:
            raise refused("traffic", given, "a dict of text, numbers and booleans") from error
    return text("traffic", given, "text such as `call`, or a dict such as `{'kind': 'call', 'fps': 60}`")


def run(
    scenario: Scenario | Mapping[str, Any] | str | os.PathLike[str],
    *,
    runs: int = 1,
    series: bool = False,
    force: bool = False,
    progress: bool | Progress | None = None,
) -> Result:
    """Run a scenario: a :class:`Scenario`, a dict, the path of a file, or the text of one.

    >>> import brakelight as bl
    >>> result = bl.run({
    ...     "duration": "3s",
    ...     "link": [{"name": "a", "rate": "12Mbps"}],
    ...     "flow": [{"name": "b", "controller": "cubic", "rtt": "40ms", "path": ["a"]}],
    ... })
    >>> result.rows[0]["flows"][0]["controller"]
    'cubic'

    Args:
        scenario: what to run.
        runs: seeds to run, from the scenario's own upwards; the row has medians.
        series: whether to keep time series, also where the scenario does not ask for them.
        force: whether to run it even if it may take hours or fill the memory.
        progress: as of :func:`compare`.

    Raises:
        InputError: if the scenario is wrong.
        RunError: if a run failed.
    """
    checked = _scenario(scenario)
    several = whole("runs", runs, 1)
    with watching(progress) as told:
        return Result(_brakelight.run(checked._scenario, several, bool(series), bool(force), told))


@dataclass(frozen=True)
class Attacked:
    """What :func:`attack` found."""

    found: dict[str, Any]
    """All numbers: the keys that ``brakelight schema attack`` documents."""
    worst: Scenario
    """The worst link with the scheme on it, for :func:`run`."""
    reference: Scenario | None
    """The same link with the best reference on it; None where two flows shared the link."""


def attack(
    scheme: SchemeLike,
    *,
    against: SchemeLike | Sequence[SchemeLike] = (),
    objective: str = "delay",
    space: str = "cellular",
    bounds: str | None = None,
    budget: int = 1000,
    seed: int = 1,
    progress: bool | Progress | None = None,
) -> Attacked:
    """Search for the link on which a scheme does worst, compared with what was possible there.

    Uses all cores, without the GIL; Ctrl-C stops it. The same arguments find the same link.

    >>> import brakelight as bl
    >>> attacked = bl.attack("abc", space="steps", bounds="duration=2s,rate=1Mbps..6Mbps", budget=16)
    >>> attacked.found["unit"], attacked.found["links"]
    ('ms', 16)
    >>> row = bl.run(attacked.worst).rows[0]

    Args:
        scheme: the scheme to attack; or a class.
        against: the references, of which the best counts on each link; the scheme of the other flow, where two
            share the link. None stands for ABC that knows the future, and for the same scheme.
        objective: what should be as bad as can be: ``"delay"``, ``"longest"``, ``"waste"``,
            ``"unfair"``, ``"loss"`` or ``"starve"``.
        space: what the search may change: ``"cellular"``, ``"steps"``, ``"delay"``, ``"cross"`` or ``"mixed"``.
        bounds: within which bounds, such as ``"rate=1Mbps..24Mbps,rtt=40ms"``.
        budget: how many links to try.
        seed: decides which links are tried, and what is drawn in their runs.
        progress: as of :func:`compare`.

    Raises:
        InputError: if an argument is wrong; the message names it, its value and what is valid.
        RunError: if a run failed.
    """
    given = _schemes(scheme, "scheme")
    if len(given) != 1:
        raise refused("scheme", scheme, "valid is one scheme")
    with watching(progress) as told:
        found, worst, reference = _brakelight.attack(
            given[0],
            _schemes(against, "against"),
            text("objective", objective, "`delay`, `waste`, `unfair`, `loss` or `starve`"),
            text("space", space, "`cellular`, `steps`, `delay`, `cross` or `mixed`"),
            None if bounds is None else text("bounds", bounds, "text such as `rate=1Mbps..24Mbps,rtt=40ms`"),
            whole("budget", budget, -(2**63), 2**63 - 1),
            whole("seed", seed, 0, 2**63 - 1),
            told,
        )
    return Attacked(
        found=json.loads(found),
        worst=Scenario._of(worst),
        reference=None if reference is None else Scenario._of(reference),
    )


def reproduce(
    ids: str | Iterable[str] = (),
    *,
    quick: bool = False,
    force: bool = False,
    progress: bool | Progress | None = None,
) -> Rows:
    """Run the papers' claims that ``ids`` name and judge them: all where there is no id.

    ``quick`` is a first look in two minutes of two cores: one seed, without the longest experiments.

    >>> import brakelight as bl
    >>> bl.reproduce("ABC-F99")
    Traceback (most recent call last):
    ...
    brakelight.InputError: unknown claim `ABC-F99` (did you mean `ABC-F19`?): the nearest of ...

    Returns:
        A row per claim: ``id``, ``claim``, ``paper``, ``measured``, ``verdict`` (``holds``, ``fails``,
        ``refuted``, ``needs-recordings`` or ``not-checkable``) and ``note``.

    Raises:
        InputError: if an id names nothing.
    """
    with watching(progress) as told:
        return Rows(_brakelight.reproduce(_strings(ids), quick, force, told))


def _schemes(given: Any, name: str = "schemes") -> list[str]:
    if isinstance(given, str):
        return [given]
    if is_algorithm(given):
        called = name_of(register(given))
        # A queue stands for Cubic over it.
        return [called if issubclass(given, Controller) else f"cubic+{called}"]
    several = each(given)
    if several is None:
        raise refused(name, given, "text such as `abc,cubic+codel`, a class of Controller, or a list of them")
    return [scheme for one in several for scheme in _schemes(one, name)]


def _strings(given: str | Iterable[str]) -> list[str]:
    several = [given] if isinstance(given, str) else each(given)
    if several is None:
        raise refused("ids", given, "the id of a claim, or a list of them")
    return [text("ids", one, "the id of a claim") for one in several]


def _trace_name(argument: str, given: Any) -> str:
    if isinstance(given, Trace):
        return given.name
    if isinstance(given, (str, os.PathLike)):
        return os.fsdecode(given)
    raise refused(argument, given, "a name, a file, or a Trace")


def _traces(given: TraceLike | Sequence[TraceLike], *more: Any) -> tuple[list[str], list[_brakelight.Trace]]:
    """Return the names of traces, and all traces, of ``more`` too, that were made in the program."""
    several = [given] if isinstance(given, (str, os.PathLike, Trace)) else each(given)
    if several is None:
        raise refused("traces", given, "a name, a file, a Trace, or a list of them")
    made: dict[str, Trace] = {}
    for one in [*several, *more]:
        if isinstance(one, Trace) and made.setdefault(one.name, one) != one:
            raise _brakelight.InputError(f"two traces are called `{one.name}`: give each a name of its own")
    names = [_trace_name("traces", one) for one in several]
    return names, [trace._trace for trace in made.values()]
