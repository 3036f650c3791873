"""CPU time of a suggestion by every method after more and more evaluations, as a table.

The history is random evaluations, equally many of each of the five tasks before the last one, which
is optimised. Methods that look at no history have been told as many evaluations of that task
itself. A run makes 25 suggestions, or fewer where they take more than `--limit` seconds in all. A
figure is the mean time of a suggestion and of being told its result, without the first one, for
which many methods train on the history: that one has a column of its own, together with making the
method. A short run before is not counted, as code is compiled; quick runs are repeated, and the
median is taken.

    python docs/experiments/times.py --method bo --method simple-ordered
"""

import argparse
import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from statistics import median

import numpy as np

import hpobench_ordered as hbo
from hpobench_ordered.experiment.protocols import Assignment
from hpobench_ordered.experiment.runner import list_training_data, make_method_arguments
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.testing.toy import random_history

BENCHMARK = "xgboost-mnist"
WITH_DATA = "distbo-toy"  # for methods that use the training data of tasks
EARLIER = 5  # earlier tasks
SUGGESTIONS = 25  # of a run
COUNTS = (200, 1000)  # evaluations that a method has before
RUNS = 5  # repetitions at most
FEWEST = 3  # suggestions of a run whose mean counts
COMPILING = 5  # suggestions of the run before, which is not counted
MORE = "more"  # than the limit
CHECK_INTERVAL = 0.5  # seconds between two checks of how long a run has taken


def time_run(name: str, count: int, *, seed: int, limit: float, trials: int) -> list[float]:
    """Time every suggestion of one run.

    Args:
        name: The method.
        count: Number of evaluations that it has before.
        seed: Seed of the run.
        limit: Seconds that the whole run may take; it ends there.
        trials: Number of suggestions.

    Returns:
        CPU seconds of each suggestion and of being told its result; the first with making the
        method.
    """
    spec = method_spec(name)
    benchmark = hbo.load(WITH_DATA if spec.uses_data else BENCHMARK)
    *earlier, task = benchmark.tasks[-EARLIER - 1 :]
    history = random_history(earlier, seed=seed, evaluations=count // EARLIER)
    assignment = Assignment(spec, task, history if spec.uses_history else (), SUGGESTIONS)
    setting = make_method_arguments(assignment, list_training_data(benchmark, assignment))
    seconds: list[float] = []
    with suppress(TimeoutError), time_limit(limit):
        start = time.process_time()
        method = spec.method(rng=np.random.default_rng(seed), **setting)
        seconds_before = time.process_time() - start
        if not spec.uses_history:
            (own,) = random_history([task], seed=seed, evaluations=count)
            for config, loss in zip(task.space.configs(own.values), own.losses, strict=True):
                method.tell(config, loss)
        for _ in range(trials):
            ask_start = time.process_time()
            config = method.ask()
            ask_end = time.process_time()
            loss = task.objective.loss(task.evaluate(config))
            tell_start = time.process_time()
            method.tell(config, loss)
            tell_end = time.process_time()
            seconds.append(seconds_before + (ask_end - ask_start) + (tell_end - tell_start))
            seconds_before = 0.0
    return seconds


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise a TimeoutError in the block after so many seconds of CPU time."""
    end = time.process_time() + seconds

    def check_time(*_: object) -> None:
        if time.process_time() > end:
            raise TimeoutError

    signal.signal(signal.SIGALRM, check_time)
    signal.setitimer(signal.ITIMER_REAL, CHECK_INTERVAL, CHECK_INTERVAL)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def measure(name: str, count: int, limit: float) -> tuple[float, float]:
    """Seconds of the first suggestion, and of a later one; inf where they are too many.

    Args:
        name: The method.
        count: Number of evaluations that it has before.
        limit: Seconds that a run may take.
    """
    time_run(name, count, seed=0, limit=math.inf, trials=COMPILING)
    runs: list[list[float]] = []
    start = time.process_time()
    while not runs or (len(runs) < RUNS and time.process_time() - start < limit / 4):
        seed = 1 + len(runs)
        runs.append(time_run(name, count, seed=seed, limit=limit, trials=SUGGESTIONS))
    first = [run[0] if run else math.inf for run in runs]
    later = [float(np.mean(run[1:])) if len(run) >= FEWEST else math.inf for run in runs]
    return median(first), median(later)


def make_row(name: str, limit: float) -> str:
    """Measure a method, and make its row of the table.

    After more evaluations than those where it takes too long it is not measured.
    """
    method_spec(name).check_installed()
    cells: list[str] = []
    first = 0.0
    for count in COUNTS:
        if MORE in cells:
            cells.append("")
        else:
            first, later = measure(name, count, limit)
            cells.append(format_milliseconds(later))
    cells.append(format_milliseconds(first))
    return f"| [`{name}`](methods/{name}.md) | {' | '.join(cells)} |"


def format_milliseconds(seconds: float) -> str:
    """Seconds as milliseconds; inf as `MORE`."""
    return f"{1e3 * seconds:.3g}" if seconds < math.inf else MORE


def main(options: argparse.Namespace) -> None:
    """Measure, and print the table row by row."""
    counts = " | ".join(map(str, COUNTS))
    print(f"| milliseconds | {counts} | first |\n|---|{'--:|' * (len(COUNTS) + 1)}")
    with one_thread():
        for name in options.method or hbo.list_methods():
            print(make_row(name, options.limit), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    choices = {"choices": hbo.list_methods(), "metavar": "NAME"}
    parser.add_argument("--method", action="append", help="only some methods", **choices)
    parser.add_argument("--limit", type=float, default=8.0, metavar="S", help="seconds of a run")
    main(parser.parse_args())
