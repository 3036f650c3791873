import numpy as np
import pytest

from hpobench_ordered import Direction
from hpobench_ordered.analysis.differences import (
    Difference,
    Estimate,
    compare_methods,
    improvement_in_mean,
    mean_over_tasks,
    pool_differences,
    reduction_in_standard_error,
)
from hpobench_ordered.analysis.scores import Scores


def scores() -> Scores:
    """Three methods, four seeds, five tasks, two trials; task 3 is undefined."""
    values = np.random.default_rng(0).random((3, 4, 5, 2))
    values[:, :, 3] = np.nan
    return Scores(("a", "b", "c"), values)


def test_differences_are_paired_by_seed():
    gap = compare_methods(scores(), "c", "a", trial=2)
    values = scores().values
    expected = (values[2] - values[0])[:, [0, 1, 2, 4], 1]
    np.testing.assert_array_equal(gap.values, expected)
    assert gap.tasks == 4
    assert gap.mean == pytest.approx(expected.mean())
    errors = 2 * expected.mean(axis=1).std(ddof=1) / 2
    assert gap.two_standard_errors == pytest.approx(errors)
    assert gap.better == (expected.mean(axis=0) < 0).sum()
    both = pool_differences([gap, gap])
    assert (both.tasks, both.better) == (2 * gap.tasks, 2 * gap.better)
    assert both.mean == pytest.approx(gap.mean)


def test_alike_within_errors_or_margin():
    # Means 0, 5 and 10 with errors 2, 2 and 0.
    gap = Difference(np.array([[-1.0, 4.0, 10.0], [1.0, 6.0, 10.0]]))
    assert [gap.alike(margin=m) for m in (0, 4, 5, 10)] == [1, 1, 2, 3]


def test_one_seed_has_no_error():
    one = Difference(np.array([[1.0, -1.0]]))
    assert np.isnan(one.two_standard_errors)
    assert one.alike(margin=1) == 2
    assert np.isnan(reduction_in_standard_error(OWN[:1], OTHER[:1])).all()
    assert np.isnan(mean_over_tasks(np.array([np.nan])).value)
    none = Difference(np.empty((3, 0)))
    assert np.isnan(none.mean) and np.isnan(none.two_standard_errors)


# Two seeds, two tasks. Means 10 and 30 against 8 and 40; the spread is 2 and 0 against 4 and 2.
OWN = np.array([[9.0, 30.0], [11.0, 30.0]])
OTHER = np.array([[6.0, 39.0], [10.0, 41.0]])


def test_improvements_computed_by_hand():
    np.testing.assert_allclose(reduction_in_standard_error(OWN, OTHER), [50, 100])
    higher = improvement_in_mean(OWN, OTHER, direction=Direction.MAXIMIZE)
    np.testing.assert_allclose(higher, [25, -25])
    lower = improvement_in_mean(OWN, OTHER, direction=Direction.MINIMIZE)
    np.testing.assert_allclose(lower, [-25, 25])


def test_mean_over_tasks_has_two_errors():
    # Standard deviation 20 over four tasks: standard error 10.
    sample = np.array([50.0, 70.0, 50.0, 70.0]) * np.sqrt(3)
    estimate = mean_over_tasks(sample)
    assert estimate.value == pytest.approx(60 * np.sqrt(3))
    assert estimate.upper - estimate.value == pytest.approx(20)
    assert estimate.value - estimate.lower == pytest.approx(20)


def test_constant_baselines_are_left_out():
    reduction = reduction_in_standard_error(OTHER, OWN)
    np.testing.assert_allclose(reduction, [-100, np.nan])
    assert mean_over_tasks(reduction).value == -100
    assert np.isnan(mean_over_tasks(reduction).lower)


def test_interval_contains_values():
    estimate = Estimate(61.3, 53.7, 68.9)
    assert [estimate.contains(value) for value in (53.7, 69, float("nan"))] == [True, False, False]
