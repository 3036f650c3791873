"""Ranks of methods, by seed or as in Hellan et al. (2023), section G.2 and figure 13.

Notation:
    A   number of methods
    S   number of seeds
    T   number of tasks
    M   number of trials per task

    L[a, t, m]  mean over seeds of the best loss method a found on task t in its first m trials
    R[a, t, m]  rank of L[a, t, m] among the A methods: 1 is best, ties share their mean rank
    rank        mean of R[a, t, m] over tasks; its standard error is that over tasks

Ranks by seed, of which every mean rank of the package but that figure's is made:

    r[a, s, t, m]   rank of the best loss of method a with seed s on task t after m trials
    W[b, a, t, m]   share of the seeds that both b and a have finished on which b is better, ties
                    counting half; 1/2 where there is no such seed

    A method b that has not finished seed s takes part in r[a, s, t, m] with W[b, a, t, m]. A mean
    of r over the seeds of method a is so 1 plus the sum of W[b, a] over all others: every pair is
    compared on all seeds that both have, and a failed run of one method takes no seed from another
    pair.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.analysis.samples import finished_runs
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
        losses: Loss of every trial, shape (A, S, T, M); NaN in runs that were not finished.
        methods: Names of the methods, length A.

    Returns:
        The ranks r among the methods: 1 is best, ties share their mean rank.
    """
    best = incumbents(losses)
    ranks = rank_over_methods(best)
    finished = finished_runs(losses)
    for b in np.flatnonzero(~finished.all(axis=1)):
        for a in range(len(methods)):
            alone = finished[a] & ~finished[b]
            if alone.any():
                ranks[a, alone] += _share_better(best, finished, int(b), a)
    ranks[~finished] = np.nan
    return Scores(tuple(methods), ranks)


def _share_better(best: FloatArray, finished: BoolArray, b: int, a: int) -> FloatArray | float:
    """W[b, a], shape (T, M)."""
    common = finished[a] & finished[b]
    if not common.any():
        return 0.5
    one, other = best[b, common], best[a, common]
    return np.asarray(((one < other) + (one == other) / 2).mean(axis=0))


def rank_over_methods(losses: FloatArray) -> FloatArray:
    """Ranks along axis 0, of the same shape: 1 is lowest, ties share their mean rank."""
    ranks = np.empty(losses.shape)
    for a, row in enumerate(losses):  # one at a time, as all pairs at once need much memory
        ranks[a] = (losses < row).sum(axis=0) + ((losses == row).sum(axis=0) + 1) / 2
    return ranks
