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
    """Subtract the scores of one method from those of another after a trial: the difference D.

    Seeds that one of the methods has not finished are left out, and so are tasks on which one of
    them has no score.

    Args:
        scores: Scores of several methods.
        first: The method from whose score the other is subtracted.
        second: The method whose score is subtracted.
        trial: The trial, counted from 1.

    Returns:
        Differences, (seeds, tasks): negative where the first method is better.
    """
    after_trial = scores.values[..., trial - 1]  # (methods, seeds, tasks)
    indices = [scores.methods.index(first), scores.methods.index(second)]
    pair = after_trial[indices]  # (2, seeds, tasks)
    is_common_seed = finished_runs(pair).all(axis=0)
    first_scores, second_scores = pair[:, is_common_seed]
    differences = first_scores - second_scores
    is_defined_task = ~np.isnan(differences).any(axis=0)
    return np.asarray(differences[:, is_defined_task])


def resampled_error(samples: FloatArray, statistic: Callable[[FloatArray], float]) -> float:
    """Compute the standard error of a number that is no mean, such as a count of tasks.

    It is the standard deviation of the number over bootstrap resamples of the seeds (Efron and
    Tibshirani 1993, algorithm 6.1).

    Args:
        samples: Values of each seed, shape (seeds, ...). Resamples contain a seed as a whole, with
            its values of all tasks and methods, as these are not independent of each other.
        statistic: Computes the number from the values of some seeds, shape (seeds, ...).

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
    """Compute how much smaller than a baseline's a method's standard errors are, on each task.

    The standard error of a task is that of the mean over seeds.

    Args:
        values: Objective values of the method, shape (seeds, tasks).
        baseline: Objective values of the baseline, shape (seeds, tasks). Its seeds may be others,
            and more or fewer.

    Returns:
        Percentages, shape (tasks,): positive if the method varies less; NaN if the baseline does
        not vary at all.
    """
    # Seeds must be along axis 1. Both errors are doubled, which does not change their ratio.
    errors = two_standard_errors(values.T)
    baseline_errors = two_standard_errors(baseline.T)
    baseline_errors = np.where(baseline_errors > 0, baseline_errors, np.nan)
    return 100 * (1 - errors / baseline_errors)


def improvement_in_mean(
    values: FloatArray, baseline: FloatArray, *, direction: Direction
) -> FloatArray:
    """Compute how much better than a baseline's a method's mean over seeds is, on each task.

    The improvement is in percent of the absolute value of the baseline's mean.

    Args:
        values: Objective values of the method, shape (seeds, tasks).
        baseline: Objective values of the baseline, shape (seeds, tasks). Its seeds may be others,
            and more or fewer.
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
    """Average one number per task, with an interval of two standard errors over tasks.

    Args:
        per_task: The numbers, shape (tasks,). Those that are NaN are left out; if no other is left,
            the mean is NaN.
    """
    defined = per_task[~np.isnan(per_task)]
    mean = float(defined.mean()) if len(defined) else float("nan")
    (half_width,) = two_standard_errors(defined[None]).tolist()  # samples are along axis 1
    return Estimate(mean, mean - half_width, mean + half_width)
