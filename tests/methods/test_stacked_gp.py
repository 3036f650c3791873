"""stacked-gp: means and standard deviations by the paper's formulas."""

from dataclasses import dataclass

import numpy as np
from bowls import make_bowl_task
from by_hand import make_method
from numpy.testing import assert_allclose

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods.stacked_gp import Level, StackedGP, compute_beta, predict_stack

POINTS = np.random.default_rng(0).random((15, 2))
"""Features of fifteen random configurations, at which stacks are compared."""


@dataclass
class ConstantProcess:
    """A process that predicts the same everywhere."""

    mean: float
    sd: float

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.full(len(X), self.mean), np.full(len(X), self.sd)


def make_stack() -> list[Level]:
    """Three levels, of 10, 30 and 10 evaluations, whose processes predict constants.

    A level's weight, beta, is the share of its own evaluations in these and those of the level
    below: 1, 30 / (30 + 10) and 10 / (10 + 30).
    """
    bottom = Level(ConstantProcess(mean=2.0, sd=0.5), compute_beta(10, count_below=0))
    middle = Level(ConstantProcess(mean=-0.5, sd=2.0), compute_beta(30, count_below=10))
    top = Level(ConstantProcess(mean=0.25, sd=4.0), compute_beta(10, count_below=30))
    return [bottom, middle, top]


def test_mean_is_sum_of_levels():
    """The levels have the means 2, -0.5 and 0.25 at all configurations."""
    mean, _sd = predict_stack(make_stack(), POINTS)
    assert_allclose(mean, 2.0 - 0.5 + 0.25)


def test_deviation_is_weighted_geometric_mean():
    """A level has the weight beta, and the levels below it the weight 1 - beta."""
    _mean, sd = predict_stack(make_stack(), POINTS)

    sd_of_bottom, sd_of_middle, sd_of_top = 0.5, 2.0, 4.0
    beta_of_middle, beta_of_top = 0.75, 0.25
    sd_of_lower_two = sd_of_middle**beta_of_middle * sd_of_bottom ** (1 - beta_of_middle)
    expected = sd_of_top**beta_of_top * sd_of_lower_two ** (1 - beta_of_top)
    assert_allclose(sd, expected)


def test_levels_are_fitted_to_residuals():
    """The process of the second earlier task is fitted to what the first one does not explain.

    That is the difference of the second task's losses and the mean of the first task's process.
    """
    method = make_method(StackedGP, [make_bowl_task(place=0.3), make_bowl_task(place=0.4)])
    (first_X, first_losses), (second_X, second_losses) = method.sources
    mean, _sd = predict_stack(method.levels, POINTS)

    first_process = method.fit_source(first_X, first_losses)
    explained, _sd = first_process.predict(second_X)
    second_process = method.fit_source(second_X, second_losses - explained)
    first_mean, _sd = first_process.predict(POINTS)
    second_mean, _sd = second_process.predict(POINTS)
    assert_allclose(mean, first_mean + second_mean)
