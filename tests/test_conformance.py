"""The conformance suites, over everything that is registered, and on things that break them."""

from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.benchmark import Benchmark, Direction
from hpobench_ordered.registry import method_spec
from hpobench_ordered.testing import (
    ConformanceError,
    check_benchmark,
    check_method,
    conditional_problem,
    numeric_problem,
    play,
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
@pytest.mark.parametrize("problem", [numeric_problem(), conditional_problem()])
def test_every_method_beats_random_search_on_a_toy_transfer_problem(name, problem) -> None:  # type: ignore[no-untyped-def]
    """Also a test of direction: whoever maximised the loss would be far worse."""
    final: dict[str, list[float]] = {name: [], "random-search": []}
    for method, losses in final.items():
        spec = method_spec(method)
        for seed in range(20):
            history = problem.history(max(spec.min_history, 3), seed=1000 + seed)
            losses.append(min(loss for _, loss in play(spec, problem, history, seed)))
    assert np.median(final[name]) < 0.6 * np.median(final["random-search"])


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


class Random(hbo.Method):
    def ask(self):  # type: ignore[no-untyped-def]
        return self.space.sample(self.rng)

    def tell(self, config, loss):  # type: ignore[no-untyped-def]
        pass


class IgnoresSeed(Random):
    def ask(self):  # type: ignore[no-untyped-def]
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
            evaluations.losses.sort()
        return super().ask()


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (IgnoresSeed, "ignores its random generator"),
        (UsesGlobalGenerator, "global random state"),
        (SharesState, "other suggestions for the same seed|shares state"),
        (LeavesBounds, "must be a number in"),
        (hbo.MethodSpec("x", ChangesHistory, "", "", min_history=2), "changes the history"),
    ],
)
def test_broken_methods_are_found(method, message: str, executor: Executor) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ConformanceError, match=message):
        check_method(method, executor=executor)
