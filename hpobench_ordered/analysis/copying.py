"""Why methods hardly differ: configurations that stay good on other tasks, and plateaus.

Notation:
    n   number of configurations
    T   number of tasks, in the order of time if they have one
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

    Args:
        losses: Losses of the same configurations on all tasks, (configurations, tasks).
        best: Best known losses, (tasks,); default: the lowest.

    Returns:
        Regrets on the second to the last task, (tasks - 1,), as `compute_regrets` defines them.
    """
    copied = losses[:, :-1].argmin(axis=0)  # index of the configuration copied to each later task
    later_tasks = np.arange(1, losses.shape[1])
    regrets: FloatArray = compute_regrets(losses, best=best)[copied, later_tasks]
    return regrets


def compute_portfolio_regrets(losses: FloatArray, *, best: FloatArray | None = None) -> FloatArray:
    """Compute the regret of the configuration that is best on average on all other tasks.

    The average is over its regrets on the other tasks, except those where regrets are NaN.

    Args:
        losses: Losses of the same configurations on all tasks, (configurations, tasks).
        best: Best known losses, (tasks,); default: the lowest.

    Returns:
        Its regret on each task, (tasks,), as `compute_regrets` defines it; NaN if all regrets on
        the other tasks are.
    """
    regrets = compute_regrets(losses, best=best)
    tasks_with_regrets = np.flatnonzero(~np.isnan(regrets[0]))
    n_tasks = losses.shape[1]

    regrets_of_choice = np.full(n_tasks, np.nan)
    for task in range(n_tasks):
        others = tasks_with_regrets[tasks_with_regrets != task]
        if len(others) > 0:
            chosen = regrets[:, others].mean(axis=1).argmin()
            regrets_of_choice[task] = regrets[chosen, task]
    return regrets_of_choice


def compute_regrets(losses: FloatArray, *, best: FloatArray | None = None) -> FloatArray:
    """Compute the regret of every configuration on every task, (configurations, tasks).

    A regret is the distance of a configuration's loss from the task's best loss, divided by that of
    the median loss: 0 is as good as the best, 1 is no better than half of all configurations. It is
    NaN on tasks where the median is itself the best loss.

    Args:
        losses: Losses of the same configurations on all tasks, (configurations, tasks).
        best: Best known losses, (tasks,); default: the lowest.
    """
    lowest = losses.min(axis=0) if best is None else best
    median = np.median(losses, axis=0)
    # Where the median is the best loss, this divides by 0; the result is made NaN below.
    with np.errstate(divide="ignore", invalid="ignore"):
        regrets: FloatArray = (losses - lowest) / (median - lowest)
    return np.where(median > lowest, regrets, np.nan)


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
