"""YAHPO's benchmarks: published files, tasks, bundled forests, and networks to be fetched."""

import subprocess
import sys
import textwrap
from collections import Counter

import numpy as np
import pytest
from yahpo_files import define_benchmark

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
    remote_files,
)
from hpobench_ordered.data.identity import hash_file
from hpobench_ordered.data.local_copy import find_local_copy
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.data.remote import CACHE_VARIABLE
from hpobench_ordered.data.specs import BenchmarkSpec
from hpobench_ordered.errors import (
    DownloadError,
    NotFetchedError,
    UnknownNameError,
)
from hpobench_ordered.surrogates.bundle import read_card

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
        for file in remote_files(scenario).values():
            file.store(shared / "data" / "yahpo" / file.name)
    return empty_cache


# -- files and definitions -------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_pinned_hashes_are_the_published_files(shared, scenario):
    """The package knows the hashes of YAHPO's files, except of those that nobody could copy."""
    for file in remote_files(scenario).values():
        published_copy = shared / "data" / "yahpo" / file.name
        if file.sha256 is None:
            assert not published_copy.exists()
        else:
            assert hash_file(published_copy) == file.sha256


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_files_are_those_of_the_release(scenario):
    for name, file in remote_files(scenario).items():
        assert file.url.endswith(f"/slds-lmu/yahpo_data/v1.0.2/rbv2_{scenario}/{name}")


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


def test_auc_is_maximised(shared):
    definition = define_benchmark(shared, "glmnet", "375")

    assert definition.objective.direction is Direction.MAXIMIZE


def test_name_has_scenario_and_data_set(shared):
    definition = define_benchmark(shared, "glmnet", "375")

    assert definition.name == "yahpo-glmnet-375"


# -- registered benchmarks -------------------------------------------------------------------------


def test_papers_benchmarks_come_first():
    """The paper's benchmarks come first in the specs, and so in every list of benchmarks."""
    names = [spec.name for spec in SPECS]

    papers_names = [f"yahpo-{scenario}-{instance}" for scenario, instance in PAPER_BENCHMARKS]
    assert names[: len(papers_names)] == papers_names


def test_names_of_benchmarks_are_distinct():
    names = [spec.name for spec in SPECS]

    # The package has 32 forests.
    assert len(names) == 32
    assert len(set(names)) == 32


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_bundled_benchmarks_have_two_surrogates(spec):
    assert benchmark_spec(spec.name) is spec
    assert [option.name for option in spec.surrogates] == ["forest", "onnx"]


@pytest.mark.parametrize("scenario", ["svm", "rpart"])
def test_network_needs_files_of_its_scenario(scenario):
    """A network needs the definition of its space, the codes of choices, and itself.

    For data set 3 the package has no forest, so that the network is the default surrogate.
    """
    network = benchmark_spec(f"yahpo-{scenario}-3").option()

    assert set(network.files) == set(remote_files(scenario).values())
    assert len(network.files) == 3


def test_family_needs_files_of_all_scenarios():
    """The family of all of YAHPO's benchmarks has three files for each scenario."""
    (yahpo_family,) = FAMILIES

    files_of_scenarios = set()
    for scenario in SCENARIOS:
        files_of_scenarios.update(remote_files(scenario).values())

    assert set(yahpo_family.files()) == files_of_scenarios
    assert len(files_of_scenarios) == 3 * len(SCENARIOS)


@pytest.mark.parametrize(("scenario", "is_unpinned"), [("svm", True), ("rpart", False)])
def test_summary_tells_of_unpinned_network(scenario, is_unpinned):
    """If the package does not know a network's hash, the first download decides it.

    For data set 3 the package has no forest, so that the network is the default surrogate.
    """
    network = benchmark_spec(f"yahpo-{scenario}-3").option()

    lacks_hash = any(file.sha256 is None for file in network.files)
    tells_of_it = "first download" in network.summary
    assert lacks_hash == is_unpinned
    assert tells_of_it == is_unpinned


