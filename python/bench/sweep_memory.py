"""The memory of the process that calls a sweep with an engine, while joblib's workers run it.

Prints the caller's resident memory and how much lies in the folder, every half a minute and at the end. Runs are of a
tenth of a second of one flow, so that rows come as fast as they can. Needs joblib, Linux, and 4.5 kB of disk for each run.

    python bench/sweep_memory.py [RUNS [WORKERS]]
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import brakelight as bl

EVERY_S = 30.0


def status_mb(field: str) -> float:
    """Return one of this process's sizes in /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith(field + ":"))


def size_gb(folder: Path) -> float:
    """Return what the files of a folder take."""
    size = 0
    for path in folder.rglob("*"):
        # What is written in a new file's place may have moved meanwhile.
        with suppress(FileNotFoundError):
            size += path.stat().st_size
    return size / 1e9


def main(runs: int, workers: int) -> None:
    """Measure, and print."""
    axes = {"scheme": ["cubic", "abc"], "trace": ["step"], "duration": ["100ms"], "rtt": ["20ms"]}
    grid: dict[str, Any] = {"axes": axes, "runs": runs // 2}
    begin, ended = time.perf_counter(), threading.Event()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "sweep"

        def tell() -> None:
            parts = len(list((folder / "parts").glob("*-of-*[0-9]")))
            now, peak = status_mb("VmRSS"), status_mb("VmHWM")
            print(f"{time.perf_counter() - begin:6.0f} s: {now:6.1f} MB, at most {peak:6.1f}; {parts} parts, {size_gb(folder):5.2f} GB", flush=True)

        def watch() -> None:
            while not ended.wait(EVERY_S):
                tell()

        print(f"before: {status_mb('VmRSS'):.1f} MB", flush=True)
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            bl.sweep(grid, out=folder, engine="joblib", options={"n_jobs": workers}, force=True, progress=False)
        finally:
            ended.set()
            watcher.join()
        tell()
        for path in sorted(path for path in folder.iterdir() if path.is_file()):
            print(f"{path.stat().st_size / 1e9:8.3f} GB  {path.name}")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *(1_000_000, os.cpu_count() or 1)[len(given) :])
