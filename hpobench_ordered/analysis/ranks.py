"""Ranks of methods, by seed or as in Hellan et al. (2023), section G.2 and figure 13.

Notation:
    A   number of methods
    S   number of seeds
    T   number of tasks
    M   number of trials per task

    L[a, t, m]  mean over seeds of the best loss method a found on task t in its first m trials
    R[a, t, m]  rank of L[a, t, m] among the A methods: 1 is best, ties share their mean rank
    rank        mean of R[a, t, m] over tasks; its standard error is that over tasks
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.scores import Scores, incumbents, two_standard_errors


@dataclass(frozen=True, slots=True)
class Ranks:
    """Mean ranks over tasks.

    Attributes:
        methods: Names of the methods, length A.
        mean: Mean rank over tasks after each trial, shape (A, M); 1 is best.
        two_standard_errors: Twice its standard error over tasks, shape (A, M); NaN with one task.
    """

    methods: tuple[str, ...]
    mean: FloatArray
    two_standard_errors: FloatArray

    def of(self, method: str) -> FloatArray:
        """Mean rank of a method after each trial, shape (M,)."""
        return np.asarray(self.mean[self.methods.index(method)])


def mean_ranks(losses: FloatArray, methods: Sequence[str], *, first_task: int = 0) -> Ranks:
    """Rank methods on every task after every trial, and average over tasks.

    Ranking mean losses and ranking mean normalised scores is the same.

    Args:
        losses: Loss of every trial, shape (A, S, T, M).
        methods: Names of the methods, length A.
        first_task: First task that counts, from 0; 1 leaves out the task without history.
    """
    means = incumbents(losses)[:, :, first_task:].mean(axis=1)
    ranks = rank_over_methods(means)
    return Ranks(tuple(methods), ranks.mean(axis=1), two_standard_errors(ranks))


def ranks_by_seed(losses: FloatArray, methods: Sequence[str]) -> Scores:
    """Rank methods on every task after every trial, each seed by itself.

    Args:
        losses: Loss of every trial, shape (A, S, T, M).
        methods: Names of the methods, length A.

    Returns:
        The ranks among the methods: 1 is best, ties share their mean rank.
    """
    return Scores(tuple(methods), rank_over_methods(incumbents(losses)))


def rank_over_methods(losses: FloatArray) -> FloatArray:
    """Ranks along axis 0, shape as given: 1 is lowest, ties share their mean rank."""
    lower = (losses[None] < losses[:, None]).sum(axis=1)
    equal = (losses[None] == losses[:, None]).sum(axis=1)
    return np.asarray(lower + (equal + 1) / 2)
