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

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
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
    losses: FloatArray,
    methods: Sequence[str],
    *,
    trial: int,
    first_task: int = 0,
    is_finished: BoolArray | None = None,
) -> Wins:
    """Compare every pair of methods after a trial, in every seed on every task.

    Args:
        losses: Loss of every trial, infinite where it failed, (methods, seeds, tasks, trials).
        methods: Names of the methods, in the order of the first axis.
        trial: The trial, counted from 1.
        first_task: First task that counts, from 0; 1 leaves out the task without history.
        is_finished: Which runs are finished, (methods, seeds); default: all. Two methods are
            compared in the seeds that both have finished.

    Raises:
        ExperimentError: There is no such trial.
    """
    if not 1 <= trial <= losses.shape[-1]:
        raise ExperimentError(f"trial must be from 1 to {losses.shape[-1]}, but got {trial}")
    best_losses = losses[:, :, first_task:, :trial].min(axis=-1)  # (methods, seeds, tasks)
    if is_finished is None:
        is_finished = np.ones(losses.shape[:2], dtype=np.bool_)

    n_methods = len(methods)
    wins = np.empty((n_methods, n_methods), dtype=np.int64)
    ties = np.empty((n_methods, n_methods), dtype=np.int64)
    for a, losses_of_a in enumerate(best_losses):  # against all methods at once
        is_common_seed = (is_finished & is_finished[a])[..., None]  # (methods, seeds, 1)
        wins[a] = ((losses_of_a < best_losses) & is_common_seed).sum(axis=(1, 2))
        ties[a] = ((losses_of_a == best_losses) & is_common_seed).sum(axis=(1, 2))
    np.fill_diagonal(ties, 0)  # a method is not compared with itself
    return Wins(tuple(methods), wins, ties)
