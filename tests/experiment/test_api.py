"""The public functions `run` and `report`, as in a notebook: more than once in a process."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from bad_methods import Good
from ConfigSpace import ConfigurationSpace

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.errors import ExperimentError, FailedRunsWarning, InvalidNameError
from hpobench_ordered.experiment.plan import plan
from hpobench_ordered.experiment.run_tables import make_trials_table
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.tuning import as_method_spec


def test_class_is_named_with_its_module():
    assert as_method_spec(Good).name == "bad_methods.Good"


def test_class_of_script_has_short_name(monkeypatch):
    monkeypatch.setattr(Good, "__module__", "__main__")
    assert as_method_spec(Good).name == "Good"


@pytest.mark.parametrize("name", ["red \x1b[31m", " "])
def test_unprintable_name_is_refused(name):
    with pytest.raises(InvalidNameError, match="the name of a method"):
        hbo.MethodSpec(name, Good, "", "")


ONE_RUN_OF_BO: dict[str, Any] = {
    "methods": ["bo"],
    "seeds": [0],
    "protocol": hbo.Ordered(3, tasks=2),
}
"""Of bo with one seed, on each benchmark: three trials on each of two tasks."""


def test_benchmark_may_be_given_loaded():
    """The plan is the same as if the benchmark is given by its name."""
    plan_by_name = plan(benchmarks=["newsvendor"], **ONE_RUN_OF_BO)

    loaded = hbo.load("newsvendor")
    plan_of_loaded = plan(benchmarks=[loaded], **ONE_RUN_OF_BO)

    assert plan_of_loaded == plan_by_name


def test_benchmark_given_twice_runs_once():
    """A benchmark that is given both loaded and by its name is one.

    `cells` are the runs of an experiment.
    """
    given_once = hbo.run(benchmarks=["newsvendor"], **ONE_RUN_OF_BO)
    given_twice = hbo.run(benchmarks=[hbo.load("newsvendor"), "newsvendor"], **ONE_RUN_OF_BO)

    assert given_twice.cells == given_once.cells


def test_run_on_loaded_benchmark_has_its_name():
    (cell,) = plan(benchmarks=[hbo.load("newsvendor")], **ONE_RUN_OF_BO)
    assert cell.source == "newsvendor@1"
    assert cell.surrogate == "table"


def test_number_is_no_benchmark():
    with pytest.raises(ExperimentError, match=r"a name, a path or what .* got int"):
        hbo.run(benchmarks=[3], methods=["bo"])


def build_benchmark(error: float) -> hbo.Benchmark:
    """Build a benchmark from a table of four evaluations, of which the last has this error."""
    table = pd.DataFrame(
        {
            "task": ["a", "a", "b", "b"],
            "depth": [1, 5, 1, 5],
            "error": [3, 2, 1, error],
        }
    )
    return hbo.from_evaluations(
        table,
        ConfigurationSpace({"depth": (1, 9)}),
        name="mine",
        objective="error",
        direction=hbo.Direction.MINIMIZE,
    )


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_built_benchmarks_differ_by_their_tables(tmp_path, workers):
    """A benchmark that is built again from the same table is not run again, but another one is."""
    options = {"methods": ["simple-previous"], "seeds": [0], "protocol": hbo.Ordered(trials=4)}
    numbers_of_stored_runs = []
    for error in (0.5, 0.5, 0.6):
        benchmark = build_benchmark(error)
        hbo.run(benchmarks=[benchmark], **options, folder=tmp_path, workers=workers)
        numbers_of_stored_runs.append(len(Store(tmp_path).keys()))

    assert numbers_of_stored_runs == [1, 1, 2]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_run_on_built_benchmark_has_its_values(tmp_path, workers):
    """A run gets values as in the user's table, whose errors are from 0.5 to 3.

    The last task has the errors 1 and 0.5, so that some values are at most 1.
    """
    options = {"methods": ["simple-previous"], "seeds": [0], "protocol": hbo.Ordered(trials=4)}
    benchmark = build_benchmark(0.5)

    results = hbo.run(benchmarks=[benchmark], **options, folder=tmp_path, workers=workers)

    values = results.frame()["value"]
    assert values.between(0.5, 3).all()
    assert values.min() <= 1  # as on task b


def test_built_benchmark_is_identified_by_hash():
    """After the version comes a hash of its table."""
    (cell,) = plan(benchmarks=[build_benchmark(0.5)], **ONE_RUN_OF_BO)

    assert cell.benchmark.startswith("mine@1+")


def run_random_search(benchmark: hbo.Benchmark, folder: Path) -> hbo.Results:
    """Run random search once on a benchmark, with two trials a task."""
    return hbo.run(
        benchmarks=[benchmark],
        methods=["random-search"],
        seeds=[0],
        protocol=hbo.Ordered(trials=2),
        folder=folder,
    )


def test_changed_benchmark_runs_as_changed(tmp_path):
    """Of the nine tasks of newsvendor, the changed benchmark keeps two."""
    benchmark = hbo.load("newsvendor")
    shortened = replace(benchmark, tasks=benchmark.tasks[:2])

    trials = run_random_search(benchmark, tmp_path).frame()
    trials_of_shortened = run_random_search(shortened, tmp_path).frame()

    assert trials["task"].nunique() == 9
    assert trials_of_shortened["task"].nunique() == 2


def test_changed_benchmark_is_another_run(tmp_path):
    """A benchmark and a changed copy are run into one folder, and then the first one again."""
    benchmark = hbo.load("newsvendor")
    shortened = replace(benchmark, tasks=benchmark.tasks[:2])

    run_random_search(benchmark, tmp_path)
    run_random_search(shortened, tmp_path)
    results = run_random_search(benchmark, tmp_path)

    # The last run was stored already.
    assert len(results.store.keys()) == 2


class BrokenSurrogate:
    """A surrogate that many configurations can be evaluated on, but not a single one."""

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        return values[:, 0]

    def predict_one(self, row: object, task: int) -> None:
        raise ValueError("surrogate broke")


def test_broken_benchmark_is_named():
    """If every trial raises an error, the warning names the benchmark and the error."""
    benchmark = hbo.load("forrester")
    broken_tasks = [replace(task, _surrogate=BrokenSurrogate()) for task in benchmark.tasks]
    broken_benchmark = replace(benchmark, tasks=tuple(broken_tasks))

    with pytest.warns(FailedRunsWarning, match="forrester@1.*ValueError: surrogate broke"):
        hbo.run(benchmarks=[broken_benchmark], methods=["random-search"], seeds=[0])


def test_negative_workers_are_refused():
    with pytest.raises(ExperimentError, match="at least 1 worker"):
        hbo.run(benchmarks=["newsvendor"], methods=["bo"], workers=-1)


# -- tables of several benchmarks ------------------------------------------------------------------


def make_benchmark(name: str, **space: Any) -> hbo.Benchmark:
    """Make a benchmark of one task, on a search space of which all values are equally good."""
    configuration_space = ConfigurationSpace(space)
    configs = [dict(config) for config in configuration_space.sample_configuration(20)]
    frame = pd.DataFrame(configs).assign(task="a", error=0.5)
    return hbo.from_evaluations(
        frame, configuration_space, name=name, objective="error", direction="minimize"
    )


def tabulate_trials(*benchmarks: hbo.Benchmark) -> pd.DataFrame:
    """Run random search on benchmarks, and return its trials with configurations."""
    results = hbo.run(
        benchmarks=benchmarks, methods=["random-search"], seeds=[0], protocol=hbo.Ordered(3)
    )
    return results.frame(configurations=True)


def test_integers_stay_integers_beside_other_benchmarks():
    """The hyperparameter of the other benchmark is missing in the rows of the first."""
    trials = tabulate_trials(
        make_benchmark("first", depth=(1, 9)), make_benchmark("second", rate=(0.0, 1.0))
    )
    assert trials["config.depth"].dtype == "Int64"
    assert trials["config.depth"].isna().sum() == 3


def test_choices_elsewhere_make_texts():
    """A hyperparameter that is a number on one benchmark, and choices on another, is text."""
    trials = tabulate_trials(
        make_benchmark("first", depth=(1, 9)), make_benchmark("second", depth=["low", "high"])
    )
    assert trials["config.depth"].map(type).unique().tolist() == [str]


def test_types_in_files_do_not_depend_on_values():
    """The types of columns are the same if all of their cells are missing."""
    trials = tabulate_trials(
        make_benchmark("first", depth=(1, 9)),
        make_benchmark("second", kind=["a", "b"], rate=(0.0, 1.0)),
    )
    is_first = trials["benchmark"].str.startswith("first")

    schema = make_trials_table(trials).schema

    types = {name: str(schema.field(f"config.{name}").type) for name in ("depth", "kind", "rate")}
    assert types == {"depth": "int64", "kind": "string", "rate": "double"}
    for part in (trials[is_first], trials[~is_first]):
        assert make_trials_table(part).schema.equals(schema)
