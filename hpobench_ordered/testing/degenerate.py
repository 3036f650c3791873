"""Degenerate input that a method must handle without errors."""

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.benchmark import Task
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.wrapping.factory import as_method_spec
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.testing._require import ConformanceError
from hpobench_ordered.testing.toy import (
    ShiftedQuadratics,
    conditional_space,
    four_choices_space,
    integer_space,
    numeric_space,
    random_history,
    run_method,
    toy_benchmark,
)

EARLIER_TASKS = 3
EVALUATIONS_PER_TASK = 20
COPIES = 5  # copies of every evaluation in a history of duplicates
NUMBERS_OF_WORKERS = (1, 4)
BUDGET = 8
"""More trials than the smallest spaces have configurations, and than initial random trials."""
ENORMOUS_FACTOR = 1e300  # times this, losses have squares that overflow


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
    for space in (numeric_space(), conditional_space(), integer_space(2), four_choices_space()):
        for case in _iter_cases(space, seed):
            for workers in NUMBERS_OF_WORKERS:
                _check_case(spec, case, workers, seed)


@dataclass(frozen=True, slots=True)
class _Case:
    """A task and history from which little can be learned."""

    description: str
    task: Task
    history: tuple[Evaluations, ...]
    budget: int = BUDGET


@dataclass(frozen=True, slots=True)
class _Constant:
    """A surrogate that gives every configuration the same value."""

    value: float

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Return the constant for each configuration, (n,), whatever the task."""
        return np.full(len(values), self.value)

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Return the constant, whatever the configuration and the task."""
        return self.value


@dataclass(frozen=True, slots=True)
class _PartlyUndefined:
    """Shifted quadratics with about half of the values, pseudo-randomly, NaN or infinite."""

    quadratics: ShiftedQuadratics

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Return the losses, (n,), of n configurations, (n, d), or what replaces them."""
        losses = self.quadratics.predict(values, task)

        # A pseudo-random number from 0 to 5, which is the same each time for a configuration: the
        # digits of a loss down to the ninth decimal, modulo 6.
        number = np.floor(losses * 1e9).astype(np.int64) % 6
        index_of_choice = np.minimum(number, 3)  # 3, 4 and 5 all choose the loss itself
        return np.choose(index_of_choice, [np.nan, np.inf, -np.inf, losses])

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Return the loss of one configuration, (d,), on a task, or what replaces it."""
        return float(self.predict(row[None], task)[0])


def _check_case(spec: MethodSpec, case: _Case, workers: int, seed: int) -> None:
    """Run a method on a case with a number of simulated workers.

    Raises:
        ConformanceError: The method raises an exception or a `RuntimeWarning`.
    """
    rng = np.random.default_rng(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            run_method(spec, case.task, case.history, rng, budget=case.budget, workers=workers)
        except ConformanceError as error:
            raise ConformanceError(f"with {case.description}: {error}") from error


def _iter_cases(space: SearchSpace, seed: int) -> Iterator[_Case]:
    """Yield the degenerate cases on one search space, one after the other."""
    task, history = _make_task_and_history(space, seed)
    yield _Case("a budget of 1", task, history, budget=1)

    yield _Case("no history", task, ())
    _, one_evaluation_per_task = _make_task_and_history(space, seed, evaluations=1)
    yield _Case("a history of one evaluation", task, one_evaluation_per_task[-1:])
    yield _Case("one evaluation a task", task, one_evaluation_per_task)

    duplicates = tuple(_repeat_evaluations(evaluations) for evaluations in history)
    yield _Case("every evaluation several times", task, duplicates * COPIES)
    # Each earlier task keeps its name and context, but has the evaluations of the first one.
    same_evaluations = tuple(
        replace(history[0], task=earlier.task, context=earlier.context) for earlier in history
    )
    yield _Case("the same optimum in all previous tasks", task, same_evaluations)

    model_of_case: dict[str, Surrogate] = {
        "a constant objective": _Constant(1.0),
        "enormous losses": ShiftedQuadratics(space, ENORMOUS_FACTOR),
        "losses some of which are not finite": _PartlyUndefined(ShiftedQuadratics(space)),
    }
    for description, model in model_of_case.items():
        task_of_model, history_of_model = _make_task_and_history(space, seed, model)
        yield _Case(description, task_of_model, history_of_model)
    for loss in (math.nan, math.inf, -math.inf):
        undefined_task, undefined_history = _make_task_and_history(space, seed, _Constant(loss))
        yield _Case(f"a loss of {loss} always", undefined_task, undefined_history)
        yield _Case(f"a loss of {loss} in all previous tasks", task, undefined_history)
        yield _Case(f"a loss of {loss} in all trials", undefined_task, history)


def _make_task_and_history(
    space: SearchSpace,
    seed: int,
    model: Surrogate | None = None,
    *,
    evaluations: int = EVALUATIONS_PER_TASK,
) -> tuple[Task, tuple[Evaluations, ...]]:
    """Make a toy benchmark; return its last task, and random evaluations of the tasks before.

    Args:
        space: The search space.
        seed: Seed of the random evaluations.
        model: Surrogate of the tasks; default: shifted quadratics.
        evaluations: Number of evaluations of each earlier task.
    """
    *earlier_tasks, task = toy_benchmark(space, tasks=EARLIER_TASKS + 1, model=model).tasks
    return task, random_history(earlier_tasks, seed=seed, evaluations=evaluations)


def _repeat_evaluations(evaluations: Evaluations) -> Evaluations:
    """Return the same evaluations of a task with each of them `COPIES` times."""
    return replace(
        evaluations,
        values=np.repeat(evaluations.values, COPIES, axis=0),
        objective=np.repeat(evaluations.objective, COPIES),
    )
