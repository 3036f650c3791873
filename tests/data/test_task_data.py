"""Training data of tasks: checked, read-only, and loaded only for methods that ask."""

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest

import hpobench_ordered as hbo
from hpobench_ordered import MethodSpec
from hpobench_ordered.data import DataKind, TaskData
from hpobench_ordered.errors import EvaluationsError, ExperimentError
from hpobench_ordered.experiment.runner import follow
from hpobench_ordered.methods.random_search import RandomSearch
from hpobench_ordered.testing import check_benchmark
from hpobench_ordered.testing.toy import numeric_space, toy_benchmark, toy_data
from hpobench_ordered.tuning.optimiser import Optimiser

SPACE = hbo.SearchSpace([hbo.Parameter.number("x", 0, 1)])


class KeepsData(RandomSearch):
    """Keeps the data of every run, where the test can find them."""

    data_of_runs: ClassVar[list[tuple[TaskData | None, ...]]] = []

    def prepare(self) -> None:
        super().prepare()
        self.data_of_runs.append(tuple(self.data))


def make_spec(uses_data: bool) -> MethodSpec:
    return MethodSpec("keeps-data", KeepsData, "Keeps data.", "tests", uses_data=uses_data)


def follow_protocol(protocol, benchmark, spec) -> list[tuple[TaskData | None, ...]]:
    """Run the method `KeepsData` as the protocol says; return the data that each run was given."""
    # Every run appends to this list.
    KeepsData.data_of_runs = []
    # The protocol calls this with the position of a task, which so becomes the seed of its run.
    make_rng = np.random.default_rng
    list(follow(protocol, benchmark, spec, rng=make_rng, protocol_rng=make_rng))
    return KeepsData.data_of_runs


def run_on_tasks_with_data(*, uses_data, data_of_task=toy_data, tasks=3):
    """Run a method on tasks in their order, one run a task.

    Returns:
        The tasks whose data were read, in the order of reading, and the data that each run was
        given.
    """
    tasks_read: list[int] = []

    def read_data(task: int) -> TaskData:
        tasks_read.append(task)
        return data_of_task(task)

    benchmark = toy_benchmark(numeric_space(), tasks=tasks)
    tasks_with_data = tuple(replace(task, _data=read_data) for task in benchmark.tasks)
    benchmark = replace(benchmark, tasks=tasks_with_data)
    data_of_runs = follow_protocol(hbo.Ordered(trials=2), benchmark, make_spec(uses_data))
    return tasks_read, data_of_runs


def test_data_are_not_read_for_other_methods():
    """A method that does not use training data causes none to be loaded, and gets none."""
    tasks_read, data_of_runs = run_on_tasks_with_data(uses_data=False, tasks=3)
    assert tasks_read == []
    assert data_of_runs == [(), (), ()]


def test_method_gets_data_up_to_its_task():
    """The run on each task gets the data of the earlier tasks, and of its own.

    So runs on tasks 0, 1 and 2 read the data of 0, then of 0 and 1, then of 0, 1 and 2.
    """
    tasks_read, data_of_runs = run_on_tasks_with_data(uses_data=True, tasks=3)
    assert tasks_read == [0, 0, 1, 0, 1, 2]
    for position, data in enumerate(data_of_runs):
        assert len(data) == position + 1
        for task, data_of_task in enumerate(data):
            np.testing.assert_array_equal(data_of_task.features, toy_data(task).features)


def test_method_gets_a_copy_of_data():
    """A method can neither change the benchmark's data nor its own copy, which is read-only."""
    original = toy_data(0)
    _, data_of_runs = run_on_tasks_with_data(
        uses_data=True, data_of_task=lambda task: original, tasks=1
    )
    # There was one run, with the data of one task.
    ((data,),) = data_of_runs
    assert not np.shares_memory(data.features, original.features)
    with pytest.raises(ValueError, match="read-only"):
        data.features[0, 0] = 1.0


def test_benchmark_without_data_is_refused(tmp_path):
    """A method that uses training data cannot run on newsvendor, whose tasks have none."""
    with pytest.raises(ExperimentError, match=r"training data of the tasks.*newsvendor"):
        hbo.run(
            benchmarks=["newsvendor"],
            methods=[make_spec(uses_data=True)],
            seeds=[0],
            folder=tmp_path,
        )


