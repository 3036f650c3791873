"""Checks of a benchmark's artifact and its quality card against files and code.

Predictions, file sizes and numbers of evaluations are recomputed, and cross-validated figures of
nearest neighbours on recorded evaluations. Those of forests would take too long: they must only be
no better than on the evaluations that the forest was fitted to.
"""

import math
from functools import partial

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.benchmark import Benchmark, Definition, Task
from hpobench_ordered.data.file_interfaces import ArtifactFiles
from hpobench_ordered.data.raw_evaluations import RawEvaluations, count_distinct
from hpobench_ordered.data.specs import BenchmarkSpec
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.errors import ArtifactError
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
    """Check a benchmark's definition, best known values and card against its artifact.

    A card states the quality of a benchmark's default surrogate, and what it was fitted to.

    Raises:
        ArtifactError: The artifact has another definition than the code, the card states something
            that is not so, or a best known value is not the best.
    """
    card = read_card(artifact)
    definition = read_definition(artifact)
    _require(definition == spec.define(), "the definition is not that of the code")
    _check_claims(card, definition)
    _check_size(card, artifact)

    raw = None  # the evaluations of each task that the surrogates were fitted to
    if EVALUATIONS in artifact.sums():  # not every artifact holds them
        raw = read_evaluations(artifact)
        _check_counts(card, raw)

    for option in spec.surrogates:
        if option.files or not option.is_ready:
            continue  # it is not in the artifact: it is downloaded, or not generated yet
        model, _ = option.load()  # the surrogate, and its best known value of each task
        benchmark = spec.load(option.name)  # its tasks have these values, too
        if option is spec.surrogates[0]:  # the default one, which the card is about
            _check_kind(card, model)
            if raw is not None:
                _check_fit(card, benchmark, raw)
        for task in benchmark.tasks:
            _check_best(task, option.name, model)

    if raw is not None and NEAREST_COMPARISON in card.comparisons:
        _check_nearest(card, definition, raw)


def _check_claims(card: Card, definition: Definition) -> None:
    """Check that a card is of this benchmark, its licence and its tasks."""
    stated = (card.benchmark, card.licence)
    expected = (definition.name, definition.provenance.licence)
    _require(stated == expected, f"the card must be of {expected}, but is of {stated}")

    stated_tasks = [quality.name for quality in card.figures]
    is_cross_validated = card.folds > 0  # exact tables are not, and have no figures
    tasks = [task.name for task in definition.tasks] if is_cross_validated else []
    _require(
        stated_tasks == tasks, f"the card has figures of {stated_tasks}, the tasks are {tasks}"
    )


def _check_size(card: Card, artifact: ArtifactFiles) -> None:
    """Check that the stored arrays have as many bytes as a card says."""
    file_names = artifact.sums().keys()  # `sums` are the hashes of the artifact's files, by name
    array_files = [name for name in file_names if name.endswith(".npz")]
    size = sum(len(artifact.read(name)) for name in array_files)
    _require(card.size == size, f"the card says {card.size} bytes of arrays, there are {size}")


def _check_kind(card: Card, model: Surrogate) -> None:
    """Check that a surrogate is of the kind that a card says, such as FOREST."""
    kind = model.kind.name if isinstance(model, DescribedSurrogate) else "without a kind"
    expected = card.surrogate.name
    _require(kind == expected, f"the surrogate must be {expected}, as on its card, but is {kind}")


def _require(condition: object, message: str) -> None:
    """Raise an `ArtifactError` with a message unless a condition is true."""
    if not condition:
        raise ArtifactError(message)


def _check_counts(card: Card, raw: tuple[RawEvaluations, ...]) -> None:
    """Check the numbers of evaluations and configurations on a card against the recorded ones."""
    n_evaluations = sum(len(evaluations) for evaluations in raw)
    n_configurations = count_distinct(np.concatenate([evaluations.values for evaluations in raw]))
    _require(
        (card.evaluations, card.configurations) == (n_evaluations, n_configurations),
        f"the card says {card.evaluations} evaluations of {card.configurations} configurations, "
        f"but {n_evaluations} of {n_configurations} are recorded",
    )


