"""A sweep by threads, on a Ray cluster of two nodes on this machine, and again there with a node killed in the middle.

Prints whether all tables have the same bytes, and how long each took. Needs Ray.

    python bench/ray_cluster.py [RUNS]
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import brakelight as bl
import ray
from ray.cluster_utils import Cluster


def main(runs: int) -> None:
    """Measure, and print."""
    grid: dict[str, Any] = {
        "axes": {"scheme": ["abc", "cubic"], "trace": ["lte-driving"], "duration": ["5s"], "rtt": ["20ms", "100ms"]},
        "runs": runs // 4,
    }
    with tempfile.TemporaryDirectory() as folder:
        here, whole, killed = Path(folder) / "local", Path(folder) / "whole", Path(folder) / "killed"
        begin = time.perf_counter()
        bl.sweep(grid, out=here)
        local_s = time.perf_counter() - begin
        print(f"load averages: {', '.join(f'{each:.1f}' for each in os.getloadavg())}, on {os.cpu_count()} processors")
        print(f"local: {runs} runs in {local_s:.1f} s", flush=True)
        names = [path.name for path in here.iterdir() if path.is_file()]

        def same(there: Path) -> str:
            """Say whether all tables are those of the local sweep; end with 1 if not."""
            if all((here / name).read_bytes() == (there / name).read_bytes() for name in names):
                return f"{len(names)} files, the same bytes"
            sys.exit("the tables differ")

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        lost = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address)
        shards = max(16, round(local_s / 4))
        # Ray starts its workers at their first task.
        bl.sweep({**grid, "runs": 2}, out=Path(folder) / "first", engine="ray", shards=4)

        begin = time.perf_counter()
        bl.sweep(grid, out=whole, engine="ray", shards=shards)
        ray_s = time.perf_counter() - begin
        print(f"ray: {ray_s:.1f} s, {shards} shards, efficiency {local_s / ray_s:.2f}; {same(whole)}", flush=True)

        def kill() -> None:
            while len(list((killed / "parts").glob("*-of-*[0-9]"))) < shards // 3:
                time.sleep(0.1)
            print("a node is killed, another is added", flush=True)
            cluster.remove_node(lost, allow_graceful=False)
            cluster.add_node(num_cpus=1)

        killer = threading.Thread(target=kill)
        begin = time.perf_counter()
        killer.start()
        bl.sweep(grid, out=killed, engine="ray", shards=shards)
        ray_s = time.perf_counter() - begin
        killer.join()
        print(f"ray with a node killed: {ray_s:.1f} s; {same(killed)}")
        ray.shutdown()
        cluster.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
