import subprocess
import sys

import numpy as np
import pytest
from yahpo_files import define

from hpobench_ordered.benchmarks.yahpo import (
    FAMILIES,
    FRACTIONS,
    GENERATED_BENCHMARKS,
    PAPER_BENCHMARKS,
    PUBLISHED_INSTANCES,
    SATURATED,
    SCENARIOS,
    SPECS,
    remote_files,
)
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.errors import DownloadError, NotFetchedError, UnknownNameError
from hpobench_ordered.files.bundle import read_card
from hpobench_ordered.files.remote import CACHE_VARIABLE
from hpobench_ordered.files.writing import file_sha256
from hpobench_ordered.registry import benchmark_spec, load, suites

COMPLETE = ("rpart", "xgboost")
"""Scenarios whose three files are in the shared data."""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture
def fetched(shared, cache):
    """A cache that holds the scenarios of the shared data."""
    for scenario in COMPLETE:
        for file in remote_files(scenario).values():
            file.store(shared / "data" / "yahpo" / file.name)
    return cache


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_pinned_hashes_are_those_of_the_published_files(shared, scenario):
    for name, file in remote_files(scenario).items():
        local = shared / "data" / "yahpo" / file.name
        assert local.is_file() == (file.sha256 is not None), name
        if local.is_file():
            assert file_sha256(local) == file.sha256
        assert file.url.endswith(f"/slds-lmu/yahpo_data/v1.0.2/rbv2_{scenario}/{name}")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_columns_are_the_hyperparameters_of_the_search_space(shared, scenario):
    space = define(shared, scenario).space
    layout = SCENARIOS[scenario].layout
    categorical = {p.name for p in space.parameters if p.choices}
    assert categorical | {"task_id"} == set(layout.categorical)
    assert {*space.names} - categorical | {"trainsize", "repl"} == set(layout.continuous)


def test_the_search_space_is_yahpos_and_tasks_are_twenty_fractions(shared):
    space = define(shared, "svm").space
    assert space.names[:3] == ("cost", "kernel", "num.impute.selected.cpo")
    assert space.names[3:] == ("tolerance", "degree", "gamma")
    assert set(space.conditions) == {"degree", "gamma"}
    assert space["cost"].log
    assert space["kernel"].choices == ("linear", "polynomial", "radial")
    linear = {"cost": 1.0, "kernel": "linear", "tolerance": 0.1}
    row = space.row(linear | {"num.impute.selected.cpo": "impute.hist"})
    np.testing.assert_array_equal(row, [1.0, 0.0, 2.0, 0.1, np.nan, np.nan])
    defined = define(shared, "glmnet", "375")
    assert defined.name == "yahpo-glmnet-375" and defined.objective.direction is Direction.MAXIMIZE
    fractions = {task.name: task.context["train_fraction"] for task in defined.tasks}
    assert fractions == {f"{5 * k}%": k / 20 for k in range(1, 21)}


def test_the_papers_eight_and_all_published_data_sets_are_registered():
    names = [spec.name for spec in SPECS]
    assert names[:8] == [f"yahpo-{s}-{i}" for s, i in PAPER_BENCHMARKS]
    assert len(names) == len(set(names)) == 32
    files = FAMILIES[0].files()
    assert len(set(files)) == 3 * len(SCENARIOS)
    for scenario in ("svm", "rpart"):  # the network of one has no published hash
        option = benchmark_spec(f"yahpo-{scenario}-3").option()
        assert {*option.files} < set(files)
        unpinned = any(file.sha256 is None for file in option.files)
        assert ("first download" in option.summary) == unpinned
    for spec in SPECS:
        assert [option.name for option in spec.surrogates] == ["forest", "onnx"]
        assert benchmark_spec(spec.name) is spec


def test_published_data_sets_are_those_of_the_shared_files(shared):
    folder = shared / "data" / "yahpo" / "evaluations"
    for scenario, instances in PUBLISHED_INSTANCES.items():
        files = {path.stem for path in (folder / f"rbv2_{scenario}").glob("*.parquet")}
        assert files == set(map(str, instances))
        assert {f"yahpo-{scenario}-{i}" for i in files} <= {spec.name for spec in SPECS}


def test_data_sets_to_generate_are_those_of_the_others():
    bundled = [spec.name.split("-")[2] for spec in SPECS]
    repeated = {instance for instance in bundled if bundled.count(instance) > 1}
    for scenario in ("xgboost", "rpart"):
        chosen = {i for name, i in (*GENERATED_BENCHMARKS, *SATURATED) if name == scenario}
        assert len(chosen) == 10
        assert chosen == repeated | {instance for _, instance in PAPER_BENCHMARKS}


@pytest.mark.slow
def test_networks_whose_best_auc_is_one_are_left_out(fetched):
    for scenario, instance in (*GENERATED_BENCHMARKS, *SATURATED):
        name = f"yahpo-{scenario}-{instance}"
        bench = load(name, surrogate="onnx")
        unit = bench.space.sample_unit(np.random.default_rng(0), 1000)
        auc = bench.tasks[-1].evaluate_many(bench.space.decode(unit))
        is_left_out = (scenario, instance) in SATURATED
        assert (auc.max() >= 0.9999) == is_left_out, name
        assert (name in suites()["wide"]) != is_left_out
        assert bool(benchmark_spec(name).option("onnx").left_out) == is_left_out


