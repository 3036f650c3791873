"""One method against another on the same tasks and seeds, as Hellan et al. (2023) compare them.

Notation:
    S   number of seeds
    T   number of tasks that count

    D[s, t]  normalised score of the first method - that of the second
    y[s, t]  objective after some trials with seed s on task t, in its own units
    m[t]     mean of y over seeds
    e[t]     standard error of m[t]
    A, B     the method and what it is compared with

Downstream performance (G.5 and table 4). The paper prints the improvement with the two signs
exchanged; the signs here are the ones that agree with its table, in which better is positive.

    reduction in standard error  100 (1 - e_A[t] / e_B[t])
    improvement in mean          100 (m_A[t] - m_B[t]) / |m_B[t]| where the objective is maximised,
                                 100 (m_B[t] - m_A[t]) / |m_B[t]| where it is minimised
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.samples import finished_runs, two_standard_errors
from hpobench_ordered.analysis.scores import Scores
from hpobench_ordered.data.objective import Direction

RESAMPLES = 500
"""Resamples of an error; it is then known to about 3 %."""


def compare_methods(scores: Scores, first: str, second: str, *, trial: int) -> FloatArray:
    """Difference D of the scores of two methods after a trial, with every seed on every task.

    Seeds that one of them has not finished are left out, and so are tasks on which one of them has
    no score.

    Args:
        scores: Scores of several methods.
        first: The method whose score it is.
        second: The method whose score is subtracted.
        trial: The trial, counted from 1.

    Returns:
        Differences, (seeds, tasks).
    """
    after_trial = scores.values[..., trial - 1]  # (methods, seeds, tasks)
    pair = after_trial[[scores.methods.index(first), scores.methods.index(second)]]
    is_common_seed = finished_runs(pair).all(axis=0)
    first_scores, second_scores = pair[:, is_common_seed]
    differences = first_scores - second_scores
    is_defined_task = ~np.isnan(differences).any(axis=0)
    return np.asarray(differences[:, is_defined_task])


def resampled_error(samples: FloatArray, statistic: Callable[[FloatArray], float]) -> float:
    """The standard error of a number that is no mean, such as a count of tasks.

    It is the standard deviation of the number over bootstrap resamples of the seeds (Efron and
    Tibshirani 1993, algorithm 6.1).

    Args:
        samples: Values by seed, shape (S, ...). Tasks and methods keep their seed in common.
        statistic: Computes the number from values of that shape.

    Returns:
        The error, NaN with fewer than two seeds.
    """
    number_of_seeds = len(samples)
    if number_of_seeds < 2:
        return float("nan")

    rng = np.random.default_rng(0)  # the same results give the same error
    drawn_seeds = rng.integers(number_of_seeds, size=(RESAMPLES, number_of_seeds))
    numbers = [statistic(samples[seeds]) for seeds in drawn_seeds]
    return float(np.std(numbers, ddof=1))


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with an interval of two standard errors around it."""

    value: float
    lower: float
    upper: float

    def contains(self, value: float) -> bool:
        """Whether a value is inside the interval."""
        return self.lower <= value <= self.upper


def reduction_in_standard_error(values: FloatArray, baseline: FloatArray) -> FloatArray:
    """Reduction of the standard error of the mean over seeds, in percent, of each task.

    Args:
        values: Objective values of the method, shape (seeds, tasks).
        baseline: Those of what it is compared with, shape (seeds, tasks); perhaps of other seeds,
            and of more or fewer.

    Returns:
        Percentages, shape (tasks,): positive if the method varies less; NaN if the baseline does
        not vary at all.
    """
    # Both are twice the standard error, which does not change their ratio; tasks come first.
    errors = two_standard_errors(values.T)
    baseline_errors = two_standard_errors(baseline.T)
    baseline_errors = np.where(baseline_errors > 0, baseline_errors, np.nan)
    return 100 * (1 - errors / baseline_errors)


def improvement_in_mean(
    values: FloatArray, baseline: FloatArray, *, direction: Direction
) -> FloatArray:
    """Improvement of the mean over seeds, in percent of the size of the baseline's, of each task.

    Args:
        values: Objective values of the method, shape (seeds, tasks).
        baseline: Those of what it is compared with, shape (seeds, tasks); perhaps of other seeds,
            and of more or fewer.
        direction: Whether the objective is minimised or maximised.

    Returns:
        Percentages, shape (tasks,): positive if the method is better; NaN where the baseline's mean
        is 0.
    """
    baseline_mean = baseline.mean(axis=0)
    baseline_mean = np.where(baseline_mean != 0, baseline_mean, np.nan)
    ratio = values.mean(axis=0) / baseline_mean
    # Of a negative baseline, a ratio above 1 is a decrease: the sign turns it around.
    increase = (ratio - 1) * np.sign(baseline_mean)
    # The direction's sign is 1 where the objective is minimised: an increase is then a loss.
    improvement = np.asarray(-direction.sign * 100 * increase)
    # Adding 0 turns -0 into 0.
    return improvement + 0.0


def mean_over_tasks(per_task: FloatArray) -> Estimate:
    """Mean of one number per task, (tasks,), with an interval of two standard errors over tasks.

    Tasks whose number is NaN are left out; the mean is NaN if none is left.
    """
    defined = per_task[~np.isnan(per_task)]
    mean = float("nan")
    if len(defined):
        mean = float(defined.mean())
    errors = float(two_standard_errors(defined[None])[0])  # samples are along its second axis
    return Estimate(mean, mean - errors, mean + errors)
