"""Degenerate input that a method must survive."""

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
    numeric_space,
    play,
    random_history,
    toy_benchmark,
    two_values_space,
)

EARLIER = 3
"""Earlier tasks."""
COPIES = 5
"""Copies of every evaluation in a history of duplicates."""
WORKERS = (1, 4)
BUDGET = 8
"""More trials than the smallest spaces have configurations, and than initial random trials."""
ENORMOUS = 1e300
"""Factor of losses whose squares overflow."""


def check_degenerate_input(method: object, *, seed: int = 0) -> None:
    """Check that a method survives evaluations that tell it little or nothing.

    A constant objective; losses that are enormous, NaN or infinite, some or all of them, in the
    history and of its own trials; a single evaluation, none, or every one several times in the
    history; previous tasks with the same optimum; a budget of 1; spaces of two and of four
    configurations, where the method must repeat some. Told each result at once, and with four
    simulated workers. In each case it must suggest a valid configuration for each trial, without
    an exception or a `RuntimeWarning`, which numerical libraries give.

    This is separate from `check_method`: a method that passes that check, but not this one, can be
    used wherever all evaluations succeed. The bundled methods pass both.

    Args:
        method: A method as `hpobench_ordered.run` takes it.
        seed: Seed of the runs.

    Raises:
        ConformanceError: With the first case that it does not survive.
    """
    spec = as_method_spec(method)
    spaces = (numeric_space(), conditional_space(), two_values_space(), four_choices_space())
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
    """A task with too little to learn from."""

    what: str
    task: Task
    history: tuple[Evaluations, ...]
    budget: int = BUDGET


@dataclass(frozen=True, slots=True)
class _Constant:
    """A surrogate that always predicts the same."""

    value: float

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        return np.full(len(values), self.value)

    def predict_one(self, row: FloatArray, task: int) -> float:
        return self.value


@dataclass(frozen=True, slots=True)
class _PartlyUndefined:
    """Shifted quadratics, of which about half the values are NaN or infinite, as if at random."""

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
    """A toy task, and random evaluations of the tasks before it."""
    *before, task = toy_benchmark(space, tasks=EARLIER + 1, model=model).tasks
    return task, random_history(before, seed=seed, evaluations=evaluations)


def _repeated(evaluations: Evaluations) -> Evaluations:
    values, objective = (
        np.repeat(array, COPIES, axis=0) for array in (evaluations.values, evaluations.objective)
    )
    return replace(evaluations, values=values, objective=objective)
