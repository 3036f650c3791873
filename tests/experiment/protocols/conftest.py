"""A toy benchmark, and what protocols assign in a run on it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from histories import minimised as make_minimised_evaluations

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks import registry
from hpobench_ordered.experiment.plan import plan
from hpobench_ordered.experiment.protocols import Assignment, Protocol
from hpobench_ordered.experiment.runner import optimise
from hpobench_ordered.testing.toy import numeric_space, numeric_space_before, toy_spec


@pytest.fixture
def toy(monkeypatch):
    """A registered benchmark, "toy", of the tasks "0" to "3".

    Its search space was adjusted; `numeric_space_before()` is the one before.
    """
    spec = toy_spec(numeric_space(), tasks=4, previous=numeric_space_before())
    all_benchmarks = {**registry._find_registered_specs(), spec.name: spec}
    monkeypatch.setattr(registry, "_find_registered_specs", lambda: all_benchmarks)
    return spec


@pytest.fixture
def make_assignments(toy):
    """A function that makes all assignments of a run on the toy benchmark, as the runner does."""

    def run_and_list_assignments(
        protocol: Protocol,
        *,
        method: str = "random-search",
        seed: int = 0,
        benchmark: hbo.Benchmark | None = None,
    ) -> list[Assignment]:
        """Run a method under a protocol; list what it is assigned, in order.

        An assignment depends on the evaluations before it, and on random numbers.
        """
        benchmark = benchmark or toy.load()
        # A cell is the plan of a run; it has random generators for each position of an assignment.
        (cell,) = plan(benchmarks=["toy"], methods=[method], seeds=[seed], protocol=protocol)

        assignments: list[Assignment] = []
        evaluated: list[hbo.Evaluations] = []
        for position in range(protocol.length(benchmark)):
            assignment = protocol.assignment(
                benchmark,
                cell.method,
                position=position,
                evaluated=evaluated,
                rng=cell.protocol_rng(position),
            )
            outcome = optimise(assignment, cell.rng(position))
            evaluated.append(assignment.task.evaluated(outcome.values, outcome.objective))
            assignments.append(assignment)
        return assignments

    return run_and_list_assignments


@pytest.fixture
def list_history():
    """A function that lists what the histories of assignments hold, to compare them by ==."""

    def list_contents_of_histories(assignments: Sequence[Assignment]) -> list[object]:
        """List task, values and losses of every history of every assignment."""
        contents: list[object] = []
        for assignment in assignments:
            for evaluations in assignment.history:
                values = evaluations.values.tolist()
                losses = evaluations.losses.tolist()
                contents.append((assignment.task.name, evaluations.task, values, losses))
        return contents

    return list_contents_of_histories


@pytest.fixture
def recorded(toy):
    """The toy benchmark with 30 recorded evaluations of each of its four tasks."""

    def load_recorded() -> list[hbo.Evaluations]:
        """Make 30 evaluations of each task t, with the losses 100 t, 100 t + 1, ..., 100 t + 29.

        So a loss tells the task and the place in the order.
        """
        space = numeric_space()
        values = space.decode(space.sample_unit(np.random.default_rng(0), 30))
        no_context: dict[str, float] = {}
        recorded_tasks = []
        for t in range(4):
            losses = 100.0 * t + np.arange(30)
            evaluations = make_minimised_evaluations(str(t), no_context, values, losses, space)
            recorded_tasks.append(evaluations)
        return recorded_tasks

    return replace(toy.load(), recorded=load_recorded)
