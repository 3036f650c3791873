"""Evaluations of a task: their best configuration."""

import numpy as np
import pytest

from hpobench_ordered import Direction, Evaluations, Parameter, SearchSpace

SPACE = SearchSpace([Parameter.number("x", 0, 1)])


def evaluations_of(objective, *, direction=Direction.MINIMIZE) -> Evaluations:
    """Make evaluations of the configurations x = 0, 0.1, 0.2, ... with these objective values."""
    values = 0.1 * np.arange(len(objective))[:, None]
    return Evaluations(
        task="t",
        context={},
        values=values,
        objective=np.array(objective),
        space=SPACE,
        direction=direction,
    )


@pytest.mark.parametrize(
    ("objective", "direction", "x_of_best"),
    [
        pytest.param([2.0, 1.0, 3.0], Direction.MINIMIZE, 0.1, id="minimised"),
        pytest.param([2.0, 1.0, 3.0], Direction.MAXIMIZE, 0.2, id="maximised"),
        pytest.param([np.nan, 2.0, 1.0], Direction.MINIMIZE, 0.2, id="a failed one is not best"),
        pytest.param([np.nan, 1.0, 1.0], Direction.MAXIMIZE, 0.1, id="the first of equal ones"),
    ],
)
def test_best_has_lowest_loss(objective, direction, x_of_best):
    """The best of the configurations x = 0, 0.1 and 0.2 has the lowest loss.

    Failed evaluations have the objective NaN.
    """
    evaluations = evaluations_of(objective, direction=direction)

    assert evaluations.best == pytest.approx({"x": x_of_best})


def test_failures_alone_have_no_best():
    """If all evaluations failed, with the objective NaN, there is no best configuration."""
    assert evaluations_of([np.nan, np.nan]).best is None


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("failure", [np.nan, np.inf, -np.inf])
def test_failed_evaluation_is_worst(failure, direction):
    """A failed evaluation, the second of three, has the loss infinity and the objective NaN."""
    evaluations = evaluations_of([1.0, failure, 1.0], direction=direction)

    before, failed, after = evaluations.losses
    assert failed == np.inf
    assert np.isfinite([before, after]).all()
    np.testing.assert_array_equal(evaluations.objective, [1.0, np.nan, 1.0])
