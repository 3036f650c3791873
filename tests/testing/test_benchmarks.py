"""The suite of benchmarks, over all that are registered, toy ones, and some that break it."""

from dataclasses import replace

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.testing import BenchmarkConformance, ConformanceError, check_benchmark
from hpobench_ordered.testing.toy import conditional_space, numeric_space, toy_benchmark

READY = hbo.list_benchmarks(ready=True)
TRAINS = [name for name in READY if benchmark_spec(name).option().trains]
TOYS = [
    pytest.param(toy_benchmark(space(), tasks=5, direction=direction), id=space.__name__)
    for space in (numeric_space, conditional_space)
    for direction in hbo.Direction
]


@pytest.fixture(scope="class")
def every_benchmark(request, executor):
    request.cls.benchmark, request.cls.executor = request.param, executor


@pytest.mark.usefixtures("every_benchmark")
@pytest.mark.parametrize(
    "every_benchmark", [name for name in READY if name not in TRAINS] + TOYS, indirect=True
)
class TestEveryBenchmark(BenchmarkConformance):
    pass


@pytest.mark.slow
@pytest.mark.usefixtures("every_benchmark")
@pytest.mark.parametrize("every_benchmark", TRAINS, indirect=True)
class TestEveryBenchmarkThatTrains(BenchmarkConformance):
    configurations = 6


class Broken:
    """Surrogates that break the contract, each in its own way."""

    def __init__(self, model: object) -> None:
        self.model = model
        self.calls = 0

    def predict(self, values, task):
        return self.model.predict(values, task)

    def predict_one(self, row, task):
        return self.model.predict_one(row, task)


class DependsOnBatch(Broken):
    def predict(self, values, task):
        return super().predict(values, task) + 1e-12 * len(values)


class DependsOnCallOrder(Broken):
    def predict_one(self, row, task):
        self.calls += 1
        return super().predict_one(row, task) + 1e-12 * self.calls


class UsesGlobalState(Broken):
    def predict_one(self, row, task):
        np.random.random()  # noqa: NPY002
        return super().predict_one(row, task)


class LostInPickle(Broken):
    def __getstate__(self):
        return {"model": LostInPickle.Shifted(self.model), "calls": 0}

    class Shifted(Broken):
        def predict(self, values, task):
            return super().predict(values, task) + 1


def with_model(kind: type[Broken]) -> hbo.Benchmark:
    benchmark = hbo.load("newsvendor")
    tasks = tuple(replace(t, _surrogate=kind(t._surrogate)) for t in benchmark.tasks)
    return replace(benchmark, tasks=tasks)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (DependsOnBatch, "values in a batch"),
        (DependsOnCallOrder, "differ"),
        (UsesGlobalState, "global random state"),
        (LostInPickle, "after pickling"),
    ],
)
def test_broken_benchmarks_are_found(kind, message, executor):
    with pytest.raises(ConformanceError, match=message):
        check_benchmark(with_model(kind), executor=executor)


def test_wrong_direction_is_found(executor):
    benchmark = hbo.load("newsvendor")
    wrong = replace(benchmark.objective, direction=hbo.Direction.MINIMIZE)
    tasks = tuple(replace(t, objective=wrong) for t in benchmark.tasks)
    with pytest.raises(ConformanceError, match="beats the best known value"):
        check_benchmark(replace(benchmark, objective=wrong, tasks=tasks), executor=executor)


class Clips(hbo.SearchSpace):
    """Accepts one hyperparameter beyond one of its bounds."""

    def __init__(self, space: hbo.SearchSpace, name: str, bound: str) -> None:
        super().__init__(space.parameters)
        self.clipped, self.bound = name, bound

    def row(self, config):
        clip = max if self.bound == "lower" else min
        limit = getattr(self[self.clipped], self.bound)
        if isinstance(config.get(self.clipped), int | float):
            config = {**config, self.clipped: clip(config[self.clipped], limit)}
        return super().row(config)


@pytest.mark.parametrize("name", ["x", "y"])
@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_every_bound_is_checked(name, bound, executor):
    """Also where twice the upper bound is inside the range."""
    parameters = [
        hbo.Parameter.number("x", -20, -10),
        hbo.Parameter.number("y", -9, 2, integer=True),
    ]
    benchmark = with_model(Broken)
    space = Clips(hbo.SearchSpace(parameters), name, bound)
    first = replace(benchmark.tasks[0], space=space, best_value=None, _surrogate=Constant())
    broken = replace(benchmark, space=hbo.SearchSpace(parameters), tasks=(first,))
    with pytest.raises(ConformanceError, match=f"accepts {name} .* its bounds"):
        check_benchmark(broken, executor=executor)


class Constant:
    def predict(self, values, task):
        return np.zeros(len(values))

    def predict_one(self, row, task):
        return 0.0
