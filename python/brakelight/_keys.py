"""The keys of links and flows, for type checkers. A test holds them to those that the extension knows."""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Union

from brakelight.controller import Controller, Queue
from brakelight._trace import Trace

Time = Union[str, datetime.timedelta]


class LinkKeys(TypedDict, total=False):
    """The keys of ``[[link]]`` but its name."""

    trace: Union[str, "os.PathLike[str]", Trace]
    rate: str
    steps: Sequence[Any]
    radio: str
    repeat: bool
    buffer: str
    queue: Union[str, type[Queue]]
    opportunity: str
    overhead: str
    spread: bool
    restarts: Sequence[Mapping[str, Any]]
    burst: str
    delay: Time


class FlowKeys(TypedDict, total=False):
    """The keys of ``[[flow]]`` but its name."""

    count: int
    controller: Union[str, type[Controller]]
    feedback: str
    host: str
    ack_every: int
    ack_delay: Time
    mss: str
    overhead: str
    initial_window: int
    pacing_burst: int
    reordering: str
    undo: bool
    read_batch: int
    traffic: Union[str, Mapping[str, Any]]
    start: Time
    start_within: Time
    stop: Time
    rtt: Time
    rtt_step: Time
    path: Sequence[str]
    reverse: Sequence[str]
    jitter: Time
    receiver_clock: Mapping[str, Any]