def test_what_is_measured_and_what_stands_in_is_marked():
    for spec in SPECS:
        forest, onnx = spec.surrogates
        is_ranger = "ranger" in spec.name
        assert forest.stand_in == is_ranger
        measured = [
            task.name for task in spec.define().tasks if task.name not in forest.interpolated
        ]
        if not is_ranger:
            assert measured == ["5%", "25%", "50%", "75%", "100%"]
        assert bool(forest.left_out) == (spec.name == "yahpo-ranger-4154")
        assert not (onnx.interpolated or onnx.stand_in or onnx.left_out)


def test_forests_are_good_but_for_the_one_that_gets_worse_with_more_data():
    """It is left out; those of the other data sets get better, or hardly worse."""
    falls = {}
    for spec in SPECS:
        best = [task.best_value for task in spec.load().tasks]
        falls[spec.name] = max(best[:5]) - best[-1]
    assert max(falls, key=falls.__getitem__) == "yahpo-ranger-4154"
    assert falls.pop("yahpo-ranger-4154") > 0.05
    assert max(falls.values()) < 0.05
    for spec in SPECS:
        assert spec.artifact is not None
        card = read_card(spec.artifact)
        if "ranger" not in spec.name:  # as well as the paper's
            assert min(one.r2 for one in card.figures) > 0.94
        assert spec.name != "yahpo-ranger-4154" or spec.option().left_out in card.limits


@pytest.mark.parametrize("scenario", COMPLETE)
def test_loads_the_network_of_any_instance(fetched, scenario):
    bench = load(f"yahpo-{scenario}-40981@1")
    assert bench.surrogate == "onnx"
    assert bench.name == f"yahpo-{scenario}-40981"
    assert len(bench.tasks) == len(FRACTIONS)
    rng = np.random.default_rng(0)
    configs = [bench.space.sample(rng) for _ in range(20)]
    for task in (bench.tasks[0], bench.task("100%")):
        values = task.evaluate_many(configs)
        assert ((values > 0) & (values <= 1)).all()
        assert [task.evaluate(config) for config in configs] == values.tolist()
        assert task.best_value is None


def test_what_is_not_fetched_says_how_to_fetch_it(shared, cache):
    with pytest.raises(NotFetchedError, match="fetch yahpo-xgboost-1220 --surrogate onnx"):
        load("yahpo-xgboost-1220")
    with pytest.raises(NotFetchedError, match="fetch yahpo-svm-1220 --surrogate onnx"):
        load("yahpo-svm-1220", surrogate="onnx")
    file = remote_files("rpart")["config_space.json"]
    file.store(shared / "data" / "yahpo" / file.name)
    spec = benchmark_spec("yahpo-rpart-1220")
    with pytest.raises(NotFetchedError, match=r"2 of 3 files .*encoding\.json.*model\.onnx"):
        spec.load()
    with pytest.raises(NotFetchedError, match="hpobench-ordered fetch yahpo-rpart-1220"):
        spec.define()


def test_an_unknown_instance_suggests_another(fetched):
    with pytest.raises(UnknownNameError, match=r"instance '1221' of rbv2_rpart.*did you mean"):
        load("yahpo-rpart-1221")
    with pytest.raises(UnknownNameError, match="instance '99999999' of rbv2_rpart"):
        benchmark_spec("yahpo-rpart-99999999").define()


@pytest.mark.parametrize("name", ["yahpo-lightgbm-3", "yahpo-rpart", "yahpo-rpart-x", "rpart-3"])
def test_other_names_are_not_of_the_family(name):
    assert FAMILIES[0].spec(name) is None
    with pytest.raises(UnknownNameError, match="yahpo-SCENARIO-INSTANCE"):
        benchmark_spec(name)


def test_only_networks_are_stored_as_networks(shared, cache, tmp_path):
    published = shared / "data" / "yahpo" / "yahpo_data-1.0.2"
    for content in (
        b"<!DOCTYPE html><html><body>Too many requests</body></html>",
        b"",
        (published / "rbv2_rpart" / "model.onnx").read_bytes()[:1000],
        (published / "rbv2_rpart" / "model.onnx").read_bytes(),  # has other inputs
    ):
        (tmp_path / "copy").write_bytes(content)
        with pytest.raises(DownloadError, match="not the published"):
            remote_files("svm")["model.onnx"].store(tmp_path / "copy")
    assert not remote_files("svm")["model.onnx"].is_fetched


def test_loading_imports_nothing_heavy(fetched):
    code = (
        "import sys, hpobench_ordered.registry as r; r.load('yahpo-xgboost-1220');"
        "heavy = {'onnxruntime', 'numba', 'pandas', 'ConfigSpace', 'sklearn', 'scipy'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
