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
    """A registered benchmark of four tasks, with a search space before an adjustment."""
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
    """Lists what the histories of some assignments hold, to be compared."""

    def list_contents(assignments: Sequence[Assignment]) -> list[object]:
        contents: list[object] = []
        for assignment in assignments:
            history = assignment.history
            contents.append([(e.task, e.values.tolist(), e.losses.tolist()) for e in history])
        return contents

    return list_contents


@pytest.fixture
def recorded(toy):
    """The toy benchmark with 30 recorded evaluations a task, of losses t * 100, t * 100 + 1, ..."""
    space = numeric_space()

    def load() -> list[hbo.Evaluations]:
        values = space.decode(space.sample_unit(np.random.default_rng(0), 30))
        return [minimised(str(t), {}, values, 100.0 * t + np.arange(30), space) for t in range(4)]

    return replace(toy.load(), recorded=load)
