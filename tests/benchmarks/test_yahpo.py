"""YAHPO's benchmarks: published files, tasks, bundled forests, and networks to be fetched."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from yahpo_files import define_benchmark, read_scenario

from hpobench_ordered.benchmarks.registry import benchmark_spec, load, suites
from hpobench_ordered.benchmarks.yahpo import (
    FAMILIES,
    FRACTIONS,
    GENERATED_BENCHMARKS,
    PAPER_BENCHMARKS,
    PUBLISHED_INSTANCES,
    SATURATED,
    SCENARIOS,
    SPECS,
    describe_files,
    make_network_surrogate,
)
from hpobench_ordered.data.identity import hash_file
from hpobench_ordered.data.local_copy import find_local_copy
from hpobench_ordered.data.remote import CACHE_VARIABLE
from hpobench_ordered.data.specs import BenchmarkSpec
from hpobench_ordered.errors import (
    DownloadError,
    NotFetchedError,
    UnknownNameError,
)

SCENARIOS_WITH_SHARED_NETWORK = ("rpart", "xgboost")
"""Scenarios of which all three files are in the shared data, also the network."""


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """The folder of the cache of downloads, which holds nothing yet."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture
def fetched(shared, empty_cache):
    """The files of two scenarios, rpart and xgboost, have been downloaded into the cache."""
    for scenario in SCENARIOS_WITH_SHARED_NETWORK:
        for file in describe_files(scenario).values():
            file.store(shared / "data" / "yahpo" / file.name)
    return empty_cache


# -- files and definitions -------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_pinned_hashes_are_the_published_files(shared, scenario):
    """The package knows the hashes of YAHPO's files, except of those that nobody could copy."""
    for file in describe_files(scenario).values():
        published_copy = shared / "data" / "yahpo" / file.name
        if file.sha256 is None:
            assert not published_copy.exists()
        else:
            assert hash_file(published_copy) == file.sha256


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_inputs_of_network_are_hyperparameters(shared, scenario):
    """A network takes the hyperparameters, and a data set, a share of it, and repetitions."""
    space = define_benchmark(shared, scenario).space
    categorical = {parameter.name for parameter in space.parameters if parameter.choices}
    numeric = set(space.names) - categorical

    inputs = SCENARIOS[scenario].layout

    assert set(inputs.categorical) == categorical | {"task_id"}
    assert set(inputs.continuous) == numeric | {"trainsize", "repl"}


def test_svm_space_is_yahpos(shared):
    """The search space is that of YAHPO's file `config_space.json`."""
    space = define_benchmark(shared, "svm").space

    imputation = "num.impute.selected.cpo"
    assert space.names == ("cost", "kernel", imputation, "tolerance", "degree", "gamma")
    # Hyperparameters that are only active with some kernels.
    assert set(space.conditions) == {"degree", "gamma"}
    assert space["cost"].log
    assert space["kernel"].choices == ("linear", "polynomial", "radial")


def test_inactive_hyperparameters_are_coded_as_nan(shared):
    """A linear kernel has no degree and no gamma, the last two hyperparameters of an SVM."""
    space = define_benchmark(shared, "svm").space
    config = {
        "cost": 1.0,
        "kernel": "linear",
        "num.impute.selected.cpo": "impute.hist",
        "tolerance": 0.1,
    }

    row = space.row(config)

    linear, hist = 0.0, 2.0  # their places among the choices
    inactive = np.nan
    np.testing.assert_array_equal(row, [1.0, linear, hist, 0.1, inactive, inactive])


def test_tasks_are_twenty_fractions(shared):
    """The tasks train on 5 %, 10 %, ..., 100 % of a data set."""
    definition = define_benchmark(shared, "glmnet", "375")

    fraction_of_task = {task.name: task.context["train_fraction"] for task in definition.tasks}
    percents = range(5, 101, 5)
    assert fraction_of_task == {f"{percent}%": percent / 100 for percent in percents}


# -- registered benchmarks -------------------------------------------------------------------------


def test_papers_benchmarks_come_first():
    """The paper's benchmarks come first in the specs, and so in every list of benchmarks."""
    names = [spec.name for spec in SPECS]

    papers_names = [f"yahpo-{scenario}-{instance}" for scenario, instance in PAPER_BENCHMARKS]
    assert names[: len(papers_names)] == papers_names


@pytest.mark.parametrize("scenario", ["svm", "rpart"])
def test_network_needs_files_of_its_scenario(scenario):
    """A network needs the definition of its space, the codes of choices, and itself.

    For data set 3 the package has no forest, so that the network is the default surrogate.
    """
    network = benchmark_spec(f"yahpo-{scenario}-3").option()

    assert set(network.files) == set(describe_files(scenario).values())
    assert len(network.files) == 3


