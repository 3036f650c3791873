"""Toy benchmarks: shifted quadratics whose optimum moves slowly from task to task.

Notation:
    d       number of tunable hyperparameters
    u       a configuration in the unit cube, (d,)
    o[t]    the optimum of task t: FIRST_OPTIMUM + t DRIFT in every coordinate, discrete ones in
            the middle of the bin that this is in, (d,)

    loss = sum over the active hyperparameters j of (u[j] - o[t][j])^2
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.data.benchmark import Benchmark, Definition, Provenance, Task, TaskDefinition
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.data.specs import BenchmarkSpec, SurrogateOption
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.data.task_data import DataKind, DataSource, TaskData
from hpobench_ordered.errors import MethodError
from hpobench_ordered.experiment.outcome import Outcome
from hpobench_ordered.experiment.protocols import Assignment
from hpobench_ordered.experiment.runner import make_method_arguments, optimise
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.testing._require import ConformanceError

FIRST_OPTIMUM = 0.4  # of the first task, in every coordinate of the unit cube
DRIFT = 0.01  # of the optimum, from one task to the next
BUDGET = 12  # trials on a toy task
EVALUATIONS_PER_TASK = 20  # of an earlier task in a random history
HISTORY_STREAM = 1  # part of the seed, so that histories and runs draw different numbers
TRAINING_POINTS = 40  # of a task's training data


@dataclass(frozen=True, slots=True)
class ShiftedQuadratics:
    """Squared distance to the task's optimum, times a factor."""

    space: SearchSpace
    factor: float = 1.0

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Return the objective values, (n,), of n configurations, (n, d), on a task."""
        shape = (1, self.space.dimension)
        position = np.full(shape, optimum_position(task))
        optimum = self.space.canonical(position)  # discrete ones in the middle of their bin
        distances = self.space.encode(values) - optimum

        # Inactive hyperparameters are NaN, which the sum leaves out.
        losses: FloatArray = np.nansum(distances**2, axis=1)
        return self.factor * losses

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Return the objective value of one configuration, (d,), on a task."""
        return float(self.predict(row[None], task)[0])


def optimum_position(task: float) -> float:
    """Return where the optimum of a task is in the unit cube: the same number in each coordinate.

    Args:
        task: Index of the task, from 0.
    """
    return FIRST_OPTIMUM + DRIFT * task


def toy_data(task: int) -> TaskData:
    """Draw a toy task's training data: two features around its optimum, and their sum as target."""
    noise = np.random.default_rng(task).standard_normal((TRAINING_POINTS, 2))
    features = optimum_position(task) + 0.1 * noise
    targets = features.sum(axis=1)
    return TaskData(features, targets, DataKind.REGRESSION)


def toy_benchmark(
    space: SearchSpace,
    *,
    tasks: int,
    direction: Direction = Direction.MINIMIZE,
    model: Surrogate | None = None,
    previous: SearchSpace | None = None,
) -> Benchmark:
    """Make a toy benchmark.

    Args:
        space: Its search space.
        tasks: Number of tasks.
        direction: Whether the objective is minimised or maximised.
        model: Surrogate of the tasks; default: shifted quadratics.
        previous: The search space before an adjustment, if there was one.
    """
    benchmark = Benchmark.build(
        _define_benchmark(space, tasks, direction),
        surrogate="toy",
        model=model or ShiftedQuadratics(space, direction.sign),
        best_values=[None] * tasks,
        data=toy_data,
    )
    if previous is None:
        return benchmark
    benchmark_before = toy_benchmark(previous, tasks=tasks, direction=direction)
    return replace(benchmark, previous=benchmark_before)


def toy_spec(
    space: SearchSpace, *, tasks: int, previous: SearchSpace | None = None
) -> BenchmarkSpec:
    """Make the spec of a toy benchmark called "toy", as a package may register one.

    Args:
        space: Search space of the benchmark.
        tasks: Number of tasks.
        previous: The search space before an adjustment, if there was one.
    """

    def load() -> tuple[Surrogate, list[float | None]]:
        """Make the surrogate, and the best known value of each task, which is None: unknown."""
        return ShiftedQuadratics(space), [None] * tasks

    return BenchmarkSpec(
        name="toy",
        version=1,
        summary="Shifted quadratics whose optimum moves slowly.",
        define=lambda: _define_benchmark(space, tasks, Direction.MINIMIZE),
        surrogates=(SurrogateOption("toy", "The quadratics themselves.", load),),
        previous=None if previous is None else toy_spec(previous, tasks=tasks),
        data=DataSource(toy_data),
    )


def _define_benchmark(space: SearchSpace, tasks: int, direction: Direction) -> Definition:
    """Define the toy benchmark; the context of a task is its index."""
    return Definition(
        name="toy",
        version=1,
        summary="Shifted quadratics whose optimum moves slowly.",
        space=space,
        objective=Objective("distance", "squared, in the unit cube", direction),
        tasks=tuple(TaskDefinition(str(t), {"index": float(t)}) for t in range(tasks)),
        provenance=Provenance("", "", ""),
    )


def numeric_space() -> SearchSpace:
    """Make a search space of two floats, one of them on a log scale."""
    return SearchSpace([Parameter.number("x", -5, 5), Parameter.number("y", 1e-4, 1, log=True)])


