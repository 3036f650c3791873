"""The public functions `run` and `report`, as in a notebook: more than once in a process."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from bad_methods import Good
from ConfigSpace import ConfigurationSpace

import hpobench_ordered as hbo
from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.errors import ExperimentError, FailedRunsWarning, InvalidNameError, StoreError
from hpobench_ordered.experiment.plan import plan
from hpobench_ordered.experiment.store import Store


def test_class_is_named_with_its_module():
    assert as_method_spec(Good).name == "bad_methods.Good"


def test_class_of_script_has_short_name(monkeypatch):
    monkeypatch.setattr(Good, "__module__", "__main__")
    assert as_method_spec(Good).name == "Good"


@pytest.mark.parametrize("name", ["red \x1b[31m", " "])
def test_unprintable_name_is_refused(name):
    with pytest.raises(InvalidNameError, match="the name of a method"):
        hbo.MethodSpec(name, Good, "", "")


ONE_RUN: dict[str, Any] = {"methods": ["bo"], "seeds": [0], "protocol": hbo.Ordered(3, tasks=2)}
"""Of bo with one seed, on each benchmark: three trials on each of two tasks."""


def test_loaded_benchmark_makes_same_cells():
    by_name = plan(benchmarks=["newsvendor"], **ONE_RUN)
    loaded = hbo.load("newsvendor")
    assert plan(benchmarks=[loaded], **ONE_RUN) == by_name


def test_benchmark_given_twice_runs_once():
    by_name = hbo.run(benchmarks=["newsvendor"], **ONE_RUN)
    twice = hbo.run(benchmarks=[hbo.load("newsvendor"), "newsvendor"], **ONE_RUN)
    assert twice.cells == by_name.cells


def test_cell_of_loaded_benchmark_has_name():
    (cell,) = plan(benchmarks=[hbo.load("newsvendor")], **ONE_RUN)
    assert cell.source == "newsvendor@1"
    assert cell.surrogate == "table"


def test_number_is_no_benchmark():
    with pytest.raises(ExperimentError, match=r"a name, a path or what .* got int"):
        hbo.run(benchmarks=[3], methods=["bo"])


def make_in_memory(error: float) -> hbo.Benchmark:
    """A benchmark made of a table, with this error in its last row."""
    table = pd.DataFrame({"task": list("aabb"), "depth": [1, 5, 1, 5], "error": [3, 2, 1, error]})
    return hbo.from_evaluations(
        table,
        ConfigurationSpace({"depth": (1, 9)}),
        name="mine",
        objective="error",
        direction=hbo.Direction.MINIMIZE,
    )


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_benchmark_in_memory_counts_by_content(tmp_path, workers):
    """The same table again is the same benchmark, whose run is not repeated; another one is not."""
    numbers_of_stored_runs = []
    for error in (0.5, 0.5, 0.6):
        result = hbo.run(
            benchmarks=[make_in_memory(error)],
            methods=["simple-previous"],
            seeds=[0],
            protocol=hbo.Ordered(trials=4),
            folder=tmp_path,
            workers=workers,
        )
        numbers_of_stored_runs.append(len(Store(tmp_path).keys()))
        (cell,) = result.cells
        # The errors are 3 and 2 on task a, 1 and less on b.
        assert result.frame()["value"].min() <= 1
        assert cell.benchmark.startswith("mine@1+")
    assert numbers_of_stored_runs == [1, 1, 2]


def run_random_search(benchmark: hbo.Benchmark, folder: Path) -> hbo.Results:
    return hbo.run(
        benchmarks=[benchmark],
        methods=["random-search"],
        seeds=[0],
        protocol=hbo.Ordered(trials=2),
        folder=folder,
    )


def test_changed_benchmark_runs_as_changed(tmp_path):
    """Newsvendor has nine tasks, of which two are kept."""
    benchmark = hbo.load("newsvendor")
    shortened = replace(benchmark, tasks=benchmark.tasks[:2])

    trials = run_random_search(benchmark, tmp_path).frame()
    trials_of_shortened = run_random_search(shortened, tmp_path).frame()

    assert trials["task"].nunique() == 9
    assert trials_of_shortened["task"].nunique() == 2


def test_changed_benchmark_is_another_run(tmp_path):
    benchmark = hbo.load("newsvendor")
    shortened = replace(benchmark, tasks=benchmark.tasks[:2])

    run_random_search(benchmark, tmp_path)
    run_random_search(shortened, tmp_path)
    results = run_random_search(benchmark, tmp_path)  # again, which adds no run

    assert len(results.store.keys()) == 2


def test_broken_benchmark_is_named():
    """Every evaluation raises an error, so that the run fails; the warning names both."""

    class Broken:
        def predict_one(self, row: object, task: int) -> None:
            raise ValueError("surrogate broke")

    benchmark = hbo.load("forrester")
    tasks = [replace(task, _surrogate=Broken()) for task in benchmark.tasks]
    broken = replace(benchmark, tasks=tuple(tasks))
    with pytest.warns(FailedRunsWarning, match="forrester@1.*ValueError: surrogate broke"):
        hbo.run(benchmarks=[broken], methods=["random-search"], seeds=[0])


def test_negative_workers_are_refused():
    with pytest.raises(ExperimentError, match="at least 1 worker"):
        hbo.run(benchmarks=["newsvendor"], methods=["bo"], workers=-1)


def test_folder_with_null_character_is_refused():
    with pytest.raises(StoreError, match="it has a null character"):
        hbo.run(benchmarks=["newsvendor"], methods=["random-search"], folder="x\0y")
