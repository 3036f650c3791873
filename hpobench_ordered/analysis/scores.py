"""Measures of methods on one benchmark: normalised scores, regrets and ranks.

Notation:
    A   number of methods
    S   number of seeds (replications)
    T   number of tasks
    M   number of trials per task

    l[a, s, t, m]  lowest loss that method a found with seed s on task t in its first m trials; a
                   failed evaluation has an infinite loss in ranks, and the worst finite loss of the
                   task, w[t], in all other measures
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

    A W of few seeds is less certain than one of many. For the standard error of the mean of r over
    seeds to be right, the deviations of r[a] from its mean are scaled, with the notation

    S_a      number of seeds in which method a is ranked
    S_ab     number of those that method b has finished, too
    partner  a method b of at least 5 common seeds S_ab, or of the most if all have fewer

    Deviations from W[b, a] in the common seeds with a partner, S_ab of the S_a, are scaled by

    f[b, a]  sqrt(S_a (S_a - 1) / (S_ab (S_ab - 1)))

    Few outcomes do not tell how much they vary: deviations from W of methods that are no partners
    are left out. Their outcomes are taken to vary as those of the m partners do, and together with
    them, as both are due to method a. A seed s then has the weight h[s] in the mean, instead of
    m / S_a, and the deviations due to the partners are scaled by g[a]:

    h[a, s]  m / S_a + the sum of 1 / S_ab over methods b that are no partners and have finished s
    g[a]     sqrt(S_a sum over s of h[a, s]^2) / m

    If no outcome against a partner ever varies, nothing tells how much those against the others do.
    The mean of r then has no error: it is that of a single seed.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.analysis.bootstrap import MIN_SAMPLES_OF_INTERVAL
from hpobench_ordered.analysis.samples import (
    Resampling,
    at_incumbents,
    defined_tasks,
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
    values: FloatArray  # (methods, seeds, tasks, trials); NaN where undefined or not finished
    possible: tuple[float, float] = (-math.inf, math.inf)  # lowest and highest possible value

    @property
    def mean(self) -> FloatArray:
        """Mean over the seeds that each method has finished, shape (methods, tasks, trials)."""
        return mean_over_seeds(self.values)

    @property
    def two_standard_errors(self) -> FloatArray:
        """Twice the standard error of the mean over seeds, shape (methods, tasks, trials)."""
        return two_standard_errors(self.values)

    def over_tasks(self, *, trial: int, first_task: int = 0) -> "TaskMean":
        """Average the measure over seeds and tasks after a trial.

        Args:
            trial: The trial, counted from 1.
            first_task: First task that counts, from 0; 1 leaves out the task without history.
        """
        values = self.values[..., trial - 1]  # (methods, seeds, tasks)
        # One sample for each seed: its mean over tasks, (seeds, methods).
        samples = independent_samples(values, Resampling.SEEDS, first_task=first_task)
        seed_means = samples.T
        is_defined = defined_tasks(values[:, :, first_task:])
        return TaskMean(
            mean=mean_over_seeds(seed_means),
            two_standard_errors=two_standard_errors(seed_means),
            defined=int(is_defined.sum()),
            tasks=len(is_defined),
        )


@dataclass(frozen=True, slots=True)
class TaskMean:
    """Mean of a measure over tasks and seeds, for each method."""

    mean: FloatArray  # (methods,); NaN if it is defined on no task
    two_standard_errors: FloatArray  # over seeds, (methods,)
    defined: int  # number of tasks that the mean is over
    tasks: int  # number of all tasks


def normalised_scores(losses: FloatArray, methods: Sequence[str]) -> Scores:
    """Scale losses so that 0 is the best method after all trials, and 100 is random search then.

    The losses of the best method and of random search are means over seeds. Scores are NaN on tasks
    on which random search is as good as the best method, or so close to it that a score would be
    infinite.

    Args:
        losses: Loss of every trial, (methods, seeds, tasks, trials).
        methods: Names of the methods, in the order of the first axis; random search is one.

    Returns:
        Scores of the best trial so far, (methods, seeds, tasks, trials).
    """
    best_so_far = incumbents(losses)
    final_means = best_so_far[..., -1].mean(axis=1)  # (methods, tasks)
    best_means = final_means.min(axis=0)  # (tasks,)
    random_search_means = final_means[_index_of_random_search(methods)]

    span = random_search_means - best_means
    span = np.where(span > 0, span, np.nan)
    with np.errstate(over="ignore"):  # a tiny span; made NaN below
        values = 100 * (best_so_far - best_means[:, None]) / span[:, None]

    # An undefined score in any run leaves the task out, so that all runs have the same tasks.
    is_undefined_task = ~np.isfinite(values).all(axis=(0, 1, 3))
    values[:, :, is_undefined_task] = np.nan
    return Scores(methods=tuple(methods), values=values)


def robust_scores(
    losses: FloatArray,
    methods: Sequence[str],
    best: FloatArray,
    *,
    is_finished: BoolArray | None = None,
) -> Scores:
    """Compute scores: 0 is the best, 100 no better than half of all random configurations.

    Args:
        losses: Loss of every trial, (methods, seeds, tasks, trials), with failures replaced as by
            `replace_failures`.
        methods: Names of the methods, in the order of the first axis.
        best: Best known or lowest loss of each task, (tasks,).
        is_finished: Which runs are finished, (methods, seeds); default: all.

    Returns:
        Scores of the best trial so far, (methods, seeds, tasks, trials).

    Raises:
        ExperimentError: Random search is not among the methods.
    """
    index = _index_of_random_search(methods)
    random_search_losses = losses[index]  # (seeds, tasks, trials)
    if is_finished is not None:
        random_search_losses = random_search_losses[is_finished[index]]
    median = np.median(random_search_losses, axis=(0, 2))  # of each task
    median = np.where(np.isfinite(median), median, np.nan)  # no score relative to infinity
    with np.errstate(over="ignore"):  # infinity becomes a score of 100
        # The score is a regret whose unit is the distance from the best loss to the median.
        relative_regrets = normalised_regrets(losses, best, median)
    scores = 100 * np.minimum(relative_regrets, 1)
    if is_finished is not None:
        scores[~is_finished] = np.nan
    return Scores(tuple(methods), scores, possible=(0, 100))


def _index_of_random_search(methods: Sequence[str]) -> int:
    """Return the index of random search among the methods.

    Raises:
        ExperimentError: Random search is not among the methods.
    """
    if RANDOM_SEARCH not in methods:
        raise ExperimentError(
            f"scores compare with {RANDOM_SEARCH!r}, which is not among {list(methods)}"
        )
    return list(methods).index(RANDOM_SEARCH)


def best_known_losses(
    losses: FloatArray, regrets: FloatArray, *, is_finished: BoolArray | None = None
) -> FloatArray:
    """Find the best known loss of each task, (tasks,); NaN where it is unknown.

    The regret of a trial is its loss minus the best known loss of the task. The best known loss is
    therefore the loss of any trial minus its regret. The function takes the trial of lowest loss in
    the first finished run.

    Args:
        losses: Loss of every trial, (methods, seeds, tasks, trials), with failures replaced as by
            `replace_failures`.
        regrets: How much each loss is above the best known one, (methods, seeds, tasks, trials).
        is_finished: Which runs are finished, (methods, seeds); default: all.
    """
    method, seed = 0, 0
    if is_finished is not None:
        method, seed = np.argwhere(is_finished)[0]  # the first finished run
    run_losses = losses[method, seed]  # (tasks, trials)
    run_regrets = regrets[method, seed]
    final_losses = incumbents(run_losses)[:, -1]
    final_regrets = at_incumbents(run_regrets, run_losses)[:, -1]
    return np.asarray(final_losses - final_regrets)


def lowest_losses(losses: FloatArray) -> FloatArray:
    """Find the lowest finite loss of any method on each task, (tasks,); NaN if none is finite.

    Args:
        losses: Loss of every trial, (methods, seeds, tasks, trials).
    """
    return -highest_losses(-losses)  # the lowest loss is the highest of the negative ones


def highest_losses(losses: FloatArray) -> FloatArray:
    """Find the highest finite loss of any method on each task, (tasks,); NaN if none is finite.

    Normalised regrets divide by the distance from the best loss to this one, where they are 1.

    Args:
        losses: Loss of every trial, (methods, seeds, tasks, trials).
    """
    finite_losses = np.where(np.isfinite(losses), losses, -np.inf)  # others are never the highest
    highest = finite_losses.max(axis=(0, 1, 3))  # over all but tasks
    return np.where(np.isfinite(highest), highest, np.nan)


def normalised_regrets(losses: FloatArray, best: FloatArray, worst: FloatArray) -> FloatArray:
    """Compute normalised regrets of the best trial so far: (loss - best) / (worst - best).

    Args:
        losses: Loss of every trial, (methods, seeds, tasks, trials).
        best: Best loss of each task, (tasks,).
        worst: Worst loss of each task, (tasks,).

    Returns:
        Regrets, (methods, seeds, tasks, trials); NaN on tasks where the best loss is not below the
        worst.
    """
    span = np.where(worst > best, worst - best, np.nan)
    return np.asarray((incumbents(losses) - best[:, None]) / span[:, None])


def ranks_of_means(losses: FloatArray, methods: Sequence[str]) -> Scores:
    """Rank the methods by their mean losses, or mean scores, over seeds; 1 is best.

    Args:
        losses: Losses, or scores, (methods, seeds, tasks, trials).
        methods: Names of the methods, in the order of the first axis.

    Returns:
        Ranks, (methods, tasks, 1, trials). Ranks of means have no seeds. The axis of `Scores` that
        usually holds seeds holds the tasks here, and the axis of tasks has length 1. Standard
        errors, which are over that axis, are therefore over tasks.
    """
    mean_losses = incumbents(losses).mean(axis=1)  # (methods, tasks, trials)
    ranks = rank_over_methods(mean_losses)
    return Scores(tuple(methods), ranks[:, :, None], possible=(1, len(methods)))


def ranks_by_seed(
    losses: FloatArray,
    methods: Sequence[str],
    *,
    is_finished: BoolArray | None = None,
    first_task: int = 0,
) -> Scores:
    """Rank the methods by the best trial so far, in each seed by itself; 1 is best.

    The rank of a method is 1 plus the number of methods that are better. Where another method has
    not finished the seed, it is unknown whether it would be better: it then adds to the rank the
    share of the other seeds on which it is better.

    If methods have different seeds, ranks are right in their mean over seeds and in its standard
    error, but a single one may be beyond the possible ranks: see the module's notation.

    Args:
        losses: Loss of every trial, infinite where it failed, (methods, seeds, tasks, trials).
        methods: Names of the methods, in the order of the first axis.
        is_finished: Which runs are finished, (methods, seeds); default: all.
        first_task: First task that counts in means over tasks, from 0.

    Returns:
        Ranks, (methods, seeds, tasks, trials). NaN in runs that are not finished, in seeds that a
        method has in common with none of its partners (see the notation), and in all seeds but one
        after trials where the mean has no error.
    """
    best_so_far = incumbents(losses)
    if is_finished is None:
        is_finished = np.ones(losses.shape[:2], dtype=np.bool_)

    have_same_seeds = bool((is_finished == is_finished[:1]).all())
    if have_same_seeds:
        ranks = rank_over_methods(best_so_far)
    else:
        ranks = np.stack(
            [
                _ranks_on_own_seeds(a, best_so_far, is_finished, first_task)
                for a in range(len(methods))
            ]
        )
    ranks[~is_finished] = np.nan
    return Scores(tuple(methods), ranks, possible=(1, len(methods)))


def _ranks_on_own_seeds(
    a: int, best_so_far: FloatArray, is_finished: BoolArray, first_task: int
) -> FloatArray:
    """Rank method a in each seed, where methods have different seeds, (seeds, tasks, trials).

    Args:
        a: Index of the method.
        best_so_far: Lowest loss of every run so far, (methods, seeds, tasks, trials).
        is_finished: Which runs are finished, (methods, seeds).
        first_task: First task that counts in means over tasks, from 0.
    """
    is_common = is_finished & is_finished[a]  # by method: the seeds that it shares with a
    n_common = is_common.sum(axis=1)  # number of seeds that each method shares with a
    others = [b for b in range(len(is_finished)) if b != a]
    most_in_common = n_common[others].max()

    mean_rank = np.ones(best_so_far.shape[2:])  # (tasks, trials)
    for b in others:
        outcomes = _compare_in_common_seeds(best_so_far[b], best_so_far[a], is_common[b])
        mean_rank += outcomes.mean(axis=0)  # W
    ranks = np.full(best_so_far.shape[1:], np.nan)  # (seeds, tasks, trials)
    if most_in_common < 2:  # a single seed tells nothing of deviations: only the mean is known
        first_seed = is_finished[a].argmax()
        ranks[first_seed] = mean_rank
        return ranks

    n_needed = min(MIN_SAMPLES_OF_INTERVAL, most_in_common)
    partners = [b for b in others if n_common[b] >= n_needed]
    is_ranked = is_common[partners].any(axis=0)  # (seeds,)
    n_ranked = is_ranked.sum()

    deviations = np.zeros(ranks.shape)
    seed_weights = np.where(is_ranked, len(partners) / n_ranked, 0.0)  # h
    for b in others:
        outcomes = _compare_in_common_seeds(best_so_far[b], best_so_far[a], is_common[b])
        if b in partners:
            factor = np.sqrt(n_ranked * (n_ranked - 1) / (n_common[b] * (n_common[b] - 1)))  # f
            deviations[is_common[b]] += factor * (outcomes - outcomes.mean(axis=0))
        elif n_common[b] > 0:
            seed_weights[is_common[b]] += 1 / n_common[b]
    scale = np.sqrt(n_ranked * (seed_weights**2).sum()) / len(partners)  # g
    ranks[is_ranked] = mean_rank + scale * deviations[is_ranked]

    if len(partners) < len(others):
        # Where outcomes against partners never vary, the deviations of the others cannot be
        # estimated: the mean rank stands in one seed alone, and thus has no error.
        never_varies = ~deviations[:, first_task:].any(axis=(0, 1))  # (trials,)
        first_seed = is_ranked.argmax()
        ranks[:, :, never_varies] = np.nan
        ranks[first_seed][:, never_varies] = mean_rank[:, never_varies]
    return ranks


def _compare_in_common_seeds(
    losses: FloatArray, other_losses: FloatArray, is_common_seed: BoolArray
) -> FloatArray:
    """Compare a method with another one in their common seeds, (common seeds, tasks, trials).

    The outcome is 1 where the method has the lower loss, 1/2 where both have the same loss, and 0
    where the other one has the lower loss. If there is no common seed, the result is a single row
    of 1/2, as nothing is known.

    Args:
        losses: Lowest losses so far of the method, (seeds, tasks, trials).
        other_losses: Lowest losses so far of the other method, (seeds, tasks, trials).
        is_common_seed: Which seeds both have finished, (seeds,).
    """
    if not is_common_seed.any():
        return np.full((1, *losses.shape[1:]), 0.5)
    is_better = losses[is_common_seed] < other_losses[is_common_seed]
    is_equal = losses[is_common_seed] == other_losses[is_common_seed]
    return np.asarray(is_better + is_equal / 2)


def rank_over_methods(losses: FloatArray) -> FloatArray:
    """Rank losses along the first axis: 1 is the lowest loss, and equal losses share a mean rank.

    Args:
        losses: Losses, (methods, ...).
    """
    ranks = np.empty(losses.shape)
    # Method by method, as comparing all pairs at once would need much memory.
    for a, losses_a in enumerate(losses):
        n_better = (losses < losses_a).sum(axis=0)
        n_equal = (losses == losses_a).sum(axis=0)  # at least 1: the method itself
        # Equal losses share the ranks from n_better + 1 to n_better + n_equal, whose mean this is.
        ranks[a] = n_better + (n_equal + 1) / 2
    return ranks
