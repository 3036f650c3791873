"""Checks of what a benchmark's artifact and its quality card claim, against files and code.

Everything here is recomputed: what surrogates give, how large files are, how many evaluations are
recorded. Cross-validated figures of forests cannot be, in seconds: they have to be possible, and no
better than on the evaluations that a surrogate was fitted to. Those of the nearest neighbours of
tasks with recorded evaluations are computed again.

Notation:
    T   number of tasks
    n   number of configurations
"""

import math
import re
from collections.abc import Iterator

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.artifact import Artifact
from hpobench_ordered.benchmark import Benchmark, Task
from hpobench_ordered.bundle import (
    EVALUATIONS,
    RawEvaluations,
    read_card,
    read_definition,
    read_evaluations,
)
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.specs import BenchmarkSpec
from hpobench_ordered.surrogates import Surrogate, SurrogateType
from hpobench_ordered.surrogates.card import Card, figures
from hpobench_ordered.surrogates.embedded import EmbeddedSurrogate
from hpobench_ordered.surrogates.forest import ForestSurrogate
from hpobench_ordered.surrogates.nearest import NearestSurrogate, log_coding
from hpobench_ordered.surrogates.per_task import PerTaskSurrogate
from hpobench_ordered.surrogates.table import TableSurrogate

DRAWS = 1000
"""Random configurations of which none may beat a best known value."""
NEAREST_COMPARISON = "surrogate nearest"
_ROUNDING = 1e-9


def check_card(spec: BenchmarkSpec, artifact: Artifact) -> None:
    """Check a benchmark's definition, best known values and card.

    Raises:
        ArtifactError: Something does not fit; the message names the first.
    """
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
            _check_kind(card, model)
            if raw is not None:
                _check_fit(card, benchmark, raw)
        for task in benchmark.tasks:
            _check_best(task, option.name, model)
    if raw is not None and NEAREST_COMPARISON in card.comparisons:
        _check_nearest(card, spec.load(), raw)


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
            0 <= output.top_decile <= 1,
        )
        if not all(possible):
            raise ArtifactError(f"the card has impossible figures: {output}")


def _check_counts(card: Card, raw: tuple[RawEvaluations, ...]) -> None:
    evaluations = sum(map(len, raw))
    configurations = _distinct(np.concatenate([r.values for r in raw]))
    if (card.evaluations, card.configurations) != (evaluations, configurations):
        raise ArtifactError(
            f"the card says {card.evaluations} evaluations of {card.configurations} "
            f"configurations, recorded are {evaluations} of {configurations}"
        )


def _distinct(values: FloatArray) -> int:
    """Number of different configurations, (n, d) to a number; inactive values are equal."""
    return len(np.unique(np.where(np.isnan(values), np.inf, values), axis=0))


def _check_kind(card: Card, model: Surrogate) -> None:
    inner = model.inner if isinstance(model, EmbeddedSurrogate) else model
    kind = (
        inner.kind
        if isinstance(inner, PerTaskSurrogate)
        else SurrogateType(f"{type(inner).__module__}:{type(inner).__qualname__}")
    )
    if kind is not card.surrogate:
        raise ArtifactError(f"the card is of a {card.surrogate.name}, the surrogate a {kind.name}")
    if isinstance(inner, TableSurrogate):
        tasks, size = len(inner.codes), math.prod(inner.shape)
        if (card.evaluations, card.configurations) != (tasks * size, size):
            raise ArtifactError(
                f"the card says {card.evaluations} evaluations of {card.configurations} "
                f"configurations, the table has {tasks * size} of {size}"
            )


def _check_fit(card: Card, benchmark: Benchmark, raw: tuple[RawEvaluations, ...]) -> None:
    """Check that each task's surrogate predicts no worse what it was fitted to."""
    for task, evaluations, claimed in zip(benchmark.tasks, raw, card.figures, strict=False):
        if _distinct(evaluations.values) < len(evaluations):
            continue  # fitted to averages, of which the figures are
        (found,) = figures(
            evaluations.objective[:, None],
            task.evaluate_many(evaluations.values)[:, None],
            names=[task.name],
            direction=task.objective.direction,
        )
        if found.r2 < claimed.r2 - _ROUNDING:
            raise ArtifactError(
                f"the card says a cross-validated R2 of {claimed.r2} on task {task.name!r}, but on "
                f"the evaluations it was fitted to the surrogate has {found.r2}"
            )


