"""Speedups over a reference method, from losses of shape (methods, seeds, tasks, trials)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtrit

from hpobench_ordered.analysis.speedup import (
    reference_targets,
    speedups,
    trials_to_reach,
)
from hpobench_ordered.errors import ExperimentError

RANDOM_LOSSES = st.integers(0, 2**32).map(
    lambda seed: np.random.default_rng(seed).integers(0, 10, (3, 4, 2, 6)).astype(float)
)
"""Losses of three methods with four seeds on two tasks, of six trials each."""


def test_speedup_computed_by_hand():
    """Targets are 6 for the first seed and 4 for the second.

    They are the incumbents of `slow` with the other seed after the budget of three trials. A run
    that never reaches the target counts as if its last trial, the sixth, had reached it.
    """
    slow = [[9, 5, 4, 3, 3, 3], [9, 9, 6, 6, 6, 2]]  # (seeds, trials)
    fast = [[5, 9, 9, 9, 9, 9], [7, 4, 9, 9, 9, 9]]
    unsteady = [[9, 9, 9, 9, 9, 6], [7, 7, 5, 7, 7, 7]]
    losses = np.array([slow, fast, unsteady], dtype=float)[:, :, None]  # on a single task

    computed = speedups(losses, ["slow", "fast", "unsteady"], reference="slow", budgets=[3])

    # Trials with the first and the second seed are 2 and 6, 1 and 2, and 6 and 6: a failure.
    expected = [1, np.sqrt(2 / 1 * 6 / 2), np.sqrt(2 / 6 * 6 / 6)]
    task, budget = 0, 0  # the only ones
    np.testing.assert_allclose(computed.values[:, task, budget], expected)
    np.testing.assert_allclose(computed.failure_rates[:, task, budget], [0, 0, 1 / 2])
    np.testing.assert_allclose(computed.mean_failure_rate[:, budget], [0, 0, 1 / 2])


def test_targets_are_from_other_half_of_seeds():
    """Targets for one half of the seeds are losses that the reference has in the other half.

    The halves of five seeds are 0 and 1, and 2 to 4. The speedup is the geometric mean of the
    halves' ratios of mean numbers of trials, weighted by their numbers of seeds.
    """
    n_trials = 6
    losses = np.random.default_rng(0).random((2, 5, 3, n_trials))  # (methods, seeds, tasks, trials)

    computed = speedups(losses, "ab", reference="a", budgets=[4])

    log_speedup = 0.0
    for half, other in (([0, 1], [2, 3, 4]), ([2, 3, 4], [0, 1])):
        targets = reference_targets(losses[0, other], [4])
        first_trials = trials_to_reach(losses[:, half], targets)
        # 0 stands for a target that is not reached, which counts as reached in the last trial.
        counted_trials = np.where(first_trials == 0, n_trials, first_trials)
        trials_of_a, trials_of_b = counted_trials.mean(axis=1)
        share_of_seeds = len(half) / 5
        log_speedup = log_speedup + share_of_seeds * np.log(trials_of_a / trials_of_b)
    np.testing.assert_allclose(computed.values[1], np.exp(log_speedup))


def test_unfinished_seeds_are_left_out():
    """Losses of unfinished runs change nothing, and failure rates are over finished ones.

    Method a has not finished seed 3 of four, nor the reference b seed 0.
    """
    losses = np.random.default_rng(0).random((2, 4, 2, 6))  # (methods, seeds, tasks, trials)
    is_finished = np.array([[True, True, True, False], [False, True, True, True]])
    other_losses = np.where(is_finished[..., None, None], losses, 99.0)

    computed = speedups(losses, "ab", reference="b", budgets=[4], is_finished=is_finished)
    again = speedups(other_losses, "ab", reference="b", budgets=[4], is_finished=is_finished)

    np.testing.assert_array_equal(computed.values, again.values)
    np.testing.assert_array_equal(computed.failure_rates, again.failure_rates)
    # Method a has finished three seeds, so that its failure rates are thirds.
    failed_runs = np.unique(computed.failure_rates[0] * 3).round(9)
    assert set(failed_runs) <= {0, 1, 2, 3}


def test_single_seed_has_its_own_target():
    """The only seed has no other half, so that its own loss is the target.

    After the budget of two trials the reference a has 5, which b is below after one trial.
    """
    losses = np.array([[9.0, 5, 4, 3], [4, 9, 9, 9]])[:, None, None]  # (methods, 1, 1, trials)
    computed = speedups(losses, "ab", reference="a", budgets=[2])
    np.testing.assert_allclose(computed.values[:, 0, 0], [1, 2])


@pytest.mark.parametrize("n_seeds", [3, 5, 12, 25])
def test_same_method_is_not_faster(n_seeds):
    """If both methods are random search, the speedup is 1 on average, and seldom significant.

    It is significant, by Student's test at 5 % over eight benchmarks, in about 5 % of the cases.
    """
    rng = np.random.default_rng(0)
    n_benchmarks, n_cases = 8, 200
    log_speedups = []
    for _ in range(n_cases):
        losses = rng.random((2, n_seeds, n_benchmarks, 60))
        computed = speedups(losses, "ab", reference="a", budgets=[10])
        log_speedups.append(np.log(computed.values[1, :, 0]))

    means = np.mean(log_speedups, axis=1)
    errors = np.std(log_speedups, axis=1, ddof=1) / np.sqrt(n_benchmarks)
    students_quantile = stdtrit(n_benchmarks - 1, 0.975)
    is_significant = np.abs(means) > students_quantile * errors
    assert abs(means.mean()) < 3 * means.std() / np.sqrt(n_cases)
    assert 0.01 < is_significant.mean() < 0.1


@given(RANDOM_LOSSES)
def test_speedups_and_failure_rates_are_bounded(losses):
    """A speedup is a ratio of numbers of trials, which are from 1 to that of a run."""
    n_methods, _, n_tasks, n_trials = losses.shape
    budgets = [1, 4]

    computed = speedups(losses, "abc", reference="b", budgets=budgets)

    assert computed.values.shape == (n_methods, n_tasks, len(budgets))
    assert ((computed.values > 0) & (computed.values <= n_trials)).all()
    assert ((computed.failure_rates >= 0) & (computed.failure_rates <= 1)).all()


def test_first_task_can_be_left_out():
    """With `first_task=1` there are speedups on all tasks but the first, the same as with it."""
    losses = np.random.default_rng(0).random((2, 20, 4, 30))  # (methods, seeds, tasks, trials)

    all_tasks = speedups(losses, "ab", reference="a", budgets=[5])
    later_tasks = speedups(losses, "ab", reference="a", budgets=[5], first_task=1)

    expected = all_tasks.values[:, 1:]  # (methods, tasks, budgets), without task 0
    np.testing.assert_allclose(later_tasks.values, expected)


def test_budgets_beyond_trials_are_refused():
    """Budgets of more trials than runs have are refused, and named in the error."""
    losses = np.zeros((2, 1, 1, 10))  # 10 trials; the default budgets are 10, 20 and 40
    with pytest.raises(ExperimentError, match=r"\[20, 40\]"):
        speedups(losses, ["bo", "cts"], reference="bo")
