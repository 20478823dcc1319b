"""Controllers and queues in Python: slow beside the built-in ones, and quick to write."""

from __future__ import annotations

import difflib
import inspect
import os
import re
import sys
from typing import Any, ClassVar, TypeGuard, TypeVar, Union

from brakelight import _brakelight
from brakelight._brakelight import (
    AckInfo,
    ConnectionInfo,
    IdleInfo,
    LossInfo,
    PacketRecord,
    PacketView,
    PlaceInfo,
    SendInfo,
    TimeoutInfo,
)

__all__ = [
    "AckInfo",
    "ConnectionInfo",
    "Controller",
    "IdleInfo",
    "LossInfo",
    "PacketRecord",
    "PacketView",
    "PlaceInfo",
    "Queue",
    "SendInfo",
    "TimeoutInfo",
    "register",
]


class Controller:
    """A congestion controller: told what happened, it keeps a window and, if it likes, a pacing rate.

    Loss detection, retransmission and pacing are the host's. After each call the host reads the attributes ``cwnd``
    (payload bytes, at least one packet), ``pacing_rate`` (bit/s of payload; None leaves it to the host), ``ssthresh``
    and ``next_timer`` (seconds). Times are seconds since the beginning of the run, sizes payload bytes. A packet
    costs about 4 times what it costs with a built-in controller (``bench/controllers.py``). In Python's development
    mode (``python -X dev``), and where ``BRAKELIGHT_DEBUG`` is set, the simulator is held to the contract between host
    and controller (the book's page of that name).

    Keywords of the constructor whose defaults are numbers, text, True or False are options: schemes set them after a
    colon, and sweeps have axes of them (``option.packets``).

    >>> import brakelight as bl
    >>> class Still(bl.Controller):
    ...     '''A window that never changes.'''
    ...     def __init__(self, connection, packets=40):
    ...         super().__init__(connection)
    ...         self.packets = packets
    ...     def on_ack(self, event):
    ...         self.cwnd = self.packets * self.mss
    >>> [row["scheme"] for row in bl.compare("step", ["cubic", Still, "still:packets=9"], duration="2s").rows]
    ['cubic', 'still', 'still:packets=9']
    """

    name: ClassVar[str | None] = None
    """What schemes call it: lower-case letters, digits, ``-`` and ``_``. None stands for the class's name."""
    ecn: ClassVar[bool] = False
    """Whether to send ECT(0), so that routers mark packets instead of dropping them."""
    recovery: ClassVar[str] = "prr"
    """Who shapes the window while losses are repaired: ``"prr"`` the host, ``"own"`` nobody."""

    mss: int
    """Largest payload of a packet."""
    cwnd: float
    """How much may be in flight."""
    pacing_rate: float | None = None
    """How fast to send."""
    ssthresh: float | None = None
    """Where slow start ends."""
    next_timer: float | None = None
    """When to call :meth:`on_timer`."""

    def __init__(self, connection: ConnectionInfo) -> None:
        """Begin a connection. ``connection.seed`` is for random numbers of the controller's own."""
        self.mss = connection.mss
        self.cwnd = connection.initial_window

    def on_send(self, event: SendInfo) -> None:
        """A packet is about to leave."""

    def on_ack(self, event: AckInfo) -> None:
        """An ACK acknowledged, lost or said something."""

    def on_loss(self, event: LossInfo) -> None:
        """A loss starts a congestion episode: at most once per round trip."""

    def on_ce(self, event: LossInfo) -> None:
        """A CE mark starts a congestion episode. Treated as a loss unless a class says otherwise."""

    def on_timeout(self, event: TimeoutInfo) -> None:
        """A timer of loss recovery fired."""

    def on_spurious_loss(self, now: float, timeout: bool) -> None:
        """The last episode was a mistake: undo it."""

    def on_recovery_exit(self, now: float) -> None:
        """Every packet sent in the recovery period has been acknowledged."""

    def on_idle_restart(self, event: IdleInfo) -> None:
        """The flow sends again after it was idle for longer than its RTO."""

    def on_timer(self, now: float) -> None:
        """``next_timer`` is due."""

    def cap_cwnd(self, most: int) -> None:
        """Lower the window to ``most``, which is at least one packet."""
        self.cwnd = max(min(self.cwnd, most), self.mss)

    def on_mtu_change(self, mss: int) -> None:
        """The path's packet size changed."""
        self.mss = mss
        self.cwnd = max(self.cwnd, mss)


