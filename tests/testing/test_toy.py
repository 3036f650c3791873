"""The toy benchmarks that conformance suites run methods on."""

import numpy as np
import pytest

from hpobench_ordered.data.objective import Direction
from hpobench_ordered.testing.toy import (
    conditional_space,
    conditional_space_before,
    numeric_space,
    numeric_space_before,
    optimum_position,
    random_history,
    toy_benchmark,
)

SPACES_BEFORE_AND_AFTER_ADJUSTMENT = [
    pytest.param(numeric_space_before(), numeric_space(), id="numeric"),
    pytest.param(conditional_space_before(), conditional_space(), id="conditional"),
]


@pytest.mark.parametrize("index", range(7))
def test_loss_is_squared_distance_to_optimum(index):
    """The loss is the squared distance to the optimum in the unit square.

    Ranges and scales of the numbers make no difference.
    """
    space = numeric_space()
    task = toy_benchmark(space, tasks=7).tasks[index]
    optimum = np.full(2, optimum_position(index))
    away_from_optimum = optimum + [0.1, 0.2]

    losses = task.evaluate_many(space.decode(np.array([optimum, away_from_optimum])))

    assert losses == pytest.approx([0, 0.1**2 + 0.2**2], abs=1e-30, rel=1e-6)


def test_discrete_optimum_has_no_loss():
    """The optimum is at 0.4 of each range: the second of three choices, and 3 of n from 1 to 50."""
    (task,) = toy_benchmark(conditional_space(), tasks=1).tasks
    optimum = {"kind": "b", "level": 10, "n": 3, "x": 0.4, "fixed": "always"}

    loss = task.evaluate(optimum)

    assert loss == pytest.approx(0, abs=1e-30)


def test_inactive_hyperparameters_do_not_count():
    """With the kind c, x is inactive: only kind and level are away from the optimum, b and 10."""
    (task,) = toy_benchmark(conditional_space(), tasks=1).tasks

    loss = task.evaluate({"kind": "c", "level": 1, "n": 3, "x": 0.9})

    distance_to_next_choice = 1 / 3  # of three choices, in the unit cube
    assert loss == pytest.approx(2 * distance_to_next_choice**2)


def test_maximised_objective_has_opposite_sign():
    """Maximised, the objective is negated, and its losses are those of the minimised one."""
    space = conditional_space()
    minimised = toy_benchmark(space, tasks=2, direction=Direction.MINIMIZE).tasks[1]
    maximised = toy_benchmark(space, tasks=2, direction=Direction.MAXIMIZE).tasks[1]

    (evaluations,) = random_history([minimised], seed=0)
    (evaluations_maximised,) = random_history([maximised], seed=0)

    np.testing.assert_array_equal(evaluations_maximised.values, evaluations.values)
    np.testing.assert_array_equal(evaluations_maximised.losses, evaluations.losses)
    np.testing.assert_array_equal(evaluations_maximised.objective, -evaluations.objective)


@pytest.mark.parametrize(("before", "after"), SPACES_BEFORE_AND_AFTER_ADJUSTMENT)
def test_adjustment_removes_adds_and_changes(before, after):
    """An adjustment of the search space removes, adds and changes hyperparameters."""
    names_before = set(before.names)
    names_after = set(after.names)
    in_both = names_before & names_after

    assert names_before - in_both, "none is removed"
    assert names_after - in_both, "none is added"
    assert any(before[name] != after[name] for name in in_both), "none is changed"
