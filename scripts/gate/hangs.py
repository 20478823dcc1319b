"""Runs a command that may hang: it is stopped after a while, and what it waited for is told."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path


def ended(command: list[str], folder: Path, environment: dict[str, str], patience: float) -> tuple[str, int]:
    """Returns what a command printed and its exit status, or after `patience` seconds 124 and what each of its processes did."""
    try:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except OSError as error:
        return f"it does not start: {error}\n", 127
    with process:
        try:
            printed = process.communicate(timeout=patience)[0]
            return printed.decode(errors="replace"), process.returncode
        except subprocess.TimeoutExpired:
            processes = family(process.pid)
            told = "".join(map(doing, processes))
            for pid in processes:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            try:
                printed = process.communicate(timeout=10)[0]
            except subprocess.TimeoutExpired as error:
                # What left the family still holds the pipe.
                printed = error.output or b""
            return f"{printed.decode(errors='replace')}\nstopped after {patience:.0f} s. What it did then:\n{told}", 124


def family(pid: int) -> list[int]:
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


def doing(pid: int) -> str:
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
