"""Why methods hardly differ: configurations that stay good on the next task, and plateaus.

Notation:
    n   number of configurations
    T   number of tasks, in the order of time
"""

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.core.benchmark import Benchmark

MAX_DISTANCE_OF_NEAR = 0.05
"""How far near configurations are from the best, relative to the median's distance from it."""


def best_and_random_losses(benchmark: Benchmark, count: int) -> tuple[FloatArray, FloatArray]:
    """Best losses of each task, (T,), and losses of random configurations, (count, T).

    The best loss of a task is the lower of the best known one, if there is any, and the lowest of
    the random configurations. These are the same in every call and on every task.
    """
    objective = benchmark.objective
    space = benchmark.space
    configurations = space.decode(space.sample_unit(np.random.default_rng(0), count))

    losses_of_tasks = []
    best_values = []
    for task in benchmark.tasks:
        losses_of_tasks.append(objective.losses(task.evaluate_many(configurations)))
        best_values.append(np.nan if task.best_value is None else task.best_value)

    losses = np.stack(losses_of_tasks, axis=1)
    best_known_losses = objective.losses(np.array(best_values))
    best_losses = np.fmin(best_known_losses, losses.min(axis=0))  # ignores NaN
    return best_losses, losses


def copying_regrets(losses: FloatArray, *, best: FloatArray | None = None) -> FloatArray:
    """Regret, on each task but the first, of the configuration that was best on the task before.

    It is relative to the distance from the task's median loss to its best: 0 is as good as the
    best, 1 no better than half of all configurations. It is NaN on tasks where half of all
    configurations are the best.

    Args:
        losses: Losses of the same configurations on all tasks, (n, T).
        best: Best known losses, (T,); default: the lowest.

    Returns:
        Regrets, (T - 1,).
    """
    copied = losses[:, :-1].argmin(axis=0)  # the configuration copied to each later task, (T - 1,)
    later_losses = losses[:, 1:]
    later_best = later_losses.min(axis=0) if best is None else best[1:]

    losses_of_copied = later_losses[copied, np.arange(later_losses.shape[1])]
    median = np.median(later_losses, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):  # the median is the best; made NaN below
        regrets: FloatArray = (losses_of_copied - later_best) / (median - later_best)
    return np.where(median > later_best, regrets, np.nan)


def shares_near_best(losses: FloatArray, *, best: FloatArray | None = None) -> FloatArray:
    """Share of the configurations that are near the best of each task, from 0 to 1, (T,).

    Near is within `MAX_DISTANCE_OF_NEAR` of the distance from the best to the median loss.

    Args:
        losses: Losses of the same configurations on all tasks, (n, T).
        best: Best known losses, (T,); default: the lowest.
    """
    lowest = losses.min(axis=0) if best is None else best
    distance_of_median = np.median(losses, axis=0) - lowest
    is_near = losses - lowest <= MAX_DISTANCE_OF_NEAR * distance_of_median
    return np.asarray(is_near.mean(axis=0))
