"""The test whether the order of tasks matters, and what is best on average over tasks."""

import numpy as np
import pytest

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._task_order import (
    compute_order_p_value,
    find_best_on_average,
    predict_from_neighbours,
)

TASKS = 20


def draw_independent_points(rng: np.random.Generator) -> FloatArray:
    return rng.random((TASKS, 3))


def draw_random_walk(rng: np.random.Generator) -> FloatArray:
    return 0.5 + 0.1 * np.cumsum(rng.standard_normal((TASKS, 3)), axis=0)


def test_p_values_without_an_order_are_uniform():
    """At most a tenth of the p-values are at most 0.1, but for chance, and so on."""
    rng = np.random.default_rng(0)
    draws = 300
    p_values = [compute_order_p_value(draw_independent_points(rng), rng) for _ in range(draws)]
    for level in (0.1, 0.3, 0.5, 0.8):
        share = np.mean(np.array(p_values) <= level)
        standard_error = np.sqrt(level * (1.0 - level) / draws)
        assert abs(share - level) < 3.0 * standard_error


def test_random_walk_has_an_order():
    rng = np.random.default_rng(1)
    p_values = [compute_order_p_value(draw_random_walk(rng), rng) for _ in range(30)]
    assert max(p_values) <= 0.05


@pytest.mark.parametrize("change", [lambda x: 3.0 * x + 1.0, lambda x: x[::-1]])
def test_p_value_depends_on_shape_of_path(change):
    """Units, and whether the path is followed forwards or backwards, do not matter."""
    points = draw_independent_points(np.random.default_rng(2))
    p_value = compute_order_p_value(points, np.random.default_rng(3))
    # Backwards, the random orders are others, so that the p-value is the same but for chance.
    changed = compute_order_p_value(change(points), np.random.default_rng(3))
    assert changed == pytest.approx(p_value, abs=0.15)


def test_tasks_with_the_same_best_have_no_order():
    rng = np.random.default_rng(4)
    assert compute_order_p_value(np.full((TASKS, 2), 0.3), rng) == 1.0


def test_prediction_equals_that_of_scikit_learn():
    neighbors = pytest.importorskip("sklearn.neighbors", reason="the extra 'generate' is missing")
    rng = np.random.default_rng(5)
    points, losses, candidates = rng.random((40, 3)), rng.random(40), rng.random((100, 3))
    regressor = neighbors.KNeighborsRegressor(n_neighbors=3).fit(points, losses)
    predicted = predict_from_neighbours(candidates, points, losses)
    np.testing.assert_allclose(predicted, regressor.predict(candidates), rtol=1e-12)


def test_few_evaluations_are_all_neighbours():
    predicted = predict_from_neighbours(
        np.zeros((1, 1)), np.array([[0.0], [1.0]]), np.array([1, 3])
    )
    np.testing.assert_array_equal(predicted, [2.0])


def test_best_on_average_is_a_compromise():
    """Optima of two tasks are at 0.2 and 0.6; the sum of squared distances is least at 0.4."""
    grid = np.linspace(0.0, 1.0, 101)[:, None]
    losses = [(grid[:, 0] - place) ** 2 for place in (0.2, 0.6)]
    candidates = np.array([[0.2], [0.4], [0.6]])
    assert find_best_on_average(candidates, [grid, grid], losses) == 1