def conditional_space() -> SearchSpace:
    """Make a search space with all kinds of hyperparameters, a constant and a condition."""
    description = {
        "hyperparameters": [
            {"type": "categorical", "name": "kind", "choices": ["a", "b", "c"]},
            {"type": "ordinal", "name": "level", "sequence": [1, 10, 100]},
            {"type": "uniform_int", "name": "n", "lower": 1, "upper": 50, "log": True},
            {"type": "uniform_float", "name": "x", "lower": 0, "upper": 1, "log": False},
            {"type": "constant", "name": "fixed", "value": "always"},
        ],
        "conditions": [{"type": "IN", "child": "x", "parent": "kind", "values": ["a", "b"]}],
    }
    return SearchSpace.from_json(description)


def numeric_space_before() -> SearchSpace:
    """Make the space before `numeric_space`: x has another range, and w is in the place of y."""
    return SearchSpace([Parameter.number("w", 0, 1), Parameter.number("x", -10, 2)])


def conditional_space_before() -> SearchSpace:
    """Make the space before `conditional_space`: choices, ranges, scales, conditions differ."""
    description = {
        "hyperparameters": [
            {"type": "uniform_float", "name": "x", "lower": 0.5, "upper": 2, "log": True},
            {"type": "categorical", "name": "kind", "choices": ["d", "c", "b"]},
            {"type": "uniform_int", "name": "n", "lower": 10, "upper": 100, "log": False},
            {"type": "ordinal", "name": "removed", "sequence": ["low", "high"]},
            {"type": "uniform_float", "name": "also removed", "lower": 0, "upper": 1, "log": False},
            {"type": "constant", "name": "level", "value": 10},
        ],
        "conditions": [{"type": "IN", "child": "n", "parent": "kind", "values": ["c", "d"]}],
    }
    return SearchSpace.from_json(description)


def integer_space(size: int) -> SearchSpace:
    """Make a search space of one integer, from 0 to size - 1."""
    return SearchSpace([Parameter.number("n", 0, size - 1, integer=True)])


def four_choices_space() -> SearchSpace:
    """Make a search space of two hyperparameters with two choices each: four configurations."""
    return SearchSpace([Parameter.choice(name, ("off", "on")) for name in ("first", "second")])


def random_history(
    tasks: Sequence[Task], *, seed: int, evaluations: int = EVALUATIONS_PER_TASK
) -> tuple[Evaluations, ...]:
    """Evaluate random configurations on every task.

    A run of a method with the same seed draws other random numbers, so that it does not repeat the
    configurations of its history.

    Args:
        tasks: The earlier tasks, oldest first.
        seed: Seed of the random configurations.
        evaluations: Number of configurations on each task.
    """
    rng = np.random.default_rng([seed, HISTORY_STREAM])
    history = []
    for task in tasks:
        values = task.space.decode(task.space.sample_unit(rng, evaluations))
        objective = task.evaluate_many(values)
        history.append(task.evaluated(values, objective))
    return tuple(history)


def run_method(
    spec: MethodSpec,
    task: Task,
    history: Sequence[Evaluations],
    rng: np.random.Generator,
    *,
    budget: int = BUDGET,
    workers: int = 1,
    time_limit: float | None = None,
) -> Outcome:
    """Let a method optimise a task as in an experiment, and return what it evaluated.

    Args:
        spec: The method.
        task: The task.
        history: Evaluations of earlier tasks.
        rng: The method's random generator.
        budget: Number of trials.
        workers: Number of trials in flight: with several, the method is asked for the next
            configurations before it is told the results of the last ones.
        time_limit: Seconds that one call into the method may take; None: no limit.

    Raises:
        ConformanceError: The method fails.
    """
    assignment = Assignment(spec, task, tuple(history), budget, workers)
    try:
        with one_thread():
            data = collect_training_data(task, history)
            return optimise(assignment, rng, data=data, time_limit=time_limit)
    except MethodError as error:
        raise ConformanceError(str(error)) from error


def construct_method(
    spec: MethodSpec, task: Task, history: Sequence[Evaluations], rng: np.random.Generator
) -> Method:
    """Construct a method as in an experiment, but give it the history itself instead of a copy.

    The caller can then see whether the method changes it.
    """
    assignment = Assignment(spec, task, tuple(history), BUDGET)
    arguments = make_method_arguments(assignment, collect_training_data(task, history))
    arguments["history"] = history
    return spec.method(rng=rng, **arguments)


def collect_training_data(task: Task, history: Sequence[Evaluations]) -> list[TaskData | None]:
    """List the training data of the toy tasks in a history, and at last those of the task."""
    # The name of a toy task is its number, which determines its data.
    earlier_data = [toy_data(int(evaluations.task)) for evaluations in history]
    return [*earlier_data, task.data]


def list_trials(space: SearchSpace, outcome: Outcome) -> list[tuple[Config, float]]:
    """List the configurations that were evaluated, each with its loss, in the order of trials."""
    configs = space.configs(outcome.values)
    losses = outcome.losses.tolist()
    return list(zip(configs, losses, strict=True))
