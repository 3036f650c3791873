"""stacked-gp: means and standard deviations by the paper's formulas."""

from dataclasses import dataclass

import numpy as np
from bowls import make_bowl_task
from by_hand import make_method
from numpy.testing import assert_allclose

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods.stacked_gp import Level, StackedGP, predict_stack

X = np.random.default_rng(0).random((15, 2))
"""Fifteen random configurations, at which stacks are compared."""


@dataclass
class ConstantProcess:
    """A process that predicts the same everywhere."""

    mean: float
    sd: float

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(len(X), self.mean), np.full(len(X), self.sd)


def make_stack() -> list[Level]:
    """Three levels, each above a number of evaluations, with its process and its own number."""
    return [
        Level.above(0, ConstantProcess(2.0, 0.5), 10),  # beta 1: the bottom
        Level.above(10, ConstantProcess(-0.5, 2.0), 30),  # beta 30 / (30 + 10)
        Level.above(30, ConstantProcess(0.25, 4.0), 10),  # beta 10 / (10 + 30)
    ]


def test_mean_is_sum_of_levels():
    """Of three levels, which predict the same at all configurations."""
    mean, _ = predict_stack(make_stack(), X)
    # The constant means of the three levels.
    assert_allclose(mean, 2.0 - 0.5 + 0.25)


def test_deviation_is_weighted_geometric_mean():
    _, sd = predict_stack(make_stack(), X)
    # The levels have deviations 0.5, 2 and 4; the weights beta of the upper two are 30 / (30 + 10)
    # and 10 / (10 + 30).
    beta_of_middle, beta_of_top = 0.75, 0.25
    sd_of_two_levels = 2.0**beta_of_middle * 0.5 ** (1 - beta_of_middle)
    expected = 4.0**beta_of_top * sd_of_two_levels ** (1 - beta_of_top)
    assert_allclose(sd, expected)


def test_level_without_evaluations_changes_nothing():
    """A fourth level, whose task has no evaluations."""
    empty = Level.above(10, ConstantProcess(0.0, 1.0), 0)
    expected = predict_stack(make_stack(), X)
    assert_allclose(predict_stack([*make_stack(), empty], X), expected)


def test_levels_are_fitted_to_residuals():
    """The second earlier task's process is fitted to what the first one's mean leaves of its
    losses.
    """
    method = make_method(StackedGP, [make_bowl_task(place=0.3), make_bowl_task(place=0.4)])
    # Features and standardised losses of both tasks.
    (X1, y1), (X2, y2) = method.sources
    first = method.fit_source(X1, y1)
    second = method.fit_source(X2, y2 - first.predict(X2)[0])
    mean, _ = predict_stack(method.levels, X)
    assert_allclose(mean, first.predict(X)[0] + second.predict(X)[0])
