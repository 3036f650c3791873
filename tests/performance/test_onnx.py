"""Evaluations a second on YAHPO's networks: one at a time by dict, and in batches of 1000."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from yahpo_files import defined_network

from hpobench_ordered.benchmarks.yahpo import FRACTIONS
from hpobench_ordered.core.benchmark import Benchmark

AT_LEAST = {"rpart": (6000, 60_000), "xgboost": (3500, 60_000)}
"""Evaluations a second, one at a time and batched. The network of xgboost has 800 000 weights: one
evaluation spends 0.17 ms of its 0.23 ms on reading them, whoever multiplies."""
BATCH = 1000
SINGLES = 20
ROUNDS = 60


def rate(work: Callable[[], object], evaluations: int) -> float:
    """Evaluations a second, the best of several rounds: other processes only slow down."""
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return evaluations / min(times)


@pytest.mark.parametrize("scenario", AT_LEAST)
def test_evaluations_a_second(shared, scenario, record_property):
    defined, model = defined_network(shared, scenario)
    options = {"surrogate": "onnx", "model": model, "best_values": [None] * len(FRACTIONS)}
    task = Benchmark.build(defined, **options).tasks[9]
    space = task.space
    values = space.decode(space.sample_unit(np.random.default_rng(0), BATCH))
    configs = space.configs(values[:SINGLES])
    singles = rate(lambda: [task.evaluate(config) for config in configs], SINGLES)
    batched = rate(lambda: task.evaluate_many(values), BATCH)
    record_property("one at a time", singles)
    record_property("batched", batched)
    print(f"{scenario}: {singles:.0f}/s one at a time, {batched:.0f}/s in batches of {BATCH}")
    assert singles >= AT_LEAST[scenario][0]
    assert batched >= AT_LEAST[scenario][1]
