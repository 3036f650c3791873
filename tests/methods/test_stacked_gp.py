"""The stack of residuals: means and standard deviations by the paper's formulas."""

import numpy as np
import pytest
from bowls import beside_bo, bowl, played, source
from by_hand import make
from numpy.testing import assert_allclose

from hpobench_ordered.methods.stacked_gp import Level, StackedGP, stacked

X = np.random.default_rng(0).random((15, 2))


class Known:
    """A process whose predictions are known."""

    def __init__(self, mean: float, sd: float) -> None:
        self.mean, self.sd = mean, sd

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(X), self.mean), np.full(len(X), self.sd)


def test_a_stack_by_hand():
    # beta is 1, 30 / (30 + 10) and 10 / (10 + 30), by numbers of evaluations
    levels = [
        Level.over(below, Known(mean, sd), n)
        for below, mean, sd, n in [(0, 2.0, 0.5, 10), (10, -0.5, 2.0, 30), (30, 0.25, 4.0, 10)]
    ]
    mean, sd = stacked(levels, X)
    assert_allclose(mean, 1.75)
    assert_allclose(sd, (2.0**0.75 * 0.5**0.25) ** 0.75 * 4.0**0.25)


def test_a_level_without_evaluations_leaves_the_stack_as_it_is():
    levels = [Level.over(0, Known(2.0, 0.5), 10)]
    levels.append(Level.over(10, Known(0.0, 1.0), 0))
    assert_allclose(stacked(levels, X), [np.full(15, 2.0), np.full(15, 0.5)])


def test_each_level_is_the_process_of_what_the_stack_below_leaves():
    method = make(StackedGP, [source(0.3), source(0.4)])
    (X1, y1), (X2, y2) = method.sources
    first = method.of_source(X1, y1)
    second = method.of_source(X2, y2 - first.predict(X2)[0])
    assert_allclose(stacked(method.levels, X)[0], first.predict(X)[0] + second.predict(X)[0])


def test_a_task_like_the_last_one_needs_no_more_than_that():
    found = played(make(StackedGP, [source(p) for p in (0.1, 0.5, 0.3)]), 0.3, 3)
    assert bowl(found, 0.3).min() < 0.01


@pytest.mark.parametrize("count", [1, 5])
def test_what_misleads_is_unlearned(count):
    history = [source(0.4 + 0.001 * k, factor=-1.0) for k in range(count)]
    _, ours, of_bo = beside_bo(StackedGP, history, trials=20)
    assert ours < max(20 * of_bo, 2e-3)
