"""Whole curves over the trials: area under them, and how many runs attain what.

Notation:
    A   number of methods
    S   number of seeds
    T   number of tasks
    M   number of trials per task
    H   number of levels, or of fractions of runs

    z[m]     value of the incumbent after trial m, which holds until trial m + 1
    w[m]     length of that step: 1 / M, or log((m + 1) / m) / log(M + 1) on a logarithmic axis
    area     sum over m of w[m] z[m], in the units of z

    F(h, m)  fraction of seeds of which z[m] is at most h: the empirical attainment function
    Q(f, m)  lowest h with F(h, m) >= f: the level that a fraction f of the runs attains

Source of F: Grunert da Fonseca, Fonseca and Hall (2001), Inferential performance assessment of
stochastic optimisers and the attainment function, section 3, with the trial as first objective.
"""

from collections.abc import Sequence
from enum import Enum

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.errors import ExperimentError

QUARTILES = (0.25, 0.5, 0.75)


class TrialAxis(Enum):
    """Scale of the axis of trials.

    LINEAR: Every trial counts the same.
    LOGARITHMIC: Early trials count most: trial 1 as much as trials 2 and 3, or 4 to 7, together.
    """

    LINEAR = "linear"
    LOGARITHMIC = "logarithmic"


def area_under_curve(values: FloatArray, *, axis: TrialAxis = TrialAxis.LINEAR) -> FloatArray:
    """Mean height of curves: the area under them, divided by the length of the axis.

    Args:
        values: Value of the incumbent after every trial, such as its regret or score, along the
            last axis, shape (..., M).
        axis: Scale of the axis of trials.

    Returns:
        The areas, shape (...), in the units of the values: a constant curve has its own value.
    """
    trials = values.shape[-1]
    if axis is TrialAxis.LINEAR:
        return np.asarray(values.mean(axis=-1))
    steps = np.diff(np.log(np.arange(1, trials + 2)))
    return np.asarray(values @ (steps / steps.sum()))


def attainment(values: FloatArray, levels: FloatArray) -> FloatArray:
    """Fraction of runs that have attained levels after every trial: F.

    Args:
        values: Value of the incumbent after every trial, lower being better, shape (A, S, T, M).
            One that is NaN attains nothing.
        levels: The levels, the same on all tasks, shape (H,), or by task, shape (T, H).

    Returns:
        Fractions of the seeds, shape (A, T, M, H); their mean over tasks is that of all runs.
    """
    by_task = np.broadcast_to(levels, (values.shape[2], levels.shape[-1]))
    columns = [(values <= level[:, None]).mean(axis=1) for level in by_task.T]
    return np.stack(columns, axis=-1)


def attained_levels(values: FloatArray, fractions: Sequence[float] = QUARTILES) -> FloatArray:
    """Levels that fractions of the runs attain after every trial: Q, the attainment surfaces.

    Args:
        values: Value of the incumbent after every trial, lower being better, shape (A, S, T, M).
        fractions: Fractions of the seeds, above 0 and up to 1, length H.

    Returns:
        The levels, shape (H, A, T, M), each the value of some run; NaN where the fraction is not
        reached without runs whose value is NaN.

    Raises:
        ExperimentError: A fraction is out of range.
    """
    beyond = [fraction for fraction in fractions if not 0 < fraction <= 1]
    if beyond:
        raise ExperimentError(f"fractions of runs lie above 0 and up to 1, not {beyond}")
    seeds = values.shape[1]
    # Less a little: 0.07 of 100 seeds are 7, but 0.07 * 100 is more.
    places = np.ceil(np.asarray(fractions) * seeds - 1e-9).astype(np.int64) - 1
    return np.moveaxis(np.sort(values, axis=1)[:, places], 1, 0)
