"""Differences between two methods, paired by seed, and their errors."""

import numpy as np
import pytest

from hpobench_ordered import Direction
from hpobench_ordered.analysis.scores import Scores
from hpobench_ordered.papers.differences import (
    Estimate,
    compare_methods,
    improvement_in_mean,
    mean_over_tasks,
    reduction_in_standard_error,
    resampled_error,
)

VALUES = np.array([[9.0, 30.0], [11.0, 30.0]])
"""Of two seeds (rows) on two tasks: means 10 and 30, spread 2 and 0."""
BASELINE_VALUES = np.array([[6.0, 39.0], [10.0, 41.0]])
"""Of the same seeds and tasks: means 8 and 40, spread 4 and 2."""


def draw_scores() -> Scores:
    """Draw scores of methods a, b and c with four seeds on five tasks, of two trials each.

    Scores on task 3 are undefined.
    """
    values = np.random.default_rng(0).random((3, 4, 5, 2))  # (methods, seeds, tasks, trials)
    task = 3
    values[:, :, task] = np.nan
    return Scores(("a", "b", "c"), values)


def test_differences_are_paired_by_seed():
    """There is a difference for each seed on each task on which scores are defined: not task 3."""
    scores = draw_scores()

    difference = compare_methods(scores, "c", "a", trial=2)

    after_second_trial = scores.values[..., 1]  # (methods, seeds, tasks)
    scores_of_a, _, scores_of_c = after_second_trial
    defined_tasks = [0, 1, 2, 4]
    expected = (scores_of_c - scores_of_a)[:, defined_tasks]
    np.testing.assert_array_equal(difference, expected)


def test_differences_leave_out_unfinished_seeds():
    """Only seeds that both methods finished count: a lacks seed 1 of four, and c lacks seed 3."""
    scores = draw_scores()
    scores.values[0, 1] = np.nan
    scores.values[2, 3] = np.nan

    difference = compare_methods(scores, "c", "a", trial=2)

    common_seeds = [0, 2]
    defined_tasks = [0, 1, 2, 4]
    differences = (scores.values[2] - scores.values[0])[..., 1]  # (seeds, tasks)
    np.testing.assert_array_equal(difference, differences[np.ix_(common_seeds, defined_tasks)])


def test_reduction_in_error_by_hand():
    """The error of the mean over two seeds is lower than the baseline's by 50 %, and by 100 %.

    On one task values of the seeds are 2 apart instead of 4, on the other 0 instead of 2.
    """
    reduction = reduction_in_standard_error(VALUES, BASELINE_VALUES)
    np.testing.assert_allclose(reduction, [50, 100])


def test_improvement_in_mean_by_hand():
    """An improvement is in per cent of the baseline's mean: more if maximised, less if minimised.

    On two tasks the means are 10 instead of 8, by 25 % more, and 30 instead of 40, by 25 % less.
    """
    if_maximised = improvement_in_mean(VALUES, BASELINE_VALUES, direction=Direction.MAXIMIZE)
    if_minimised = improvement_in_mean(VALUES, BASELINE_VALUES, direction=Direction.MINIMIZE)
    np.testing.assert_allclose(if_maximised, [25, -25])
    np.testing.assert_allclose(if_minimised, [-25, 25])


def test_higher_negative_mean_improves_maximised():
    """On two tasks the means are -10 instead of -8, which is lower, and -30 instead of -40.

    Both differ from the baseline by 25 % of its size.
    """
    values, baseline_values = -VALUES, -BASELINE_VALUES
    if_maximised = improvement_in_mean(values, baseline_values, direction=Direction.MAXIMIZE)
    if_minimised = improvement_in_mean(values, baseline_values, direction=Direction.MINIMIZE)
    np.testing.assert_allclose(if_maximised, [-25, 25])
    np.testing.assert_allclose(if_minimised, [25, -25])


def test_mean_over_tasks_has_two_errors():
    """The interval is the mean and two standard errors on either side."""
    values_of_tasks = np.array([40.0, 60.0, 80.0])  # of mean 60 and standard deviation 20
    standard_error = 20 / np.sqrt(3)

    estimate = mean_over_tasks(values_of_tasks)

    assert estimate.value == pytest.approx(60)
    assert estimate.upper - estimate.value == pytest.approx(2 * standard_error)
    assert estimate.value - estimate.lower == pytest.approx(2 * standard_error)


def test_constant_baselines_are_left_out():
    """A task on which the baseline does not vary has no reduction in error, and is left out.

    This is the second of two tasks. On the first one values of the seeds are 4 apart instead of 2,
    so that the error is 100 % higher. The mean is of this task alone, and so has no error.
    """
    values, baseline_values = BASELINE_VALUES, VALUES  # exchanged: VALUES are constant on one task
    reduction = reduction_in_standard_error(values, baseline_values)
    estimate = mean_over_tasks(reduction)
    np.testing.assert_allclose(reduction, [-100, np.nan])
    assert estimate.value == -100
    assert np.isnan(estimate.lower)


@pytest.mark.parametrize(
    ("value", "is_inside"), [(53.7, True), (69.0, False), (float("nan"), False)]
)
def test_interval_contains_values(value, is_inside):
    """The interval contains its ends, no value beyond them, and no missing value."""
    estimate = Estimate(value=61.3, lower=53.7, upper=68.9)
    assert estimate.contains(value) == is_inside


# -- errors of numbers that are no means -----------------------------------------------------------


def test_resampled_error_of_mean_is_known():
    """The error of a mean by resampling is about that by its formula."""
    n_samples = 200
    samples = np.random.default_rng(0).normal(size=n_samples)

    error = resampled_error(samples, lambda resampled: float(resampled.mean()))

    standard_error = samples.std(ddof=1) / np.sqrt(n_samples)
    # The error of 500 resamples is about 3 %.
    assert error == pytest.approx(standard_error, rel=0.1)
