"""Runs a command with a time limit, and reports what its threads waited for if it goes past it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import IO


# What runs, and the process IDs of all that ran.
RUNNING: set[subprocess.Popen[bytes]] = set()
STARTED: set[int] = set()


def take_interrupts() -> None:
    """Has an interrupt, or whoever ends this program, raise `KeyboardInterrupt` in its main thread.

    Where a program runs in the background, interrupts are ignored, and what it starts would ignore them, too.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def interrupt_all() -> None:
    """Interrupts all that `run_with_limit` runs, in whatever threads, as a terminal would."""
    for process in list(RUNNING):
        send(signal.SIGINT, descendants(process.pid))


def send(what: signal.Signals, pids: list[int]) -> None:
    """Sends a signal to those of `pids` that are there."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, what)


def run_with_limit(command: list[str], folder: Path, environment: dict[str, str], patience: float) -> tuple[str, int]:
    """Returns what a command printed and its exit status.

    After `patience` seconds, or if it ends and leaves processes that hold its output, the status is 124, and what each of its
    processes did stands behind what it printed.
    """
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        return f"it does not start: {error}\n", 127
    RUNNING.add(process)
    STARTED.add(process.pid)
    with process:
        try:
            return wait_for(process, patience)
        except KeyboardInterrupt:
            end(process)
            raise
        finally:
            RUNNING.discard(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Interrupts a command and what it started, and kills what is left of them once it has ended, or after ten seconds."""
    # What it started is nobody's once it has ended.
    started = {*descendants(process.pid), *holders(process.stdout)}
    send(signal.SIGINT, [*started])
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=10)
    send(signal.SIGKILL, [*started - {process.pid}, *holders(process.stdout), *([process.pid] if process.poll() is None else [])])


def wait_for(process: subprocess.Popen[bytes], patience: float) -> tuple[str, int]:
    """Waits for a command as `run_with_limit` says."""
    begin = time.monotonic()
    is_over = False
    while True:
        try:
            printed = process.communicate(timeout=10)[0]
            return printed.decode(errors="replace"), process.returncode
        except subprocess.TimeoutExpired as error:
            printed = error.output or b""
        # What it started has ten seconds to end after it.
        left = holders(process.stdout) if is_over else []
        is_over = process.poll() is not None
        if left:
            why = f"it ended with {process.returncode} and left processes that hold its output"
        elif time.monotonic() - begin > patience:
            left = descendants(process.pid)
            why = f"stopped after {patience:.0f} s"
        else:
            continue
        told = "".join(map(threads_of, left))
        send(signal.SIGKILL, left)
        with contextlib.suppress(subprocess.TimeoutExpired):
            printed = process.communicate(timeout=10)[0]
        return f"{printed.decode(errors='replace')}\n{why}. What they did then:\n{told}", 124


def holders(stream: IO[bytes] | None) -> list[int]:
    """The other processes that have the far end of a pipe open."""
    if stream is None or stream.closed:
        return []
    pipe = os.readlink(f"/proc/self/fd/{stream.fileno()}")
    found = set()
    for fd in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):
            if os.readlink(fd) == pipe:
                found.add(int(fd.parts[2]))
    return sorted(found - {os.getpid()})


def descendants(pid: int) -> list[int]:
    """A process and all that came of it and lives."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            # The name before it may hold anything but ends with the last parenthesis.
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(stat.parent.name))
    found = [pid]
    for member in found:
        found += children.get(member, [])
    return found


def threads_of(pid: int) -> str:
    """A process's command, and for each of its threads its name, its state, and where in the kernel it waits."""
    lines = []
    with contextlib.suppress(OSError):
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        lines.append(f"  {pid} {command}\n")
        for task in sorted(Path(f"/proc/{pid}/task").iterdir()):
            with contextlib.suppress(OSError):
                name, _, rest = (task / "stat").read_text(errors="replace").partition("(")[2].rpartition(")")
                lines.append(f"    {name}: {rest.split()[0]} in {(task / 'wchan').read_text()}, call {(task / 'syscall').read_text()}")
    return "".join(lines)
