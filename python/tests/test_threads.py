"""Threads and processes: nothing waits for what waits for it. Each body runs in a process of its own, which may take long."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PATIENCE_S = 120.0
"""A process that has not ended by then hangs. None of these takes more than a few seconds."""


def alone(program: str) -> str:
    """Run a program in a process of its own, and return what it printed."""
    pipe = subprocess.PIPE
    # A group of its own, so that what it forked ends with it.
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=pipe, stderr=pipe, text=True, start_new_session=True
    ) as process:
        try:
            printed, said = process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            if os.name == "posix":
                os.killpg(process.pid, signal.SIGKILL)
            process.kill()
            pytest.fail("it hangs")
    assert process.returncode == 0, said
    return printed


SLOW = """
import threading, time
import brakelight as bl

class Slow(bl.Controller):
    def __init__(self, connection):
        super().__init__(connection)
        time.sleep(0.01)

class SlowQueue(bl.Queue):
    def __init__(self, place):
        super().__init__(place)
        time.sleep(0.01)

bl.register(Slow)
bl.register(SlowQueue)
"""


def test_two_threads_list_controllers_while_a_class_runs_python_in_its_constructor() -> None:
    program = SLOW + """
def many():
    for _ in range(20):
        assert any(each["name"] == "slow" for each in bl.controllers())
        bl.Scenario(link=[bl.Link("l", rate="1Mbps")], flow=[bl.Flow("f", controller="slow", rtt="40ms", path=["l"])])
threads = [threading.Thread(target=many, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done")
"""
    assert alone(program) == "done\n"


def test_a_constructor_may_list_controllers_register_and_run() -> None:
    program = """
import brakelight as bl
class Other(bl.Controller):
    pass
class Curious(bl.Controller):
    def __init__(self, connection):
        super().__init__(connection)
        assert any(each["name"] == "cubic" for each in bl.controllers())
        bl.register(Other)
print([row["scheme"] for row in bl.compare("step", Curious, duration="1s", runs=2).rows])
assert any(each["name"] == "curious" for each in bl.controllers())
"""
    assert alone(program) == "['curious']\n"


def test_a_class_that_is_taken_the_place_of_may_run_python_when_it_goes() -> None:
    program = """
import gc, weakref
import brakelight as bl
def make():
    class Again(bl.Controller):
        pass
    weakref.finalize(Again, bl.controllers)
    return Again
for _ in range(3):
    bl.register(make())
    gc.collect()
print("done")
"""
    assert alone(program) == "done\n"


def test_threads_compare_controllers_in_python_and_plan_grids_at_the_same_time() -> None:
    program = SLOW + """
def compare():
    bl.compare("step", ["slow", "cubic+slow-queue"], duration="2s", runs=3)
def sweep():
    for _ in range(3):
        bl.sweep({"axes": {"scheme": ["slow", "cubic+slow-queue"], "trace": "step", "duration": "1s"}})
def look():
    for _ in range(10):
        bl.traces(), bl.schemes(), bl.compare("step", "abc", duration="1s", runs=2, series=True).to_html()
threads = [threading.Thread(target=each, daemon=True) for each in (compare, sweep, look, compare)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done")
"""
    assert alone(program) == "done\n"


FORKED = """
import multiprocessing, warnings
import brakelight as bl
warnings.filterwarnings("ignore", message=".*fork.*")
def work(seed):
    return bl.compare("step", "abc,cubic", duration="1s", runs=4, seed=seed).rows
if __name__ == "__main__":
    before = work(1)
    with multiprocessing.get_context("{method}").Pool(2) as pool:
        assert pool.map(work, [1, 2, 1])[2] == before
    assert work(1) == before
    print("done")
"""


@pytest.mark.skipif(os.name != "posix", reason="there is no fork")
@pytest.mark.parametrize("method", ["fork", "forkserver", "spawn"])
def test_a_process_that_was_forked_after_a_comparison_compares(method: str, tmp_path: os.PathLike[str]) -> None:
    # `spawn` and `forkserver` import the program.
    file = os.path.join(tmp_path, "program.py")
    with open(file, "w", encoding="utf-8") as program:
        program.write(FORKED.replace("{method}", method))
    assert alone(f"import runpy; runpy.run_path({file!r}, run_name='__main__')") == "done\n"


@pytest.mark.skipif(os.name != "posix", reason="there is no fork")
def test_a_process_that_was_forked_steps_environments_and_sweeps() -> None:
    pytest.importorskip("gymnasium")
    program = """
import multiprocessing, warnings
import gymnasium, numpy as np
import brakelight as bl, brakelight.envs
warnings.filterwarnings("ignore", message=".*fork.*")
envs = gymnasium.make_vec("brakelight/CongestionControl-v0", num_envs=4)
def step(seed):
    envs.reset(seed=seed)
    return envs.step(np.zeros((4, 1)))[1].tolist()
def sweep(seed):
    return len(bl.sweep({"axes": {"scheme": "abc", "trace": "step", "duration": "1s"}, "runs": 8}))
before = step(3)
assert sweep(1) == 8
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(step, [3, 3, 3]) == [before] * 3
    assert pool.map(sweep, [1, 2]) == [8, 8]
print("done")
"""
    assert alone(program) == "done\n"
