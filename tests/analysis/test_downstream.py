import numpy as np
import pytest

from hpobench_ordered.analysis.differences import (
    Estimate,
    improvement_in_mean,
    over_tasks,
    reduction_in_standard_error,
)
from hpobench_ordered.core.objective import Direction

# Two seeds, two tasks. Means 10 and 30 against 8 and 40; the spread is 2 and 0 against 4 and 2.
OWN = np.array([[9.0, 30.0], [11.0, 30.0]])
OTHER = np.array([[6.0, 39.0], [10.0, 41.0]])


def test_worked_by_hand():
    np.testing.assert_allclose(reduction_in_standard_error(OWN, OTHER), [50, 100])
    higher = improvement_in_mean(OWN, OTHER, direction=Direction.MAXIMIZE)
    np.testing.assert_allclose(higher, [25, -25])
    lower = improvement_in_mean(OWN, OTHER, direction=Direction.MINIMIZE)
    np.testing.assert_allclose(lower, [-25, 25])


def test_mean_over_tasks_with_two_standard_errors():
    # Standard deviation 20 over four tasks: standard error 10.
    sample = np.array([50.0, 70.0, 50.0, 70.0]) * np.sqrt(3)
    estimate = over_tasks(sample)
    assert estimate.value == pytest.approx(60 * np.sqrt(3))
    assert estimate.upper - estimate.value == pytest.approx(20)
    assert estimate.value - estimate.lower == pytest.approx(20)


def test_tasks_without_variation_are_left_out():
    reduction = reduction_in_standard_error(OTHER, OWN)
    np.testing.assert_allclose(reduction, [-100, np.nan])
    assert over_tasks(reduction).value == -100
    assert np.isnan(over_tasks(reduction).lower)


def test_one_seed_has_no_standard_error():
    assert np.isnan(reduction_in_standard_error(OWN[:1], OTHER[:1])).all()
    assert np.isnan(over_tasks(np.array([np.nan])).value)


def test_interval():
    estimate = Estimate(61.3, 53.7, 68.9)
    assert estimate.contains(53.7)
    assert not estimate.contains(69)
    assert not estimate.contains(float("nan"))
