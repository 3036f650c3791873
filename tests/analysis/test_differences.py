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
    two_resampled_errors,
)
from hpobench_ordered.analysis.scores import Scores

# Two seeds, two tasks. Means 10 and 30 against 8 and 40; the spread is 2 and 0 against 4 and 2.
OWN = np.array([[9.0, 30.0], [11.0, 30.0]])
OTHER = np.array([[6.0, 39.0], [10.0, 41.0]])


def random_scores() -> Scores:
    """Three methods, four seeds, five tasks, two trials; task 3 is undefined."""
    values = np.random.default_rng(0).random((3, 4, 5, 2))
    values[:, :, 3] = np.nan
    return Scores(("a", "b", "c"), values)


def test_differences_are_paired_by_seed():
    scores = random_scores()  # (A, S, T, M) = (3, 4, 5, 2); task 3 is NaN

    difference = compare_methods(scores, "c", "a", trial=2)

    defined_tasks = [0, 1, 2, 4]
    expected = (scores.values[2] - scores.values[0])[:, defined_tasks, 1]
    np.testing.assert_array_equal(difference.values, expected)
    assert difference.tasks == 4


def test_difference_summarises_seeds_and_tasks():
    difference = compare_methods(random_scores(), "c", "a", trial=2)

    by_seed = difference.values.mean(axis=1)
    by_task = difference.values.mean(axis=0)
    n_seeds = 4
    standard_error = by_seed.std(ddof=1) / np.sqrt(n_seeds)
    assert difference.mean == pytest.approx(difference.values.mean())
    assert difference.two_standard_errors == pytest.approx(2 * standard_error)
    assert difference.better == (by_task < 0).sum()


def test_pooling_adds_tasks():
    difference = compare_methods(random_scores(), "c", "a", trial=2)
    pooled = pool_differences([difference, difference])
    assert pooled.tasks == 2 * difference.tasks
    assert pooled.better == 2 * difference.better
    assert pooled.mean == pytest.approx(difference.mean)


@pytest.mark.parametrize(("margin", "alike"), [(0, 1), (4, 1), (5, 2), (10, 3)])
def test_alike_within_errors_or_margin(margin, alike):
    # Means 0, 5 and 10 with errors 2, 2 and 0.
    difference = Difference(np.array([[-1.0, 4.0, 10.0], [1.0, 6.0, 10.0]]))
    assert difference.alike(margin=margin) == alike


def test_single_seed_has_no_error():
    difference = Difference(np.array([[1.0, -1.0]]))
    assert np.isnan(difference.two_standard_errors)
    assert difference.alike(margin=1) == 2
    assert np.isnan(reduction_in_standard_error(OWN[:1], OTHER[:1])).all()


def test_no_tasks_have_no_mean():
    difference = Difference(np.empty((3, 0)))
    assert np.isnan(difference.mean)
    assert np.isnan(difference.two_standard_errors)
    assert np.isnan(mean_over_tasks(np.array([np.nan])).value)


def test_improvements_computed_by_hand():
    """Rows are seeds, columns are two tasks, in per cent of the other's figures."""
    # First task: 9 and 11 beside 6 and 10, half the spread. Second: 30 and 30 beside 39 and 41, no
    # spread.
    np.testing.assert_allclose(reduction_in_standard_error(OWN, OTHER), [50, 100])
    # Means are 10 beside 8, and 30 beside 40.
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
    """The spread is 4 and 2 on two tasks, the baseline's 2 and 0: undefined on the second."""
    reduction = reduction_in_standard_error(OTHER, OWN)
    estimate = mean_over_tasks(reduction)
    np.testing.assert_allclose(reduction, [-100, np.nan])
    assert estimate.value == -100
    assert np.isnan(estimate.lower)


@pytest.mark.parametrize(
    ("value", "is_inside"), [(53.7, True), (69.0, False), (float("nan"), False)]
)
def test_interval_contains_values(value, is_inside):
    estimate = Estimate(61.3, 53.7, 68.9)
    assert estimate.contains(value) == is_inside


# -- errors of numbers that are no means -----------------------------------------------------------


def test_resampled_error_of_mean_is_known():
    samples = np.random.default_rng(0).normal(size=200)

    error = two_resampled_errors(samples, lambda resampled: float(resampled.mean()))

    standard_error = samples.std(ddof=1) / np.sqrt(200)
    assert error == pytest.approx(2 * standard_error, rel=0.1)  # 500 resamples: about 3 %


def test_one_seed_has_no_resampled_error():
    assert np.isnan(two_resampled_errors(np.ones((1, 3)), lambda resampled: 1.0))
