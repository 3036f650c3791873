"""Speedups over a reference method, from losses of shape (methods, seeds, tasks, trials)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    """The target is 5: the mean incumbent of `slow`, 4 and 6, after the budget of three trials.

    A run that never reaches the target counts as if its last trial, the sixth, had reached it.
    """
    slow = [[9, 5, 4, 3, 3, 3], [9, 9, 6, 6, 6, 2]]  # (seeds, trials)
    fast = [[5, 9, 9, 9, 9, 9], [7, 4, 9, 9, 9, 9]]
    unsteady = [[6, 6, 6, 6, 6, 6], [7, 7, 5, 7, 7, 7]]
    losses = np.array([slow, fast, unsteady], dtype=float)[:, :, None]  # on a single task

    computed = speedups(losses, ["slow", "fast", "unsteady"], reference="slow", budgets=[3])

    trials_of_slow = (2 + 6) / 2
    trials_of_fast = (1 + 2) / 2
    trials_of_unsteady = (6 + 3) / 2  # with the first seed it fails
    expected = [1, trials_of_slow / trials_of_fast, trials_of_slow / trials_of_unsteady]
    task, budget = 0, 0  # the only ones
    np.testing.assert_allclose(computed.values[:, task, budget], expected)
    np.testing.assert_allclose(computed.failure_rates[:, task, budget], [0, 0, 1 / 2])
    np.testing.assert_allclose(computed.mean_failure_rate[:, budget], [0, 0, 1 / 2])


def test_speedup_is_over_finished_seeds():
    """Method a has finished three seeds of four, and the reference b only two, of which one is a's.

    Targets and means of each are those of its own seeds, as if there were no others.
    """
    losses = np.random.default_rng(0).random((3, 4, 2, 6))  # (methods, seeds, tasks, trials)
    is_finished = np.ones((3, 4), dtype=bool)
    is_finished[0, 3] = False
    is_finished[1, :2] = False
    targets = reference_targets(losses[1, 2:], [4])

    computed = speedups(losses, "abc", reference="b", budgets=[4], is_finished=is_finished)

    first_trials = trials_to_reach(losses, targets)  # (methods, seeds, tasks, budgets)
    trials = np.where(first_trials == 0, 6, first_trials)
    mean_of_a = trials[0, :3].mean(axis=0)
    mean_of_b = trials[1, 2:].mean(axis=0)
    np.testing.assert_allclose(computed.values[0], mean_of_b / mean_of_a)
    failure_rate_of_a = (first_trials[0, :3] == 0).mean(axis=0)
    np.testing.assert_allclose(computed.failure_rates[0], failure_rate_of_a)


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
    losses = np.random.default_rng(0).random((2, 20, 4, 30))

    all_tasks = speedups(losses, "ab", reference="a", budgets=[5])
    later_tasks = speedups(losses, "ab", reference="a", budgets=[5], first_task=1)

    expected = all_tasks.values[:, 1:]  # (methods, tasks, budgets), without task 0
    np.testing.assert_allclose(later_tasks.values, expected)


def test_budgets_beyond_trials_are_refused():
    losses = np.zeros((2, 1, 1, 10))  # 10 trials; the default budgets are 10, 20 and 40
    with pytest.raises(ExperimentError, match=r"\[20, 40\]"):
        speedups(losses, ["bo", "cts"], reference="bo")
