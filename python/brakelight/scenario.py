"""Scenarios: what to run."""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from brakelight import _brakelight
from brakelight._arguments import each, nanoseconds, plain, refused, time_text
from brakelight._keys import FlowKeys, LinkKeys
from brakelight.controller import Algorithm, is_algorithm, name_of, named_in, register
from brakelight._trace import Trace

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Link(dict[str, Any]):
    """A link: the keys of ``[[link]]`` in a scenario file.

    >>> import brakelight as bl
    >>> bl.Link("bottleneck", rate="12Mbps", buffer="100pkt", queue="codel")["queue"]
    'codel'
    """

    def __init__(self, name: str, **keys: Unpack[LinkKeys]) -> None:
        """Make a link. Raises InputError if a key is unknown."""
        _check_keys("link", name, keys, LinkKeys)
        super().__init__(name=name, **keys)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (Link, dict(self))


class Flow(dict[str, Any]):
    """A flow, or several alike: the keys of ``[[flow]]`` in a scenario file.

    >>> import brakelight as bl
    >>> bl.Flow("main", controller="cubic", rtt="40ms", path=["bottleneck"])["rtt"]
    '40ms'
    """

    def __init__(self, name: str, **keys: Unpack[FlowKeys]) -> None:
        """Make a flow. Raises InputError if a key is unknown."""
        _check_keys("flow", name, keys, FlowKeys)
        super().__init__(name=name, **keys)

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (Flow, dict(self))


def _again(kind: type[dict[str, Any]], keys: dict[str, Any]) -> dict[str, Any]:
    made = kind.__new__(kind)
    made.update(keys)
    return made


def _check_keys(kind: str, name: str, keys: Mapping[str, Any], known: type) -> None:
    valid = list(known.__annotations__)
    for key in keys:
        if key not in valid:
            near = difflib.get_close_matches(key, valid, n=1)
            meant = f" (did you mean `{near[0]}`?)" if near else ""
            raise _brakelight.InputError(f"{kind} `{name}`: unknown key `{key}`{meant}: valid are {', '.join(valid)}")


class Scenario:
    """What to run: links with their queues, flows with their controllers, and the paths between them.

    The keys are those of a scenario file; what is wrong is said in the same words.

    >>> import brakelight as bl
    >>> scenario = bl.Scenario(
    ...     duration="5s",
    ...     link=[bl.Link("bottleneck", rate="12Mbps", buffer="100pkt")],
    ...     flow=[bl.Flow("main", controller="cubic", rtt="40ms", path=["bottleneck"])],
    ... )
    >>> scenario.to_dict()["flow"][0]["controller"]
    'cubic'
    >>> bl.Scenario(duration="5s", link=[{"name": "a", "rate": "fast"}], flow=[])
    Traceback (most recent call last):
    ...
    brakelight.InputError: link `a`: rate = `fast` is not a rate such as `12Mbps`, `500kbps` or `1.2Gbps`
    """

    __slots__ = ("_scenario",)
    _scenario: _brakelight.Scenario

    def __init__(
        self, document: Mapping[str, Any] | None = None, *, traces: Iterable[Trace] = (), **keys: Any
    ) -> None:
        """Make a scenario of a dict, of keywords, or of both.

        Args:
            document: the keys of a scenario file, its tables as dicts.
            traces: traces made in the program, which links name by ``trace = NAME``. A :class:`Trace` may also
                stand where its name would.
            keys: further keys, which come before those of ``document``.

        Raises:
            InputError: if a key is unknown, missing or wrong; the message names it and what is valid.
        """
        if document is not None and not isinstance(document, Mapping):
            raise refused("scenario", document, "a dict with the keys of a scenario file")
        given = {trace.name: trace for trace in several(traces)}
        text = json.dumps(plain_of("", {**(document or {}), **keys}, given))
        self._scenario = _brakelight.Scenario.from_json(text, _given(given.values()))

    @classmethod
    def _of(cls, scenario: _brakelight.Scenario) -> Scenario:
        made = cls.__new__(cls)
        made._scenario = scenario
        return made

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, traces: Iterable[Trace] = ()) -> Scenario:
        """Read a scenario file.

        Raises:
            InputError: if it cannot be read or is wrong; the message has file and line.
        """
        return cls._of(_brakelight.Scenario.read(os.fspath(path), _given(traces)))

    @classmethod
    def from_toml(cls, text: str, *, name: str = "scenario.toml", traces: Iterable[Trace] = ()) -> Scenario:
        """Make a scenario of the text of a scenario file, which is called ``name`` in messages."""
        return cls._of(_brakelight.Scenario.from_toml(text, name, _given(traces)))

    def to_toml(self) -> str:
        """Return it as a scenario file, for ``brakelight run``."""
        return self._scenario.to_toml()

    def to_dict(self) -> dict[str, Any]:
        """Return it as a dict with the keys of a scenario file."""
        made: dict[str, Any] = json.loads(self._scenario.to_json())
        return made

    def with_(self, **keys: Any) -> Scenario:
        """Return the same with other values of top-level keys.

        >>> import brakelight as bl
        >>> link, flow = bl.Link("a", rate="1Mbps"), bl.Flow("b", controller="cubic", rtt="40ms", path=["a"])
        >>> bl.Scenario(link=[link], flow=[flow]).with_(duration="3s").duration_s
        3.0
        """
        return Scenario(self.to_dict(), traces=self._traces().values(), **keys)

    @property
    def name(self) -> str:
        """What it is called."""
        return self._scenario.name

    @property
    def duration_s(self) -> float:
        """When the run ends, in seconds."""
        return self._scenario.duration_s

    @property
    def seed(self) -> int:
        """What decides every random draw."""
        return self._scenario.seed

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scenario):
            return NotImplemented
        return self.to_toml() == other.to_toml() and self._traces() == other._traces()

    def _traces(self) -> dict[str, Trace]:
        """Return its traces, by the names that it has for them."""
        return {trace.name: Trace._of(trace) for trace in self._scenario.traces()}

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (self.to_dict(), list(self._traces().values()), named_in(self.to_toml()))

    def __copy__(self) -> Scenario:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Scenario:
        # It does not change.
        return self

    def __repr__(self) -> str:
        return f"Scenario({self.name!r}, {self.duration_s:g} s)"


