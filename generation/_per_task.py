"""Artifacts of tasks that were evaluated one by one: each its own forest and nearest neighbour.

All that is random of a task follows from the seed and the task's name: a task's surrogates are the
same, bit by bit, whatever other tasks are generated with it.

Notation:
    n, d    evaluations of a task, hyperparameters
    T       tasks
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hpobench_ordered._typing import IntArray
from hpobench_ordered.benchmark import Definition
from hpobench_ordered.bundle import BundledSurrogate, write_bundle
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation.base import Request
from hpobench_ordered.raw_evaluations import RawEvaluations
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.best import NOT_OPTIMAL, best_known
from hpobench_ordered.surrogates.card import Card, Figures, versions_of
from hpobench_ordered.surrogates.coding import Coding
from hpobench_ordered.surrogates.cross_validation import (
    FOLDS,
    grouped_folds,
    nearest_fit,
    out_of_fold,
    task_figures,
    task_rng,
)
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
from hpobench_ordered.surrogates.forest import ForestSurrogate
from hpobench_ordered.surrogates.nearest import NearestSurrogate
from hpobench_ordered.surrogates.per_task import PerTaskSurrogate

FOREST, NEAREST = "forest", "nearest"


@dataclass(frozen=True, slots=True)
class Report:
    """What the card says of evaluations.

    Attributes:
        source: Where they come from.
        limits: Known limits, one sentence each.
        command: What generates the artifact.
        summaries: One line on each surrogate, by the names `FOREST` and `NEAREST`.
    """

    source: str
    limits: Sequence[str]
    command: str
    summaries: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Surrogates of one task, best known values on them, and their cross-validated quality."""

    forest: ForestSurrogate
    nearest: NearestSurrogate
    forest_best: float
    nearest_best: float
    forest_figures: Figures
    nearest_figures: Figures


def write_per_task(
    request: Request,
    defined: Definition,
    evaluations: Sequence[RawEvaluations],
    report: Report,
    *,
    coding: Coding,
    recipe: ForestRecipe,
) -> Path:
    """Fit surrogates to the evaluations of every task and write the artifact; return its folder.

    Args:
        request: Folder, seed, workers, progress.
        defined: Space, objective and tasks of the benchmark.
        evaluations: Evaluations of each task, T of them.
        report: What the card says of them.
        coding: Features that the forests split on.
        recipe: How forests are fitted.

    Raises:
        ExperimentError: A task has evaluations of fewer trainings than the cross-validation has
            folds.
    """
    fitted = []
    for k, (task, raw) in enumerate(zip(defined.tasks, evaluations, strict=True)):
        request.progress("tasks", k, len(evaluations))
        fitted.append(_fit(request, defined, task.name, raw, coding, recipe))
    request.progress("tasks", len(evaluations), len(evaluations))
    surrogates = [
        BundledSurrogate(
            FOREST,
            report.summaries[FOREST],
            PerTaskSurrogate(tuple(one.forest for one in fitted)),
            [one.forest_best for one in fitted],
        ),
        BundledSurrogate(
            NEAREST,
            report.summaries[NEAREST],
            PerTaskSurrogate(tuple(one.nearest for one in fitted)),
            [one.nearest_best for one in fitted],
        ),
    ]
    card = replace(_card(defined, evaluations, report, fitted, recipe), seed=request.seed)
    write_bundle(request.folder, defined, surrogates, card, evaluations=evaluations)
    return request.folder


def _fit(
    request: Request,
    defined: Definition,
    task: str,
    raw: RawEvaluations,
    coding: Coding,
    recipe: ForestRecipe,
) -> _Fitted:
    trainings = len(np.unique(raw.training))
    if trainings < FOLDS:
        raise ExperimentError(
            f"task {task} has evaluations of {trainings} trainings; at least {FOLDS} are needed"
        )
    space, objective = defined.space, defined.objective
    rng, seed = task_rng(request.seed, task)

    def fit_trees(rows: IntArray) -> ForestSurrogate:
        return fit_forest(
            raw.values[rows],
            raw.objective[rows, None],
            coding=coding,
            recipe=recipe,
            seed=seed,
            workers=request.workers,
        )

    fit_nearest = nearest_fit(space, raw.values, raw.objective)
    folds = grouped_folds(raw.training, FOLDS, rng)
    forest_figures, nearest_figures = (
        task_figures(task, raw.objective, out_of_fold(fit, raw.values, folds), objective.direction)
        for fit in (fit_trees, fit_nearest)
    )
    everything = np.arange(len(raw))
    forest, nearest = fit_trees(everything), fit_nearest(everything)
    (best,) = best_known(forest, space, objective, n_tasks=1, rng=rng, known=raw.values)
    losses = objective.losses(nearest.predict(raw.values, 0))
    return _Fitted(
        forest=forest,
        nearest=nearest,
        forest_best=best,
        nearest_best=objective.loss(float(losses.min())),
        forest_figures=forest_figures,
        nearest_figures=nearest_figures,
    )


def _card(
    defined: Definition,
    evaluations: Sequence[RawEvaluations],
    report: Report,
    fitted: Sequence[_Fitted],
    recipe: ForestRecipe,
) -> Card:
    nearest = {
        one.nearest_figures.name: {
            "r2": one.nearest_figures.r2,
            "spearman": one.nearest_figures.spearman,
        }
        for one in fitted
    }
    worst = min(quality["r2"] for quality in nearest.values())
    return Card(
        benchmark=defined.name,
        surrogate=SurrogateType.FOREST,
        source=report.source,
        licence=defined.provenance.licence,
        evaluations=sum(map(len, evaluations)),
        configurations=sum(len(np.unique(raw.values, axis=0)) for raw in evaluations),
        folds=FOLDS,
        figures=tuple(one.forest_figures for one in fitted),
        limits=(
            f"{recipe.describe()} Each task has its own.",
            "Cross-validation holds out whole trainings, with all evaluations read from them.",
            *report.limits,
            NOT_OPTIMAL,
        ),
        command=report.command,
        versions=versions_of("hpobench-ordered", "numpy", "scikit-learn"),
        comparisons={
            f"surrogate {NEAREST}": {
                "explanation": f"cross-validated as the forests; worst task: R2 {worst:.3f}",
                "tasks": nearest,
            }
        },
    )
