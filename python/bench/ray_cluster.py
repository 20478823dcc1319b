"""A sweep on a Ray cluster of two nodes on this machine, one of which is killed in the middle; then the same by threads.

Prints whether all tables have the same bytes, and how long each took. Needs Ray.

    python bench/ray_cluster.py [RUNS]
"""

from __future__ import annotations

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
        here, there = Path(folder) / "local", Path(folder) / "ray"
        begin = time.perf_counter()
        bl.sweep(grid, out=here)
        local_s = time.perf_counter() - begin
        print(f"local: {runs} runs in {local_s:.1f} s")

        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        lost = cluster.add_node(num_cpus=1)
        ray.init(address=cluster.address)
        shards = max(16, round(local_s))

        def kill() -> None:
            while len(list((there / "parts").glob("*-of-*[0-9]"))) < shards // 3:
                time.sleep(0.1)
            print("a node is killed, another is added")
            cluster.remove_node(lost, allow_graceful=False)
            cluster.add_node(num_cpus=1)

        killer = threading.Thread(target=kill)
        begin = time.perf_counter()
        killer.start()
        bl.sweep(grid, out=there, engine="ray", shards=shards)
        ray_s = time.perf_counter() - begin
        killer.join()
        names = [path.name for path in here.iterdir() if path.is_file()]
        same = all((here / name).read_bytes() == (there / name).read_bytes() for name in names)
        print(f"ray: {ray_s:.1f} s, {shards} shards; {len(names)} files, {'the same bytes' if same else 'DIFFERENT'}")
        ray.shutdown()
        cluster.shutdown()
        if not same:
            sys.exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
