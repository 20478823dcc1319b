"""A sweep by threads, on a Ray cluster of two nodes on this machine, by threads again, and on such a cluster with a node
killed in the middle.

Prints whether all tables have the same bytes, and how long each took. The cluster is compared with the mean of the
two sweeps by threads, before and after it, so that what else the machine does meets both alike. The time of the
processor, of all of Ray's processes together, does not depend on what else runs. Starting the cluster and its
workers is not in the times. Needs Ray, and Linux.

    python bench/ray_cluster.py [RUNS [SECONDS]]
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import brakelight as bl
import ray
from ray.cluster_utils import Cluster


class Spent(NamedTuple):
    """What a sweep took, in seconds."""

    wall: float
    processor: float


def processor_s() -> float:
    """Return the time of the processor that this process and all below it have had, those that ended included."""
    parents, times = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # After the name, which ends with the last parenthesis: the parent is the second number, times are the 12th to 15th.
            fields = path.read_text().rpartition(")")[2].split()
            number = int(path.parent.name)
            parents[number], times[number] = int(fields[1]), sum(map(int, fields[11:15]))

    def below(number: int) -> bool:
        while number not in (0, os.getpid()):
            number = parents.get(number, 0)
        return number != 0

    return sum(time for number, time in times.items() if below(number)) / os.sysconf("SC_CLK_TCK")


class Grid:
    """A sweep, and where its tables are."""

    def __init__(self, runs: int, seconds: int, folder: Path) -> None:
        axes = {"scheme": ["abc", "cubic"], "trace": ["lte-driving"], "duration": [f"{seconds}s"], "rtt": ["20ms", "100ms"]}
        self.grid: dict[str, Any] = {"axes": axes, "runs": runs // 4}
        self.folder = folder

    def sweep(self, name: str, **arguments: Any) -> Spent:
        """Run it into a folder of this name, and return what it took."""
        begin, used = time.perf_counter(), processor_s()
        bl.sweep(self.grid, out=self.folder / name, progress=False, **arguments)
        return Spent(time.perf_counter() - begin, processor_s() - used)

    def same(self, name: str) -> str:
        """Say whether all tables are those of the first sweep; end with 1 if not."""
        first, other = self.folder / "first", self.folder / name
        names = [path.name for path in first.iterdir() if path.is_file()]
        if all((first / file).read_bytes() == (other / file).read_bytes() for file in names):
            return f"{len(names)} files, the same bytes"
        sys.exit("the tables differ")


@contextmanager
def cluster(folder: Path) -> Iterator[tuple[Cluster, Any]]:
    """Start a cluster of two nodes with a core each, and their workers; give it, and the node that can be killed."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    other = made.add_node(num_cpus=1)
    ray.init(address=made.address, log_to_driver=False)
    # Ray starts its workers at their first task.
    warm = {"axes": {"scheme": "cubic", "trace": "step", "duration": "1s"}, "runs": 8}
    with tempfile.TemporaryDirectory(dir=folder) as out:
        bl.sweep(warm, out=Path(out) / "warm", engine="ray", shards=8, progress=False)
    try:
        yield made, other
    finally:
        ray.shutdown()
        made.shutdown()


def main(runs: int, seconds: int) -> None:
    """Measure, and print."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        grid = Grid(runs, seconds, folder)
        before = grid.sweep("first")
        print(f"load averages: {', '.join(f'{each:.1f}' for each in os.getloadavg())}, on {os.cpu_count()} processors")
        print(f"threads: {runs} runs of {seconds} s in {before.wall:.1f} s, {before.processor:.1f} s of the processor", flush=True)
        shards = max(16, round(before.processor / 4))

        with cluster(folder):
            whole = grid.sweep("whole", engine="ray", shards=shards)
        print(f"ray: {shards} shards in {whole.wall:.1f} s, {whole.processor:.1f} s of the processor; {grid.same('whole')}", flush=True)

        after = grid.sweep("second")
        print(f"threads again: {after.wall:.1f} s, {after.processor:.1f} s of the processor", flush=True)
        wall = (before.wall + after.wall) / 2 / whole.wall
        processor = (before.processor + after.processor) / 2 / whole.processor
        print(f"efficiency of ray: {wall:.2f} by the wall, {processor:.2f} by the processor", flush=True)

        with cluster(folder) as (made, other):

            def kill() -> None:
                while len(list((folder / "killed" / "parts").glob("*-of-*[0-9]"))) < shards // 3:
                    time.sleep(0.1)
                made.remove_node(other, allow_graceful=False)
                print(f"one of the two nodes is killed after {shards // 3} shards", flush=True)

            killer = threading.Thread(target=kill)
            killer.start()
            killed = grid.sweep("killed", engine="ray", shards=shards)
            killer.join()
        print(f"ray with a node killed: {killed.wall:.1f} s; {grid.same('killed')}")


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *(1000, 20)[len(given) :])
