"""Objectives: what losses their values have, and those of failed evaluations."""

import math

import numpy as np
import pytest

from hpobench_ordered import Direction, Objective

VALUES = np.array([2.0, np.nan, np.inf, -np.inf, -1.0])


def make_objective(direction) -> Objective:
    return Objective("auc", "", direction)


@pytest.mark.parametrize(
    ("direction", "expected"),
    [
        (Direction.MINIMIZE, [2.0, np.inf, np.inf, np.inf, -1.0]),
        (Direction.MAXIMIZE, [-2.0, np.inf, np.inf, np.inf, 1.0]),
    ],
)
def test_failed_evaluations_have_infinite_losses(direction, expected):
    """Values that are not finite are those of failed evaluations, whatever their sign."""
    losses = make_objective(direction).losses(VALUES)
    np.testing.assert_array_equal(losses, expected)


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("value", VALUES)
def test_single_loss_is_as_among_others(direction, value):
    """The loss of one value, as a number, equals its loss in an array of values."""
    objective = make_objective(direction)
    assert objective.loss(value) == objective.losses(np.array([value]))[0]


@pytest.mark.parametrize("direction", list(Direction))
def test_losses_turn_back_into_values(direction):
    """Losses turn back into the same values, or into NaN where the evaluation failed."""
    objective = make_objective(direction)
    values = objective.values(objective.losses(VALUES))
    np.testing.assert_array_equal(values, [2.0, math.nan, math.nan, math.nan, -1.0])
