"""The suite of benchmarks, over all that are registered, toy ones, and some that break it."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.testing import BenchmarkConformance, ConformanceError, check_benchmark
from hpobench_ordered.testing.toy import conditional_space, numeric_space, toy_benchmark

AVAILABLE = hbo.list_benchmarks(ready=True)
THAT_TRAIN = [name for name in AVAILABLE if benchmark_spec(name).option().trains]
THAT_DO_NOT_TRAIN = [name for name in AVAILABLE if name not in THAT_TRAIN]
LIKE_OTHERS_THAT_TRAIN = {"distbo-classification-b"}
"""It trains the model of `distbo-classification-a`, on other data."""
TOYS = [
    pytest.param(toy_benchmark(space(), tasks=5, direction=direction), id=space.__name__)
    for space, direction in itertools.product((numeric_space, conditional_space), hbo.Direction)
]


@pytest.fixture(scope="class")
def every_benchmark(request, executor):
    """Sets the attributes that the class of the suite reads: the benchmark and the executor."""
    request.cls.benchmark = request.param
    request.cls.executor = executor


@pytest.mark.usefixtures("every_benchmark")
@pytest.mark.parametrize("every_benchmark", THAT_DO_NOT_TRAIN + TOYS, indirect=True)
class TestEveryBenchmark(BenchmarkConformance):
    pass


def mark_that_train() -> list[object]:
    """Make parameters of the benchmarks that train: slow ones, and those like others are long."""
    parameters = []
    for name in THAT_TRAIN:
        if name in LIKE_OTHERS_THAT_TRAIN:
            parameters.append(pytest.param(name, marks=pytest.mark.long))
        else:
            parameters.append(pytest.param(name, marks=pytest.mark.slow))
    return parameters


@pytest.mark.usefixtures("every_benchmark")
@pytest.mark.parametrize("every_benchmark", mark_that_train(), indirect=True)
class TestEveryBenchmarkThatTrains(BenchmarkConformance):
    configurations = 3


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
    """Its predictions depend on how many there are."""

    def predict(self, values, task):
        return super().predict(values, task) + 1e-12 * len(values)


class DependsOnCallOrder(Broken):
    """Its predictions depend on how often it was called before."""

    def predict_one(self, row, task):
        self.calls += 1
        return super().predict_one(row, task) + 1e-12 * self.calls


class UsesGlobalState(Broken):
    """It draws from the generator that all of NumPy shares."""

    def predict_one(self, row, task):
        np.random.random()  # noqa: NPY002
        return super().predict_one(row, task)


class LostInPickle(Broken):
    """Its predictions are higher by 1 after it was pickled."""

    def __getstate__(self):
        return {"model": LostInPickle.Shifted(self.model), "calls": 0}

    class Shifted(Broken):
        def predict(self, values, task):
            return super().predict(values, task) + 1


class ConstantSurrogate:
    """A surrogate that predicts 0 everywhere."""

    def predict(self, values, task):
        return np.zeros(len(values))

    def predict_one(self, row, task):
        return 0.0


def break_newsvendor(kind: type[Broken]) -> hbo.Benchmark:
    """The benchmark `newsvendor`, its surrogate wrapped in a broken one."""
    benchmark = hbo.load("newsvendor")
    tasks = tuple(replace(task, _surrogate=kind(task._surrogate)) for task in benchmark.tasks)
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
def test_broken_surrogates_do_not_conform(kind, message, executor):
    """Each kind of surrogate breaks one rule, which the message names."""
    benchmark = break_newsvendor(kind)

    with pytest.raises(ConformanceError, match=message):
        check_benchmark(benchmark, executor=executor)


def test_wrong_direction_does_not_conform(executor):
    """The objective of newsvendor, a profit, is maximised; here it is said to be minimised."""
    benchmark = hbo.load("newsvendor")
    objective = replace(benchmark.objective, direction=hbo.Direction.MINIMIZE)
    tasks = tuple(replace(task, objective=objective) for task in benchmark.tasks)
    minimised = replace(benchmark, objective=objective, tasks=tasks)

    with pytest.raises(ConformanceError, match="beats the best known value"):
        check_benchmark(minimised, executor=executor)


class ClippingSpace(hbo.SearchSpace):
    """Clips one hyperparameter at one of its bounds, instead of refusing values beyond it."""

    def __init__(self, parameters: list[hbo.Parameter], name: str, bound: str) -> None:
        """Take the name of the hyperparameter to clip, and the bound to clip it at."""
        super().__init__(parameters)
        self.clipped_name = name
        self.bound = bound

    def row(self, config):
        """Code a configuration, with the value of that hyperparameter clipped."""
        value = config.get(self.clipped_name)
        if isinstance(value, int | float):
            parameter = self[self.clipped_name]
            is_lower = self.bound == "lower"
            clipped = max(value, parameter.lower) if is_lower else min(value, parameter.upper)
            config = {**config, self.clipped_name: clipped}
        return super().row(config)


@pytest.mark.parametrize("name", ["x", "y"])
@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_accepting_values_beyond_bounds_does_not_conform(name, bound, executor):
    """The suite notices a space that clips values beyond one bound, instead of refusing them."""
    # Bounds are negative: twice the upper bound of x, -20, is not beyond it. So the suite must not
    # try multiples of bounds.
    x = hbo.Parameter.number("x", -20, -10)
    y = hbo.Parameter.number("y", -9, 2, integer=True)
    benchmark = hbo.load("newsvendor")
    task_that_clips = replace(
        benchmark.tasks[0],
        space=ClippingSpace([x, y], name, bound),
        best_value=None,
        _surrogate=ConstantSurrogate(),  # the surrogate of newsvendor needs its own space
    )
    benchmark_that_clips = replace(
        benchmark, space=hbo.SearchSpace([x, y]), tasks=(task_that_clips,)
    )

    with pytest.raises(ConformanceError, match=f"accepts {name} .* its bounds"):
        check_benchmark(benchmark_that_clips, executor=executor)
