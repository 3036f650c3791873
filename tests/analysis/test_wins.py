"""Wins, losses and ties of methods, counted run by run."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpobench_ordered.analysis.wins import count_wins
from hpobench_ordered.errors import ExperimentError

TIED_LOSSES = st.integers(0, 2**32).map(
    lambda seed: np.random.default_rng(seed).integers(0, 5, (4, 3, 2, 3)).astype(float)
)
"""Losses of four methods with three seeds on two tasks, of three trials each."""


@given(TIED_LOSSES, st.integers(1, 3))
def test_counts_agree_with_single_comparisons(losses, trial):
    counted = count_wins(losses, "abcd", trial=trial)

    n_methods = 4
    best_losses = losses[..., :trial].min(axis=-1).reshape(n_methods, -1)  # (methods, runs)
    for a, b in product(range(n_methods), repeat=2):
        differences = best_losses[a] - best_losses[b]
        ties = 0 if a == b else (differences == 0).sum()  # a method does not tie with itself
        assert counted.wins[a, b] == (differences < 0).sum()
        assert counted.losses[a, b] == (differences > 0).sum()
        assert counted.ties[a, b] == ties


def test_first_task_can_be_left_out():
    n_seeds, n_tasks = 5, 3
    losses = np.zeros((2, n_seeds, n_tasks, 2))  # (methods, seeds, tasks, trials)
    losses[0, :, 0] = -1  # method 0 is better on the first task, and ties on the others

    every_task = count_wins(losses, "ab", trial=2)
    later_tasks = count_wins(losses, "ab", trial=2, first_task=1)

    assert every_task.wins[0, 1] == n_seeds
    assert later_tasks.wins.sum() == 0
    assert later_tasks.ties[0, 1] == n_seeds * (n_tasks - 1)


@pytest.mark.parametrize("trial", [0, 3])
def test_trial_must_be_within_runs(trial):
    """The runs have two trials, which are counted from 1."""
    losses = np.zeros((2, 5, 3, 2))  # (methods, seeds, tasks, trials)
    with pytest.raises(ExperimentError, match="1 to 2"):
        count_wins(losses, "ab", trial=trial)
