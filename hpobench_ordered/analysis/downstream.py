"""Downstream performance of one method over another (Hellan et al. 2023, G.5 and table 4).

Notation:
    S   number of seeds
    T   number of tasks

    y[s, t]  objective after some trials with seed s on task t, in its own units
    m[t]     mean of y over seeds
    s[t]     standard error of m[t]
    A, B     the method and what it is compared with

    reduction in standard error  100 (1 - s_A[t] / s_B[t])
    improvement in mean          100 (m_A[t] / m_B[t] - 1) where the objective is maximised,
                                 100 (1 - m_A[t] / m_B[t]) where it is minimised

The paper prints the improvement with the two signs exchanged; the signs here are the ones that
agree with its table, in which better is positive.
"""

from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.objective import Direction


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number and the interval of two standard errors around it.

    Attributes:
        value: The number.
        lower: Lower end of the interval.
        upper: Upper end.
    """

    value: float
    lower: float
    upper: float

    def contains(self, value: float) -> bool:
        """Whether a value is inside the interval."""
        return self.lower <= value <= self.upper


def reduction_in_standard_error(values: FloatArray, baseline: FloatArray) -> FloatArray:
    """By how many per cent the standard error over seeds is smaller than the baseline's.

    Args:
        values: Objective of the method, shape (S, T).
        baseline: Objective of what it is compared with, shape (S', T).

    Returns:
        Per cent by task, shape (T,); NaN where the baseline does not vary.
    """
    own, other = _standard_error(values), _standard_error(baseline)
    return 100 * (1 - own / np.where(other > 0, other, np.nan))


def improvement_in_mean(
    values: FloatArray, baseline: FloatArray, *, direction: Direction
) -> FloatArray:
    """By how many per cent the mean over seeds is better than the baseline's.

    Args:
        values: Objective of the method, shape (S, T).
        baseline: Objective of what it is compared with, shape (S', T).
        direction: Direction of the objective.

    Returns:
        Per cent by task, shape (T,); positive is better; NaN where the baseline's mean is 0.
    """
    other = baseline.mean(axis=0)
    ratio = values.mean(axis=0) / np.where(other != 0, other, np.nan)
    return np.asarray(-direction.sign * 100 * (ratio - 1)) + 0.0


def over_tasks(per_task: FloatArray) -> Estimate:
    """Mean over tasks with two standard errors, those between tasks; NaN is left out.

    Args:
        per_task: One number a task, shape (T,).
    """
    defined = per_task[~np.isnan(per_task)]
    if len(defined) < 2:
        value = float(defined.mean()) if len(defined) else float("nan")
        return Estimate(value, float("nan"), float("nan"))
    mean = float(defined.mean())
    errors = 2 * float(defined.std(ddof=1)) / np.sqrt(len(defined))
    return Estimate(mean, mean - errors, mean + errors)


def _standard_error(values: FloatArray) -> FloatArray:
    if len(values) < 2:
        return np.full(values.shape[1], np.nan)
    return np.asarray(values.std(axis=0, ddof=1) / np.sqrt(len(values)))