@pytest.mark.parametrize("scenario", PUBLISHED_INSTANCES)
def test_published_data_sets_are_registered(shared, scenario):
    """Each data set with published evaluations, called an instance, is one of the benchmarks."""
    folder = shared / "data" / "yahpo" / "evaluations" / f"rbv2_{scenario}"
    published_instances = {path.stem for path in folder.glob("*.parquet")}

    known_instances = {str(instance) for instance in PUBLISHED_INSTANCES[scenario]}
    assert known_instances == published_instances
    names = {f"yahpo-{scenario}-{instance}" for instance in published_instances}
    assert names <= {spec.name for spec in SPECS}


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize(("scenario", "instance"), (*GENERATED_BENCHMARKS, *SATURATED))
def test_saturated_networks_are_left_out(scenario, instance):
    """A network is saturated if it predicts an AUC of 1 for some of 1000 random configurations.

    Its best value is then useless: the network is left out of the suite `wide` and of means.
    """
    name = f"yahpo-{scenario}-{instance}"
    benchmark = load(name, surrogate="onnx")
    space = benchmark.space
    thousand_configs = space.decode(space.sample_unit(np.random.default_rng(0), 1000))
    task_of_all_data = benchmark.tasks[-1]

    aucs = task_of_all_data.evaluate_many(thousand_configs)

    is_saturated = aucs.max() >= 0.9999
    is_listed = (scenario, instance) in SATURATED
    is_in_suite = name in suites()["wide"]
    is_left_out_of_means = bool(benchmark_spec(name).option("onnx").left_out)
    assert is_listed == is_saturated
    assert is_in_suite != is_saturated
    assert is_left_out_of_means == is_saturated


MEASURED_SPECS = [spec for spec in SPECS if "ranger" not in spec.name]
IMPLAUSIBLE = "yahpo-ranger-4154"
"""The forest whose best value falls with more data."""


@pytest.mark.parametrize("spec", MEASURED_SPECS, ids=lambda spec: spec.name)
def test_interpolated_tasks_are_marked(spec):
    """Tasks are shares of the data, of which only five were evaluated; others are interpolated."""
    forest = spec.option("forest")

    names = [task.name for task in spec.define().tasks]
    measured = [name for name in names if name not in forest.interpolated]
    assert measured == ["5%", "25%", "50%", "75%", "100%"]


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_only_implausible_forest_is_left_out(spec):
    """One forest, that of `IMPLAUSIBLE`, is left out of means over benchmarks.

    `left_out` says why, and is empty for surrogates that count.
    """
    reason_for_forest = spec.option("forest").left_out
    reason_for_network = spec.option("onnx").left_out

    assert bool(reason_for_forest) == (spec.name == IMPLAUSIBLE)
    assert not reason_for_network


def compute_fall(spec: BenchmarkSpec) -> float:
    """Compute by how much the best AUC falls from training on some data to training on all."""
    best_aucs = [task.best_value for task in spec.load().tasks]  # with 5 %, 10 %, ..., 100 %
    best_with_up_to_a_quarter = max(best_aucs[:5])
    best_with_all = best_aucs[-1]
    return best_with_up_to_a_quarter - best_with_all


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_only_implausible_forest_gets_worse(spec):
    """With more data to train on, the best AUC rises or hardly falls, unless a forest is wrong."""
    negligible_fall = 0.05

    gets_worse = compute_fall(spec) > negligible_fall

    assert gets_worse == (spec.name == IMPLAUSIBLE)


# -- networks --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("scenario", SCENARIOS_WITH_SHARED_NETWORK)
def test_network_of_any_instance_is_loaded(scenario):
    """The package has no forest for data set 40981, but a network predicts for all data sets."""
    benchmark = load(f"yahpo-{scenario}-40981@1")

    assert benchmark.surrogate == "onnx"
    assert benchmark.name == f"yahpo-{scenario}-40981"
    assert len(benchmark.tasks) == len(FRACTIONS)
    # No best value is known for any task.
    assert {task.best_value for task in benchmark.tasks} == {None}


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("scenario", SCENARIOS_WITH_SHARED_NETWORK)
def test_cost_is_the_training_time_of_the_network(shared, scenario):
    definition = define_benchmark(shared, scenario)
    _, encoding, network_file = read_scenario(shared, scenario)
    seconds = make_network_surrogate(
        network_file,
        definition=definition,
        scenario=scenario,
        instance="1220",
        encoding=encoding,
        target="timetrain",
    )
    task = load(f"yahpo-{scenario}-1220", surrogate="onnx").tasks[4]
    values = task.space.decode(task.space.sample_unit(np.random.default_rng(0), 50))

    costs = task.costs(values)

    assert costs.tolist() == seconds.predict(values, 4).tolist()
    assert (costs > 0).all()


