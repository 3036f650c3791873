"""Regret of the incumbent, plain and normalised.

Notation:
    A   number of methods
    S   number of seeds
    T   number of tasks
    M   number of trials per task

    l[a, s, t, m]  lowest loss that method a found with seed s on task t in its first m trials
    b[t]           best loss known of task t
    w[t]           worst loss known of task t

    simple regret      l[a, s, t, m] - b[t]
    normalised regret  (l[a, s, t, m] - b[t]) / (w[t] - b[t])

The normalised regret is that of a task whose losses are scaled to between 0, the best, and 1, the
worst that is known of it: the min-max scaling of HPO-B (Pineda Arango et al. 2021) and YAHPO Gym
(Pfisterer et al. 2022); its mean over tasks is the average distance to the minimum of Wistuba et
al. (2018). Other papers put the loss of random search in the place of w: pass that, and 1 is random
search.
"""

from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.samples import finished_runs
from hpobench_ordered.analysis.scores import incumbents, of_incumbents


@dataclass(frozen=True, slots=True)
class LossRange:
    """What is known of the losses of every task.

    Attributes:
        best: Lowest known loss b, shape (T,); NaN where none is known.
        worst: Highest known loss w, shape (T,); NaN where none is known.
    """

    best: FloatArray
    worst: FloatArray


def simple_regrets(regrets: FloatArray, losses: FloatArray) -> FloatArray:
    """Regret of the incumbent after every trial.

    Args:
        regrets: Regret of every trial, shape (A, S, T, M); NaN where no best value is known.
        losses: Loss of every trial, same shape.

    Returns:
        The regrets, shape (A, S, T, M), in the units of the losses; NaN where given so.
    """
    return of_incumbents(regrets, losses)


def best_known(losses: FloatArray, regrets: FloatArray) -> FloatArray:
    """Best known losses that regrets were taken from, shape (T,); NaN where there are none.

    Args:
        losses: Loss of every trial, shape (A, S, T, M); NaN in runs that were not finished.
        regrets: Regret of every trial, same shape.
    """
    run = tuple(np.argwhere(finished_runs(losses))[0])  # the same in every run
    final = incumbents(losses[run])[:, -1]
    return np.asarray(final - of_incumbents(regrets[run], losses[run])[:, -1])


def evaluated_range(losses: FloatArray) -> LossRange:
    """Range of all losses that any method met, where nothing more is known of the tasks.

    The regret from it is relative to the methods compared: adding one may change that of others.

    Args:
        losses: Loss of every trial, shape (A, S, T, M); infinite and NaN ones do not count.
    """
    counted = np.isfinite(losses)
    best = np.where(counted, losses, np.inf).min(axis=(0, 1, 3))
    worst = np.where(counted, losses, -np.inf).max(axis=(0, 1, 3))
    return LossRange(*(np.where(np.isfinite(ends), ends, np.nan) for ends in (best, worst)))


def normalised_regrets(losses: FloatArray, known: LossRange) -> FloatArray:
    """Normalised regret of the incumbent after every trial.

    Nothing is clipped: an incumbent better than the best known has a negative regret, and one worse
    than `known.worst` a regret above 1, as is common where that is the loss of random search.

    Args:
        losses: Loss of every trial, shape (A, S, T, M).
        known: Best and worst known losses, shape (T,) each.

    Returns:
        The regrets, shape (A, S, T, M), without unit; NaN on tasks of which no best or worst loss
        is known, or whose best is not below their worst.
    """
    span = known.worst - known.best
    span = np.where(span > 0, span, np.nan)
    return np.asarray((incumbents(losses) - known.best[:, None]) / span[:, None])
