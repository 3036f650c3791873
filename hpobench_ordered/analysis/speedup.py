"""How many times fewer evaluations a method needs (Stoll et al. 2020, section 5).

Notation:
    A       number of methods
    S       number of seeds
    T       number of tasks
    M       number of trials after which runs end
    G       number of budgets of the reference

    g[k]            a budget of the reference, such as 10, 20 or 40 trials
    y[t, k]         mean over seeds of the reference's best loss on task t in its first g[k] trials
    e[a, s, t, k]   first trial of method a with seed s on task t whose loss is at most y[t, k]; M
                    if there is none, a failure
    E[a, t, k]      mean of e[a, s, t, k] over seeds

    speedup         E[reference, t, k] / E[a, t, k], and its geometric mean over tasks
    failure rate    share of the seeds whose runs fail, and its mean over tasks

From the paper: the target (the average performance of the method without transfer after 10, 20 and
40 evaluations), the end of all runs (400 evaluations, ten times the largest budget), the ratio of
means, the geometric means over tasks and then over benchmarks, and the failure rate. That a failed
run counts as one that took all M trials, and that a loss equal to the target reaches it, is how the
authors computed it.

As few runs reach the mean of the best losses exactly at g[k], the reference's own mean E differs
from g[k], and so the speedup compares with what it needs. If M is not several times g[k], many runs
fail, and the speedup is drawn towards 1: look at the failure rates first.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.analysis.samples import incumbents
from hpobench_ordered.errors import ExperimentError, UnknownNameError

PAPER_BUDGETS = (10, 20, 40)


@dataclass(frozen=True, slots=True)
class Speedups:
    """Speed-ups of methods over a reference, the reference itself among them.

    Attributes:
        methods: Names of the methods, length A.
        reference: Name of the one that they are compared with.
        budgets: Budgets of the reference g, in trials, length G.
        values: Speed-ups, shape (A, T, G): above 1, the method needs fewer trials.
        failure_rates: Shares of runs that never reach the target, shape (A, T, G), from 0 to 1.
    """

    methods: tuple[str, ...]
    reference: str
    budgets: tuple[int, ...]
    values: FloatArray
    failure_rates: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Geometric mean of the speed-ups over tasks, shape (A, G)."""
        return geometric_mean(self.values, axis=1)

    @property
    def mean_failure_rate(self) -> FloatArray:
        """Mean of the failure rates over tasks, shape (A, G)."""
        return np.asarray(self.failure_rates.mean(axis=1))


def speedups(
    losses: FloatArray,
    methods: Sequence[str],
    *,
    reference: str,
    budgets: Sequence[int] = PAPER_BUDGETS,
    first_task: int = 0,
) -> Speedups:
    """Compare the trials that methods need to get as far as a reference with given budgets.

    Args:
        losses: Loss of every trial, shape (A, S, T, M).
        methods: Names of the methods, length A.
        reference: The method compared with, which does not use transfer.
        budgets: Budgets of the reference, in trials, length G.
        first_task: First task that counts, from 0; 1 leaves out the task without history.

    Raises:
        UnknownNameError: The reference is not among the methods.
        ExperimentError: A budget is not among the trials made.
    """
    if reference not in methods:
        raise UnknownNameError("method", reference, methods)
    place = list(methods).index(reference)
    targets = reference_targets(losses[place], budgets)
    reached = trials_to_reach(losses[:, :, first_task:], targets[first_task:])
    means = np.where(reached > 0, reached, losses.shape[-1]).mean(axis=1)
    return Speedups(
        methods=tuple(methods),
        reference=reference,
        budgets=tuple(budgets),
        values=means[place] / means,
        failure_rates=(reached == 0).mean(axis=1),
    )


def reference_targets(losses: FloatArray, budgets: Sequence[int] = PAPER_BUDGETS) -> FloatArray:
    """Mean over seeds of the best losses of a reference after several budgets, shape (T, G).

    Args:
        losses: Loss of every trial of the reference, shape (S, T, M).
        budgets: The budgets, in trials, length G.

    Raises:
        ExperimentError: A budget is not among the trials made.
    """
    trials = losses.shape[-1]
    beyond = [budget for budget in budgets if not 1 <= budget <= trials]
    if beyond:
        raise ExperimentError(
            f"budgets of the reference must be from 1 to {trials}, but got {beyond}"
        )
    return np.asarray(incumbents(losses)[..., np.asarray(budgets) - 1].mean(axis=0))


def trials_to_reach(losses: FloatArray, targets: FloatArray) -> IntArray:
    """Number of trials until a loss is at most a target, from 1; 0 where none ever is.

    Args:
        losses: Loss of every trial, shape (A, S, T, M).
        targets: The targets, shape (T, G).

    Returns:
        Numbers of trials, shape (A, S, T, G).
    """
    reached = np.empty((*losses.shape[:-1], targets.shape[1]), dtype=np.int64)
    for g, target in enumerate(targets.T):
        hits = losses <= target[:, None]
        reached[..., g] = np.where(hits.any(axis=-1), hits.argmax(axis=-1) + 1, 0)
    return reached


def geometric_mean(values: FloatArray, *, axis: int) -> FloatArray:
    """Geometric mean of positive values along an axis, such as of speed-ups over benchmarks."""
    return np.asarray(np.exp(np.log(values).mean(axis=axis)))
