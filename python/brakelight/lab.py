"""Compare schemes, run scenarios, search for the worst link, judge the papers' claims."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

from brakelight import _brakelight
from brakelight._progress import Progress, watching
from brakelight.controller import Controller, name_of, register
from brakelight.results import Result, Rows
from brakelight.scenario import Scenario
from brakelight.scenario import scenario as _scenario
from brakelight.trace import Trace

TraceLike = Union[str, "os.PathLike[str]", Trace]
"""A name, a file in Mahimahi's format, or a trace made in the program."""

SchemeLike = Union[str, "type[Controller]"]
"""``controller``, ``controller+queue``, options after a colon, several with commas between; or a class."""


def compare(
    traces: TraceLike | Sequence[TraceLike] = (),
    schemes: SchemeLike | Sequence[SchemeLike] = (),
    *,
    against: str | None = None,
    rtt: str = "100ms",
    buffer: str | None = None,
    reverse: str | None = None,
    spread: bool = False,
    setup: str | None = None,
    duration: str | None = None,
    runs: int | None = None,
    seed: int = 1,
    trace_offset: str | None = None,
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
        against: the scheme of one competing flow at the same queue.
        rtt: propagation delay of the round trip.
        buffer: the bottleneck's buffer, or ``"2BDP"``. None stands for one bandwidth-delay product of the
            trace's fastest second, at least 250 packets.
        reverse: what limits the way back: a rate, a trace. None stands for nothing.
        spread: whether the opportunities of a trace's millisecond come one after another in it, not all at
            its end.
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
    names, given = _traces(traces)
    with watching(progress) as told:
        table = _brakelight.compare(
            names,
            given,
            _schemes(schemes),
            against,
            rtt,
            buffer,
            reverse,
            spread,
            setup,
            duration,
            runs,
            seed,
            trace_offset,
            series,
            force,
            told,
        )
    return Result(table)


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
    with watching(progress) as told:
        return Result(_brakelight.run(checked._scenario, runs, series, force, told))


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
        objective: what should be as bad as can be: ``"delay"``, ``"waste"``, ``"unfair"``, ``"loss"`` or
            ``"starve"``.
        space: what the search may change: ``"cellular"``, ``"steps"``, ``"delay"``, ``"cross"`` or ``"mixed"``.
        bounds: within which bounds, such as ``"rate=1Mbps..24Mbps,rtt=40ms"``.
        budget: how many links to try.
        seed: decides which links are tried, and what is drawn in their runs.
        progress: as of :func:`compare`.

    Raises:
        InputError: if an argument is wrong; the message names it, its value and what is valid.
        RunError: if a run failed.
    """
    given = _schemes(scheme)
    if len(given) != 1:
        raise _brakelight.InputError(f"scheme = {given!r}: valid is one scheme")
    with watching(progress) as told:
        found, worst, reference = _brakelight.attack(
            given[0], _schemes(against), objective, space, bounds, budget, seed, told
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


def _schemes(given: SchemeLike | Sequence[SchemeLike]) -> list[str]:
    if isinstance(given, str):
        return [given]
    if isinstance(given, type):
        return [name_of(register(given))]
    return [name for each in given for name in _schemes(each)]


def _strings(given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else list(given)


def _traces(given: TraceLike | Sequence[TraceLike]) -> tuple[list[str], list[_brakelight.Trace]]:
    """Return the names of traces, and those of them that were made in the program."""
    several = [given] if isinstance(given, (str, os.PathLike, Trace)) else list(given)
    made: dict[str, Trace] = {}
    names: list[str] = []
    for one in several:
        if isinstance(one, Trace):
            if made.setdefault(one.name, one) != one:
                raise _brakelight.InputError(f"two traces are called `{one.name}`: give each a name of its own")
            names.append(one.name)
        else:
            names.append(os.fspath(one))
    return names, [trace._trace for trace in made.values()]
