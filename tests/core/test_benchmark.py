"""What a benchmark gives as history: recorded evaluations, or random ones."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered import Evaluations
from hpobench_ordered.core.benchmark import HISTORY_SIZE


@pytest.fixture(scope="module")
def plain():
    return hbo.load("newsvendor")


@pytest.fixture(scope="module")
def recorded(plain):
    """Newsvendor with 30 evaluations recorded for each task."""
    rng = np.random.default_rng(0)
    whole = tuple(plain.evaluations(t, rng=rng, n=30) for t in range(len(plain.tasks)))
    return replace(plain, recorded=lambda: whole)


def test_recorded_evaluations_come_whole_and_random_ones_are_losses(recorded, plain):
    whole = recorded.recorded()[2]
    for n in (None, 30, 1000):
        assert recorded.evaluations(2, rng=np.random.default_rng(0), n=n) is whole
    evaluations = plain.evaluations(4, rng=np.random.default_rng(1))
    assert (len(evaluations), evaluations.task) == (HISTORY_SIZE, "4")
    # The objective is maximised, losses are not.
    assert np.array_equal(-evaluations.losses, plain.tasks[4].evaluate_many(evaluations.values))
    few = replace(plain, history_size=7)
    assert len(few.evaluations(0, rng=np.random.default_rng(0))) == 7
    again = plain.evaluations(4, rng=np.random.default_rng(1))
    assert np.array_equal(evaluations.values, again.values)
    other = plain.evaluations(4, rng=np.random.default_rng(2))
    assert not np.array_equal(evaluations.values, other.values)


@given(n=st.integers(0, 29), seed=st.integers(0, 99))
def test_a_part_of_the_recorded_ones_is_chosen_by_seed(recorded, n, seed):
    whole: Evaluations = recorded.recorded()[1]
    part = recorded.evaluations(1, rng=np.random.default_rng(seed), n=n)
    again = recorded.evaluations(1, rng=np.random.default_rng(seed), n=n)
    assert np.array_equal(part.values, again.values)
    assert len(part) == n
    rows = [row.tobytes() for row in whole.values]
    places = [
        next(i for i, row in enumerate(rows) if row == v.tobytes() and whole.losses[i] == loss)
        for v, loss in zip(part.values, part.losses, strict=True)
    ]
    assert places == sorted(places)