def _check_fit(card: Card, benchmark: Benchmark, raw: tuple[RawEvaluations, ...]) -> None:
    """Check that surrogates predict the data they were fitted to no worse than cross-validated.

    Args:
        card: The quality card, whose figures (R2 of each task) are checked; none for exact tables.
        benchmark: The benchmark, evaluated by the surrogate.
        raw: The evaluations of each task that the surrogate was fitted to.
    """
    # Not strict: the card of an exact table has no figures, so there is nothing to check.
    for task, evaluations, claimed in zip(benchmark.tasks, raw, card.figures, strict=False):
        # If a configuration was evaluated several times, the surrogate was fitted to averages and
        # the figures are of averages: they cannot be compared with single evaluations.
        has_repetitions = count_distinct(evaluations.values) < len(evaluations)
        if has_repetitions:
            continue
        predicted = task.evaluate_many(evaluations.values)
        r2 = float(r_squared(evaluations.objective[:, None], predicted[:, None])[0])
        is_worse = r2 < claimed.r2 - _ROUNDING  # the last digits may differ between machines
        _require(
            not is_worse,
            f"the card says a cross-validated R2 of {claimed.r2} on task {task.name!r}, but on "
            f"the evaluations it was fitted to the surrogate has {r2}",
        )


def _check_best(task: Task, surrogate: str, model: Surrogate) -> None:
    """Check that no known or random configuration beats the best known value of a task.

    If all values that the surrogate can take are known, it must be the best of these. It is also
    compared with `DRAWS` random configurations.

    Args:
        task: The task, evaluated by the surrogate.
        surrogate: Name of the surrogate, for the message.
        model: The surrogate.
    """
    if task.best_value is None:
        return
    label = f"best value {task.best_value!r} of task {task.name!r} on surrogate {surrogate!r}"

    known_values = None  # stays None for surrogates that cannot list their values
    if isinstance(model, DescribedSurrogate):
        known_values = model.known_values(task.index, task.space)
    if known_values is not None:
        best_known = _find_best(task, known_values)
        _require(task.best_value == best_known, f"the {label} should be {best_known!r}")

    unit = task.space.sample_unit(np.random.default_rng(0), DRAWS)
    best_random = _find_best(task, task.evaluate_many(task.space.decode(unit)))
    is_beaten = task.objective.loss(best_random) < task.objective.loss(task.best_value)
    _require(not is_beaten, f"the {label} is beaten by a random configuration: {best_random!r}")


def _find_best(task: Task, values: FloatArray) -> float:
    """Find the best of objective values of any shape."""
    return float(values.flat[task.objective.losses(values).argmin()])


def _check_nearest(card: Card, defined: Definition, raw: tuple[RawEvaluations, ...]) -> None:
    """Repeat the cross-validation of nearest neighbours, and compare R2 and Spearman's correlation.

    The seed on the card gives the folds that its figures were computed on.
    """
    if card.seed is None:
        raise ArtifactError("the card states no seed of its folds")
    fitter = partial(fit_nearest, space=defined.space)
    fit = BenchmarkFit.of_each_task(defined, fitter, raw, seed=card.seed, folds=card.folds)
    # What the card says of nearest neighbours, in comparison with its own surrogate.
    claims_of_tasks = card.comparisons[NEAREST_COMPARISON].get("tasks", {})
    for computed in fit.figures:
        claims = claims_of_tasks.get(computed.name, {})
        for measure in ("r2", "spearman"):
            value = getattr(computed, measure)
            claimed = claims.get(measure, math.nan)
            _require(
                math.isclose(value, claimed, rel_tol=1e-6),
                f"the card says {measure} {claims.get(measure)} of nearest neighbours on task "
                f"{computed.name!r}, but it is {value}",
            )
