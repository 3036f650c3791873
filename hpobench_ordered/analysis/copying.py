"""Why methods hardly differ: configurations that stay good on the next task, and plateaus.

Notation:
    n   number of configurations
    T   number of tasks, in the order of time
"""

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.benchmark import Benchmark

MAX_DISTANCE_OF_NEAR = 0.05
"""How far near configurations are from the best, relative to the median's distance from it."""


def best_and_random_losses(benchmark: Benchmark, count: int) -> tuple[FloatArray, FloatArray]:
    """Compute best losses, (tasks,), and losses of random configurations, (count, tasks).

    The best loss of a task is its best known loss, or the lowest loss of the random configurations
    if that is lower or no best one is known. The configurations are the same in every call and on
    every task. If an evaluation fails, its loss is the highest finite loss on the task.
    """
    objective = benchmark.objective
    space = benchmark.space
    configurations = space.decode(space.sample_unit(np.random.default_rng(0), count))

    losses_of_tasks = []
    best_values = []
    for task in benchmark.tasks:
        values = task.evaluate_many(configurations)
        losses_of_tasks.append(objective.losses(values))
        best_values.append(np.nan if task.best_value is None else task.best_value)

    losses = np.stack(losses_of_tasks, axis=1)
    has_failed = np.isinf(losses)
    highest = np.where(has_failed, -np.inf, losses).max(axis=0)
    losses = np.where(has_failed & np.isfinite(highest), highest, losses)
    # `losses` turns an unknown best value, NaN, into an infinite loss, which is never the minimum.
    best_known_losses = objective.losses(np.array(best_values))
    best_losses = np.minimum(best_known_losses, losses.min(axis=0))
    return best_losses, losses


def copying_regrets(losses: FloatArray, *, best: FloatArray | None = None) -> FloatArray:
    """Compute the regret of copying the best configuration from the task before.

    A regret is the distance of the copied configuration's loss from the task's best loss, divided
    by that of the median loss: 0 is as good as the best, 1 is no better than half of all
    configurations. It is NaN on tasks where the median is itself the best loss.

    Args:
        losses: Losses of the same configurations on all tasks, (configurations, tasks).
        best: Best known losses, (tasks,); default: the lowest.

    Returns:
        Regrets on the second to the last task, (tasks - 1,).
    """
    copied = losses[:, :-1].argmin(axis=0)  # index of the configuration copied to each later task
    later_losses = losses[:, 1:]
    later_best = later_losses.min(axis=0) if best is None else best[1:]

    later_tasks = np.arange(later_losses.shape[1])
    losses_of_copied = later_losses[copied, later_tasks]
    median = np.median(later_losses, axis=0)
    # Where the median is the best loss, this divides by 0; the result is made NaN below.
    with np.errstate(divide="ignore", invalid="ignore"):
        regrets: FloatArray = (losses_of_copied - later_best) / (median - later_best)
    return np.where(median > later_best, regrets, np.nan)


def shares_near_best(losses: FloatArray, *, best: FloatArray | None = None) -> FloatArray:
    """Compute which share of the configurations is near the best of each task, (tasks,).

    A configuration is near if its loss is at most 5 % (`MAX_DISTANCE_OF_NEAR`) as far from the best
    loss as the median loss is.

    Args:
        losses: Losses of the same configurations on all tasks, (configurations, tasks).
        best: Best known losses, (tasks,); default: the lowest.
    """
    lowest = losses.min(axis=0) if best is None else best
    distance_of_median = np.median(losses, axis=0) - lowest
    is_near = losses - lowest <= MAX_DISTANCE_OF_NEAR * distance_of_median
    return np.asarray(is_near.mean(axis=0))
