"""Fits surrogates to evaluations and writes artifacts.

`write_forest` fits one forest to configurations that were evaluated on every task, `write_per_task`
a forest and nearest neighbours to each task.

Notation:
    n, d    evaluations, hyperparameters
    K       outputs
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.benchmark import Definition
from hpobench_ordered.data.best import NOT_OPTIMAL
from hpobench_ordered.data.raw_evaluations import RawEvaluations
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation.base import Request
from hpobench_ordered.surrogates.artifacts import CardTexts, write_surrogates
from hpobench_ordered.surrogates.coding import Coding
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
from hpobench_ordered.surrogates.forest import TaskMix
from hpobench_ordered.surrogates.pipeline import (
    FOLDS,
    BenchmarkFit,
    Fitter,
    SurrogateFit,
    fit_nearest,
)

# Names of surrogates.
FOREST = "forest"
NEAREST = "nearest"


@dataclass(frozen=True, eq=False)
class ForestData:
    """What a forest is fitted to, and how; see `SurrogateFit`.

    Attributes:
        values: Configurations, (n, d).
        targets: Objective values, (n, K).
        coding: How configurations are coded as inputs of the forest.
        recipe: Settings of the forest.
        rng: Random generator of the search for best values; default: by the seed of the request.
        mixes: How each task's value is mixed from the outputs; default: one output a task.
    """

    values: FloatArray
    targets: FloatArray
    coding: Coding
    recipe: ForestRecipe
    rng: np.random.Generator | None = None
    mixes: tuple[TaskMix, ...] = ()


def write_forest(
    request: Request,
    defined: Definition,
    forest: ForestData,
    report: CardTexts,
    *,
    evaluations: Sequence[RawEvaluations] | None = None,
    runs: Sequence[RawEvaluations] | None = None,
    seconds: FloatArray | None = None,
) -> Path:
    """Fit a forest to evaluations and write the benchmark's artifact; return its folder.

    Args:
        request: Folder, seed, number of workers, and who is told the progress.
        defined: The benchmark.
        forest: What the forest is fitted to, and how.
        report: Texts of the quality card.
        evaluations: Raw evaluations of each task, which the artifact is to contain; None: none.
        runs: Evaluations that a method made on each task, which the artifact is to contain as
            history for other methods; None: none.
        seconds: Seconds that the evaluation of each configuration takes on each task, (n, T), which
            the artifact is to contain; None: none.
    """
    fitter = partial(
        fit_forest, coding=forest.coding, recipe=forest.recipe, workers=request.workers
    )
    # A task that is no output of the forest is a mixture of two outputs: `mixes` says of which.
    fit = SurrogateFit.of_all_tasks(
        fitter, forest.values, forest.targets, seed=request.seed, rng=forest.rng, mixes=forest.mixes
    )
    benchmark_fit = BenchmarkFit(defined, [fit], request.seed, request.progress)
    limits = (
        forest.recipe.describe(),
        *report.limits,
        NOT_OPTIMAL,  # best values were searched, so there may be better ones
    )
    costs = None
    if seconds is not None:
        costs = fit_nearest(forest.values, seconds, seed=request.seed, space=defined.space)
    return write_surrogates(
        request.folder,
        {FOREST: benchmark_fit},  # the artifact's only surrogate, by its name
        replace(report, limits=limits),
        evaluations=evaluations,
        runs=runs,
        costs=costs,
    )


def write_per_task(
    request: Request,
    defined: Definition,
    evaluations: Sequence[RawEvaluations],
    report: CardTexts,
    *,
    coding: Coding,
    recipe: ForestRecipe,
) -> Path:
    """Fit a forest and nearest neighbours to each task, and write the artifact; return its folder.

    Args:
        request: Folder, seed, number of workers, and who is told the progress.
        defined: The benchmark.
        evaluations: Evaluations of each task, which are stored as well.
        report: Texts of the quality card.
        coding: How configurations are coded as inputs of the forests.
        recipe: Settings of the forests.

    Raises:
        ExperimentError: A task has too few trainings for cross-validation.
    """
    _check_numbers_of_trainings(defined, evaluations)
    fitters: dict[str, Fitter] = {
        FOREST: partial(fit_forest, coding=coding, recipe=recipe, workers=request.workers),
        NEAREST: partial(fit_nearest, space=defined.space),
    }
    fit_of_surrogate = {
        name: BenchmarkFit.of_each_task(
            defined, fitter, evaluations, seed=request.seed, progress=request.progress
        )
        for name, fitter in fitters.items()
    }
    limits = (
        f"{recipe.describe()} Each task has its own.",
        "Cross-validation holds out whole trainings, with all evaluations read from them.",
        *report.limits,
        NOT_OPTIMAL,  # best values were searched, so there may be better ones
    )
    return write_surrogates(
        request.folder,
        fit_of_surrogate,
        replace(report, limits=limits),
        evaluations=evaluations,
    )


def _check_numbers_of_trainings(defined: Definition, evaluations: Sequence[RawEvaluations]) -> None:
    """Raise an `ExperimentError` if a task has too few trainings for cross-validation.

    Cross-validation puts whole trainings into folds, each of which needs one.
    """
    for task, raw in zip(defined.tasks, evaluations, strict=True):
        number_of_trainings = len(np.unique(raw.training))
        if number_of_trainings < FOLDS:
            raise ExperimentError(
                f"task {task.name} has evaluations of {number_of_trainings} trainings; at least "
                f"{FOLDS} are needed"
            )
