"""When two benchmarks that exist only in memory count as the same."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.analysis.marks import find_marks
from hpobench_ordered.data.benchmark import Benchmark, Definition, Provenance, TaskDefinition
from hpobench_ordered.data.objective import Objective
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.testing.toy import numeric_space, toy_benchmark
from hpobench_ordered.tuning.own_benchmarks.in_memory import identify_benchmark, spec_in_memory

# Whether results belong to the same benchmark is decided by its identity: the content of a table,
# or a version that the user gives.

TABLE = {"task": list("aabb"), "depth": [1, 5, 1, 5], "error": [3.0, 2.0, 1.0, 0.5]}
"""Columns of a table: two evaluations of each of the tasks a and b."""


def make_from_table(
    columns: dict[str, Any] = TABLE, *, largest_depth: int = 9, **options: Any
) -> Benchmark:
    """Make a benchmark of evaluations, with one hyperparameter, `depth`."""
    defaults = {"name": "mine", "objective": "error", "direction": "minimize"}
    depth = hbo.Parameter.number("depth", 1, largest_depth, integer=True)
    space = hbo.SearchSpace([depth])
    return hbo.from_evaluations(pd.DataFrame(columns), space, **(defaults | options))


class OwnSurrogate:
    """A surrogate of a user's class; only the package's own can be stored as arrays."""

    def predict(self, values: np.ndarray, task: int) -> np.ndarray:
        return values[:, 0]

    def predict_one(self, row: np.ndarray, task: int) -> float:
        return float(row[0])


def make_with_own_surrogate(**options: Any) -> Benchmark:
    """A benchmark whose surrogate cannot be stored, so that its content cannot be compared."""
    definition = Definition(
        name="mine",
        version=1,
        summary="",
        space=hbo.SearchSpace([hbo.Parameter.number("x", 0, 1)]),
        objective=Objective("error", "", hbo.Direction.MINIMIZE),
        tasks=(TaskDefinition("a", {}),),
        provenance=Provenance("", "", ""),
    )
    return Benchmark.build(
        definition, surrogate="own", model=OwnSurrogate(), best_values=[0.0], **options
    )


MAKE_CHANGED_BENCHMARK = {
    "objective value": lambda: make_from_table(TABLE | {"error": [3.0, 2.0, 1.0, 0.6]}),
    "configuration": lambda: make_from_table(TABLE | {"depth": [1, 5, 1, 6]}),
    "task name": lambda: make_from_table(TABLE | {"task": list("aacc")}),
    "range": lambda: make_from_table(largest_depth=10),
    "objective name": lambda: make_from_table(
        {"task": TABLE["task"], "depth": TABLE["depth"], "loss": TABLE["error"]}, objective="loss"
    ),
    "direction": lambda: make_from_table(direction="maximize"),
    "context": lambda: make_from_table(TABLE | {"size": [1, 1, 2, 2]}, context=["size"]),
    "order of rows": lambda: make_from_table({name: cells[::-1] for name, cells in TABLE.items()}),
    "version": lambda: make_from_table(version=2),
    "name": lambda: make_from_table(name="yours"),
}
"""Functions that make the benchmark of the table with one change."""


@pytest.mark.parametrize(
    "make_changed", MAKE_CHANGED_BENCHMARK.values(), ids=MAKE_CHANGED_BENCHMARK
)
def test_every_change_of_table_changes_identity(make_changed):
    """The table, its search space, or an option of `from_evaluations` is changed."""
    unchanged = identify_benchmark(make_from_table())
    changed = identify_benchmark(make_changed())

    assert changed != unchanged


def test_same_table_has_the_same_identity():
    """Two benchmarks of equal evaluations count as the same one."""
    first = make_from_table()
    second = make_from_table()

    assert identify_benchmark(first) == identify_benchmark(second)


def test_fewer_tasks_are_another_benchmark():
    """The second benchmark has the first task of the first one alone."""
    whole = make_from_table()
    part = replace(whole, tasks=whole.tasks[:1])
    assert identify_benchmark(part) != identify_benchmark(whole)


def test_own_surrogate_is_new_each_time():
    """A surrogate that cannot be stored cannot be compared with another one."""
    first = identify_benchmark(make_with_own_surrogate())
    second = identify_benchmark(make_with_own_surrogate())

    assert first.is_new_at_each_start
    assert first != second


def test_one_object_stays_the_same():
    """The very same benchmark has one identity, even if its surrogate cannot be compared."""
    benchmark = make_with_own_surrogate()

    assert identify_benchmark(benchmark) == identify_benchmark(benchmark)


def test_same_model_version_is_the_same():
    """Users vouch by the version for surrogates that cannot be compared."""
    first = make_with_own_surrogate(model_version="1")
    again = make_with_own_surrogate(model_version="1")
    assert identify_benchmark(first) == identify_benchmark(again)


def test_other_model_version_is_another():
    """Users tell by the version that a surrogate has changed."""
    first = make_with_own_surrogate(model_version="1")
    second = make_with_own_surrogate(model_version="2")
    assert identify_benchmark(first) != identify_benchmark(second)


def test_unidentified_benchmark_is_not_divided():
    """Each process runs a shard of the experiment: all must know that the benchmark is the same."""
    with pytest.raises(ExperimentError, match=r"mine@1 exists in memory only .*model_version"):
        hbo.run(
            benchmarks=[make_with_own_surrogate()],
            methods=["random-search"],
            seeds=[0],
            protocol=hbo.Ordered(trials=2),
            shard=(0, 2),
        )


@pytest.fixture
def toy():
    """A toy benchmark of two tasks."""
    return toy_benchmark(numeric_space(), tasks=2)


def test_default_surrogate_is_the_benchmarks_own(toy):
    assert spec_in_memory(toy).option().name == toy.surrogate


def test_benchmark_in_memory_has_no_marks(toy):
    """Marks tell on which benchmarks methods hardly differ; they are computed in advance."""
    assert find_marks(spec_in_memory(toy)) is None


def test_spec_loads_the_same_values(toy):
    """A benchmark in memory is loaded, as by other processes, with the same values."""
    values = toy.space.decode(toy.space.sample_unit(np.random.default_rng(0), 5))

    loaded = spec_in_memory(toy).load()

    for loaded_task, task in zip(loaded.tasks, toy.tasks, strict=True):
        assert loaded_task.best_value == task.best_value
        assert loaded_task.evaluate_many(values).tolist() == task.evaluate_many(values).tolist()
