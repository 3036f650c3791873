"""The stack of residuals: means and standard deviations by the paper's formulas."""

from dataclasses import dataclass

import numpy as np
from bowls import source
from by_hand import make
from numpy.testing import assert_allclose

from hpobench_ordered.methods.stacked_gp import Level, StackedGP, predict_stack

X = np.random.default_rng(0).random((15, 2))


@dataclass
class Known:
    """A process whose predictions are known."""

    mean: float
    sd: float

    def predict(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.full(len(X), self.mean), np.full(len(X), self.sd)


def test_a_stack_by_hand():
    # beta is 1, 30 / (30 + 10), 10 / (10 + 30), and 0 by numbers of evaluations
    levels = [
        Level.above(below, Known(mean, sd), n)
        for below, mean, sd, n in [(0, 2.0, 0.5, 10), (10, -0.5, 2.0, 30), (30, 0.25, 4.0, 10)]
    ]
    sd = (2.0**0.75 * 0.5**0.25) ** 0.75 * 4.0**0.25
    for stack in (levels, [*levels, Level.above(10, Known(0.0, 1.0), 0)]):
        assert_allclose(predict_stack(stack, X), [np.full(15, 1.75), np.full(15, sd)])


def test_each_level_is_the_process_of_what_the_stack_below_leaves():
    method = make(StackedGP, [source(0.3), source(0.4)])
    (X1, y1), (X2, y2) = method.sources
    first = method.fit_source(X1, y1)
    second = method.fit_source(X2, y2 - first.predict(X2)[0])
    assert_allclose(predict_stack(method.levels, X)[0], first.predict(X)[0] + second.predict(X)[0])
