"""Measures of methods on one benchmark: normalised scores, regrets and ranks.

Notation:
    A   number of methods
    S   number of seeds (replications)
    T   number of tasks
    M   number of trials per task

    l[a, s, t, m]  lowest loss that method a found with seed s on task t in its first m trials
    L[a, t, m]     mean of l over seeds
    b[t], w[t]     best and worst loss known of task t
    u[t]           median loss of all of random search's trials on task t

Normalised score (Hellan et al. 2023, section 5.3), for the reproduction of that paper alone: on a
task on which random search ends near the best it divides by almost nothing.

    normalised score   100 (L[a, t, m] - L_best[t, M]) / (L_RS[t, M] - L_best[t, M])

    where L_best is the best mean among the compared methods and L_RS random search's.

Normalised regret: the min-max scaling of HPO-B (Pineda Arango et al. 2021) and YAHPO Gym (Pfisterer
et al. 2022); its mean over tasks is the average distance to the minimum of Wistuba et al. (2018).
Other papers use random search's loss as w: then 1 is random search.

    regret  (l[a, s, t, m] - b[t]) / (w[t] - b[t])

Score of the leaderboard: 0 is the best, 100 no better than half of all random configurations. It is
bounded, so that no task or benchmark outweighs the others.

    score   100 min(1, (l[a, s, t, m] - b[t]) / (u[t] - b[t]))

Ranks: 1 is best, ties share their mean rank.

    R[a, t, m]     rank of L[a, t, m] among the methods; the mean over tasks is that of Hellan et
                   al. (2023), section G.2 and figure 13
    r[a, s, t, m]  rank of l[a, s, t, m]; every other mean rank of the package is of these
    W[b, a, t, m]  share of the seeds that both b and a have finished on which b is better, ties
                   counting half; 1/2 where there is no such seed

    If method b has not finished seed s, r[a, s, t, m] counts it with W[b, a, t, m]. The mean of r
    over the seeds of method a is then 1 plus the sum of W[b, a] over all others: every pair is
    compared on all seeds that both have, whatever other methods have finished.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.analysis.samples import (
    Resampling,
    at_incumbents,
    defined_tasks,
    finished_runs,
    incumbents,
    independent_samples,
    mean_over_seeds,
    two_standard_errors,
)
from hpobench_ordered.errors import ExperimentError

RANDOM_SEARCH = "random-search"


@dataclass(frozen=True, slots=True)
class Scores:
    """A measure of several methods on the tasks of one benchmark."""

    methods: tuple[str, ...]
    values: FloatArray  # (A, S, T, M); NaN where undefined or not finished
    possible: tuple[float, float] = (-math.inf, math.inf)  # lowest and highest possible value

    @property
    def mean(self) -> FloatArray:
        """Mean over the seeds that each method has, shape (A, T, M)."""
        return mean_over_seeds(self.values)

    @property
    def two_standard_errors(self) -> FloatArray:
        """Twice the standard error of the mean over seeds, shape (A, T, M)."""
        return two_standard_errors(self.values)

    def over_tasks(self, *, trial: int, first_task: int = 0) -> "TaskMean":
        """Mean over tasks after a trial."""
        values = self.values[..., trial - 1]
        per_seed = independent_samples(values, Resampling.SEEDS, first_task=first_task).T
        return TaskMean(
            mean=mean_over_seeds(per_seed),
            two_standard_errors=two_standard_errors(per_seed),
            defined=int(defined_tasks(values[:, :, first_task:]).sum()),
            tasks=values.shape[2] - first_task,
        )


@dataclass(frozen=True, slots=True)
class TaskMean:
    """Mean of a measure over tasks and seeds."""

    mean: FloatArray  # (A,); NaN if it is defined on no task
    two_standard_errors: FloatArray  # over seeds, (A,)
    defined: int  # number of tasks that the mean is over
    tasks: int  # number of all tasks


def normalised_scores(losses: FloatArray, methods: Sequence[str]) -> Scores:
    """Normalised score of losses (A, S, T, M): random search scores 100 after all trials."""
    place, best = _random_search(methods), incumbents(losses)
    final = mean_over_seeds(best[..., -1])
    lowest = final.min(axis=0)
    span = final[place] - lowest
    span = np.where(span > 0, span, np.nan)
    with np.errstate(over="ignore"):
        values = 100 * (best - lowest[:, None]) / span[:, None]
    lacks = ~np.isfinite(values).all(axis=3) & finished_runs(losses)[:, :, None]
    values[:, :, lacks.any(axis=(0, 1))] = np.nan
    return Scores(methods=tuple(methods), values=values)


def robust_scores(losses: FloatArray, methods: Sequence[str], best: FloatArray) -> Scores:
    """Score of losses (A, S, T, M) for best losses b, (T,)."""
    median = np.nanmedian(losses[_random_search(methods)], axis=(0, 2))
    median = np.where(np.isfinite(median), median, np.nan)
    with np.errstate(over="ignore"):
        left = normalised_regrets(losses, best, median)
    return Scores(tuple(methods), 100 * np.minimum(left, 1), possible=(0, 100))


def _random_search(methods: Sequence[str]) -> int:
    if RANDOM_SEARCH not in methods:
        raise ExperimentError(
            f"scores compare with {RANDOM_SEARCH!r}, which is not among {list(methods)}"
        )
    return list(methods).index(RANDOM_SEARCH)


def best_known_losses(losses: FloatArray, regrets: FloatArray) -> FloatArray:
    """Best known losses b, (T,), from losses and regrets (A, S, T, M); NaN if unknown."""
    run = tuple(np.argwhere(finished_runs(losses))[0])  # the same in every run
    final = incumbents(losses[run])[:, -1]
    return np.asarray(final - at_incumbents(regrets[run], losses[run])[:, -1])


def lowest_losses(losses: FloatArray) -> FloatArray:
    """Lowest finite loss that any method found, (A, S, T, M) to (T,)."""
    return -highest_losses(-losses)


def highest_losses(losses: FloatArray) -> FloatArray:
    """Highest finite loss that any method found, (A, S, T, M) to (T,); regrets use it as w."""
    worst = np.where(np.isfinite(losses), losses, -np.inf).max(axis=(0, 1, 3))
    return np.where(np.isfinite(worst), worst, np.nan)


def normalised_regrets(losses: FloatArray, best: FloatArray, worst: FloatArray) -> FloatArray:
    """Normalised regret, (A, S, T, M), for b and w, (T,); NaN on tasks where b is not below w."""
    span = np.where(worst > best, worst - best, np.nan)
    return np.asarray((incumbents(losses) - best[:, None]) / span[:, None])


def ranks_of_means(losses: FloatArray, methods: Sequence[str]) -> Scores:
    """Ranks R, from mean losses or, equally, scores (A, S, T, M); tasks stand for seeds."""
    ranks = rank_over_methods(incumbents(losses).mean(axis=1))
    return Scores(tuple(methods), ranks[:, :, None], possible=(1, len(methods)))


def ranks_by_seed(losses: FloatArray, methods: Sequence[str]) -> Scores:
    """Ranks r of losses (A, S, T, M), each seed by itself; NaN in unfinished runs."""
    best = incumbents(losses)
    ranks = rank_over_methods(best)
    finished = finished_runs(losses)
    for b in np.flatnonzero(~finished.all(axis=1)):
        for a in range(len(methods)):
            alone = finished[a] & ~finished[b]
            if alone.any():
                ranks[a, alone] += _share_better(best, finished, int(b), a)
    ranks[~finished] = np.nan
    return Scores(tuple(methods), ranks, possible=(1, len(methods)))


def _share_better(best: FloatArray, finished: BoolArray, b: int, a: int) -> FloatArray | float:
    """W[b, a], (T, M)."""
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
