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
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import BoolArray, Config, FloatArray
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

        There is one for each trial; without previous tasks there are none.
        """
        tasks = replace_failed_evaluations(self.history)
        if not tasks:
            return ()
        values = _choose_configurations(tasks, self.space, self.rng, count=self.budget)
        return self.space.configs(values)


def choose_portfolio(R: FloatArray, *, count: int) -> list[int]:
    """Choose candidates one by one, so that the portfolio of those chosen has a low mean rank.

    The rank of a portfolio on a task is that of its best member. Each new member minimises the mean
    of these ranks over the tasks. If several do, the one with the lowest mean rank of its own is
    chosen, then the first. If no candidate lowers the portfolio's mean rank, another portfolio is
    started from the remaining candidates, as in Syne Tune's implementation.

    Args:
        R: Ranks of m candidates on each of t tasks, shape (t, m). Predicted losses serve as well.
        count: Number of candidates to choose.

    Returns:
        Columns of R in the order in which they are chosen; all m if `count` is larger.
    """
    # Mean rank of each candidate; inf for those that are chosen, so that none is chosen twice.
    candidate_means = R.mean(axis=0)
    empty_portfolio = np.full((len(R), 1), np.inf)  # its rank on each task
    portfolio_ranks = empty_portfolio
    chosen: list[int] = []
    for _ in range(min(count, R.shape[1])):
        # Mean rank of the portfolio with one more member, for each candidate.
        extended_means = np.minimum(R, portfolio_ranks).mean(axis=0)
        extended_means[chosen] = np.inf
        is_improvable = extended_means.min() < portfolio_ranks.mean()
        if not is_improvable:  # start another portfolio
            portfolio_ranks = empty_portfolio
            extended_means = candidate_means

        equally_good = np.flatnonzero(extended_means == extended_means.min())
        best = int(equally_good[np.argmin(candidate_means[equally_good])])
        chosen.append(best)
        portfolio_ranks = np.minimum(portfolio_ranks, R[:, [best]])
        candidate_means[best] = np.inf
    return chosen


def rank_rows(L: FloatArray) -> FloatArray:
    """Rank the losses (t, m) within each row, from 1 for the lowest; ties get their mean rank."""
    ranks = []
    for losses in L:
        # Equal losses are a group. Groups are in ascending order.
        _, group_of_loss, group_sizes = np.unique(losses, return_inverse=True, return_counts=True)
        # The members of a group have successive ranks, of which they get the mean.
        highest_rank_of_group = np.cumsum(group_sizes)
        mean_rank_of_group = highest_rank_of_group - 0.5 * (group_sizes - 1)
        ranks.append(mean_rank_of_group[group_of_loss])
    return np.array(ranks)


def _choose_configurations(
    tasks: "Sequence[Evaluations]", space: SearchSpace, rng: np.random.Generator, *, count: int
) -> FloatArray:
    """Choose the configurations to suggest, in the order of the suggestions.

    With several previous tasks they form a portfolio of low mean rank over the tasks. With a single
    one they are those that it evaluated, sorted by loss; if these are too few, those of lowest
    predicted loss follow.

    Args:
        tasks: Finite evaluations of the previous tasks.
        space: The search space.
        rng: Draws random candidates, and subsamples large tasks.
        count: Number of configurations to choose.

    Returns:
        Coded values, at most `count` rows of length d.
    """
    # The best configurations of the tasks, `CANDIDATES` at most.
    candidates = order_configurations(tasks, count=CANDIDATES)
    # A single task needs random ones only if it has too few configurations of its own.
    if len(tasks) > 1 or len(candidates) < count:
        candidates = _add_random_configurations(candidates, space, rng)

    # Losses (tasks, candidates), and which of them were measured; the others are predicted.
    L, is_measured = _collect_losses(tasks, candidates, space, rng)
    if len(tasks) == 1:
        losses = L[0]
        is_predicted = ~is_measured[0]
        # Sorted by the last key, measured ones first, and within equal ones by loss.
        order = np.lexsort((losses, is_predicted))
        chosen_rows = order[:count]
    else:
        chosen_rows = np.array(choose_portfolio(rank_rows(L), count=count))
    return candidates[chosen_rows]


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
    # Random points of the unit cube, (`CANDIDATES`, d); all configurations if there are fewer.
    random_units = next(iter_candidate_blocks(Region(space), rng, size=CANDIDATES))
    random_configurations = space.decode(random_units)
    # Equal configurations have the same key. A dict keeps the place of the first of them.
    configuration_of_key: dict[bytes, FloatArray] = {}
    for configuration in np.concatenate([configurations, random_configurations]):
        configuration_of_key[configuration_key(configuration)] = configuration
    distinct = list(configuration_of_key.values())
    return np.array(distinct[:CANDIDATES])


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
        Losses of m candidates on t tasks, standardised task by task, (t, m), and whether each of
        them was measured, (t, m).
    """
    from hpobench_ordered.methods._boosting.model import BoostedTrees
    from hpobench_ordered.methods._gp.model import standardise

    candidate_X = space.features(space.encode(candidates))
    row_of_key = {configuration_key(candidate): row for row, candidate in enumerate(candidates)}
    max_per_task = math.ceil(MAX_EVALUATIONS / len(tasks))

    L = np.empty((len(tasks), len(candidates)))
    is_measured = np.zeros(L.shape, dtype=np.bool_)
    for i, task in enumerate(tasks):
        losses = standardise(task.losses)
        fitted_rows = np.arange(len(task))
        if len(task) > max_per_task:  # larger fits would take too long
            fitted_rows = rng.permutation(len(task))[:max_per_task]
        X = space.features(space.encode(task.values[fitted_rows]))
        predicted_losses = BoostedTrees.fit(X, losses[fitted_rows]).predict(candidate_X)

        measured_losses, is_measured[i] = _average_measurements(
            task.values, losses, row_of_key, candidate_count=len(candidates)
        )
        L[i] = np.where(is_measured[i], measured_losses, predicted_losses)
    return L, is_measured


def _average_measurements(
    values: FloatArray,
    losses: FloatArray,
    row_of_key: Mapping[bytes, int],
    *,
    candidate_count: int,
) -> tuple[FloatArray, BoolArray]:
    """Average the measured losses of each candidate on a task, which may be repeated or missing.

    Args:
        values: Coded values of the evaluated configurations, shape (n, d). Those that are no
            candidates do not count.
        losses: Their losses, shape (n,).
        row_of_key: The row of each candidate, by its `configuration_key`.
        candidate_count: Number of candidates, m.

    Returns:
        Mean loss of each candidate (m,), 0 if it was not measured, and whether it was, (m,).
    """
    measured_rows = []  # candidate of each loss that was measured for one
    measured_losses = []
    for configuration, loss in zip(values, losses, strict=True):
        key = configuration_key(configuration)
        if key in row_of_key:
            measured_rows.append(row_of_key[key])
            measured_losses.append(loss)

    rows = np.array(measured_rows, dtype=np.int64)
    repeats = np.bincount(rows, minlength=candidate_count)
    totals = np.bincount(rows, weights=measured_losses, minlength=candidate_count)
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
