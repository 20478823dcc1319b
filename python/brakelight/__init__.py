"""Congestion control for links whose rate will not hold still.

A deterministic simulator of senders, receivers and routers, the published algorithms, and what people do with
them. The same scenario and seed give the same bytes, here and by the command ``brakelight``.

>>> import brakelight as bl
>>> result = bl.compare(traces="lte-driving", schemes="abc,cubic", duration="2s")
>>> [row["scheme"] for row in result.rows]
['abc', 'cubic']

=====================================  =====================================================
to run                                 :func:`compare`, :func:`run`, :func:`sweep`, :func:`attack`, :func:`reproduce`
what to run                            :class:`Scenario`, :class:`Link`, :class:`Flow`, :class:`Trace`
what came out                          :class:`Result`, :class:`Rows`
step by step                           :class:`Simulation`
to compete                             :mod:`brakelight.arena`
algorithms of your own                 :class:`Controller`, :class:`Queue`, :func:`register`
what there is                          :func:`schemes`, :func:`controllers`, :func:`queues`, :func:`traces`
what can go wrong                      :class:`InputError`, :class:`RunError`
=====================================  =====================================================

Times, rates and sizes are text with their unit (``"100ms"``, ``"12Mbps"``, ``"250pkt"``), as on the command line.
Numbers in results have their unit in their name.
"""

from brakelight import arena
from brakelight._brakelight import FlowView, InputError, LinkView, RunError, __version__
from brakelight._lists import applications, claims, controllers, elements, feedbacks, queues, radios, schemes, traces
from brakelight._trace import Trace, trace
from brakelight.controller import Controller, Queue, register
from brakelight.lab import Attacked, attack, compare, reproduce, run
from brakelight.results import Result, Rows
from brakelight.scenario import Flow, Link, Scenario
from brakelight.simulation import Simulation
from brakelight.sweeps import SweepResult, sweep

__all__ = [
    "Attacked",
    "Controller",
    "Flow",
    "FlowView",
    "InputError",
    "Link",
    "LinkView",
    "Queue",
    "Result",
    "Rows",
    "RunError",
    "Scenario",
    "Simulation",
    "SweepResult",
    "Trace",
    "__version__",
    "applications",
    "arena",
    "attack",
    "claims",
    "compare",
    "controllers",
    "elements",
    "feedbacks",
    "queues",
    "radios",
    "register",
    "reproduce",
    "run",
    "schemes",
    "sweep",
    "trace",
    "traces",
]
