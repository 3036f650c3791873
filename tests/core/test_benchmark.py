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


@pytest.mark.parametrize("n", [None, 30, 1000])
def test_all_recorded_evaluations_are_history(recorded, n):
    history = recorded.evaluations(2, rng=np.random.default_rng(0), n=n)
    assert history is recorded.recorded()[2]


def test_random_evaluations_are_history_by_default(plain):
    history = plain.evaluations(4, rng=np.random.default_rng(1))
    assert (len(history), history.task) == (HISTORY_SIZE, "4")


def test_losses_of_maximised_objective_are_negative(plain):
    history = plain.evaluations(4, rng=np.random.default_rng(1))
    assert np.array_equal(-history.losses, plain.tasks[4].evaluate_many(history.values))


def test_history_size_is_the_default_number(plain):
    small = replace(plain, history_size=7)
    assert len(small.evaluations(0, rng=np.random.default_rng(0))) == 7


def test_random_evaluations_depend_on_seed_alone(plain):
    values = plain.evaluations(4, rng=np.random.default_rng(1)).values
    again = plain.evaluations(4, rng=np.random.default_rng(1)).values
    other = plain.evaluations(4, rng=np.random.default_rng(2)).values
    assert np.array_equal(values, again)
    assert not np.array_equal(values, other)


def test_loaded_benchmark_knows_its_source(plain):
    assert (plain.source, plain.identity) == ("newsvendor@1", "newsvendor@1")


def test_changed_benchmark_has_no_source():
    changed = replace(hbo.load("newsvendor"), history_size=7)
    assert (changed.source, changed.identity) == ("", "")


@given(n=st.integers(0, 29), seed=st.integers(0, 99))
def test_seed_chooses_part_of_recorded(recorded, n, seed):
    part = recorded.evaluations(1, rng=np.random.default_rng(seed), n=n)
    again = recorded.evaluations(1, rng=np.random.default_rng(seed), n=n)
    assert len(part) == n
    assert np.array_equal(part.values, again.values)


@given(n=st.integers(0, 29), seed=st.integers(0, 99))
def test_part_of_recorded_keeps_their_order(recorded, n, seed):
    whole: Evaluations = recorded.recorded()[1]
    part = recorded.evaluations(1, rng=np.random.default_rng(seed), n=n)
    row_of_evaluation = {}
    for row, (values, loss) in enumerate(zip(whole.values, whole.losses, strict=True)):
        row_of_evaluation.setdefault((values.tobytes(), loss), row)
    rows = [
        row_of_evaluation[values.tobytes(), loss]
        for values, loss in zip(part.values, part.losses, strict=True)
    ]
    assert rows == sorted(rows)
