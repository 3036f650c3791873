"""Artifacts of surrogates that are fitted to evaluations.

`write_forest` fits one forest to configurations that were evaluated on every task, `write_per_task`
a forest and nearest neighbours to each task. All that is random of a task that is fitted by itself
follows from the seed and its name: its surrogates are the same, bit by bit, whatever other tasks
are generated with it.

Notation:
    n, d    evaluations, hyperparameters
    K, T    outputs, tasks
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmark import Definition
from hpobench_ordered.bundle import BundledSurrogate, write_bundle
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation.base import Request
from hpobench_ordered.raw_evaluations import RawEvaluations
from hpobench_ordered.surrogates.base import StoredSurrogate
from hpobench_ordered.surrogates.best import NOT_OPTIMAL, best_known
from hpobench_ordered.surrogates.card import Figures, figures
from hpobench_ordered.surrogates.coding import Coding
from hpobench_ordered.surrogates.fitting import ForestRecipe
from hpobench_ordered.surrogates.forest import ForestSurrogate, TaskMix
from hpobench_ordered.surrogates.per_task import PerTaskSurrogate
from hpobench_ordered.surrogates.pipeline import (
    FOLDS,
    Fit,
    Report,
    grouped_folds,
    row_folds,
    task_rng,
)

FOREST, NEAREST = "forest", "nearest"


def write_forest(
    request: Request,
    defined: Definition,
    values: FloatArray,
    targets: FloatArray,
    report: Report,
    *,
    coding: Coding,
    recipe: ForestRecipe,
    rng: np.random.Generator,
    mixes: Sequence[TaskMix] = (),
) -> Path:
    """Fit a forest to evaluations and write the benchmark's artifact; return its folder.

    Args:
        request: Folder, seed of folds and trees, workers, progress.
        defined: Space, objective and tasks of the benchmark.
        values: Configurations as coded by the search space, shape (n, d).
        targets: Their objective values, one column an output, shape (n, K).
        report: What the card says of them.
        coding: Features the trees split on.
        recipe: How to fit.
        rng: Source of what is random in the search for best values.
        mixes: How each task is made of the outputs; default: every output is a task.
    """
    tasks = tuple(mixes) or tuple(TaskMix(k, k) for k in range(targets.shape[1]))
    fit = Fit.forest(
        values, targets, coding=coding, recipe=recipe, seed=request.seed, workers=request.workers
    )
    folds = row_folds(len(values), FOLDS, request.seed)
    predicted = fit.cross_validate(folds, partial(request.progress, "cross-validation"))
    forest = replace(cast("ForestSurrogate", fit.surrogate()), tasks=tasks)
    best_values = best_known(
        forest,
        defined.space,
        defined.objective,
        n_tasks=len(tasks),
        rng=rng,
        progress=request.progress,
        known=values,
    )
    quality = figures(
        _on_tasks(targets, tasks),
        _on_tasks(predicted, tasks),
        names=[task.name for task in defined.tasks],
        direction=defined.objective.direction,
    )
    card = replace(report, limits=(recipe.describe(), *report.limits, NOT_OPTIMAL)).card(
        defined,
        forest,
        quality,
        evaluations=targets.size,
        configurations=len(values),
        folds=FOLDS,
        seed=request.seed,
    )
    surrogate = BundledSurrogate(FOREST, report.summaries[FOREST], forest, best_values)
    write_bundle(request.folder, defined, [surrogate], card)
    return request.folder


def _on_tasks(outputs: FloatArray, tasks: Sequence[TaskMix]) -> FloatArray:
    """Values on every task, interpolated where it lies between outputs, (n, K) to (n, T)."""
    columns = [
        (1 - mix.weight) * outputs[:, mix.low] + mix.weight * outputs[:, mix.high] for mix in tasks
    ]
    return np.stack(columns, axis=1)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A surrogate of one task, the best known value on it, and its cross-validated quality."""

    model: StoredSurrogate
    best: float
    quality: Figures


def write_per_task(
    request: Request,
    defined: Definition,
    evaluations: Sequence[RawEvaluations],
    report: Report,
    *,
    coding: Coding,
    recipe: ForestRecipe,
) -> Path:
    """Fit surrogates to the evaluations of every task and write the artifact; return its folder."""
    fitted: dict[str, list[_Fitted]] = {FOREST: [], NEAREST: []}
    for k, (task, raw) in enumerate(zip(defined.tasks, evaluations, strict=True)):
        request.progress("tasks", k, len(evaluations))
        for name, one in _fit(request, defined, task.name, raw, coding, recipe).items():
            fitted[name].append(one)
    request.progress("tasks", len(evaluations), len(evaluations))
    surrogates = [
        BundledSurrogate(
            name,
            report.summaries[name],
            PerTaskSurrogate(tuple(one.model for one in tasks)),
            [one.best for one in tasks],
        )
        for name, tasks in fitted.items()
    ]
    nearest = {
        one.quality.name: {"r2": one.quality.r2, "spearman": one.quality.spearman}
        for one in fitted[NEAREST]
    }
    worst = min(quality["r2"] for quality in nearest.values())
    explanation = f"cross-validated as the forests; worst task: R2 {worst:.3f}"
    limits = (
        f"{recipe.describe()} Each task has its own.",
        "Cross-validation holds out whole trainings, with all evaluations read from them.",
        *report.limits,
        NOT_OPTIMAL,
    )
    comparisons = {f"surrogate {NEAREST}": {"explanation": explanation, "tasks": nearest}}
    card = replace(report, limits=limits, comparisons=comparisons).card(
        defined,
        surrogates[0].model,
        [one.quality for one in fitted[FOREST]],
        evaluations=sum(map(len, evaluations)),
        configurations=sum(len(np.unique(raw.values, axis=0)) for raw in evaluations),
        folds=FOLDS,
        seed=request.seed,
    )
    write_bundle(request.folder, defined, surrogates, card, evaluations=evaluations)
    return request.folder


def _fit(
    request: Request,
    defined: Definition,
    task: str,
    raw: RawEvaluations,
    coding: Coding,
    recipe: ForestRecipe,
) -> dict[str, _Fitted]:
    trainings = len(np.unique(raw.training))
    if trainings < FOLDS:
        raise ExperimentError(
            f"task {task} has evaluations of {trainings} trainings; at least {FOLDS} are needed"
        )
    space, objective = defined.space, defined.objective
    values, targets = raw.values, raw.objective[:, None]
    rng, seed = task_rng(request.seed, task)
    trees = Fit.forest(
        values, targets, coding=coding, recipe=recipe, seed=seed, workers=request.workers
    )
    near = Fit.nearest(space, values, targets)
    folds = grouped_folds(raw.training, FOLDS, rng)
    forest, nearest = trees.surrogate(), near.surrogate()
    (forest_best,) = best_known(forest, space, objective, n_tasks=1, rng=rng, known=values)
    nearest_best = objective.loss(float(objective.losses(nearest.predict(values, 0)).min()))
    return {
        name: _Fitted(model, best, *fit.figures(folds, [task], objective.direction))
        for name, fit, model, best in (
            (FOREST, trees, forest, forest_best),
            (NEAREST, near, nearest, nearest_best),
        )
    }
