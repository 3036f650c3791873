"""When a benchmark that exists only in memory is the same as before."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.analysis.marks import find_marks
from hpobench_ordered.core.benchmark import Benchmark, Definition, Provenance, TaskDefinition
from hpobench_ordered.core.objective import Objective
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.testing.toy import numeric_space, toy_benchmark
from hpobench_ordered.user_benchmarks.in_memory import identify_benchmark, spec_in_memory

ROWS = {"task": list("aabb"), "depth": [1, 5, 1, 5], "error": [3.0, 2.0, 1.0, 0.5]}


def from_table(rows: dict[str, Any] = ROWS, *, upper: int = 9, **options: Any) -> Benchmark:
    settings = {"name": "mine", "objective": "error", "direction": "minimize"} | options
    space = hbo.SearchSpace([hbo.Parameter.number("depth", 1, upper, integer=True)])
    return hbo.from_evaluations(pd.DataFrame(rows), space, **settings)


class Slope:
    """A surrogate of the user's own, which cannot be stored as arrays."""

    def __init__(self, slope: float) -> None:
        self.slope = slope

    def predict(self, values: np.ndarray, task: int) -> np.ndarray:
        return self.slope * values[:, 0]

    def predict_one(self, row: np.ndarray, task: int) -> float:
        return self.slope * float(row[0])


def with_own_surrogate(slope: float = 1.0, **options: Any) -> Benchmark:
    definition = Definition(
        name="mine",
        version=1,
        summary="",
        space=hbo.SearchSpace([hbo.Parameter.number("x", 0, 1)]),
        objective=Objective("error", "", hbo.Direction.MINIMIZE),
        tasks=(TaskDefinition("a", {}),),
        provenance=Provenance("", "", ""),
    )
    model = Slope(slope)
    return Benchmark.build(definition, surrogate="own", model=model, best_values=[0.0], **options)


CHANGED_TABLES = {
    "objective value": lambda: from_table(ROWS | {"error": [3.0, 2.0, 1.0, 0.6]}),
    "configuration": lambda: from_table(ROWS | {"depth": [1, 5, 1, 6]}),
    "task name": lambda: from_table(ROWS | {"task": list("aacc")}),
    "range": lambda: from_table(upper=10),
    "objective name": lambda: from_table(
        {"task": ROWS["task"], "depth": ROWS["depth"], "loss": ROWS["error"]}, objective="loss"
    ),
    "direction": lambda: from_table(direction="maximize"),
    "context": lambda: from_table(ROWS | {"size": [1, 1, 2, 2]}, context=["size"]),
    "order of rows": lambda: from_table({name: cells[::-1] for name, cells in ROWS.items()}),
    "version": lambda: from_table(version=2),
    "name": lambda: from_table(name="yours"),
}


@pytest.mark.parametrize("change", CHANGED_TABLES)
def test_every_change_of_a_table_changes_the_identity(change):
    changed = CHANGED_TABLES[change]()
    assert identify_benchmark(changed) != identify_benchmark(from_table())


def test_same_table_has_the_same_identity():
    assert identify_benchmark(from_table()) == identify_benchmark(from_table())


def test_fewer_tasks_are_another_benchmark():
    whole = from_table()
    part = replace(whole, tasks=whole.tasks[:1])
    assert identify_benchmark(part) != identify_benchmark(whole)


def test_own_surrogate_is_new_each_time():
    identity = identify_benchmark(with_own_surrogate())
    assert identity.is_new_at_each_start
    assert identity != identify_benchmark(with_own_surrogate())


def test_one_object_stays_the_same():
    benchmark = with_own_surrogate()
    assert identify_benchmark(benchmark) == identify_benchmark(benchmark)


def test_same_model_version_is_the_same():
    first = with_own_surrogate(model_version="1")
    again = with_own_surrogate(model_version="1")
    assert identify_benchmark(first) == identify_benchmark(again)


def test_other_model_version_is_another():
    first = with_own_surrogate(model_version="1")
    second = with_own_surrogate(model_version="2")
    assert identify_benchmark(first) != identify_benchmark(second)


def test_unidentified_benchmark_is_not_divided():
    settings = {"methods": ["random-search"], "seeds": [0], "protocol": hbo.Ordered(trials=2)}
    with pytest.raises(ExperimentError, match=r"mine@1 exists in memory only .*model_version"):
        hbo.run(benchmarks=[with_own_surrogate()], shard=(0, 2), **settings)


@pytest.fixture
def toy():
    return toy_benchmark(numeric_space(), tasks=2)


def test_default_surrogate_is_the_benchmarks_own(toy):
    assert spec_in_memory(toy).option().name == toy.surrogate


def test_benchmark_in_memory_has_no_marks(toy):
    assert find_marks(spec_in_memory(toy)) is None


def test_spec_loads_the_same_values(toy):
    values = toy.space.decode(toy.space.sample_unit(np.random.default_rng(0), 5))
    loaded = spec_in_memory(toy).load()
    for task, same in zip(toy.tasks, loaded.tasks, strict=True):
        assert same.best_value == task.best_value
        assert same.evaluate_many(values).tolist() == task.evaluate_many(values).tolist()