class Queue:
    """A queue discipline. Packets wait in the order in which they came; the class says which leave, are dropped, marked.

    A packet costs about 8 times what it costs with a built-in queue (``bench/controllers.py``).

    >>> import brakelight as bl
    >>> class Newest(bl.Queue):
    ...     '''The newest packet leaves first.'''
    ...     def __init__(self, place):
    ...         super().__init__(place)
    ...         self.waiting = []
    ...     def enqueue(self, now, packet, capacity):
    ...         self.waiting.append(packet.id)
    ...     def dequeue(self, now, capacity):
    ...         return self.waiting.pop()
    >>> result = bl.compare("step", ["cubic", bl.register(Newest) and "cubic+newest"], duration="2s")
    """

    name: ClassVar[str | None] = None
    """What schemes call it; None stands for the class's name."""

    def __init__(self, place: PlaceInfo) -> None:
        """Begin empty. ``place`` has the buffer's limit, which the host keeps, and the link's nominal rate."""
        self._dropped: list[int] = []
        self._marked: list[int] = []

    def enqueue(self, now: float, packet: PacketView, capacity: float) -> None:
        """A packet has come in, and is in the queue unless :meth:`drop` takes it out again.

        Args:
            now: the time, in seconds.
            packet: what is known of it; ``packet.id`` names it.
            capacity: what the link could have carried in the last 100 ms, in bit/s.
        """

    def dequeue(self, now: float, capacity: float) -> int | None:
        """The link can send a packet: return the id of one in the queue, or None for the one that came first."""
        return None

    def drop(self, packet: int) -> None:
        """Drop the packet of this id."""
        self._dropped.append(packet)

    def mark(self, packet: int) -> None:
        """Mark the packet of this id CE, if its flow speaks ECN."""
        self._marked.append(packet)

    def _taken(self) -> tuple[list[int], list[int]]:
        taken = self._dropped, self._marked
        self._dropped, self._marked = [], []
        return taken


Algorithm = Union[type[Controller], type[Queue]]
Registered = TypeVar("Registered", bound=Algorithm)


def register(algorithm: Registered) -> Registered:
    """Let schemes and scenarios name a class of controllers or queues; also a decorator.

    A class given in place of a scheme is registered by itself. One of the same name takes the place of another.

    Raises:
        InputError: if the name is malformed or that of a built-in algorithm, a method is none that the host calls
            but looks like one, or the class cannot be made.
    """
    if not is_algorithm(algorithm):
        raise _brakelight.InputError(f"register: `{algorithm!r}` is not a class of Controller or Queue")
    called = name_of(algorithm)
    summary = (inspect.cleandoc(algorithm.__doc__ or "") or "A class in Python").splitlines()[0]
    if issubclass(algorithm, Controller):
        _check_hooks("controller", called, algorithm, Controller)
        own = [name for name in vars(Controller) if getattr(algorithm, name) is not getattr(Controller, name)]
        checked = sys.flags.dev_mode or bool(os.environ.get("BRAKELIGHT_DEBUG"))
        _brakelight.register_controller(called, summary, algorithm, own, _options(algorithm), checked)
    else:
        _check_hooks("queue", called, algorithm, Queue)
        _brakelight.register_queue(called, summary, algorithm, _options(algorithm))
    _registered[called, issubclass(algorithm, Queue)] = algorithm
    return algorithm


_registered: dict[tuple[str, bool], Algorithm] = {}
"""The classes that were registered, by name and whether they are queues."""


_CALLED = re.compile(r'''\b(?:name|path|traces?)["']?\s*[=:]\s*(?:"[^"]*"|'[^']*'|\[[^\]]*\])''')
"""What gives something in TOML or JSON a name, or goes by it."""


def named_in(words: str) -> list[Algorithm]:
    """Return the registered classes whose names are among ``words``: those that other processes must know.

    What links, flows and traces are called is not among them.
    """
    found = set(re.findall(r"[a-z0-9_-]+", _CALLED.sub("", words)))
    return [algorithm for (name, _), algorithm in _registered.items() if name in found]


def _hooks(base: type) -> list[str]:
    """Return what a host calls."""
    if base is Queue:
        return ["enqueue", "dequeue"]
    return [name for name, value in vars(base).items() if inspect.isfunction(value) and not name.startswith("_")]


def _check_hooks(kind: str, called: str, algorithm: type, base: type) -> None:
    """Refuse a method that looks like one that the host calls, and is none."""
    hooks = _hooks(base)
    for owner in algorithm.__mro__[: algorithm.__mro__.index(base)]:
        for name, value in vars(owner).items():
            if name in hooks or name.startswith("_") or not callable(value):
                continue
            plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
            near = difflib.get_close_matches(plain, hooks, n=1, cutoff=0.8)
            if near or plain.startswith("on_"):
                meant = f" (did you mean `{near[0]}`?)" if near else ""
                raise _brakelight.InputError(
                    f"{kind} `{called}`: nobody calls `{name}`{meant}: valid are {', '.join(hooks)}; "
                    "the name of a method of your own begins with `_`"
                )


def _options(algorithm: Algorithm) -> list[tuple[str, Any]]:
    """Return the keywords of a constructor that have plain defaults."""
    try:
        parameters = list(inspect.signature(algorithm.__init__).parameters.values())[2:]
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return [
        (each.name, each.default)
        for each in parameters
        if each.kind in kinds and isinstance(each.default, (bool, int, float, str))
    ]


def name_of(algorithm: Algorithm) -> str:
    """Return what schemes call it."""
    return algorithm.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", algorithm.__name__).lower()


def is_algorithm(value: object) -> TypeGuard[Algorithm]:
    """Return whether ``value`` is a class of controllers or queues."""
    return isinstance(value, type) and issubclass(value, (Controller, Queue))
