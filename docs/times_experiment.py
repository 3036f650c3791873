"""Time of a suggestion by every method after more and more evaluations, as a table.

The history is random evaluations, equally many of each of the five tasks before the last one, which
is optimised. Methods that look at no history have been told as many evaluations of that task
itself. A figure is the CPU time of 25 suggestions and their results, with all that the method does
when it is made, divided by 25; the median of some runs, after one that is not counted. The growth
is b where the time grows as n^b from the second number of evaluations to the last one.

    python docs/times_experiment.py --method bo --method simple-ordered

Without `--method` all methods are measured. One that took longer than `--limit` seconds a
suggestion is not measured with more evaluations.
"""

import argparse
import math
import os
import time
from statistics import median

import numpy as np
from rich.progress import track

import hpobench_ordered as hbo
from hpobench_ordered.experiment.runner import setting_of, training_data
from hpobench_ordered.protocols import Assignment
from hpobench_ordered.registry import method_spec
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.testing.toy import random_history

BENCHMARK = "xgboost-mnist"
WITH_DATA = "distbo-toy"
EARLIER = 5
COUNTS = (25, 200, 1000)
SUGGESTIONS = 25


def seconds(name: str, count: int, seed: int) -> float:
    """Seconds a suggestion of one run with so many evaluations."""
    spec, rng = method_spec(name), np.random.default_rng(seed)
    benchmark = hbo.load(WITH_DATA if spec.uses_data else BENCHMARK)
    *earlier, task = benchmark.tasks[-EARLIER - 1 :]
    history = random_history(earlier, seed=seed, evaluations=count // EARLIER)
    assignment = Assignment(spec, task, history if spec.uses_history else (), SUGGESTIONS)
    setting = setting_of(assignment, training_data(benchmark, assignment))
    start = time.process_time()
    method = spec.method(rng=rng, **setting)
    if not spec.uses_history:
        (own,) = random_history([task], seed=seed, evaluations=count)
        for config, loss in zip(task.space.configs(own.values), own.losses, strict=True):
            method.tell(config, loss)
        start = time.process_time()
    evaluating = 0.0
    for _ in range(SUGGESTIONS):
        config, asked = method.ask(), time.process_time()
        loss = task.objective.loss(task.evaluate(config))
        evaluating += time.process_time() - asked
        method.tell(config, loss)
    return (time.process_time() - start - evaluating) / SUGGESTIONS


def measured(name: str, *, runs: int, limit: float) -> list[float]:
    """Seconds a suggestion for each of `COUNTS`, NaN where they are too many."""
    medians = list[float]()
    for count in COUNTS:
        if medians and not medians[-1] <= limit:
            medians.append(math.nan)
            continue
        medians.append(median([seconds(name, count, seed) for seed in range(runs + 1)][1:]))
    return medians


def row(name: str, medians: list[float]) -> str:
    """Line of the table."""
    growth = math.log(medians[2] / medians[1]) / math.log(COUNTS[2] / COUNTS[1])
    cells = ["-" if math.isnan(x) else f"{1e3 * x:.3g}" for x in medians]
    cells.append("-" if math.isnan(growth) else f"{growth:.1f}")
    return f"| [`{name}`](methods/{name}.md) | " + " | ".join(cells) + " |"


def main(asked: argparse.Namespace) -> None:
    """Measure, and print the table, the slowest method last."""
    before, table = os.getloadavg()[0], dict[str, list[float]]()
    with one_thread():
        for name in track(asked.method or hbo.list_methods()):
            method_spec(name).check_installed()
            table[name] = measured(name, runs=asked.runs, limit=asked.limit)
    heads = [f"{count} evaluations" for count in COUNTS]
    print(f"Load of {os.cpu_count()} cores: {before:.1f} before, {os.getloadavg()[0]:.1f} after\n")
    print(f"| milliseconds | {' | '.join(heads)} | growth |\n|---|" + "--:|" * (len(heads) + 1))
    for name in sorted(table, key=lambda name: table[name][0]):
        print(row(name, table[name]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    choices = {"choices": hbo.list_methods(), "metavar": "NAME"}
    parser.add_argument("--method", action="append", help="only some methods", **choices)
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs that count")
    parser.add_argument("--limit", type=float, default=10.0, metavar="S", help="seconds")
    main(parser.parse_args())
