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
from statistics import median

import numpy as np

import hpobench_ordered as hbo
from hpobench_ordered.experiment.runner import setting_of, training_data
from hpobench_ordered.protocols import Assignment
from hpobench_ordered.registry import method_spec
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.testing.toy import random_history

BENCHMARK, WITH_DATA = "xgboost-mnist", "distbo-toy"
EARLIER, SUGGESTIONS = 5, 25
COUNTS = (25, 200, 1000)
RUNS, FEWEST, COMPILING = 5, 3, 5
MORE = "more"  # than the limit
LOOK = 0.5  # seconds between two looks at how long a run has taken


def spent(name: str, count: int, *, seed: int, limit: float, trials: int) -> list[float]:
    """Seconds of every suggestion of one run after so many evaluations, up to a limit in all."""
    spec, rng = method_spec(name), np.random.default_rng(seed)
    benchmark = hbo.load(WITH_DATA if spec.uses_data else BENCHMARK)
    *earlier, task = benchmark.tasks[-EARLIER - 1 :]
    history = random_history(earlier, seed=seed, evaluations=count // EARLIER)
    assignment = Assignment(spec, task, history if spec.uses_history else (), SUGGESTIONS)
    setting = setting_of(assignment, training_data(benchmark, assignment))
    seconds, start = list[float](), time.process_time()

    def look(*_: object) -> None:
        if time.process_time() > start + limit:
            raise TimeoutError

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, LOOK, LOOK)
    try:
        method = spec.method(rng=rng, **setting)
        made = time.process_time() - start
        if not spec.uses_history:
            (own,) = random_history([task], seed=seed, evaluations=count)
            for config, loss in zip(task.space.configs(own.values), own.losses, strict=True):
                method.tell(config, loss)
        for _ in range(trials):
            before = time.process_time()
            config = method.ask()
            asked = time.process_time()
            loss = task.objective.loss(task.evaluate(config))
            told = time.process_time()
            method.tell(config, loss)
            seconds.append(made + asked - before + time.process_time() - told)
            made = 0.0
    except TimeoutError:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return seconds


def measured(name: str, count: int, limit: float) -> tuple[float, float]:
    """Seconds of the first suggestion, and of a later one; inf where they are too many."""
    setting, runs = {"limit": limit, "trials": SUGGESTIONS}, list[list[float]]()
    spent(name, count, seed=0, limit=math.inf, trials=COMPILING)
    start = time.process_time()
    while not runs or (len(runs) < RUNS and time.process_time() - start < limit / 4):
        runs.append(spent(name, count, seed=1 + len(runs), **setting))
    first = median(run[0] if run else math.inf for run in runs)
    return first, median(np.mean(run[1:]) if len(run) >= FEWEST else math.inf for run in runs)


def main(asked: argparse.Namespace) -> None:
    """Measure, and print the table row by row."""
    print("| milliseconds | " + " | ".join(map(str, COUNTS)) + " | first |\n|---|" + "--:|" * 4)
    with one_thread():
        for name in asked.method or hbo.list_methods():
            method_spec(name).check_installed()
            cells, first = list[str](), 0.0
            for count in COUNTS:
                if MORE in cells:
                    cells.append("")
                    continue
                first, later = measured(name, count, asked.limit)
                cells.append(f"{1e3 * later:.3g}" if later < math.inf else MORE)
            cells.append(f"{1e3 * first:.3g}" if first < math.inf else MORE)
            print(f"| [`{name}`](methods/{name}.md) | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    choices = {"choices": hbo.list_methods(), "metavar": "NAME"}
    parser.add_argument("--method", action="append", help="only some methods", **choices)
    parser.add_argument("--limit", type=float, default=8.0, metavar="S", help="seconds of a run")
    main(parser.parse_args())