def _check_best(task: Task, surrogate: str, model: Surrogate) -> None:
    """Check that a best known value is one that the surrogate takes, and that none is better."""
    if task.best_value is None:
        return
    best = task.objective.loss(task.best_value)
    label = f"best value {task.best_value!r} of task {task.name!r} on surrogate {surrogate!r}"
    known = _known_losses(task, model)
    if known is not None and best != known.min():
        right = task.objective.loss(float(known.min()))
        raise ArtifactError(f"the {label} should be {right!r}")
    unit = task.space.sample_unit(np.random.default_rng(0), DRAWS)
    drawn = task.objective.losses(task.evaluate_many(task.space.decode(unit))).min()
    if drawn < best:
        better = task.objective.loss(float(drawn))
        raise ArtifactError(f"the {label} is beaten by a random configuration: {better!r}")
    forest, output = _forest(model, task.index)
    if forest is not None and not _is_possible(forest, output, task):
        raise ArtifactError(f"the {label} is none that its trees can give")


def _known_losses(task: Task, model: Surrogate) -> FloatArray | None:
    """Losses of all that a surrogate can give on a task, where they are listed."""
    index = task.index
    if isinstance(model, PerTaskSurrogate):
        model, index = model.models[index], 0
    if isinstance(model, TableSurrogate):
        if model.shape != tuple(p.size for p in task.space.parameters):
            return None  # of a larger space
        return task.objective.losses(model.values[index].ravel())
    if isinstance(model, NearestSurrogate):
        return task.objective.losses(model.targets[:, index])
    return None


def _forest(model: Surrogate, index: int) -> tuple[ForestSurrogate | None, int]:
    if isinstance(model, EmbeddedSurrogate):
        index, model = model.tasks[index], model.inner
    if isinstance(model, PerTaskSurrogate):
        index, model = 0, model.models[index]
    return (model, index) if isinstance(model, ForestSurrogate) else (None, index)


def _is_possible(forest: ForestSurrogate, index: int, task: Task) -> bool:
    """Whether a best value lies within what the trees can sum up to, and is such a sum at all."""
    mix, trees = forest.tasks[index], len(forest.nodes)
    value = float(task.best_value or 0.0)
    outputs = [(mix.low, 1.0 - mix.weight), (mix.high, mix.weight)]
    # Every tree has one leaf more than inner nodes.
    ends = np.cumsum((forest.nodes + 1) // 2)[:-1]
    starts = np.concatenate(([0], ends))
    low = high = 0.0
    for output, weight in outputs:
        codes = forest.codes[output].astype(np.float64)
        ends_of_range = (np.minimum.reduceat(codes, starts), np.maximum.reduceat(codes, starts))
        least, most = (float(extreme.sum()) / trees for extreme in ends_of_range)
        low += weight * (forest.offset[output] + forest.step[output] * least)
        high += weight * (forest.offset[output] + forest.step[output] * most)
    slack = _ROUNDING * max(1.0, abs(value))
    if not low - slack <= value <= high + slack:
        return False
    step = forest.step[mix.low] / trees
    if mix.low != mix.high or step == 0:
        return True
    offset = float(forest.offset[mix.low])
    steps = (value - offset) / step
    rounding = 4 * np.finfo(np.float64).eps * max(abs(value), abs(offset)) / abs(step)
    return bool(abs(steps - round(steps)) <= 1e-4 + rounding)


def _check_nearest(card: Card, benchmark: Benchmark, raw: tuple[RawEvaluations, ...]) -> None:
    """Cross-validate the nearest neighbours of each task again, on the folds of the generator."""
    claimed = card.comparisons[NEAREST_COMPARISON].get("tasks", {})
    seed = re.search(r"--seed (\d+)", card.command)
    if seed is None:
        raise ArtifactError(f"the card's command states no seed: {card.command!r}")
    for task, evaluations in zip(benchmark.tasks, raw, strict=True):
        predicted = np.empty(len(evaluations))
        for kept, held_out in _folds(evaluations, int(seed[1]), task.name, card.folds):
            values = evaluations.values[kept]
            nearest = NearestSurrogate.from_evaluations(
                values,
                evaluations.objective[kept, None],
                coding=log_coding(task.space, values),
            )
            predicted[held_out] = nearest.predict(evaluations.values[held_out], 0)
        (found,) = figures(
            evaluations.objective[:, None],
            predicted[:, None],
            names=[task.name],
            direction=task.objective.direction,
        )
        stated = claimed.get(task.name, {})
        for name, value in (("r2", found.r2), ("spearman", found.spearman)):
            if not math.isclose(value, stated.get(name, math.nan), rel_tol=1e-6):
                raise ArtifactError(
                    f"the card says {name} {stated.get(name)} of nearest neighbours on task "
                    f"{task.name!r}, computed again it is {value}"
                )


def _folds(
    evaluations: RawEvaluations, seed: int, task: str, folds: int
) -> Iterator[tuple[IntArray, IntArray]]:
    """Evaluations kept and held out, fold by fold, as when the artifact was generated."""
    from hpobench_ordered.generation._per_task import grouped_folds

    rng = np.random.default_rng([seed, *task.encode()])
    rng.integers(2**32)  # the forest's seed
    everything = np.arange(len(evaluations))
    for held_out in grouped_folds(evaluations.training, folds, rng):
        yield np.setdiff1d(everything, held_out), held_out
