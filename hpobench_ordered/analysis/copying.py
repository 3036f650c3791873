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

    The best loss of a task is the lower of the best known one, if there is any, and the lowest of
    the random configurations. These configurations are the same in every call and on every task.
    Where their evaluation fails, they have the highest finite loss of the task.
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
    # The loss of a best value that is unknown, NaN, is infinite.
    best_known_losses = objective.losses(np.array(best_values))
    best_losses = np.minimum(best_known_losses, losses.min(axis=0))
    return best_losses, losses


def copying_regrets(losses: FloatArray, *, best: FloatArray | None = None) -> FloatArray:
    """Compute the regret of copying the best configuration from the task before.

    It is relative to the distance from the task's median loss to its best: 0 is as good as the
    best, 1 no better than half of all configurations. It is NaN on tasks where half of all
    configurations are the best.

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
    with np.errstate(divide="ignore", invalid="ignore"):  # the median is the best; made NaN below
        regrets: FloatArray = (losses_of_copied - later_best) / (median - later_best)
    return np.where(median > later_best, regrets, np.nan)


def shares_near_best(losses: FloatArray, *, best: FloatArray | None = None) -> FloatArray:
    """Compute which share of the configurations is near the best of each task, (tasks,).

    Near means: the distance from the best loss is at most 5 % (`MAX_DISTANCE_OF_NEAR`) of the
    median's distance from it.

    Args:
        losses: Losses of the same configurations on all tasks, (configurations, tasks).
        best: Best known losses, (tasks,); default: the lowest.
    """
    lowest = losses.min(axis=0) if best is None else best
    distance_of_median = np.median(losses, axis=0) - lowest
    is_near = losses - lowest <= MAX_DISTANCE_OF_NEAR * distance_of_median
    return np.asarray(is_near.mean(axis=0))
