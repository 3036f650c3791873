"""Checks of a benchmark's artifact and its quality card against files and code.

Predictions, file sizes and numbers of evaluations are recomputed, and cross-validated figures of
nearest neighbours on recorded evaluations. Those of forests would take too long: they must only be
no better than on the evaluations that the forest was fitted to.
"""

import math
from functools import partial

import numpy as np

from hpobench_ordered.core.benchmark import Benchmark, Definition, Task
from hpobench_ordered.core.files import ArtifactFiles
from hpobench_ordered.core.specs import BenchmarkSpec
from hpobench_ordered.core.surrogate import Surrogate
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.files.raw_evaluations import RawEvaluations, count_distinct
from hpobench_ordered.surrogates import DescribedSurrogate
from hpobench_ordered.surrogates.artifacts import comparison_name
from hpobench_ordered.surrogates.bundle import (
    EVALUATIONS,
    read_card,
    read_definition,
    read_evaluations,
)
from hpobench_ordered.surrogates.card import Card, r_squared
from hpobench_ordered.surrogates.pipeline import BenchmarkFit, fit_nearest

DRAWS = 1000  # number of random configurations, none of which may beat a best known value
NEAREST_COMPARISON = comparison_name("nearest")
_ROUNDING = 1e-9


def check_card(spec: BenchmarkSpec, artifact: ArtifactFiles) -> None:
    """Check a benchmark's definition, best known values and card."""
    card, defined = read_card(artifact), read_definition(artifact)
    _require(defined == spec.define(), "the definition is not that of the code")
    stated = (card.benchmark, card.licence)
    expected = (defined.name, defined.provenance.licence)
    _require(stated == expected, f"the card must be of {expected}, but is of {stated}")
    names = [output.name for output in card.figures]
    tasks = [task.name for task in defined.tasks] if card.folds else []
    _require(names == tasks, f"the card has figures of {names}, the tasks are {tasks}")
    arrays = [name for name in artifact.sums() if name.endswith(".npz")]
    size = sum(len(artifact.read(name)) for name in arrays)
    _require(card.size == size, f"the card says {card.size} bytes of arrays, there are {size}")
    raw = read_evaluations(artifact) if EVALUATIONS in arrays else None
    if raw is not None:
        _check_counts(card, raw)
    for option in spec.surrogates:
        if option.files or not option.is_ready:
            continue
        benchmark, (model, _) = spec.load(option.name), option.load()
        if option is spec.surrogates[0]:
            kind = model.kind.name if isinstance(model, DescribedSurrogate) else "without a kind"
            named = card.surrogate.name
            message = f"the surrogate must be {named}, as on its card, but is {kind}"
            _require(kind == named, message)
            if raw is not None:
                _check_fit(card, benchmark, raw)
        for task in benchmark.tasks:
            _check_best(task, option.name, model)
    if raw is not None and NEAREST_COMPARISON in card.comparisons:
        _check_nearest(card, defined, raw)


def _require(condition: object, message: str) -> None:
    if not condition:
        raise ArtifactError(message)


def _check_counts(card: Card, raw: tuple[RawEvaluations, ...]) -> None:
    evaluations = sum(map(len, raw))
    configurations = count_distinct(np.concatenate([r.values for r in raw]))
    _require(
        (card.evaluations, card.configurations) == (evaluations, configurations),
        f"the card says {card.evaluations} evaluations of {card.configurations} configurations, "
        f"but {evaluations} of {configurations} are recorded",
    )


def _check_fit(card: Card, benchmark: Benchmark, raw: tuple[RawEvaluations, ...]) -> None:
    """Check that surrogates predict the data they were fitted to no worse than cross-validated."""
    for task, evaluations, claimed in zip(benchmark.tasks, raw, card.figures, strict=False):
        if count_distinct(evaluations.values) < len(evaluations):
            continue  # fitted to averages, of which the figures are
        predicted = task.evaluate_many(evaluations.values)[:, None]
        (r2,) = r_squared(evaluations.objective[:, None], predicted).tolist()
        _require(
            not r2 < claimed.r2 - _ROUNDING,
            f"the card says a cross-validated R2 of {claimed.r2} on task {task.name!r}, but on "
            f"the evaluations it was fitted to the surrogate has {r2}",
        )


def _check_best(task: Task, surrogate: str, model: Surrogate) -> None:
    """Check that no known or random configuration beats the best known value."""
    if task.best_value is None:
        return
    best, loss = task.best_value, task.objective.loss
    label = f"best value {best!r} of task {task.name!r} on surrogate {surrogate!r}"
    known = None
    if isinstance(model, DescribedSurrogate):
        known = model.known_values(task.index, task.space)
    if known is not None:
        right = loss(float(task.objective.losses(known).min()))
        _require(best == right, f"the {label} should be {right!r}")
    unit = task.space.sample_unit(np.random.default_rng(0), DRAWS)
    drawn = loss(float(task.objective.losses(task.evaluate_many(task.space.decode(unit))).min()))
    message = f"the {label} is beaten by a random configuration: {drawn!r}"
    _require(not loss(drawn) < loss(best), message)


def _check_nearest(card: Card, defined: Definition, raw: tuple[RawEvaluations, ...]) -> None:
    """Repeat the cross-validation of nearest neighbours on the generator's folds."""
    claimed = card.comparisons[NEAREST_COMPARISON].get("tasks", {})
    if card.seed is None:
        raise ArtifactError("the card states no seed of its folds")
    fitter = partial(fit_nearest, space=defined.space)
    fit = BenchmarkFit.of_each_task(defined, fitter, raw, seed=card.seed, folds=card.folds)
    for computed in fit.figures:
        stated = claimed.get(computed.name, {})
        for name, value in (("r2", computed.r2), ("spearman", computed.spearman)):
            _require(
                math.isclose(value, stated.get(name, math.nan), rel_tol=1e-6),
                f"the card says {name} {stated.get(name)} of nearest neighbours on task "
                f"{computed.name!r}, but it is {value}",
            )
