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
from hpobench_ordered.data.benchmark import Task
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.testing.toy import construct_method, random_history, toy_benchmark

TASKS = 100
EVALUATIONS = 1000
SUGGESTIONS = 10
"""More than any method has initial trials, so that some are suggested by its model."""
MOST_SECONDS = 10.0  # for the first suggestion, construction included, and for each later one
MOST_MEBIBYTES = 2048
SPACE = SearchSpace([Parameter.number(name, 0, 1) for name in "abcd"])


def read_peak_mebibytes() -> float:
    """Read the most memory that this process ever had resident, in MiB.

    On Linux not by `getrusage`, whose figure a new process inherits from the one that starts it.
    """
    if sys.platform == "linux":
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):  # as in "VmHWM:    123456 kB"
                _, kibibytes, _ = line.split()
                return int(kibibytes) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def time_suggestions(name: str, task: Task, history: tuple[Evaluations, ...]) -> list[float]:
    """Run a method on a task; returns the seconds of each suggestion.

    The first includes the construction of the method, the others that it is told the last loss.
    """
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


def measure_method(name: str) -> tuple[float, float, float]:
    """Measure a method with the long history, after a run with a short one.

    Returns:
        Seconds until the first suggestion, seconds of the slowest later one, and MiB that the peak
        of memory grew by.
    """
    *earlier, task = toy_benchmark(SPACE, tasks=TASKS + 1).tasks
    short_history = random_history(earlier[-3:], seed=1)
    long_history = random_history(earlier, seed=0, evaluations=EVALUATIONS)
    with one_thread():
        time_suggestions(name, task, short_history)
        peak_before = read_peak_mebibytes()
        first, *later = time_suggestions(name, task, long_history)
    return first, max(later), read_peak_mebibytes() - peak_before


@pytest.mark.parametrize("name", hbo.list_methods())
def test_long_history_takes_limited_time_and_memory(name):
    """A hundred tasks of a thousand evaluations each, in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        first, slowest_later, mebibytes = pool.submit(measure_method, name).result()

    milliseconds = 1e3 * slowest_later
    print(f"\n{name}: {first:.2f} s, then at most {milliseconds:.1f} ms; {mebibytes:.0f} MiB")
    assert first < MOST_SECONDS
    assert slowest_later < MOST_SECONDS
    assert mebibytes < MOST_MEBIBYTES
