"""Time and memory of every method with a history far beyond the paper's; figures with `-s`.

Each method runs in a process of its own, after a run with a small history, so that what is loaded
or compiled once counts in neither figure.
"""

import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.core.benchmark import Task
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.registry import method_spec
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.testing.toy import construct_method, random_history, toy_benchmark

TASKS = 100
EVALUATIONS = 1000
SUGGESTIONS = 10  # beyond the initial trials of every method
SECONDS = 10.0  # for the first suggestion, construction included, and for each later one
MEBIBYTES = 2048
SPACE = SearchSpace([Parameter.number(name, 0, 1) for name in "abcd"])


def peak_mebibytes() -> float:
    """Most memory this process ever had resident.

    On Linux not by `getrusage`, whose figure a new process inherits from the one that starts it.
    """
    if sys.platform == "linux":
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) / 2**10 for line in lines if line.startswith("VmHWM:"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def run(name: str, task: Task, history: tuple[Evaluations, ...]) -> list[float]:
    """Seconds of each suggestion."""
    seconds = []
    start = time.perf_counter()
    method = construct_method(method_spec(name), task, history, np.random.default_rng(0))
    for _ in range(SUGGESTIONS):
        config = method.ask()
        seconds.append(time.perf_counter() - start)
        loss = task.evaluate(config)
        start = time.perf_counter()
        method.tell(config, loss)
    return seconds


def measure(name: str) -> tuple[float, float, float]:
    """Seconds until the first suggestion and of the slowest later one, MiB needed at the most."""
    *earlier, task = toy_benchmark(SPACE, tasks=TASKS + 1).tasks
    history = random_history(earlier, seed=0, evaluations=EVALUATIONS)
    with one_thread():
        run(name, task, random_history(earlier[-3:], seed=1))
        before = peak_mebibytes()
        first, *later = run(name, task, history)
    return first, max(later), peak_mebibytes() - before


@pytest.mark.parametrize("name", hbo.list_methods())
def test_a_hundred_tasks_of_a_thousand_evaluations(name):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        first, later, mebibytes = process.submit(measure, name).result()
    print(f"\n{name}: {first:.2f} s, then at most {later * 1e3:.1f} ms; {mebibytes:.0f} MiB")
    assert max(first, later) < SECONDS
    assert mebibytes < MEBIBYTES
