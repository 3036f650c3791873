"""Copying the best configuration of the task before, and plateaus."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.analysis.copying import copying_regrets, shares_near_best


def test_regrets_computed_by_hand():
    # Three configurations (rows) on three tasks. The first is the best on task 0 and loses 4 on
    # task 1, the second is the best there and loses 8 on task 2; both tasks have the median 2.
    losses = np.array([[0.0, 4.0, 0.0], [1.0, 0.0, 8.0], [2.0, 2.0, 2.0]])
    assert copying_regrets(losses).tolist() == [(4 - 0) / (2 - 0), (8 - 0) / (2 - 0)]

    best = np.array([0.0, -2.0, 1.0])
    regrets = copying_regrets(losses, best=best)
    assert regrets.tolist() == [(4 + 2) / (2 + 2), (8 - 1) / (2 - 1)]


def test_constant_tasks_have_no_regret():
    assert np.isnan(copying_regrets(np.ones((3, 2)))).all()


@given(seed=st.integers(0, 99), factor=st.floats(0.1, 10), shift=st.floats(-5, 5))
def test_scale_of_task_does_not_matter(seed, factor, shift):
    losses = np.random.default_rng(seed).normal(size=(9, 4))
    scaled = losses.copy()
    scaled[:, 2] = scaled[:, 2] * factor + shift
    assert copying_regrets(scaled) == pytest.approx(copying_regrets(losses), abs=1e-9)


@given(seed=st.integers(0, 99))
def test_repeated_task_leaves_no_regret(seed):
    losses = np.random.default_rng(seed).normal(size=(9, 1))
    assert copying_regrets(np.repeat(losses, 3, axis=1)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("losses", "best", "share"),
    [
        ([0.0, 0.5, 0.51, 10.0, 10.0, 10.0, 99.0], None, 2 / 7),  # the median is 10
        ([7.0, 7.0, 7.0, 9.0], None, 3 / 4),  # the median is the best
        ([1.0, 2.0, 20.0, 20.0, 20.0], np.array([0.0]), 1 / 5),  # within 1
    ],
)
def test_near_is_within_five_percent(losses, best, share):
    np.testing.assert_allclose(shares_near_best(np.array(losses)[:, None], best=best), [share])
