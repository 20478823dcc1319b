"""Scenarios: what to run."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from brakelight import _brakelight
from brakelight.controller import is_algorithm, name_of, register
from brakelight.trace import Trace


class Link(dict[str, Any]):
    """A link: the keys of ``[[link]]`` in a scenario file.

    >>> import brakelight as bl
    >>> bl.Link("bottleneck", rate="12Mbps", buffer="100pkt", queue="codel")["queue"]
    'codel'
    """

    def __init__(self, name: str, **keys: Any) -> None:
        super().__init__(name=name, **keys)


class Flow(dict[str, Any]):
    """A flow, or several alike: the keys of ``[[flow]]`` in a scenario file.

    >>> import brakelight as bl
    >>> bl.Flow("main", controller="cubic", rtt="40ms", path=["bottleneck"])["rtt"]
    '40ms'
    """

    def __init__(self, name: str, **keys: Any) -> None:
        super().__init__(name=name, **keys)


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
        given = {trace.name: trace for trace in traces}
        text = json.dumps(_plain({**(document or {}), **keys}, given))
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
        return Scenario(self.to_dict(), traces=[Trace._of(trace) for trace in self._scenario.traces()], **keys)

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
        return self.to_toml() == other.to_toml() if isinstance(other, Scenario) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_toml())

    def __reduce__(self) -> tuple[Any, ...]:
        traces = [Trace._of(trace) for trace in self._scenario.traces()]
        return _rebuilt, (self.to_dict(), traces)

    def __repr__(self) -> str:
        return f"Scenario({self.name!r}, {self.duration_s:g} s)"


def _rebuilt(document: dict[str, Any], traces: list[Trace]) -> Scenario:
    return Scenario(document, traces=traces)


def _given(traces: Iterable[Trace]) -> list[_brakelight.Trace]:
    return [trace._trace for trace in traces]


def _plain(value: Any, traces: dict[str, Trace]) -> Any:
    """Return ``value`` as JSON has it, with the names of traces, which are added to ``traces``."""
    if isinstance(value, Trace):
        if traces.setdefault(value.name, value) != value:
            raise _brakelight.InputError(f"two traces are called `{value.name}`: give each a name of its own")
        return value.name
    if is_algorithm(value):
        return name_of(register(value))
    if isinstance(value, Mapping):
        return {str(key): _plain(each, traces) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each, traces) for each in value]
    # Scalars of NumPy.
    if hasattr(value, "item") and callable(value.item):
        return value.item()
    return value


def scenario(given: Scenario | Mapping[str, Any] | str | os.PathLike[str]) -> Scenario:
    """Return a scenario of whatever stands for one: itself, a dict, the path of a file, TOML text."""
    if isinstance(given, Scenario):
        return given
    if isinstance(given, Mapping):
        return Scenario(given)
    if isinstance(given, str) and "\n" in given:
        return Scenario.from_toml(given)
    return Scenario.read(given)
