"""Degenerate input that a method must handle without errors."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.core.benchmark import Task
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.surrogates.base import Surrogate
from hpobench_ordered.testing._require import ConformanceError
from hpobench_ordered.testing.toy import (
    ShiftedQuadratics,
    conditional_space,
    four_choices_space,
    integer_space,
    numeric_space,
    play,
    random_history,
    toy_benchmark,
)

EARLIER = 3  # earlier tasks
COPIES = 5  # copies of every evaluation in a history of duplicates
WORKERS = (1, 4)
BUDGET = 8
"""More trials than the smallest spaces have configurations, and than initial random trials."""
ENORMOUS = 1e300  # factor of losses, so that their squares overflow


def check_degenerate_input(method: object, *, seed: int = 0) -> None:
    """Check that a method handles evaluations from which little or nothing can be learned.

    The cases are a constant objective; enormous, NaN or infinite losses, some or all, in the
    history and in its own trials; a history of one evaluation, of none, and of repeated ones;
    earlier tasks with the same optimum; a budget of 1; and spaces of two and of four
    configurations, some of which the method must repeat. Each is run with one and with four
    simulated workers. The method must suggest a valid configuration for each trial, without an
    exception or a `RuntimeWarning` of numerical libraries.

    A method that passes `check_method`, but not this check, can be used wherever all evaluations
    succeed. The bundled methods pass both.

    Args:
        method: A method as `hpobench_ordered.run` takes it.
        seed: Seed of the runs.

    Raises:
        ConformanceError: The method fails; the message names the first case.
    """
    spec = as_method_spec(method)
    spaces = (numeric_space(), conditional_space(), integer_space(2), four_choices_space())
    for case in (case for space in spaces for case in _cases(space, seed)):
        for workers in WORKERS:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("error", RuntimeWarning)
                    rng = np.random.default_rng(seed)
                    play(spec, case.task, case.history, rng, budget=case.budget, workers=workers)
            except ConformanceError as error:
                raise ConformanceError(f"with {case.what}: {error}") from error


@dataclass(frozen=True, slots=True)
class _Case:
    """A task and history from which little can be learned."""

    what: str
    task: Task
    history: tuple[Evaluations, ...]
    budget: int = BUDGET


@dataclass(frozen=True, slots=True)
class _Constant:
    """A constant surrogate."""

    value: float

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        return np.full(len(values), self.value)

    def predict_one(self, row: FloatArray, task: int) -> float:
        return self.value


@dataclass(frozen=True, slots=True)
class _PartlyUndefined:
    """Shifted quadratics with about half of the values, pseudo-randomly, NaN or infinite."""

    quadratics: ShiftedQuadratics

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        losses = self.quadratics.predict(values, task)
        chance = np.floor(losses * 1e9).astype(np.int64) % 6
        return np.choose(np.minimum(chance, 3), [np.nan, np.inf, -np.inf, losses])

    def predict_one(self, row: FloatArray, task: int) -> float:
        return float(self.predict(row[None], task)[0])


def _cases(space: SearchSpace, seed: int) -> Iterator[_Case]:
    task, history = _toy(space, seed)
    yield _Case("a budget of 1", task, history, budget=1)
    yield _Case("no history", task, ())
    yield _Case("a history of one evaluation", task, _toy(space, seed, evaluations=1)[1][-1:])
    yield _Case("one evaluation a task", task, _toy(space, seed, evaluations=1)[1])
    yield _Case("every evaluation several times", task, tuple(map(_repeated, history)) * COPIES)
    optimum = tuple(replace(history[0], task=e.task, context=e.context) for e in history)
    yield _Case("the same optimum in all previous tasks", task, optimum)
    yield _Case("a constant objective", *_toy(space, seed, _Constant(1.0)))
    yield _Case("enormous losses", *_toy(space, seed, ShiftedQuadratics(space, ENORMOUS)))
    partly = _PartlyUndefined(ShiftedQuadratics(space))
    yield _Case("losses some of which are not finite", *_toy(space, seed, partly))
    for value in (math.nan, math.inf, -math.inf):
        undefined, nothing = _toy(space, seed, _Constant(value))
        yield _Case(f"a loss of {value} always", undefined, nothing)
        yield _Case(f"a loss of {value} in all previous tasks", task, nothing)
        yield _Case(f"a loss of {value} in all trials", undefined, history)


def _toy(
    space: SearchSpace, seed: int, model: Surrogate | None = None, *, evaluations: int = 20
) -> tuple[Task, tuple[Evaluations, ...]]:
    """A toy task, and random evaluations of earlier tasks."""
    *before, task = toy_benchmark(space, tasks=EARLIER + 1, model=model).tasks
    return task, random_history(before, seed=seed, evaluations=evaluations)


def _repeated(evaluations: Evaluations) -> Evaluations:
    values, objective = (
        np.repeat(array, COPIES, axis=0) for array in (evaluations.values, evaluations.objective)
    )
    return replace(evaluations, values=values, objective=objective)
