"""Fits surrogates to tabulated evaluations, one for all tasks where that is possible.

Notation:
    n, m, d     evaluations of a task, different configurations among them, hyperparameters
"""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.core.benchmark import Definition
from hpobench_ordered.files.raw_evaluations import RawEvaluations, make_comparable
from hpobench_ordered.surrogates import SurrogateType

if TYPE_CHECKING:
    from hpobench_ordered.surrogates.pipeline import BenchmarkFit


def as_raw_evaluations(values: FloatArray, objective: FloatArray) -> RawEvaluations:
    """Evaluations (n, d) and (n,), each from a training of its own."""
    n = len(objective)
    return RawEvaluations(values, objective, spread=np.full(n, np.nan), training=np.arange(n))


def average_repeats(values: FloatArray, objective: FloatArray) -> RawEvaluations:
    """The m different configurations, sorted, each with the mean of its evaluations."""
    _, first, group = np.unique(
        make_comparable(values), axis=0, return_index=True, return_inverse=True
    )
    group = group.ravel()  # two-dimensional in numpy 2.0
    return as_raw_evaluations(
        values[first], np.bincount(group, weights=objective) / np.bincount(group)
    )


def fit_benchmark(
    kind: SurrogateType,
    definition: Definition,
    averages: Sequence[RawEvaluations],
    *,
    seed: int,
    workers: int,
) -> "BenchmarkFit":
    """Fit a surrogate to each task's averages, or one to all if the configurations are the same."""
    from hpobench_ordered.surrogates.coding import space_coding
    from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
    from hpobench_ordered.surrogates.pipeline import (
        FOLDS,
        BenchmarkFit,
        Fitter,
        SurrogateFit,
        fit_nearest,
    )

    space = definition.space
    fitter: Fitter = partial(
        fit_forest, coding=space_coding(space), recipe=ForestRecipe(), workers=workers
    )
    if kind is SurrogateType.NEAREST:
        # Scale alike on all tasks, so that distances are comparable.
        everywhere = np.concatenate([task.values for task in averages])
        fitter = partial(fit_nearest, space=space, scaled_on=everywhere)
    folds = min(FOLDS, *map(len, averages))
    first = averages[0].values
    if not all(np.array_equal(task.values, first, equal_nan=True) for task in averages):
        return BenchmarkFit.of_each_task(definition, fitter, averages, seed=seed, folds=folds)
    targets = np.stack([task.objective for task in averages], axis=1)
    fit = SurrogateFit.of_all_tasks(fitter, first, targets, seed=seed, folds=folds)
    return BenchmarkFit(definition, [fit], seed)
