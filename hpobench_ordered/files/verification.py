"""Checks of what a benchmark's artifact and its quality card claim, against files and code.

Everything here is recomputed: what surrogates give, how large files are, how many evaluations are
recorded. Cross-validation of forests would take too long: their figures have to be possible, and no
better than on the evaluations that a surrogate was fitted to. Figures of nearest neighbours on
tasks with recorded evaluations are recomputed.

Notation:
    T   number of tasks
    n   number of configurations
"""

import math
from functools import partial

import numpy as np

from hpobench_ordered.core.benchmark import Benchmark, Definition, Task
from hpobench_ordered.core.specs import BenchmarkSpec
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.files.artifact import Artifact
from hpobench_ordered.files.bundle import EVALUATIONS, read_card, read_definition, read_evaluations
from hpobench_ordered.files.raw_evaluations import RawEvaluations, count_distinct
from hpobench_ordered.surrogates import DescribedSurrogate, Surrogate
from hpobench_ordered.surrogates.artifacts import comparison_name
from hpobench_ordered.surrogates.card import Card, r_squared
from hpobench_ordered.surrogates.pipeline import BenchmarkFit, fit_nearest

DRAWS = 1000
"""Number of random configurations, none of which may beat a best known value."""
NEAREST_COMPARISON = comparison_name("nearest")
_ROUNDING = 1e-9


def check_card(spec: BenchmarkSpec, artifact: Artifact) -> None:
    """Check a benchmark's definition, best known values and card."""
    card, defined = read_card(artifact), read_definition(artifact)
    if defined != spec.define():
        raise ArtifactError("the definition is not that of the code")
    stated = (card.benchmark, card.licence)
    if stated != (defined.name, defined.provenance.licence):
        raise ArtifactError(f"the card is of {stated}, the definition of {defined.name}")
    _check_figures(card, [task.name for task in defined.tasks])
    arrays = [name for name in artifact.sums() if name.endswith(".npz")]
    size = sum(len(artifact.read(name)) for name in arrays)
    if card.size != size:
        raise ArtifactError(f"the card says {card.size} bytes of arrays, there are {size}")
    if not card.versions.get("python"):
        raise ArtifactError("the card does not say which Python made it")
    raw = read_evaluations(artifact) if EVALUATIONS in arrays else None
    if raw is not None:
        _check_counts(card, raw)
    for option in spec.surrogates:
        if option.files or not option.is_ready:
            continue
        benchmark, (model, _) = spec.load(option.name), option.load()
        is_default = option is spec.surrogates[0]
        if is_default:
            if not isinstance(model, DescribedSurrogate):
                raise ArtifactError(f"surrogate {option.name!r} has a card, but no kind")
            _check_kind(card, model)
            if raw is not None:
                _check_fit(card, benchmark, raw)
        for task in benchmark.tasks:
            _check_best(task, option.name, model)
    if raw is not None and NEAREST_COMPARISON in card.comparisons:
        _check_nearest(card, defined, raw)


def _check_figures(card: Card, tasks: list[str]) -> None:
    names = [output.name for output in card.figures]
    if names != (tasks if card.folds else []):
        raise ArtifactError(
            f"the card has figures of {names} by {card.folds}-fold cross-validation, the tasks are "
            f"{tasks}"
        )
    if card.folds == 1 or not 0 < card.configurations <= card.evaluations:
        raise ArtifactError(
            f"{card.folds} folds, {card.configurations} configurations and {card.evaluations} "
            "evaluations are impossible"
        )
    for output in card.figures:
        possible = (
            not output.r2 > 1,
            not abs(output.spearman) > 1 + _ROUNDING,
            not abs(output.upper_half or 0.0) > 1 + _ROUNDING,
            0 <= output.top_decile <= 1,
        )
        if not all(possible):
            raise ArtifactError(f"the card has impossible figures: {output}")


def _check_counts(card: Card, raw: tuple[RawEvaluations, ...]) -> None:
    evaluations = sum(map(len, raw))
    configurations = count_distinct(np.concatenate([r.values for r in raw]))
    if (card.evaluations, card.configurations) != (evaluations, configurations):
        raise ArtifactError(
            f"the card says {card.evaluations} evaluations of {card.configurations} "
            f"configurations, recorded are {evaluations} of {configurations}"
        )


def _check_kind(card: Card, model: DescribedSurrogate) -> None:
    if model.kind is not card.surrogate:
        raise ArtifactError(
            f"the card is of a {card.surrogate.name}, the surrogate a {model.kind.name}"
        )


def _check_fit(card: Card, benchmark: Benchmark, raw: tuple[RawEvaluations, ...]) -> None:
    """Check that each task's surrogate predicts no worse what it was fitted to."""
    for task, evaluations, claimed in zip(benchmark.tasks, raw, card.figures, strict=False):
        if count_distinct(evaluations.values) < len(evaluations):
            continue  # fitted to averages, of which the figures are
        predicted = task.evaluate_many(evaluations.values)[:, None]
        (r2,) = r_squared(evaluations.objective[:, None], predicted).tolist()
        if r2 < claimed.r2 - _ROUNDING:
            raise ArtifactError(
                f"the card says a cross-validated R2 of {claimed.r2} on task {task.name!r}, but on "
                f"the evaluations it was fitted to the surrogate has {r2}"
            )


def _check_best(task: Task, surrogate: str, model: Surrogate) -> None:
    """Check that no configuration that is known, or drawn at random, beats a best known value."""
    if task.best_value is None:
        return
    best = task.objective.loss(task.best_value)
    label = f"best value {task.best_value!r} of task {task.name!r} on surrogate {surrogate!r}"
    known = None
    if isinstance(model, DescribedSurrogate):
        known = model.known_values(task.index, task.space)
    if known is not None and best != task.objective.losses(known).min():
        right = task.objective.loss(float(task.objective.losses(known).min()))
        raise ArtifactError(f"the {label} should be {right!r}")
    unit = task.space.sample_unit(np.random.default_rng(0), DRAWS)
    drawn = task.objective.losses(task.evaluate_many(task.space.decode(unit))).min()
    if drawn < best:
        better = task.objective.loss(float(drawn))
        raise ArtifactError(f"the {label} is beaten by a random configuration: {better!r}")


def _check_nearest(card: Card, defined: Definition, raw: tuple[RawEvaluations, ...]) -> None:
    """Cross-validate the nearest neighbours of each task again, on the folds of the generator."""
    claimed = card.comparisons[NEAREST_COMPARISON].get("tasks", {})
    if card.seed is None:
        raise ArtifactError("the card states no seed of its folds")
    fitter = partial(fit_nearest, space=defined.space)
    fit = BenchmarkFit.of_each_task(defined, fitter, raw, seed=card.seed, folds=card.folds)
    for computed in fit.figures:
        stated = claimed.get(computed.name, {})
        for name, value in (("r2", computed.r2), ("spearman", computed.spearman)):
            if not math.isclose(value, stated.get(name, math.nan), rel_tol=1e-6):
                raise ArtifactError(
                    f"the card says {name} {stated.get(name)} of nearest neighbours on task "
                    f"{computed.name!r}, computed again it is {value}"
                )