@pytest.mark.parametrize(
    ("features", "labels", "kind", "message"),
    [
        (np.zeros(3), np.zeros(3), "regression", "finite numbers"),
        (np.zeros((0, 2)), np.zeros(0), "regression", "finite numbers"),
        (np.full((3, 1), np.nan), np.zeros(3), "regression", "finite numbers"),
        (np.zeros((3, 1)), np.zeros(2), "regression", r"labels must be .*, but got .* \(2,\)"),
        (np.zeros((2, 1)), np.array([0, np.nan]), "regression", "labels must be .* not finite"),
        (np.zeros((2, 1)), np.array(["a", "b"]), "classification", "np.unique"),
        (np.array([["a"]]), np.zeros(1), "regression", "features must be an array of numbers"),
        (np.zeros((3, 1)), None, "regression", "have labels, but got None"),
        (np.zeros((3, 1)), np.zeros(3), "unsupervised", "data for unsupervised"),
        (np.zeros((2, 1)), np.array([0.0, 0.5]), "classification", "whole numbers"),
        (np.zeros((2, 1)), np.array([0.0, -1.0]), "classification", "whole numbers"),
    ],
)
def test_bad_data_are_refused(features, labels, kind, message):
    with pytest.raises(EvaluationsError, match=message):
        TaskData(features, labels, DataKind(kind))


def own_data(task: str) -> TaskData:
    """Build training data of a task, which depend on the length of its name."""
    return toy_data(len(task))


def own_benchmark(**changes: Any) -> hbo.Benchmark:
    """Build a user's benchmark with tasks a, bb and ccc; by default, ccc has no training data."""
    frame = pd.DataFrame({"task": np.repeat(["a", "bb", "ccc"], 10)})
    frame["x"] = np.tile(np.linspace(0, 1, 10), 3)
    frame["error"] = np.random.default_rng(0).random(30)
    settings = {"data": {"a": own_data("a"), "bb": own_data("bb")}, "name": "mine"}
    return hbo.from_evaluations(
        frame, SPACE, objective="error", direction="minimize", **(settings | changes)
    )


def test_own_benchmark_may_carry_data():
    """A user's benchmark may have training data of some tasks only: here not of the last."""
    benchmark = own_benchmark()
    check_benchmark(benchmark)
    assert benchmark.task("ccc").data is None
    features = benchmark.task("bb").data.features
    np.testing.assert_array_equal(features, own_data("bb").features)


def test_other_data_make_another_benchmark(tmp_path):
    """Benchmarks that differ only in training data have different names in results.

    Else their runs would be taken for runs of one benchmark. Here the data of task a differ.
    """
    protocol = hbo.LeaveOneOut(trials=2, tasks=["bb"])
    settings = {"methods": ["random-search"], "seeds": [0], "protocol": protocol}
    first = own_benchmark(data={"a": own_data("a"), "bb": own_data("bb")})
    second = own_benchmark(data={"a": own_data("bb"), "bb": own_data("bb")})

    results_of_first = hbo.run(benchmarks=[first], folder=tmp_path / "first", **settings)
    results_of_second = hbo.run(benchmarks=[second], folder=tmp_path / "second", **settings)

    (name_of_first,) = set(results_of_first.frame()["benchmark"])
    (name_of_second,) = set(results_of_second.frame()["benchmark"])
    assert name_of_first != name_of_second


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"aa": own_data("a")}, "data of an unknown task 'aa'"),
        ([own_data("a")], "data of an unknown task"),
    ],
)
def test_data_of_other_forms_are_refused(data, message):
    with pytest.raises(EvaluationsError, match=message):
        own_benchmark(data=data)


HISTORY = own_benchmark().recorded()[:1]
DATA = [own_data("a"), own_data("bb")]
"""Of the one earlier task in the history, and of the task to optimise."""


def make_optimiser(method: str = "manual-gp", *, data: Any) -> Optimiser:
    return hbo.optimiser(method, space=SPACE, direction="minimize", history=HISTORY, data=data)


def test_optimiser_suggests_same_with_same_data():
    assert make_optimiser(data=DATA).ask() == make_optimiser(data=DATA).ask()


def test_other_data_change_settings_of_optimiser():
    exchanged = DATA[::-1]  # those of the earlier task, and of the task to optimise
    assert make_optimiser(data=exchanged).settings != make_optimiser(data=DATA).settings


@pytest.mark.parametrize(
    "data",
    [[], DATA[1:], [*DATA, DATA[0]], [DATA[0], None]],
    ids=["none", "too few", "too many", "none of the task"],
)
def test_optimiser_needs_data_of_each_task(data):
    """With one earlier task in the history, data of two tasks are needed: its own come last."""
    with pytest.raises(EvaluationsError, match=r"1 earlier tasks .*, 2 in all"):
        make_optimiser(data=data)
