"""The conformance suites, over everything that is registered, and on things that break them."""

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered import SearchSpace
from hpobench_ordered._parameters import Parameter
from hpobench_ordered.benchmark import Benchmark, Direction
from hpobench_ordered.testing import (
    ConformanceError,
    check_beats_random_search,
    check_benchmark,
    check_method,
)


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("name", hbo.list_benchmarks())
def test_every_benchmark(name: str, executor: Executor) -> None:
    check_benchmark(name, executor=executor)


@pytest.mark.parametrize("name", hbo.list_methods())
def test_every_method(name: str, executor: Executor) -> None:
    check_method(name, executor=executor)


@pytest.mark.parametrize("name", sorted(set(hbo.list_methods()) - {"random-search"}))
def test_every_method_beats_random_search_on_a_toy_transfer_problem(name: str) -> None:
    check_beats_random_search(name)


class Broken:
    """Surrogates that break the contract, each in its own way."""

    def __init__(self, model: object) -> None:
        self.model = model
        self.calls = 0

    def predict(self, values, task):  # type: ignore[no-untyped-def]
        return self.model.predict(values, task)  # type: ignore[attr-defined]

    def predict_one(self, row, task):  # type: ignore[no-untyped-def]
        return self.model.predict_one(row, task)  # type: ignore[attr-defined]


class DependsOnBatch(Broken):
    def predict(self, values, task):  # type: ignore[no-untyped-def]
        return super().predict(values, task) + 1e-12 * len(values)


class DependsOnCallOrder(Broken):
    def predict_one(self, row, task):  # type: ignore[no-untyped-def]
        self.calls += 1
        return super().predict_one(row, task) + 1e-12 * self.calls


class UsesGlobalState(Broken):
    def predict_one(self, row, task):  # type: ignore[no-untyped-def]
        np.random.random()  # noqa: NPY002
        return super().predict_one(row, task)


class LostInPickle(Broken):
    def __getstate__(self):  # type: ignore[no-untyped-def]
        return {"model": LostInPickle.Shifted(self.model), "calls": 0}

    class Shifted(Broken):
        def predict(self, values, task):  # type: ignore[no-untyped-def]
            return super().predict(values, task) + 1


def with_model(kind: type[Broken]) -> Benchmark:
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
def test_broken_benchmarks_are_found(kind: type[Broken], message: str, executor: Executor) -> None:
    with pytest.raises(ConformanceError, match=message):
        check_benchmark(with_model(kind), executor=executor)


def test_wrong_direction_is_found(executor: Executor) -> None:
    benchmark = hbo.load("newsvendor")
    wrong = replace(benchmark.objective, direction=Direction.MINIMIZE)
    tasks = tuple(replace(t, objective=wrong) for t in benchmark.tasks)
    with pytest.raises(ConformanceError, match="beats the best known value"):
        check_benchmark(replace(benchmark, objective=wrong, tasks=tasks), executor=executor)


class Clips(SearchSpace):
    """Accepts one hyperparameter beyond one of its bounds."""

    def __init__(self, space: SearchSpace, name: str, bound: str) -> None:
        super().__init__(space.parameters)
        self.clipped, self.bound = name, bound

    def row(self, config):  # type: ignore[no-untyped-def]
        clip = max if self.bound == "lower" else min
        limit = getattr(self[self.clipped], self.bound)
        if isinstance(config.get(self.clipped), int | float):
            config = {**config, self.clipped: clip(config[self.clipped], limit)}
        return super().row(config)


@pytest.mark.parametrize("name", ["x", "y"])
@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_every_bound_is_checked(name: str, bound: str, executor: Executor) -> None:
    """Also where twice the upper bound is inside the range."""
    parameters = [Parameter.number("x", -20, -10), Parameter.number("y", -9, 2, integer=True)]
    benchmark = with_model(Broken)
    space = Clips(SearchSpace(parameters), name, bound)
    first = replace(benchmark.tasks[0], space=space, best_value=None, _surrogate=Constant())
    broken = replace(benchmark, space=SearchSpace(parameters), tasks=(first,))
    with pytest.raises(ConformanceError, match=f"accepts {name} .* its bounds"):
        check_benchmark(broken, executor=executor)


class Constant:
    def predict(self, values, task):  # type: ignore[no-untyped-def]
        return np.zeros(len(values))

    def predict_one(self, row, task):  # type: ignore[no-untyped-def]
        return 0.0


class Random(hbo.Method):
    def ask(self):  # type: ignore[no-untyped-def]
        return self.space.sample(self.rng)

    def tell(self, config, loss):  # type: ignore[no-untyped-def]
        pass


class IgnoresSeed(Random):
    def ask(self):  # type: ignore[no-untyped-def]
        self.rng.random()
        return self.space.sample(np.random.default_rng(0))


class IgnoresSpawned(Random):
    def ask(self):  # type: ignore[no-untyped-def]
        self.rng.spawn(1)
        return self.space.sample(np.random.default_rng(0))


class UsesGlobalGenerator(Random):
    def ask(self):  # type: ignore[no-untyped-def]
        return self.space.sample(np.random.default_rng(np.random.randint(1000)))  # noqa: NPY002


class SharesState(Random):
    asked: list[int] = []  # noqa: RUF012

    def ask(self):  # type: ignore[no-untyped-def]
        self.asked.append(1)
        return super().ask() if len(self.asked) % 13 else self.space.sample(self.rng.spawn(1)[0])


class LeavesBounds(Random):
    def ask(self):  # type: ignore[no-untyped-def]
        config = super().ask()
        return {name: 1e9 if type(v) is float else v for name, v in config.items()}


class ChangesHistory(Random):
    def ask(self):  # type: ignore[no-untyped-def]
        for evaluations in self.history:
            evaluations.context["seen"] = 1  # type: ignore[index]
        return super().ask()


class FailsWithHistory(Random):
    def ask(self):  # type: ignore[no-untyped-def]
        return {} if len(self.history) > 1 else super().ask()


class Deterministic(Random):
    """The same configurations in every run, without a look at the generator."""

    def ask(self):  # type: ignore[no-untyped-def]
        return self.space.sample(np.random.default_rng(0))


class Maximises(hbo.Method):
    """Stays close to the worst that was seen."""

    def ask(self):  # type: ignore[no-untyped-def]
        worst = max(self.history, key=lambda e: e.losses.max())
        return self.space.configs(worst.values[[int(worst.losses.argmax())]])[0]

    def tell(self, config, loss):  # type: ignore[no-untyped-def]
        pass


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (IgnoresSeed, "ignores what it draws"),
        (IgnoresSpawned, "ignores what it draws"),
        (UsesGlobalGenerator, "global random state"),
        (SharesState, "other suggestions for the same seed|shares state"),
        (LeavesBounds, "must be a number in"),
        (ChangesHistory, "changes the history"),
        (FailsWithHistory, "suggests {}"),
    ],
)
def test_broken_methods_are_found(method, message: str, executor: Executor) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConformanceError, match=message):
        check_method(method, executor=executor)


def test_a_deterministic_method_conforms() -> None:
    with ThreadPoolExecutor(1) as here:  # another process could not import this module
        check_method(Deterministic, executor=here)


@pytest.mark.parametrize("method", [Random, Maximises])
def test_methods_that_do_not_learn_are_found(method: type[hbo.Method]) -> None:
    with pytest.raises(ConformanceError, match="not clearly better than random search"):
        check_beats_random_search(method)
