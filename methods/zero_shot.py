"""ZeroShot: a portfolio of configurations that complement each other on the previous tasks.

Wistuba, Schilling and Schmidt-Thieme (2015b), Sequential model-free hyperparameter tuning.

=======  ======  ==================================================================================
symbol   shape   meaning
=======  ======  ==================================================================================
t, m     scalar  previous tasks, candidates
d        scalar  hyperparameters
L        (t, m)  losses, standardised task by task: measured, or else predicted
R        (t, m)  ranks within each task, 1 for the best
=======  ======  ==================================================================================
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import BoolArray, Config, FloatArray, IntArray
from hpobench_ordered.methods._candidates import Region, configuration_key, iter_candidate_blocks
from hpobench_ordered.methods._model_based import DesignOnly, replace_failed_evaluations
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.simple_ordered import order_configurations
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    from hpobench_ordered.data.history import Evaluations

CANDIDATES = 2000
"""The portfolio is chosen from this many configurations."""
MAX_EVALUATIONS = 20_000
"""Trees are fitted to at most this many evaluations of all tasks together."""


class ZeroShot(DesignOnly):
    """Suggests a portfolio in the order of its construction.

    Candidates are the configurations of the previous tasks and random ones, about 2000 in all; if
    the previous tasks have more, the best of each. Each is ranked on every previous task by its
    mean loss or, if it was not evaluated there, by the prediction of boosted trees fitted to that
    task. `choose_portfolio` chooses among them. With a single previous task, its evaluated
    configurations come first, sorted by loss.

    Hellan et al. (2023) ran Syne Tune's implementation, which draws different random configurations
    for every task but averages their ranks; here all tasks rank the same ones, as in the paper.
    """

    def initial_configurations(self) -> Sequence[Config]:
        """Choose the portfolio: configurations that complement each other on the previous tasks.

        There are as many as trials; none without previous tasks.
        """
        tasks = replace_failed_evaluations(self.history)
        if not tasks:
            return ()
        values = _choose_configurations(tasks, self.space, self.rng, count=self.budget)
        return self.space.configs(values)


def choose_portfolio(R: FloatArray, *, count: int) -> list[int]:
    """Choose candidates greedily to minimise the portfolio's mean rank.

    The rank of a portfolio on a task is that of its best member. The next member minimises the mean
    of these ranks over the tasks; ties are broken by lower mean rank, then by order. If no
    candidate lowers the mean, another portfolio is started from the remaining ones, as in Syne
    Tune's implementation.

    Args:
        R: Ranks of m candidates on each of t tasks, shape (t, m).
        count: Size of the portfolio.

    Returns:
        Columns of R, at most m, in the order in which they are chosen.
    """
    candidate_means = R.mean(axis=0)  # later inf for those that are chosen
    no_ranks = np.full((len(R), 1), np.inf)  # of an empty portfolio on each task
    portfolio_ranks = no_ranks
    chosen: list[int] = []
    for _ in range(min(count, R.shape[1])):
        # Mean rank of the portfolio if a candidate is added, for each candidate.
        means_with_candidate = np.minimum(R, portfolio_ranks).mean(axis=0)
        means_with_candidate[chosen] = np.inf  # they cannot be chosen again
        if means_with_candidate.min() >= portfolio_ranks.mean():  # another portfolio
            portfolio_ranks = no_ranks
            means_with_candidate = candidate_means

        tied = np.flatnonzero(means_with_candidate == means_with_candidate.min())
        best = int(tied[np.argmin(candidate_means[tied])])
        chosen.append(best)
        portfolio_ranks = np.minimum(portfolio_ranks, R[:, [best]])
        candidate_means[best] = np.inf  # nor can it start another portfolio
    return chosen


def rank_rows(L: FloatArray) -> FloatArray:
    """Rank the losses (t, m) within each row, from 1 for the lowest; ties get their mean rank."""
    rows = []
    for losses in L:
        _, group, group_sizes = np.unique(losses, return_inverse=True, return_counts=True)
        # Equal losses are a group; groups are in ascending order, and hold successive ranks.
        highest_ranks = np.cumsum(group_sizes)
        mean_ranks = highest_ranks - 0.5 * (group_sizes - 1)
        rows.append(mean_ranks[group])
    return np.array(rows)


def _choose_configurations(
    tasks: "Sequence[Evaluations]", space: SearchSpace, rng: np.random.Generator, *, count: int
) -> FloatArray:
    """Choose the configurations to suggest, coded values (at most count, d), in their order.

    Those of several tasks minimise the mean rank over the tasks; of a single task they are the
    configurations of lowest loss.

    Args:
        tasks: Finite evaluations of the previous tasks.
        space: The search space.
        rng: Draws random candidates, and subsamples large tasks.
        count: Number of configurations to choose.
    """
    # The best configurations of the tasks, `CANDIDATES` at most.
    candidates = order_configurations(tasks, count=CANDIDATES)
    # A single task needs random ones only if it has too few configurations of its own.
    if len(tasks) > 1 or len(candidates) < count:
        candidates = _add_random_configurations(candidates, space, rng)

    # Losses (tasks, candidates), and which of them were measured; the others are predicted.
    L, is_measured = _collect_losses(tasks, candidates, space, rng)
    if len(tasks) == 1:
        # Measured ones first, whatever is predicted for the others; by loss within both groups.
        losses, is_predicted = L[0], ~is_measured[0]
        order = np.lexsort((losses, is_predicted))[:count]  # the last key is the primary one
    else:
        order = np.array(choose_portfolio(rank_rows(L), count=count))
    return candidates[order]


def _add_random_configurations(
    configurations: FloatArray, space: SearchSpace, rng: np.random.Generator
) -> FloatArray:
    """Add random configurations up to `CANDIDATES` distinct ones.

    Args:
        configurations: Configurations of the previous tasks, coded values, shape (k, d).
        space: The search space.
        rng: Draws the others.

    Returns:
        Coded values, shape (m, d), those of the previous tasks first.
    """
    # Random points of the unit cube; all configurations if there are few.
    block = next(iter_candidate_blocks(Region(space), rng, size=CANDIDATES))
    random_configurations = space.decode(block)
    distinct: dict[bytes, FloatArray] = {}  # by key, those of the previous tasks first
    for row in np.concatenate([configurations, random_configurations]):
        distinct[configuration_key(row)] = row
    return np.array(list(distinct.values())[:CANDIDATES])


def _collect_losses(
    tasks: "Sequence[Evaluations]",
    candidates: FloatArray,
    space: SearchSpace,
    rng: np.random.Generator,
) -> tuple[FloatArray, BoolArray]:
    """Collect the losses of candidates on each task: measured ones, otherwise predicted ones.

    Args:
        tasks: Finite evaluations of the previous tasks.
        candidates: Coded values, shape (m, d).
        space: The search space.
        rng: Subsamples large tasks for the fit.

    Returns:
        Standardised losses of m candidates on t tasks, (t, m), and whether each of them was
        measured, (t, m).
    """
    from hpobench_ordered.methods._boosting.model import BoostedTrees
    from hpobench_ordered.methods._gp.model import standardise

    column_of_key = {configuration_key(row): column for column, row in enumerate(candidates)}
    X = space.features(space.encode(candidates))
    max_per_task = math.ceil(MAX_EVALUATIONS / len(tasks))

    L = np.empty((len(tasks), len(candidates)))
    is_measured = np.zeros(L.shape, dtype=np.bool_)
    for i, task in enumerate(tasks):
        losses = standardise(task.losses)

        fitted = np.arange(len(task))
        if len(task) > max_per_task:  # larger fits would take too long
            fitted = rng.permutation(len(task))[:max_per_task]
        task_X = space.features(space.encode(task.values[fitted]))
        L[i] = BoostedTrees.fit(task_X, losses[fitted]).predict(X)

        # -1: no candidate; such an evaluation is in the fit, but no candidate's measurement.
        columns = [column_of_key.get(configuration_key(row), -1) for row in task.values]
        mean_losses, is_measured[i] = _average_by_column(np.array(columns), losses, len(candidates))
        L[i, is_measured[i]] = mean_losses[is_measured[i]]
    return L, is_measured


def _average_by_column(
    columns: IntArray, losses: FloatArray, count: int
) -> tuple[FloatArray, BoolArray]:
    """Average the measurements of each candidate, which may be repeated or missing.

    Args:
        columns: Candidate of each measurement, -1 if it is none of them, shape (n,).
        losses: The measurements, shape (n,).
        count: Number of candidates, m.

    Returns:
        Mean loss of each candidate (m,), 0 if it was not measured, and whether it was, (m,).
    """
    is_candidate = columns >= 0
    measured_columns = columns[is_candidate]
    repeats = np.bincount(measured_columns, minlength=count)
    totals = np.bincount(measured_columns, weights=losses[is_candidate], minlength=count)
    means = totals / np.maximum(repeats, 1)  # no division by 0 where there is no measurement
    return means, repeats > 0


SPECS = (
    MethodSpec(
        name="zero-shot",
        method=ZeroShot,
        summary="A portfolio chosen greedily for the previous tasks.",
        source=(
            "Wistuba et al. (2015b), as in Hellan et al. (2023), section 5.1, with boosted trees "
            "(XGBoost's defaults) where a previous task did not evaluate a configuration"
        ),
        min_history=1,
        version=2,
    ),
)
