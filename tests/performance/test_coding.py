"""Speed of coding whole arrays, as ratios to one by one in the same run."""

import time
from collections.abc import Callable

import numpy as np
import pytest

from hpobench_ordered import SearchSpace, load
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods.random_search import RandomSearch

CANDIDATES = 1000
CONDITIONAL, LOG_INTEGERS = "yahpo-svm-1220", "retrain-bike-sharing-mlp"


def seconds(function: Callable[[], object], *, times: int) -> float:
    """Least CPU time of a call: what is slower was disturbed."""
    function()
    measured = []
    for _ in range(30):
        start = time.process_time()
        for _ in range(times):
            function()
        measured.append((time.process_time() - start) / times)
    return min(measured)


def canonical_by_column(space: SearchSpace, unit: FloatArray) -> FloatArray:
    """Snap discrete hyperparameters to the middle of their bins, one after the other."""
    unit = unit.copy()
    for j, p in enumerate(space.parameters):
        if p.is_discrete:
            unit[:, j] = p.encode(p.decode(unit[:, j]))
    return unit


def test_candidates_are_snapped_in_half_the_time_of_column_by_column():
    space = load(LOG_INTEGERS).space
    drawn = np.random.default_rng(0).random((CANDIDATES, space.dimension))
    whole = seconds(lambda: space.canonical(drawn), times=10)
    assert whole < 0.5 * seconds(lambda: canonical_by_column(space, drawn), times=10)


@pytest.mark.parametrize("name", [CONDITIONAL, LOG_INTEGERS])
def test_random_search_takes_a_fraction_of_drawing_one_by_one(name):
    space, rng = load(name).space, np.random.default_rng(0)
    method = RandomSearch(space=space, rng=rng, history=(), context={}, budget=25)
    in_blocks = seconds(method.ask, times=100)
    assert in_blocks < 0.25 * seconds(lambda: space.sample(rng), times=100)