@pytest.mark.parametrize("scenario", PUBLISHED_INSTANCES)
def test_published_data_sets_are_registered(shared, scenario):
    """Each data set with published evaluations, called an instance, is one of the benchmarks."""
    folder = shared / "data" / "yahpo" / "evaluations" / f"rbv2_{scenario}"
    published_instances = {path.stem for path in folder.glob("*.parquet")}

    known_instances = {str(instance) for instance in PUBLISHED_INSTANCES[scenario]}
    assert known_instances == published_instances
    names = {f"yahpo-{scenario}-{instance}" for instance in published_instances}
    assert names <= {spec.name for spec in SPECS}


@pytest.mark.parametrize("scenario", ["xgboost", "rpart"])
def test_generated_data_sets_recur_in_others(scenario):
    """The forests that users can generate are of data sets that are chosen by a rule.

    They are the paper's data sets, and those of more than one bundled benchmark. The rule also
    holds for data sets whose network is saturated, as it predicts an AUC of 1: these are left out.
    """
    bundled_instances = Counter(spec.name.split("-")[2] for spec in SPECS)
    recurring = {instance for instance, count in bundled_instances.items() if count > 1}
    instances_of_paper = {instance for _, instance in PAPER_BENCHMARKS}

    with_saturated = (*GENERATED_BENCHMARKS, *SATURATED)
    instances = {instance for learner, instance in with_saturated if learner == scenario}

    assert len(instances) == 10
    assert instances == recurring | instances_of_paper


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


# Bundled forests are fitted to published evaluations at five training fractions; those of ranger
# to values of another release of the network, for which they stand in.
RANGER_SPECS = [spec for spec in SPECS if "ranger" in spec.name]
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
def test_only_forests_of_ranger_stand_in(spec):
    assert spec.option("forest").stand_in == (spec in RANGER_SPECS)
    assert not spec.option("onnx").stand_in


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


@pytest.mark.parametrize("spec", MEASURED_SPECS, ids=lambda spec: spec.name)
def test_forests_fit_well(spec):
    """The card of a forest tells how well it fits on each task, as a cross-validated R2."""
    card = read_card(spec.artifact)

    lowest_r2 = min(figures_of_task.r2 for figures_of_task in card.figures)
    assert lowest_r2 > 0.94


def test_card_tells_of_implausible_forest():
    """Why it is left out of means is also one of the limits that its card names."""
    spec = benchmark_spec(IMPLAUSIBLE)

    reason = spec.option().left_out

    assert reason in read_card(spec.artifact).limits


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
@pytest.mark.parametrize("task_name", ["5%", "100%"])
@pytest.mark.parametrize("scenario", SCENARIOS_WITH_SHARED_NETWORK)
def test_network_predicts_aucs(scenario, task_name):
    """The AUCs are plausible, and the same together as one by one."""
    benchmark = load(f"yahpo-{scenario}-40981")
    task = benchmark.task(task_name)
    rng = np.random.default_rng(0)
    configs = [benchmark.space.sample(rng) for _ in range(20)]

    aucs = task.evaluate_many(configs)
    aucs_one_by_one = [task.evaluate(config) for config in configs]

    assert ((aucs > 0) & (aucs <= 1)).all()
    assert aucs_one_by_one == aucs.tolist()


@pytest.mark.usefixtures("empty_cache")
@pytest.mark.parametrize("name", ["yahpo-xgboost-1220", "yahpo-svm-1220"])
def test_missing_network_names_command(name):
    with pytest.raises(NotFetchedError, match=f"fetch {name} --surrogate onnx"):
        load(name, surrogate="onnx")


@pytest.fixture
def only_space_fetched(shared, empty_cache):
    """Of the three files of rpart, only the one that defines its space has been downloaded."""
    file = remote_files("rpart")["config_space.json"]
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


@pytest.mark.usefixtures("fetched")
def test_unknown_instance_has_no_definition():
    with pytest.raises(UnknownNameError, match="instance '99999999' of rbv2_rpart"):
        benchmark_spec("yahpo-rpart-99999999").define()


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
    file = remote_files("svm")["model.onnx"]

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
        find_local_copy(tmp_path, remote_files("aknn")["model.onnx"])
    assert find_local_copy(tmp_path, remote_files("svm")["model.onnx"]).read_bytes() == b"svm"
