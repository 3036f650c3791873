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
    everything = {**registry._benchmarks(), spec.name: spec}
    monkeypatch.setattr(registry, "_benchmarks", lambda: everything)
    return spec


@pytest.fixture
def assignments(toy):
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
        made: list[Assignment] = []
        evaluated: list[hbo.Evaluations] = []
        for i in range(protocol.length(benchmark)):
            assignment = protocol.assignment(
                benchmark, cell.method, position=i, evaluated=evaluated, rng=cell.protocol_rng(i)
            )
            done = optimise(assignment, cell.rng(i))
            evaluated.append(assignment.task.evaluated(done.values, done.objective))
            made.append(assignment)
        return made

    return make


@pytest.fixture
def content():
    """What the histories of some assignments hold, to be compared."""

    def of(made: Sequence[Assignment]) -> list[object]:
        return [
            [(e.task, e.values.tolist(), e.losses.tolist()) for e in assignment.history]
            for assignment in made
        ]

    return of


@pytest.fixture
def recorded(toy):
    """The toy benchmark with 30 recorded evaluations a task; their losses number them."""
    space = numeric_space()

    def load() -> list[hbo.Evaluations]:
        values = space.decode(space.sample_unit(np.random.default_rng(0), 30))
        return [minimised(str(t), {}, values, 100.0 * t + np.arange(30), space) for t in range(4)]

    return replace(toy.load(), recorded=load)