def test_forest_has_no_costs():
    task = load("yahpo-svm-1220").tasks[0]
    assert task.cost(task.space.sample(np.random.default_rng(0))) is None


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("name", ["yahpo-xgboost-1220", "yahpo-svm-1220"])
def test_missing_network_names_command(name):
    with pytest.raises(NotFetchedError, match=f"fetch {name} --surrogate onnx"):
        load(name, surrogate="onnx")


@pytest.fixture
def only_space_fetched(shared, empty_cache):
    """Of the three files of rpart, only the one that defines its space has been downloaded."""
    file = describe_files("rpart")["config_space.json"]
    file.store(shared / "data" / "yahpo" / file.name)


@pytest.mark.usefixtures("only_space_fetched")
def test_missing_files_are_listed():
    """The error names the two files of rpart that have not been downloaded; one has been."""
    spec = benchmark_spec("yahpo-rpart-1220")

    with pytest.raises(NotFetchedError, match=r"2 of 3 files .*encoding\.json.*model\.onnx"):
        spec.load()


@pytest.mark.usefixtures("only_space_fetched")
def test_definition_without_files_names_command():
    """To define the benchmark, a file with codes of choices is needed, which is missing here."""
    spec = benchmark_spec("yahpo-rpart-1220")

    with pytest.raises(NotFetchedError, match="hpobench-ordered fetch yahpo-rpart-1220"):
        spec.define()


@pytest.mark.usefixtures("fetched")
def test_unknown_instance_suggests_another():
    """The error of a data set that does not exist, 1221, suggests one that does."""
    # There is a data set 1220.
    with pytest.raises(UnknownNameError, match=r"instance '1221' of rbv2_rpart.*did you mean"):
        load("yahpo-rpart-1221")


@pytest.mark.parametrize("name", ["yahpo-lightgbm-3", "yahpo-rpart", "yahpo-rpart-x", "rpart-3"])
def test_other_names_are_unknown(name):
    """A name needs the prefix, a known scenario and a number of a data set; the error says so."""
    (yahpo_family,) = FAMILIES

    assert yahpo_family.spec(name) is None
    with pytest.raises(UnknownNameError, match="yahpo-SCENARIO-INSTANCE"):
        benchmark_spec(name)


@pytest.fixture
def rpart_network(shared):
    """The bytes of a network, that of rpart; its inputs are rpart's hyperparameters."""
    path = shared / "data" / "yahpo" / "yahpo_data-1.0.2" / "rbv2_rpart" / "model.onnx"
    return path.read_bytes()


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize(
    "change_content",
    [
        lambda network: b"<!DOCTYPE html><html><body>Too many requests</body></html>",
        lambda network: b"",
        lambda network: network[:1000],
        lambda network: network,  # a network, but not that of svm
    ],
    ids=["web page", "empty", "cut", "other inputs"],
)
def test_other_content_is_not_stored_as_network(rpart_network, tmp_path, change_content):
    """The hash of svm's network is not known, but it must be a network with svm's inputs."""
    copy = tmp_path / "copy"
    copy.write_bytes(change_content(rpart_network))
    file = describe_files("svm")["model.onnx"]

    with pytest.raises(DownloadError, match="not the published"):
        file.store(copy)

    assert not file.is_fetched


@pytest.mark.usefixtures("fetched")
def test_loading_imports_nothing_heavy():
    """Libraries that are slow to import must wait until a network is evaluated.

    It is tried in another process, where nothing has been imported yet.
    """
    script = textwrap.dedent("""
        import sys
        import hpobench_ordered
        hpobench_ordered.load("yahpo-xgboost-1220")
        heavy = {"onnxruntime", "numba", "pandas", "ConfigSpace", "sklearn", "scipy"}
        print(sorted(heavy & set(sys.modules)))
    """)

    result = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert result.stdout.strip() == "[]"


def test_copy_must_be_in_its_folder(tmp_path):
    """A network in the folder of another scenario is not taken."""
    (tmp_path / "rbv2_svm").mkdir()
    (tmp_path / "rbv2_svm" / "model.onnx").write_bytes(b"svm")
    with pytest.raises(DownloadError, match=f"no file rbv2_aknn/model.onnx in {tmp_path}"):
        find_local_copy(tmp_path, describe_files("aknn")["model.onnx"])
    assert find_local_copy(tmp_path, describe_files("svm")["model.onnx"]).read_bytes() == b"svm"
