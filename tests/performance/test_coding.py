"""Speed of coding whole arrays, as ratios to one by one in the same run."""

import time
from collections.abc import Callable

import numpy as np
import pytest

from hpobench_ordered import SearchSpace, load
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods.random_search import RandomSearch

CANDIDATES = 1000
BENCHMARK_WITH_CONDITIONS = "yahpo-svm-1220"
"""A benchmark with conditional hyperparameters."""
BENCHMARK_WITH_LOG_INTEGERS = "retrain-bike-sharing-mlp"
"""A benchmark with integers on a logarithmic scale."""


def measure_seconds(function: Callable[[], object], *, calls: int) -> float:
    """Measure the CPU seconds of a call: the least of 30 means, as other processes only slow down.

    Args:
        function: What is called.
        calls: Number of calls in each mean.
    """
    function()  # the first call is not timed, as it may compile or fill a cache
    seconds_of_call = []
    for _ in range(30):
        start = time.process_time()
        for _ in range(calls):
            function()
        seconds_of_call.append((time.process_time() - start) / calls)
    return min(seconds_of_call)


def snap_by_column(space: SearchSpace, unit: FloatArray) -> FloatArray:
    """Move discrete hyperparameters to the middle of their bins, one after the other."""
    unit = unit.copy()
    for column, parameter in enumerate(space.parameters):
        if parameter.is_discrete:
            unit[:, column] = parameter.encode(parameter.decode(unit[:, column]))
    return unit


def test_snapping_arrays_halves_time():
    """`canonical` moves all hyperparameters to the middle of their bins together."""
    space = load(BENCHMARK_WITH_LOG_INTEGERS).space
    drawn = np.random.default_rng(0).random((CANDIDATES, space.dimension))

    together = measure_seconds(lambda: space.canonical(drawn), calls=10)
    by_column = measure_seconds(lambda: snap_by_column(space, drawn), calls=10)

    assert together < 0.5 * by_column


@pytest.mark.parametrize("name", [BENCHMARK_WITH_CONDITIONS, BENCHMARK_WITH_LOG_INTEGERS])
def test_random_search_is_faster_than_single_draws(name):
    """Random search draws in blocks, which takes less than a quarter of single draws' time."""
    space = load(name).space
    rng = np.random.default_rng(0)
    method = RandomSearch(space=space, rng=rng, history=(), context={}, budget=25)

    in_blocks = measure_seconds(method.ask, calls=100)
    one_by_one = measure_seconds(lambda: space.sample(rng), calls=100)

    assert in_blocks < 0.25 * one_by_one
