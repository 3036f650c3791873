"""How often one method is better than another.

Notation:
    A   number of methods
    S   number of seeds
    T   number of tasks
    M   number of trials per task

    l[a, s, t]  lowest loss that method a found with seed s on task t in its first m trials
    Method a wins against b where l[a] < l[b], and ties where they are equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.errors import ExperimentError


@dataclass(frozen=True, slots=True)
class Wins:
    """Counts of wins and ties of every pair of methods, (methods, methods)."""

    methods: tuple[str, ...]
    wins: IntArray  # how often the row's method was better than the column's
    ties: IntArray  # 0 on the diagonal

    @property
    def losses(self) -> IntArray:
        """How often the row's method was worse than the column's, (methods, methods)."""
        return self.wins.T


def count_wins(
    losses: FloatArray, methods: Sequence[str], *, trial: int, first_task: int = 0
) -> Wins:
    """Compare every pair of methods after a trial, in every seed on every task.

    Args:
        losses: Loss of every trial, shape (methods, seeds, tasks, trials). Where one of two methods
            has NaN, they are not compared.
        methods: Names of the methods, in the order of the first axis.
        trial: The trial, counted from 1.
        first_task: First task that counts, from 0; 1 leaves out the task without history.

    Raises:
        ExperimentError: There is no such trial.
    """
    if not 1 <= trial <= losses.shape[-1]:
        raise ExperimentError(f"trial must be from 1 to {losses.shape[-1]}, but got {trial}")
    best_losses = losses[:, :, first_task:, :trial].min(axis=-1)  # (methods, seeds, tasks)
    best_losses = best_losses.reshape(len(methods), -1)  # a column for each seed on each task
    # Comparisons with NaN are false: they are neither wins nor ties.
    wins = np.stack([(own_losses < best_losses).sum(axis=1) for own_losses in best_losses])
    ties = np.stack([(own_losses == best_losses).sum(axis=1) for own_losses in best_losses])
    np.fill_diagonal(ties, 0)  # a method is not compared with itself
    return Wins(tuple(methods), wins, ties)
