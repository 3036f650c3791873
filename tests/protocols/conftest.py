"""A toy benchmark, and what protocols assign in a run on it."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from histories import minimised

import hpobench_ordered as hbo
from hpobench_ordered import registry
from hpobench_ordered.experiment.plan import plan
from hpobench_ordered.experiment.runner import optimise
from hpobench_ordered.protocols import Assignment, Protocol
from hpobench_ordered.testing.toy import numeric_space, numeric_space_before, toy_spec


@pytest.fixture
def toy(monkeypatch):
    """A registered benchmark, "toy", of the tasks "0" to "3".

    Its search space was adjusted; `numeric_space_before()` is the one before.
    """
    spec = toy_spec(numeric_space(), tasks=4, previous=numeric_space_before())
    all_benchmarks = {**registry._benchmarks(), spec.name: spec}
    monkeypatch.setattr(registry, "_benchmarks", lambda: all_benchmarks)
    return spec


@pytest.fixture
def make_assignments(toy):
    """Makes all assignments of a run on the toy benchmark, as the runner does."""

    def make(
        protocol: Protocol,
        *,
        method: str = "random-search",
        seed: int = 0,
        benchmark: hbo.Benchmark | None = None,
    ) -> list[Assignment]:
        benchmark = benchmark or toy.load()
        # A cell is the plan of one run: its method, and its generators at each position.
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

    return make


@pytest.fixture
def list_history():
    """Lists what the histories of assignments hold, as values that can be compared by ==."""

    def list_contents(assignments: Sequence[Assignment]) -> list[object]:
        contents: list[object] = []
        for assignment in assignments:
            history = []
            for earlier in assignment.history:
                history.append((earlier.task, earlier.values.tolist(), earlier.losses.tolist()))
            contents.append(history)
        return contents

    return list_contents


@pytest.fixture
def recorded(toy):
    """The toy benchmark with 30 recorded evaluations of each of its four tasks.

    Losses of task t are 100 t, 100 t + 1, ..., so that they tell the task and the order.
    """
    space = numeric_space()

    def load_recorded() -> list[hbo.Evaluations]:
        values = space.decode(space.sample_unit(np.random.default_rng(0), 30))
        tasks = []
        for t in range(4):
            losses = 100.0 * t + np.arange(30)
            tasks.append(minimised(str(t), {}, values, losses, space))
        return tasks

    return replace(toy.load(), recorded=load_recorded)
