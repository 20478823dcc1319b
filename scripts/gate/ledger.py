"""The steps that ran, how long each took, and the table at the end."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any


class Failure(Exception):
    """A step failed; its output says why."""


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def says_not_run(line: str) -> bool:
    """Whether a line of output, or the note of a step, says that something could not run: it has not passed then."""
    return line.startswith(("NOT RUN:", "not run:"))


def run(command: list[Any], **options: Any) -> None:
    """Runs a command. Raises `Failure` if it does not exit with 0."""
    done = subprocess.run([str(word) for word in command], check=False, **options)
    if done.returncode != 0:
        raise Failure(f"`{' '.join(str(word) for word in command)}` exited with {done.returncode}")


def run_aside(command: list[Any], **options: Any) -> None:
    """Does what `run` does beside other steps: what the command prints stands together, once it has ended."""
    with tempfile.TemporaryFile() as printed:
        try:
            run(command, stdout=printed, stderr=subprocess.STDOUT, **options)
        finally:
            printed.seek(0)
            say(printed.read().decode(errors="replace").rstrip())


class Ledger:
    """Runs steps one after another and keeps what each took, in seconds."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, float, str]] = []
        self.begin = time.monotonic()

    def step(self, name: str, action: Callable[[], str | None]) -> str:
        """Runs `action`, which may return what to note beside the step, and returns that."""
        say(f"\n== {name}")
        begin = time.monotonic()
        note = "failed"
        try:
            note = action() or ""
        finally:
            seconds = time.monotonic() - begin
            self.rows.append((name, seconds, note))
            say(f"== {name}: {seconds:.0f} s{f', {note}' if note else ''}")
        return note

    def print(self) -> None:
        """Prints the table of the steps."""
        say("\nstep                             s  note")
        say("─" * 72)
        for name, seconds, note in self.rows:
            say(f"{name:<26}{seconds:8.0f}  {note}")
        say(f"{'in all':<26}{time.monotonic() - self.begin:8.0f}")
