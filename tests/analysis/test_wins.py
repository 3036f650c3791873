"""Wins, losses and ties of methods, counted run by run."""

from itertools import permutations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.analysis.wins import count_wins

TIED_LOSSES = st.integers(0, 2**32).map(
    lambda seed: np.random.default_rng(seed).integers(0, 5, (4, 3, 2, 3)).astype(float)
)
"""Losses of four methods with three seeds on two tasks, of three trials each."""


@given(TIED_LOSSES, st.integers(1, 3))
def test_counts_agree_with_single_comparisons(losses, trial):
    """Counts are those of comparing two methods run by run, by their lowest losses so far."""
    counted = count_wins(losses, "abcd", trial=trial)

    n_methods = 4
    lowest_losses = losses[..., :trial].min(axis=-1).reshape(n_methods, -1)  # (methods, runs)
    for a, b in permutations(range(n_methods), 2):
        assert counted.wins[a, b] == (lowest_losses[a] < lowest_losses[b]).sum()
        assert counted.losses[a, b] == (lowest_losses[a] > lowest_losses[b]).sum()
        assert counted.ties[a, b] == (lowest_losses[a] == lowest_losses[b]).sum()


def test_first_task_can_be_left_out():
    """With `first_task=1`, wins on the first task do not count.

    One method is better than the other on the first task, and ties with it on the two others.
    """
    n_seeds, n_tasks = 5, 3
    losses = np.zeros((2, n_seeds, n_tasks, 2))  # (methods, seeds, tasks, trials)
    better, other, first_task = 0, 1, 0
    losses[better, :, first_task] = -1

    every_task = count_wins(losses, "ab", trial=2)
    later_tasks = count_wins(losses, "ab", trial=2, first_task=1)

    assert every_task.wins[better, other] == n_seeds
    assert later_tasks.wins.sum() == 0
    assert later_tasks.ties[better, other] == n_seeds * (n_tasks - 1)
