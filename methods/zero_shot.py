"""ZeroShot: a portfolio of configurations that complement each other on the previous tasks.

Wistuba, Schilling and Schmidt-Thieme (2015b), Sequential model-free hyperparameter tuning.

==========  ==============  =======================================================================
symbol      shape           meaning
==========  ==============  =======================================================================
t, m        scalars         previous tasks, candidates
L           (t, m)          losses, standardised task by task
R           (t, m)          ranks within each task, 1 for the best
==========  ==============  =======================================================================
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import BoolArray, Config, FloatArray
from hpobench_ordered.methods._candidates import Region, configuration_key, iter_candidate_blocks
from hpobench_ordered.methods._model_based import DesignOnly, remove_failed_evaluations
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.simple_ordered import order_configurations
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    from hpobench_ordered.core.history import Evaluations

CANDIDATES = 2000
"""Number of configurations that the portfolio is chosen from."""
MAX_EVALUATIONS = 20_000
"""Largest total number of evaluations that trees are fitted to; tasks with more are subsampled."""


class ZeroShot(DesignOnly):
    """Suggests a portfolio in the order of its construction.

    Candidates are the configurations of the previous tasks and random ones, about 2000 in all; if
    the previous tasks have more, the best of each. Each is ranked on every previous task by its
    mean loss or, if it was not evaluated there, by the prediction of boosted trees fitted to that
    task. `portfolio` chooses among them. With a single previous task, its evaluated configurations
    come first, sorted by loss.

    Hellan et al. (2023) ran Syne Tune's implementation, which draws different random configurations
    for every task but averages their ranks; here all tasks rank the same ones, as in the paper.
    """

    def initial_configurations(self) -> Sequence[Config]:
        """The portfolio, of as many configurations as there are trials."""
        tasks = remove_failed_evaluations(self.history)
        if not tasks:
            return ()
        return self.space.configs(_chosen(tasks, self.space, self.rng, count=self.budget))


def portfolio(R: FloatArray, *, count: int) -> list[int]:
    """Choose candidates greedily to minimise the portfolio's mean rank.

    The rank of a portfolio on a task is that of its best member. The next member minimises the mean
    of these ranks over the tasks; ties are broken by lower mean rank, then by order. If no
    candidate lowers the mean, another portfolio is started from the remaining ones, as in Syne
    Tune's implementation.

    Args:
        R: Ranks, shape (t, m).
        count: Size of the portfolio.

    Returns:
        Columns of R, at most m, in the order in which they are chosen.
    """
    mean_ranks = R.mean(axis=0)
    empty = np.full((len(R), 1), np.inf)
    reached = empty
    chosen: list[int] = []
    for _ in range(min(count, R.shape[1])):
        means = np.minimum(R, reached).mean(axis=0)
        means[chosen] = np.inf
        if means.min() >= reached.mean():
            reached, means = empty, mean_ranks
        tied = np.flatnonzero(means == means.min())
        best = int(tied[np.argmin(mean_ranks[tied])])
        chosen.append(best)
        reached = np.minimum(reached, R[:, [best]])
        mean_ranks[best] = np.inf
    return chosen


def ranks(L: FloatArray) -> FloatArray:
    """Ranks of the losses (t, m) within each row; ties get their mean rank."""
    rows = []
    for losses in L:
        _, place, repeats = np.unique(losses, return_inverse=True, return_counts=True)
        rows.append((np.cumsum(repeats) - 0.5 * (repeats - 1))[place])
    return np.array(rows)


def _chosen(
    tasks: "Sequence[Evaluations]", space: SearchSpace, rng: np.random.Generator, *, count: int
) -> FloatArray:
    """The portfolio, coded as values, shape (at most count, d)."""
    candidates = order_configurations(tasks, count=CANDIDATES)
    if len(tasks) > 1 or len(candidates) < count:
        candidates = _with_random_ones(candidates, space, rng)
    L, measured = _losses(tasks, candidates, space, rng)
    if len(tasks) == 1:
        order = np.lexsort((L[0], ~measured[0]))[:count]
    else:
        order = np.array(portfolio(ranks(L), count=count))
    return candidates[order]


def _with_random_ones(
    configurations: FloatArray, space: SearchSpace, rng: np.random.Generator
) -> FloatArray:
    """Add random configurations, all distinct, coded as values, shape (at most 2000, d)."""
    block = space.decode(next(iter_candidate_blocks(Region(space), rng, size=CANDIDATES)))
    distinct = {configuration_key(row): row for row in np.concatenate([configurations, block])}
    return np.array(list(distinct.values())[:CANDIDATES])


def _losses(
    tasks: "Sequence[Evaluations]",
    candidates: FloatArray,
    space: SearchSpace,
    rng: np.random.Generator,
) -> tuple[FloatArray, BoolArray]:
    """Standardised L (t, m) of candidates (m, d), and whether each was measured, (t, m)."""
    from hpobench_ordered.methods._boosting.model import BoostedTrees
    from hpobench_ordered.methods._gp.model import standardise

    place = {configuration_key(row): j for j, row in enumerate(candidates)}
    features = space.features(space.encode(candidates))
    L = np.empty((len(tasks), len(candidates)))
    measured = np.zeros(L.shape, dtype=np.bool_)
    share = -(-MAX_EVALUATIONS // len(tasks))
    for i, task in enumerate(tasks):
        losses = standardise(task.losses)
        fitted = slice(None) if len(task) <= share else rng.permutation(len(task))[:share]
        X = space.features(space.encode(task.values[fitted]))
        L[i] = BoostedTrees.fitted(X, losses[fitted]).predict(features)
        column = np.array([place.get(configuration_key(row), -1) for row in task.values])
        column, losses = column[column >= 0], losses[column >= 0]
        repeats = np.bincount(column, minlength=len(candidates))
        measured[i] = repeats > 0
        totals = np.bincount(column, weights=losses, minlength=len(candidates))
        L[i, measured[i]] = totals[measured[i]] / repeats[measured[i]]
    return L, measured


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
