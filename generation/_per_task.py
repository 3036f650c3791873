"""Artifacts of tasks that were evaluated one by one: each its own forest and nearest neighbour.

All that is random of a task follows from the seed and the task's name: a task's surrogates are the
same, bit by bit, whatever other tasks are generated with it.

Notation:
    n, d    evaluations of a task, hyperparameters
    T       tasks
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.benchmark import Definition
from hpobench_ordered.bundle import BundledSurrogate, RawEvaluations, write_bundle
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation._best import best_known
from hpobench_ordered.generation._forest import FOLDS, NOT_OPTIMAL, describe_model
from hpobench_ordered.generation.base import Request
from hpobench_ordered.surrogates import Surrogate, SurrogateType
from hpobench_ordered.surrogates.card import Card, Figures, figures, versions_of
from hpobench_ordered.surrogates.coding import Coding
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest
from hpobench_ordered.surrogates.forest import ForestSurrogate
from hpobench_ordered.surrogates.nearest import NearestSurrogate, log_coding
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
            SurrogateType.PER_TASK,
            report.summaries[FOREST],
            PerTaskSurrogate(tuple(one.forest for one in fitted)),
            [one.forest_best for one in fitted],
        ),
        BundledSurrogate(
            NEAREST,
            SurrogateType.PER_TASK,
            report.summaries[NEAREST],
            PerTaskSurrogate(tuple(one.nearest for one in fitted)),
            [one.nearest_best for one in fitted],
        ),
    ]
    card = _card(defined, evaluations, report, fitted, recipe)
    write_bundle(request.folder, defined, surrogates, card, evaluations=evaluations)
    return request.folder


def grouped_folds(groups: IntArray, folds: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Split evaluations into folds of about as many groups, never a group into two.

    Args:
        groups: Number of each evaluation's group, shape (n,).
        folds: Number of folds.
        rng: Shuffles the groups.

    Yields:
        Indices of the evaluations of each fold, ascending.
    """
    names = rng.permutation(np.unique(groups))
    for members in np.array_split(names, folds):
        yield np.flatnonzero(np.isin(groups, members))


# -- internals -------------------------------------------------------------------------------------


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
    rng = np.random.default_rng([request.seed, *task.encode()])
    fits = _Fits(defined, raw, coding, recipe, int(rng.integers(2**32)), request.workers)
    everything = np.arange(len(raw))
    predicted = np.empty((2, len(raw)))
    for held_out in grouped_folds(raw.training, FOLDS, rng):
        kept = np.setdiff1d(everything, held_out)
        models: tuple[Surrogate, ...] = (fits.forest(kept), fits.nearest(kept))
        for row, model in enumerate(models):
            predicted[row, held_out] = model.predict(raw.values[held_out], 0)
    forest, nearest = fits.forest(everything), fits.nearest(everything)
    (best,) = best_known(
        forest, defined.space, defined.objective, n_tasks=1, rng=rng, known=raw.values
    )
    losses = defined.objective.losses(nearest.predict(raw.values, 0))
    return _Fitted(
        forest=forest,
        nearest=nearest,
        forest_best=best,
        nearest_best=defined.objective.loss(float(losses.min())),
        forest_figures=_figures(defined, task, raw, predicted[0]),
        nearest_figures=_figures(defined, task, raw, predicted[1]),
    )


@dataclass(frozen=True, eq=False)
class _Fits:
    """Fits surrogates to some evaluations of a task, by their indices."""

    defined: Definition
    raw: RawEvaluations
    coding: Coding
    recipe: ForestRecipe
    seed: int
    workers: int

    def forest(self, rows: IntArray) -> ForestSurrogate:
        return fit_forest(
            self.raw.values[rows],
            self.raw.objective[rows, None],
            coding=self.coding,
            recipe=self.recipe,
            seed=self.seed,
            workers=self.workers,
        )

    def nearest(self, rows: IntArray) -> NearestSurrogate:
        values = self.raw.values[rows]
        return NearestSurrogate.from_evaluations(
            values, self.raw.objective[rows, None], coding=log_coding(self.defined.space, values)
        )


def _figures(defined: Definition, task: str, raw: RawEvaluations, predicted: FloatArray) -> Figures:
    (found,) = figures(
        raw.objective[:, None],
        predicted[:, None],
        names=[task],
        direction=defined.objective.direction,
    )
    return found


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
            f"{describe_model(recipe)} Each task has its own.",
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