def _rebuilt(document: dict[str, Any], traces: list[Trace], classes: Iterable[Algorithm] = ()) -> Scenario:
    for algorithm in classes:
        register(algorithm)
    return Scenario(document, traces=traces)


def several(traces: Any) -> list[Trace]:
    """Return the traces of an argument ``traces``: one, or several."""
    listed = [traces] if isinstance(traces, Trace) else each(traces)
    wrong = [traces] if listed is None else [trace for trace in listed if not isinstance(trace, Trace)]
    if listed is None or wrong:
        raise refused("traces", wrong[0], "a Trace, or a list of them")
    return listed


def _given(traces: Any) -> list[_brakelight.Trace]:
    return [trace._trace for trace in several(traces)]


def plain_of(name: str, value: Any, traces: dict[str, Trace]) -> Any:
    """Return ``value``, which is called ``name``, as JSON has it: names of traces, which are added to ``traces``, and of
    classes; times as text; numbers, text and lists."""
    if isinstance(value, Trace):
        if traces.setdefault(value.name, value) != value:
            raise _brakelight.InputError(f"two traces are called `{value.name}`: give each a name of its own")
        return value.name
    if is_algorithm(value):
        return name_of(register(value))
    if isinstance(value, Mapping):
        return {str(key): plain_of(f"{name}.{key}" if name else str(key), each, traces) for key, each in value.items()}
    if nanoseconds(value) is not None:
        return time_text(name, value)
    value = plain(value)
    if isinstance(value, os.PathLike):
        return os.fsdecode(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise refused(name, value, "a finite number")
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    listed = each(value)
    if listed is None:
        raise refused(name, value, "text, a number, True, False, a list or a dict")
    return [plain_of(f"{name}[{place}]", one, traces) for place, one in enumerate(listed)]


def scenario(given: Scenario | Mapping[str, Any] | str | os.PathLike[str]) -> Scenario:
    """Return a scenario of whatever stands for one: itself, a dict, the path of a file, TOML text."""
    if isinstance(given, Scenario):
        return given
    if isinstance(given, Mapping):
        return Scenario(given)
    # No file's name: it has several lines, or is a key with a value.
    if isinstance(given, str) and ("\n" in given or ("=" in given or "[" in given) and not os.path.exists(given)):
        return Scenario.from_toml(given)
    if not isinstance(given, (str, os.PathLike)):
        raise refused("scenario", given, "a Scenario, a dict, the path of a file, or the text of one")
    return Scenario.read(given)
