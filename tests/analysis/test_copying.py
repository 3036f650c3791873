"""Regrets of the best configuration of other tasks, and shares of configurations near the best."""

import numpy as np
import pytest

from hpobench_ordered.analysis.copying import (
    best_and_random_losses,
    compute_portfolio_regrets,
    copying_regrets,
    shares_near_best,
)
from hpobench_ordered.testing.toy import ShiftedQuadratics, numeric_space, toy_benchmark

LOSSES_ON_THREE_TASKS = np.array([[0.0, 4.0, 0.0], [1.0, 0.0, 8.0], [2.0, 2.0, 2.0]])
"""Three configurations (rows) on three tasks.

The first is the best on task 0 and has the loss 4 on task 1; the second is the best there and has
the loss 8 on task 2. Both these tasks have the median 2 and the lowest loss 0.
"""


def test_regrets_computed_by_hand():
    """A regret is (loss of the copied configuration - lowest) / (median - lowest).

    On the second and the third task, the copied configuration has the losses 4 and 8; the medians
    are 2 and the lowest losses 0.
    """
    regrets = copying_regrets(LOSSES_ON_THREE_TASKS)
    assert regrets.tolist() == [(4 - 0) / (2 - 0), (8 - 0) / (2 - 0)]


def test_regrets_are_relative_to_known_best():
    """A regret is (loss of the copied configuration - best) / (median - best).

    On the second and the third task, the copied configuration has the losses 4 and 8; the medians
    are 2 and the best known losses -2 and 1.
    """
    best_of_task = np.array([0.0, -2.0, 1.0])
    regrets = copying_regrets(LOSSES_ON_THREE_TASKS, best=best_of_task)
    assert regrets.tolist() == [(4 + 2) / (2 + 2), (8 - 1) / (2 - 1)]


def test_portfolio_is_best_on_other_tasks():
    """With the median 1 and the lowest loss 0 on every task, regrets are the losses.

    The second configuration is best on average on the last two tasks, the third one on the first
    and the last, and the first one on the first two.
    """
    losses = np.array(
        [
            [0.0, 1.0, 4.0],
            [2.0, 0.0, 1.0],
            [1.0, 4.0, 0.0],
        ]
    )
    regrets = compute_portfolio_regrets(losses)
    assert regrets.tolist() == [2.0, 4.0, 4.0]


def test_portfolio_ignores_tasks_without_regrets():
    """On the last task the median is the best loss; it is no task to judge or to learn from."""
    losses = np.array(
        [
            [0.0, 1.0, 9.0],
            [2.0, 0.0, 0.0],
            [1.0, 2.0, 0.0],
        ]
    )
    regrets = compute_portfolio_regrets(losses)
    np.testing.assert_array_equal(regrets, [2.0, 1.0, np.nan])


class MostlyFailing(ShiftedQuadratics):
    """Shifted quadratics that fail where their loss is above 0.05."""

    def predict(self, values, task):
        losses = super().predict(values, task)
        return np.where(losses > 0.05, np.nan, losses)


def test_failures_have_highest_finite_loss():
    """More than half of the configurations fail, so that their loss is also the median."""
    space = numeric_space()
    benchmark = toy_benchmark(space, tasks=2, model=MostlyFailing(space))

    best, losses = best_and_random_losses(benchmark, 200)

    assert (losses.max(axis=0) <= 0.05).all()
    assert (np.median(losses, axis=0) == losses.max(axis=0)).all()
    assert (best == losses.min(axis=0)).all()


@pytest.mark.parametrize(
    ("losses", "best", "share"),
    [
        ([0.0, 0.5, 0.51, 10.0, 10.0, 10.0, 99.0], None, 2 / 7),  # the median is 10
        ([7.0, 7.0, 7.0, 9.0], None, 3 / 4),  # the median is the best
        ([1.0, 2.0, 20.0, 20.0, 20.0], np.array([0.0]), 1 / 5),  # within 1, 5 % of 20
    ],
)
def test_near_is_within_five_percent(losses, best, share):
    """Near the best are losses within five per cent of the way from the best to the median."""
    losses_on_one_task = np.array(losses)[:, None]
    shares = shares_near_best(losses_on_one_task, best=best)
    np.testing.assert_allclose(shares, [share])
