"""How many times fewer trials a method needs than another (Stoll et al. 2020, section 5).

Notation:
    A       number of methods
    S       number of seeds
    T       number of tasks
    M       number of trials after which runs end
    G       number of budgets of the reference
    h       a half of the seeds; the targets for it are from the other half

    g[k]            a budget of the reference, such as 10, 20 or 40 trials
    y[h, t, k]      the reference's best loss on task t in its first g[k] trials, mean over the
                    seeds that are not in h
    e[a, s, t, k]   first trial of method a with seed s, in h, on task t whose loss is at most
                    y[h, t, k]; M if there is none, a failure
    E[a, h, t, k]   mean of e[a, s, t, k] over the seeds in h

    speedup         E[reference, h, t, k] / E[a, h, t, k], its geometric mean over both halves
                    (weighted by the number of seeds), and that over tasks
    failure rate    share of the seeds whose runs fail, and its mean over tasks

The paper's targets are means over all seeds. But then a run of the reference reaches a target that
is partly its own, and a method that is the same as the reference seems to be faster, with few seeds
by 10 to 20 % and more. With halves, runs of both are exchangeable, so the mean logarithm of the
speedup is 0. It is not if the target for each seed is from all others: a slow run makes the targets
of the others easier, so that E of the reference varies less than that of the method.

Few runs reach y[h, t, k] exactly at trial g[k], so the speedup is relative to the reference's E.
If M is not several times g[k] (10 times in the paper), many runs fail and the speedup is drawn
towards 1. That a failed run counts as M trials, and that a loss equal to the target reaches it, is
not in the paper but in the authors' code.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.analysis.samples import incumbents, mean_over_seeds, replace_failures
from hpobench_ordered.errors import ExperimentError, UnknownNameError

PAPER_BUDGETS = (10, 20, 40)


@dataclass(frozen=True, slots=True)
class Speedups:
    """Speedups over a reference, which is itself among the methods."""

    methods: tuple[str, ...]
    reference: str
    budgets: tuple[int, ...]  # g
    values: FloatArray  # speedups, (methods, tasks, budgets)
    failure_rates: FloatArray  # from 0 to 1, (methods, tasks, budgets)

    @property
    def mean(self) -> FloatArray:
        """Geometric mean of the speedups over tasks, shape (methods, budgets)."""
        return geometric_mean(self.values, axis=1)

    @property
    def mean_failure_rate(self) -> FloatArray:
        """Mean of the failure rates over tasks, shape (methods, budgets)."""
        return np.asarray(self.failure_rates.mean(axis=1))


def speedups(
    losses: FloatArray,
    methods: Sequence[str],
    *,
    reference: str,
    budgets: Sequence[int] = PAPER_BUDGETS,
    first_task: int = 0,
    is_finished: BoolArray | None = None,
) -> Speedups:
    """Compare the trials that methods need to reach what a reference reaches in given budgets.

    The speedup of a method is the mean number of trials that the reference needs over that of the
    method. A run that does not reach the target is a failure, and counts as all its trials. Targets
    for one half of the seeds are from the other half; with one seed they are its own. Means of a
    method are over the seeds that it has finished.

    Args:
        losses: Loss of every trial, infinite where it failed, (methods, seeds, tasks, trials).
        methods: Names of the methods, in the order of the first axis.
        reference: The method compared with, which does not use transfer.
        budgets: Budgets of the reference, in trials.
        first_task: First task that counts, from 0; 1 leaves out the task without history.
        is_finished: Which runs are finished, (methods, seeds); default: all.

    Raises:
        UnknownNameError: The reference is not among the methods.
        ExperimentError: A budget is not among the trials made.
    """
    if reference not in methods:
        raise UnknownNameError("method", reference, methods)
    index_of_reference = list(methods).index(reference)
    if is_finished is None:
        is_finished = np.ones(losses.shape[:2], dtype=np.bool_)
    finite_losses_of_reference = replace_failures({"loss": losses})["loss"][index_of_reference]
    n_tasks = losses.shape[2] - first_task
    total_log_ratio = np.zeros((len(methods), n_tasks, len(budgets)))
    total_failures = np.zeros_like(total_log_ratio)
    for is_in_half in split_seeds(is_finished[index_of_reference]):
        # The targets for this half are from the seeds of the other half.
        is_target_seed = is_finished[index_of_reference] & ~is_in_half
        if not is_target_seed.any():  # there is one seed
            is_target_seed = is_finished[index_of_reference]
        targets = reference_targets(finite_losses_of_reference[is_target_seed], budgets)
        log_ratio, failures = _sum_over_seeds(
            losses[:, is_in_half, first_task:],
            targets[first_task:],
            is_finished=is_finished[:, is_in_half],
            index_of_reference=index_of_reference,
        )
        total_log_ratio += log_ratio
        total_failures += failures

    n_finished = is_finished.sum(axis=1)[:, None, None]
    n_finished = np.where(n_finished > 0, n_finished, np.nan)
    return Speedups(
        methods=tuple(methods),
        reference=reference,
        budgets=tuple(budgets),
        values=np.exp(total_log_ratio / n_finished),
        failure_rates=np.asarray(total_failures / n_finished),
    )


def _sum_over_seeds(
    losses: FloatArray, targets: FloatArray, *, is_finished: BoolArray, index_of_reference: int
) -> tuple[FloatArray, IntArray]:
    """Sum log speedups and failures over the seeds of one half, (methods, tasks, budgets) each.

    The speedup is the mean number of trials that the reference needs to reach a target, divided by
    that of the method. Each seed that a method has finished counts once with the log of this ratio.

    Args:
        losses: Loss of every trial, (methods, seeds in the half, tasks, trials).
        targets: Losses to reach, (tasks, budgets).
        is_finished: Which runs are finished, (methods, seeds in the half).
        index_of_reference: Index of the reference along the first axis.
    """
    last_trial = losses.shape[-1]
    first_trials = trials_to_reach(losses, targets)  # (methods, seeds, tasks, budgets)
    is_failure = first_trials == 0  # the target is not reached
    is_counted = is_finished[:, :, None, None]
    trials = np.where(is_failure, last_trial, first_trials)
    mean_trials = mean_over_seeds(np.where(is_counted, trials, np.nan))
    log_ratio = np.log(mean_trials[index_of_reference] / mean_trials)

    n_seeds = is_counted.sum(axis=1)  # of each method
    # A method without seeds has a mean of NaN, and adds nothing.
    summed_log_ratio = np.where(n_seeds > 0, n_seeds * log_ratio, 0.0)
    n_failures = (is_failure & is_counted).sum(axis=1)
    return summed_log_ratio, n_failures


def split_seeds(is_finished: BoolArray) -> list[BoolArray]:
    """Split seeds into two halves, each with half of the seeds that the reference has finished.

    Args:
        is_finished: Which seeds the reference has finished, (seeds,).

    Returns:
        A mask of the seeds in each half, (seeds,). If the reference has finished a single seed,
        there is only one half, with all seeds.
    """
    n_before: IntArray = np.cumsum(is_finished) - is_finished  # finished seeds before each seed
    is_first = n_before < is_finished.sum() // 2
    return [is_in_half for is_in_half in (is_first, ~is_first) if is_in_half.any()]


def reference_targets(losses: FloatArray, budgets: Sequence[int] = PAPER_BUDGETS) -> FloatArray:
    """Average the best loss of the reference within each budget on each task, (tasks, budgets).

    Args:
        losses: Losses of the reference, (seeds, tasks, trials).
        budgets: Budgets in trials.

    Raises:
        ExperimentError: A budget is not among the trials made.
    """
    n_trials = losses.shape[-1]
    out_of_range = [budget for budget in budgets if not 1 <= budget <= n_trials]
    if out_of_range:
        raise ExperimentError(
            f"budgets of the reference must be from 1 to {n_trials}, but got {out_of_range}"
        )
    last_trials = np.asarray(budgets) - 1  # counted from 0
    best_losses = incumbents(losses)[..., last_trials]  # (seeds, tasks, budgets)
    return np.asarray(best_losses.mean(axis=0))


def trials_to_reach(losses: FloatArray, targets: FloatArray) -> IntArray:
    """Find the first trial of each run whose loss is at most the target, 0 if there is none.

    Trials are counted from 1.

    Args:
        losses: Loss of every trial, (methods, seeds, tasks, trials).
        targets: Targets of each task, (tasks, budgets).

    Returns:
        Trials, (methods, seeds, tasks, budgets).
    """
    first_trials = np.empty((*losses.shape[:-1], targets.shape[1]), dtype=np.int64)
    for budget_index, targets_of_tasks in enumerate(targets.T):
        is_reached = losses <= targets_of_tasks[:, None]
        first_reached = is_reached.argmax(axis=-1) + 1  # `argmax` finds the first True
        is_ever_reached = is_reached.any(axis=-1)
        first_trials[..., budget_index] = np.where(is_ever_reached, first_reached, 0)
    return first_trials


def geometric_mean(values: FloatArray, *, axis: int) -> FloatArray:
    """Compute the geometric mean of positive values along an axis.

    It suits ratios such as speedups: twice as fast and half as fast cancel.
    """
    return np.asarray(np.exp(np.log(values).mean(axis=axis)))
