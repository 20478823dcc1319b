"""Runs jobs side by side: test programs, and what else keeps a core busy or waits.

Most test programs are one long test at their end, or wait for a clock, so that one after another leaves cores idle. Jobs of one
`turn` never run together: those of the kernel share its namespaces and devices.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .hangs import interrupt_all, run_with_limit
from .ledger import Failure, say, says_not_run

# Seconds after which a job hangs: four times what the longest takes on a loaded machine.
PATIENCE = 1200.0

# What computes or draws gives way to what waits for a clock or the kernel, as `nice` counts. Beside two jobs and three browsers an
# ordinary thread that sleeps for 5 ms waited for a processor for up to 140 ms where they had 10 and 5, for 93 ms with 15 and 10, and for 23 ms
# with 19.
GIVES_WAY, WAITS = 19, 0

# Runs a command in a session of its own.
APART = Path(__file__).resolve().parent / "apart"

# `test NAME ... ok <1.234s>`, as the test harness prints it with --report-time.
TIMED = re.compile(r"^test (.+?)(?: - should panic)? \.\.\. \w+ <([0-9.]+)s>", re.MULTILINE)
# `test NAME ... FAILED <1.234s>`, and what the harness prints of why.
FAILED = re.compile(r"^test (.+?)(?: - should panic)? \.\.\. FAILED", re.MULTILINE)
PANIC = re.compile(r"^thread '.*' .*panicked at .*\n(.*)", re.MULTILINE)
TOTAL = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.MULTILINE)


@dataclass
class Job:
    """A command, with where it runs and what is known of it."""

    name: str
    command: list[str]
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    # Jobs of the same turn run one after another.
    turn: str = ""
    # Seconds that it took last, or a guess: the longest begin first.
    expected: float = 1.0
    # How far it gives way: `GIVES_WAY` or `WAITS`.
    niceness: int = GIVES_WAY
    # Whether it keeps a core busy from beginning to end.
    computes: bool = True
    # A hash of what it depends on.
    inputs: str = ""


@dataclass
class Done:
    """A job that ended: its output, its exit status, its seconds, and those of its tests."""

    job: Job
    output: str
    status: int
    seconds: float

    def tests(self) -> list[tuple[float, str]]:
        return [(float(seconds), f"{self.job.name} {name}") for name, seconds in TIMED.findall(self.output)]

    def failures(self) -> list[str]:
        """A line for each test that failed, and for each panic the first line of what it says."""
        names = [f"{self.job.name} {name}" for name in FAILED.findall(self.output)]
        panics = [f"    {line.strip()[:200]}" for line in PANIC.findall(self.output)]
        return (names or [f"{self.job.name}: exited with {self.status}"]) + panics[:5]

    def left_out(self) -> list[str]:
        """What it says that it did not run."""
        return [line for line in self.output.splitlines() if says_not_run(line)]

    def counts(self) -> tuple[int, int, int]:
        """Tests passed, failed, ignored."""
        found = [tuple(int(count) for count in row) for row in TOTAL.findall(self.output)]
        return tuple(sum(column) for column in zip(*found)) if found else (0, 0, 0)  # type: ignore[return-value]


class Pool:
    """Runs jobs side by side: so many that compute, and so many of the others beside them."""

    def __init__(self, computing: int, others: int) -> None:
        self.computing = computing
        self.others = others
        self.change = threading.Condition()
        self.turns: set[str] = set()
        self.stopped = False
        self.failed: list[Done] = []
        self.done: list[Done] = []

    def run(self, jobs: list[Job], finished: Callable[[Done], None]) -> list[Done]:
        """Runs all jobs, and calls `finished` as each ends. Raises `Failure` if one fails, after all have ended."""
        workers = []
        for places, computes in ((self.computing, True), (self.others, False)):
            waiting = sorted((job for job in jobs if job.computes is computes), key=lambda job: -job.expected)
            workers += [threading.Thread(target=self._work, args=(waiting, finished)) for _ in range(places)]
        for worker in workers:
            worker.start()
        try:
            for worker in workers:
                worker.join()
        except KeyboardInterrupt:
            # Jobs are in sessions of their own, which no terminal interrupts.
            self.stopped = True
            interrupt_all()
            raise
        if self.failed:
            names = ", ".join(done.job.name for done in self.failed)
            raise Failure(f"failed: {names}")
        return self.done

    def _next(self, waiting: list[Job]) -> Job | None:
        with self.change:
            while waiting and not self.stopped:
                for job in waiting:
                    if job.turn not in self.turns:
                        waiting.remove(job)
                        if job.turn:
                            self.turns.add(job.turn)
                        return job
                self.change.wait()
        return None

    def _work(self, waiting: list[Job], finished: Callable[[Done], None]) -> None:
        while (job := self._next(waiting)) is not None:
            done = _run(job)
            with self.change:
                self.turns.discard(job.turn)
                self.done.append(done)
                if done.status != 0:
                    self.failed.append(done)
                finished(done)
                self.change.notify_all()


def _run(job: Job) -> Done:
    begin = time.monotonic()
    command = ["nice", "-n", str(job.niceness), str(APART), *job.command]
    output, status = run_with_limit(command, job.folder, {**os.environ, **job.environment}, PATIENCE)
    return Done(job, output, status, time.monotonic() - begin)


def report(done: Done) -> None:
    """Prints what a job printed: all of it if it failed, else what it left out and its closing lines."""
    lines = done.output.splitlines()
    if done.status == 0:
        lines = done.left_out() + [line for line in lines if line.startswith("test result:")] or lines[-1:]
    say(f"-- {done.job.name}: {done.seconds:.1f} s{'' if done.status == 0 else f', FAILED with {done.status}'}")
    for line in lines:
        print(line, flush=True)
