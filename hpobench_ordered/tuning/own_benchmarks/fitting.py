"""Fits surrogates to tabulated evaluations, one for all tasks where that is possible.

Notation:
    n, m, d     evaluations of a task, different configurations among them, hyperparameters
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.benchmark import Definition
from hpobench_ordered.data.raw_evaluations import RawEvaluations, make_comparable
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates import SurrogateType

if TYPE_CHECKING:
    from hpobench_ordered.surrogates.pipeline import BenchmarkFit, Fitter


def as_raw_evaluations(values: FloatArray, objective: FloatArray) -> RawEvaluations:
    """Wrap n evaluations as raw evaluations, of which nothing else is known.

    Each counts as a training of its own, and its spread over repetitions is NaN.

    Args:
        values: Configurations, (n, d).
        objective: Their objective values, (n,).
    """
    n = len(objective)
    unknown_spread = np.full(n, np.nan)
    return RawEvaluations(values, objective, spread=unknown_spread, training=np.arange(n))


def average_repeats(values: FloatArray, objective: FloatArray) -> RawEvaluations:
    """Average the evaluations of equal configurations.

    Args:
        values: Configurations, (n, d).
        objective: Their objective values, (n,).

    Returns:
        The m different configurations, sorted, each with the mean of its evaluations.
    """
    _, first_row, config_of_row = np.unique(
        make_comparable(values), axis=0, return_index=True, return_inverse=True
    )
    config_of_row = config_of_row.ravel()  # two-dimensional in numpy 2.0
    sums = np.bincount(config_of_row, weights=objective)
    counts = np.bincount(config_of_row)
    return as_raw_evaluations(values[first_row], sums / counts)


def fit_benchmark(
    kind: SurrogateType,
    definition: Definition,
    averages: Sequence[RawEvaluations],
    *,
    seed: int,
    workers: int,
) -> "BenchmarkFit":
    """Fit a surrogate to each task's averages, or one to all if the configurations are the same.

    Args:
        kind: `NEAREST` or `FOREST`.
        definition: Definition of the benchmark.
        averages: Different configurations of each task, with their mean values.
        seed: Seed of the forest, of the search for its best values, and of the folds.
        workers: Number of threads that fit a forest.
    """
    from hpobench_ordered.surrogates.pipeline import FOLDS, BenchmarkFit, SurrogateFit

    fitter = _make_fitter(kind, definition.space, averages, workers=workers)
    smallest = min(len(task) for task in averages)
    folds = min(FOLDS, smallest)
    configs = averages[0].values
    is_same = [np.array_equal(task.values, configs, equal_nan=True) for task in averages]
    if not all(is_same):
        return BenchmarkFit.of_each_task(definition, fitter, averages, seed=seed, folds=folds)

    targets = np.stack([task.objective for task in averages], axis=1)  # (m, tasks)
    fit = SurrogateFit.of_all_tasks(fitter, configs, targets, seed=seed, folds=folds)
    return BenchmarkFit(definition, [fit], seed)


def _make_fitter(
    kind: SurrogateType,
    space: SearchSpace,
    averages: Sequence[RawEvaluations],
    *,
    workers: int,
) -> "Fitter":
    """Make the function that fits a surrogate of this kind to the evaluations of a task."""
    from hpobench_ordered.surrogates.coding import space_coding
    from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
    from hpobench_ordered.surrogates.pipeline import fit_nearest

    if kind is SurrogateType.NEAREST:
        # Features are scaled in the same way on all tasks, so that distances are comparable.
        values_of_all_tasks = np.concatenate([task.values for task in averages])
        return partial(fit_nearest, space=space, scaled_on=values_of_all_tasks)
    return partial(fit_forest, coding=space_coding(space), recipe=ForestRecipe(), workers=workers)
