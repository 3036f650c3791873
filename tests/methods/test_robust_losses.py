"""Centres and units of tasks' losses."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.testing import assert_allclose

from hpobench_ordered import SearchSpace
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.methods._robust_losses import (
    compute_centre,
    compute_units,
    standardise_robustly,
    weigh_by_volume,
)
from hpobench_ordered.space import Compare, Comparison
from hpobench_ordered.space.parameters import Parameter

LINE = SearchSpace([Parameter.number("x", 0, 1)])
SQUARE = SearchSpace([Parameter.number("x", 0, 1), Parameter.number("y", 0, 1)])


def make_task(
    points: FloatArray, losses: Sequence[float] | FloatArray, space: SearchSpace
) -> Evaluations:
    """Evaluations of configurations (n, d) of the unit cube."""
    return Evaluations("task", {}, points, np.array(losses), space=space, direction="minimize")


@pytest.mark.parametrize("count", [1, 2, 3, 4, 11])
def test_centre_of_evenly_spread_evaluations(count):
    """They all count equally, so that the centre is the median, the lower one of two."""
    points = np.linspace(0, 1, count)[:, None]
    losses = np.random.default_rng(0).random(count)
    middle = (count - 1) // 2
    assert compute_centre(make_task(points, losses, LINE)) == np.sort(losses)[middle]


def test_many_good_evaluations_hardly_move_centre():
    """Twenty more evaluations at the tip of a bump move the median to it, and not the centre."""
    spread = np.linspace(0, 1, 11)
    at_tip = 0.32 + 1e-4 * np.linspace(-1, 1, 20)
    points = np.concatenate([spread, at_tip])[:, None]
    losses = -np.exp(-0.5 * ((points[:, 0] - 0.32) / 0.05) ** 2)
    assert np.median(losses) < -0.99
    assert compute_centre(make_task(points, losses, LINE)) > -0.01


def test_weights_are_volumes():
    """Weights are distances to the nearest other evaluation, squared on a square."""
    points = np.array([[0.0, 0.0], [0.0, 0.1], [0.0, 0.3], [1.0, 0.3]])
    weights = weigh_by_volume(make_task(points, np.arange(4.0), SQUARE))
    assert_allclose(weights, [0.01, 0.01, 0.04, 1.0])


def test_inactive_hyperparameters_have_no_distance():
    """Evaluations where a hyperparameter is inactive differ in the others alone."""
    kind = Parameter.choice("kind", ("a", "b"))
    is_b = Compare(0, Comparison.EQUAL, (kind.code("b"),))
    numbers = [Parameter.number("x", 0, 1), Parameter.number("y", 0, 1)]
    space = SearchSpace([kind, *numbers], conditions={"y": is_b})
    configs = [{"kind": "a", "x": x} for x in (0.0, 0.2, 0.6)]
    task = make_task(space.values(configs), [3.0, 2.0, 1.0], space)
    assert_allclose(weigh_by_volume(task), np.array([0.2, 0.2, 0.4]) ** 3 / 0.4**3)


def test_centre_has_unit_of_losses():
    """Losses in another unit have the centre in that unit, and evaluations may be shuffled."""
    rng = np.random.default_rng(1)
    points = rng.random((30, 2))
    losses = rng.random(30)
    centre = compute_centre(make_task(points, losses, SQUARE))
    assert compute_centre(make_task(points, 8.0 * losses, SQUARE)) == 8.0 * centre
    shuffled = rng.permutation(30)
    assert compute_centre(make_task(points[shuffled], losses[shuffled], SQUARE)) == centre


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        pytest.param([[-2.0, 0.0, 900.0]], [1.0], id="half the distance of best and centre"),
        pytest.param([[0.0, 0.0, 3.0]], [math.sqrt(0.75)], id="root mean square if that is 0"),
        pytest.param([[0.0]], [1.0], id="1 if all losses of all tasks are equal"),
        pytest.param(
            [[-2.0, 0.0, 900.0], [-8.0, 0.0, 0.0], [0.0, 0.0]],
            [1.0, 4.0, 2.0],
            id="geometric mean of others if all losses are equal",
        ),
    ],
)
def test_units_of_losses(losses: Sequence[Sequence[float]], expected: Sequence[float]):
    """The unit is half the distance of the best loss from the centre, here 0, if that is not 0."""
    units = compute_units([np.array(of_task) for of_task in losses], [0.0] * len(losses))
    assert units == pytest.approx(expected)


def test_standardised_losses_are_finite():
    """Losses whose differences overflow are standardised and clipped."""
    losses = np.array([-1.7e308, 0.0, 1.7e308])
    assert_allclose(standardise_robustly(losses, 0.0, 0.85e308), [-1.0, 0.0, 1.0])
    assert_allclose(standardise_robustly(losses, 1.0, 1.0), [-1e6, -0.5, 1e6])
