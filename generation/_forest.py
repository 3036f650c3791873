"""Forest artifacts: fit to evaluations, cross-validate, search best values, describe."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmark import Definition
from hpobench_ordered.bundle import BundledSurrogate, write_bundle
from hpobench_ordered.generation.base import Request
from hpobench_ordered.surrogates import SurrogateType
from hpobench_ordered.surrogates.best import NOT_OPTIMAL, best_known
from hpobench_ordered.surrogates.card import Card, figures, versions_of
from hpobench_ordered.surrogates.coding import Coding
from hpobench_ordered.surrogates.cross_validation import FOLDS
from hpobench_ordered.surrogates.fitting import ForestRecipe, cross_validate, fit_forest
from hpobench_ordered.surrogates.forest import TaskMix


@dataclass(frozen=True)
class ForestSource:
    """What a forest is fitted to, and what its card says of it.

    Attributes:
        values: Configurations as coded by the search space, shape (n, d).
        targets: Their objective values, one column an output, shape (n, K).
        tasks: How each task is made of the outputs, T of them.
        source: Where the evaluations come from.
        summary: One line on the surrogate.
        limits: Known limits, one sentence each.
        command: What generates the artifact.
        comparisons: Further comparisons by name, as JSON.
    """

    values: FloatArray
    targets: FloatArray
    tasks: tuple[TaskMix, ...]
    source: str
    summary: str
    limits: Sequence[str]
    command: str
    comparisons: Mapping[str, Any] = field(default_factory=dict)


def write_forest(
    request: Request,
    defined: Definition,
    evaluations: ForestSource,
    *,
    coding: Coding,
    recipe: ForestRecipe,
    rng: np.random.Generator,
) -> Path:
    """Fit a forest to evaluations and write the benchmark's artifact; return its folder.

    Args:
        request: Folder, seed of folds and trees, workers, progress.
        defined: Space, objective and tasks of the benchmark.
        evaluations: What to fit.
        coding: Features the trees split on.
        recipe: How to fit.
        rng: Source of what is random in the search for best values.
    """
    values, targets = evaluations.values, evaluations.targets
    predicted = cross_validate(
        values,
        targets,
        coding=coding,
        recipe=recipe,
        seed=request.seed,
        folds=FOLDS,
        workers=request.workers,
        progress=partial(request.progress, "cross-validation"),
    )
    forest = fit_forest(
        values,
        targets,
        coding=coding,
        recipe=recipe,
        seed=request.seed,
        tasks=evaluations.tasks,
        workers=request.workers,
    )
    best_values = best_known(
        forest,
        defined.space,
        defined.objective,
        n_tasks=len(defined.tasks),
        rng=rng,
        progress=request.progress,
        known=values,
    )
    card = replace(_card(defined, evaluations, predicted, recipe), seed=request.seed)
    surrogate = BundledSurrogate("forest", evaluations.summary, forest, best_values)
    write_bundle(request.folder, defined, [surrogate], card)
    return request.folder


def _card(
    defined: Definition, evaluations: ForestSource, predicted: FloatArray, recipe: ForestRecipe
) -> Card:
    return Card(
        benchmark=defined.name,
        surrogate=SurrogateType.FOREST,
        source=evaluations.source,
        licence=defined.provenance.licence,
        evaluations=evaluations.targets.size,
        configurations=len(evaluations.values),
        folds=FOLDS,
        figures=figures(
            _on_tasks(evaluations.targets, evaluations.tasks),
            _on_tasks(predicted, evaluations.tasks),
            names=[task.name for task in defined.tasks],
            direction=defined.objective.direction,
        ),
        limits=(recipe.describe(), *evaluations.limits, NOT_OPTIMAL),
        command=evaluations.command,
        versions=versions_of("hpobench-ordered", "numpy", "scikit-learn"),
        comparisons=evaluations.comparisons,
    )


def _on_tasks(outputs: FloatArray, tasks: Sequence[TaskMix]) -> FloatArray:
    """Values on every task, interpolated where it lies between outputs, (n, K) to (n, T)."""
    columns = [
        (1 - mix.weight) * outputs[:, mix.low] + mix.weight * outputs[:, mix.high] for mix in tasks
    ]
    return np.stack(columns, axis=1)
