"""The public functions `run` and `report`, as in a notebook: more than once in a process."""

from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from bad_methods import Good
from ConfigSpace import ConfigurationSpace

import hpobench_ordered as hbo
from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.errors import ExperimentError, FailedRunsWarning, InvalidNameError
from hpobench_ordered.experiment.plan import plan
from hpobench_ordered.experiment.store import Store


def test_names_of_methods(monkeypatch):
    assert as_method_spec(Good).name == "bad_methods.Good"
    monkeypatch.setattr(Good, "__module__", "__main__")
    assert as_method_spec(Good).name == "Good"
    for name in ("red \x1b[31m", " "):
        with pytest.raises(InvalidNameError, match="the name of a method"):
            hbo.MethodSpec(name, Good, "", "")


def test_a_loaded_benchmark_is_the_same_as_its_name():
    options: dict[str, Any] = {"methods": ["bo"], "seeds": [0], "protocol": hbo.Ordered(3, tasks=2)}
    by_name = hbo.run(benchmarks=["newsvendor"], **options)
    loaded = hbo.load("newsvendor")
    assert hbo.run(benchmarks=[loaded, "newsvendor"], **options).cells == by_name.cells
    (cell,) = plan(benchmarks=[loaded], **options)
    assert (cell.source, cell.surrogate) == ("newsvendor@1", "table")
    with pytest.raises(ExperimentError, match=r"a name, a path or what .* got int"):
        hbo.run(benchmarks=[3], methods=["bo"])


def in_memory(error: float) -> hbo.Benchmark:
    """A benchmark made of a table, with this error in its last row."""
    frame = pd.DataFrame({"task": list("aabb"), "depth": [1, 5, 1, 5], "error": [3, 2, 1, error]})
    return hbo.from_evaluations(
        frame,
        ConfigurationSpace({"depth": (1, 9)}),
        name="mine",
        objective="error",
        direction=hbo.Direction.MINIMIZE,
    )


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_benchmark_in_memory_is_what_is_in_it(tmp_path, workers):
    for error, runs in ((0.5, 1), (0.5, 1), (0.6, 2)):
        result = hbo.run(
            benchmarks=[in_memory(error)],
            methods=["simple-previous"],
            seeds=[0],
            protocol=hbo.Ordered(trials=4),
            folder=tmp_path,
            workers=workers,
        )
        assert len(Store(tmp_path).keys()) == runs
        assert result.frame()["value"].min() <= 1
    assert result.cells[0].benchmark.startswith("mine@1+")


def test_a_loaded_benchmark_that_was_changed_is_run_as_it_is(tmp_path):
    bench = hbo.load("newsvendor")
    settings = {"methods": ["random-search"], "seeds": [0], "protocol": hbo.Ordered(trials=2)}
    for changed, tasks in ((bench, 9), (replace(bench, tasks=bench.tasks[:2]), 2)):
        found = hbo.run(benchmarks=[changed], folder=tmp_path, **settings).frame()
        assert found["task"].nunique() == tasks
    assert len(hbo.run(benchmarks=[bench], folder=tmp_path, **settings).store.keys()) == 2


def test_a_benchmark_that_cannot_be_evaluated_is_named():
    class Broken:
        def predict_one(self, row: object, task: int) -> None:
            raise ValueError("surrogate broke")

    bench = hbo.load("forrester")
    broken = replace(bench, tasks=tuple(replace(t, _surrogate=Broken()) for t in bench.tasks))
    with pytest.warns(FailedRunsWarning, match="forrester@1.*ValueError: surrogate broke"):
        hbo.run(benchmarks=[broken], methods=["random-search"], seeds=[0])
    with pytest.raises(ExperimentError, match="at least 1 worker"):
        hbo.run(benchmarks=["newsvendor"], methods=["bo"], workers=-1)
