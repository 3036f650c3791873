"""YAHPO's benchmarks: published files, tasks, bundled forests, and networks to be fetched."""

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
from hpobench_ordered.core.specs import BenchmarkSpec
from hpobench_ordered.errors import DownloadError, NotFetchedError, UnknownNameError
from hpobench_ordered.files.remote import CACHE_VARIABLE
from hpobench_ordered.files.writing import file_sha256
from hpobench_ordered.registry import benchmark_spec, load, suites
from hpobench_ordered.surrogates.bundle import read_card

COMPLETE = ("rpart", "xgboost")
"""Scenarios whose three files are in the shared data."""


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache of downloaded files."""
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    return tmp_path


@pytest.fixture
def fetched(shared, cache):
    """A cache that holds the scenarios of the shared data."""
    for scenario in COMPLETE:
        for file in remote_files(scenario).values():
            file.store(shared / "data" / "yahpo" / file.name)
    return cache


# -- files and definitions -------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_pinned_hashes_are_the_published_files(shared, scenario):
    """The shared data lack the networks of some scenarios, whose hashes are not known."""
    for file in remote_files(scenario).values():
        copy = shared / "data" / "yahpo" / file.name
        if file.sha256 is None:
            assert not copy.exists()
        else:
            assert file_sha256(copy) == file.sha256


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_files_are_those_of_the_release(scenario):
    for name, file in remote_files(scenario).items():
        assert file.url.endswith(f"/slds-lmu/yahpo_data/v1.0.2/rbv2_{scenario}/{name}")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_inputs_of_network_are_hyperparameters(shared, scenario):
    """Besides, a network takes the data set, the share of it to train on, and repetitions."""
    space = define(shared, scenario).space
    categorical = {parameter.name for parameter in space.parameters if parameter.choices}
    numeric = set(space.names) - categorical

    layout = SCENARIOS[scenario].layout

    assert set(layout.categorical) == categorical | {"task_id"}
    assert set(layout.continuous) == numeric | {"trainsize", "repl"}


def test_svm_space_is_yahpos(shared):
    """As in YAHPO's file `config_space.json`."""
    space = define(shared, "svm").space

    imputation = "num.impute.selected.cpo"
    assert space.names == ("cost", "kernel", imputation, "tolerance", "degree", "gamma")
    # Hyperparameters that are only active with some kernels.
    assert set(space.conditions) == {"degree", "gamma"}
    assert space["cost"].log
    assert space["kernel"].choices == ("linear", "polynomial", "radial")


def test_inactive_hyperparameters_are_coded_as_nan(shared):
    space = define(shared, "svm").space
    config = {
        "cost": 1.0,
        "kernel": "linear",
        "num.impute.selected.cpo": "impute.hist",
        "tolerance": 0.1,
    }

    row = space.row(config)

    # Choices by their places; degree and gamma, the last two, are inactive with a linear kernel.
    linear, hist = 0.0, 2.0
    np.testing.assert_array_equal(row, [1.0, linear, hist, 0.1, np.nan, np.nan])


def test_tasks_are_twenty_fractions(shared):
    """From 5 % to 100 % of the data, in steps of 5 %."""
    definition = define(shared, "glmnet", "375")

    fractions = {task.name: task.context["train_fraction"] for task in definition.tasks}
    assert fractions == {f"{5 * k}%": k / 20 for k in range(1, 21)}


def test_auc_is_maximised(shared):
    """Also of a benchmark of glmnet, whose name says scenario and data set."""
    definition = define(shared, "glmnet", "375")

    assert definition.name == "yahpo-glmnet-375"
    assert definition.objective.direction is Direction.MAXIMIZE


# -- registered benchmarks -------------------------------------------------------------------------


def test_papers_benchmarks_come_first():
    names = [spec.name for spec in SPECS]

    papers_names = [f"yahpo-{scenario}-{instance}" for scenario, instance in PAPER_BENCHMARKS]
    assert names[: len(papers_names)] == papers_names


def test_names_of_benchmarks_are_distinct():
    names = [spec.name for spec in SPECS]

    # As many as have a bundled forest.
    assert len(names) == 32
    assert len(set(names)) == 32


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_bundled_benchmarks_have_two_surrogates(spec):
    assert benchmark_spec(spec.name) is spec
    assert [option.name for option in spec.surrogates] == ["forest", "onnx"]


@pytest.mark.parametrize("scenario", ["svm", "rpart"])
def test_network_needs_files_of_its_scenario(scenario):
    # The default surrogate, of a data set for which no forest is bundled.
    network = benchmark_spec(f"yahpo-{scenario}-3").option()

    # Definition of the space, codes of the choices, and the network itself
    assert set(network.files) == set(remote_files(scenario).values())
    assert len(network.files) == 3


def test_family_needs_files_of_all_scenarios():
    (yahpo_family,) = FAMILIES

    files_of_scenarios = set()
    for scenario in SCENARIOS:
        files_of_scenarios.update(remote_files(scenario).values())

    assert set(yahpo_family.files()) == files_of_scenarios
    assert len(files_of_scenarios) == 3 * len(SCENARIOS)


@pytest.mark.parametrize(("scenario", "is_unpinned"), [("svm", True), ("rpart", False)])
def test_summary_tells_of_unpinned_network(scenario, is_unpinned):
    """The hash of a network that is not known is that of the first download."""
    option = benchmark_spec(f"yahpo-{scenario}-3").option()

    assert any(file.sha256 is None for file in option.files) is is_unpinned
    assert ("first download" in option.summary) is is_unpinned


@pytest.mark.parametrize("scenario", PUBLISHED_INSTANCES)
def test_published_data_sets_are_registered(shared, scenario):
    """The shared data have a file of published evaluations for each data set (instance)."""
    folder = shared / "data" / "yahpo" / "evaluations" / f"rbv2_{scenario}"
    instances = {path.stem for path in folder.glob("*.parquet")}

    assert set(map(str, PUBLISHED_INSTANCES[scenario])) == instances
    names = {f"yahpo-{scenario}-{instance}" for instance in instances}
    assert names <= {spec.name for spec in SPECS}


@pytest.mark.parametrize("scenario", ["xgboost", "rpart"])
def test_generated_data_sets_recur_in_others(scenario):
    """Data sets for which users generate forests: the paper's, and those of several scenarios."""
    instances_of_specs = [spec.name.split("-")[2] for spec in SPECS]
    recurring = {name for name in instances_of_specs if instances_of_specs.count(name) > 1}
    instances_of_paper = {instance for _, instance in PAPER_BENCHMARKS}

    # Saturated ones would be generated, too, but their networks are left out.
    candidates = (*GENERATED_BENCHMARKS, *SATURATED)
    instances = {instance for learner, instance in candidates if learner == scenario}

    assert len(instances) == 10
    assert instances == recurring | instances_of_paper


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize(("scenario", "instance"), (*GENERATED_BENCHMARKS, *SATURATED))
def test_saturated_networks_are_left_out(scenario, instance):
    """Networks that predict an AUC of 1 for some configurations: their best value is useless."""
    name = f"yahpo-{scenario}-{instance}"
    benchmark = load(name, surrogate="onnx")
    unit_values = benchmark.space.sample_unit(np.random.default_rng(0), 1000)
    task_of_all_data = benchmark.tasks[-1]

    auc = task_of_all_data.evaluate_many(benchmark.space.decode(unit_values))

    is_saturated = auc.max() >= 0.9999
    assert ((scenario, instance) in SATURATED) == is_saturated
    assert (name not in suites()["wide"]) == is_saturated
    assert bool(benchmark_spec(name).option("onnx").left_out) == is_saturated


# Bundled forests are fitted to published evaluations at five training fractions; those of ranger
# to values of another release of the network, for which they stand in.
RANGER_SPECS = [spec for spec in SPECS if "ranger" in spec.name]
MEASURED_SPECS = [spec for spec in SPECS if "ranger" not in spec.name]
IMPLAUSIBLE = "yahpo-ranger-4154"
"""The forest whose best value falls with more data."""


@pytest.mark.parametrize("spec", MEASURED_SPECS, ids=lambda spec: spec.name)
def test_interpolated_tasks_are_marked(spec):
    """Of twenty tasks, 5 %, 10 %, ..., 100 % of the data, only five were evaluated."""
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
    """Of ranger on data set 4154; what is left out of means has a text that says why."""
    assert bool(spec.option("forest").left_out) == (spec.name == IMPLAUSIBLE)
    assert not spec.option("onnx").left_out


def compute_fall(spec: BenchmarkSpec) -> float:
    """By how much the best AUC with all of the data is below that with up to a quarter."""
    best_values = [task.best_value for task in spec.load().tasks]
    up_to_a_quarter = best_values[:5]  # 5 %, 10 %, ..., 25 %
    with_all_data = best_values[-1]
    return max(up_to_a_quarter) - with_all_data


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_only_implausible_forest_gets_worse(spec):
    """With more data, best AUCs rise or hardly fall, unless a forest is implausible."""
    hardly = 0.05

    gets_worse = compute_fall(spec) > hardly

    assert gets_worse == (spec.name == IMPLAUSIBLE)


@pytest.mark.parametrize("spec", MEASURED_SPECS, ids=lambda spec: spec.name)
def test_forests_fit_well(spec):
    """On each task, cross-validated R2 is high."""
    card = read_card(spec.artifact)

    assert min(quality.r2 for quality in card.figures) > 0.94


def test_card_tells_of_implausible_forest():
    spec = benchmark_spec(IMPLAUSIBLE)

    reason = spec.option().left_out

    assert reason in read_card(spec.artifact).limits


# -- networks --------------------------------------------------------------------------------------


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("scenario", COMPLETE)
def test_network_of_any_instance_is_loaded(scenario):
    """For data set 40981 nothing is bundled, but the network of its scenario knows it."""
    benchmark = load(f"yahpo-{scenario}-40981@1")

    assert benchmark.surrogate == "onnx"
    assert benchmark.name == f"yahpo-{scenario}-40981"
    assert len(benchmark.tasks) == len(FRACTIONS)
    # No best value is known for any task.
    assert {task.best_value for task in benchmark.tasks} == {None}


@pytest.mark.usefixtures("fetched")
@pytest.mark.parametrize("task_name", ["5%", "100%"])
@pytest.mark.parametrize("scenario", COMPLETE)
def test_network_predicts_aucs(scenario, task_name):
    benchmark = load(f"yahpo-{scenario}-40981")
    task = benchmark.task(task_name)
    rng = np.random.default_rng(0)
    configs = [benchmark.space.sample(rng) for _ in range(20)]

    aucs = task.evaluate_many(configs)

    assert ((aucs > 0) & (aucs <= 1)).all()
    assert [task.evaluate(config) for config in configs] == aucs.tolist()


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("name", ["yahpo-xgboost-1220", "yahpo-svm-1220"])
def test_missing_network_names_command(name):
    with pytest.raises(NotFetchedError, match=f"fetch {name} --surrogate onnx"):
        load(name, surrogate="onnx")


@pytest.fixture
def only_space_fetched(shared, cache):
    """A cache that holds one of the three files of rpart, the definition of its space."""
    file = remote_files("rpart")["config_space.json"]
    file.store(shared / "data" / "yahpo" / file.name)


@pytest.mark.usefixtures("only_space_fetched")
def test_missing_files_are_listed():
    spec = benchmark_spec("yahpo-rpart-1220")

    with pytest.raises(NotFetchedError, match=r"2 of 3 files .*encoding\.json.*model\.onnx"):
        spec.load()


@pytest.mark.usefixtures("only_space_fetched")
def test_definition_without_files_names_command():
    """Two of three files, which define the benchmark, have not been fetched."""
    spec = benchmark_spec("yahpo-rpart-1220")

    with pytest.raises(NotFetchedError, match="hpobench-ordered fetch yahpo-rpart-1220"):
        spec.define()


@pytest.mark.usefixtures("fetched")
def test_unknown_instance_suggests_another():
    # There is a data set 1220.
    with pytest.raises(UnknownNameError, match=r"instance '1221' of rbv2_rpart.*did you mean"):
        load("yahpo-rpart-1221")


@pytest.mark.usefixtures("fetched")
def test_unknown_instance_has_no_definition():
    with pytest.raises(UnknownNameError, match="instance '99999999' of rbv2_rpart"):
        benchmark_spec("yahpo-rpart-99999999").define()


@pytest.mark.parametrize("name", ["yahpo-lightgbm-3", "yahpo-rpart", "yahpo-rpart-x", "rpart-3"])
def test_other_names_are_unknown(name):
    """An unknown scenario, no instance, no number, and no prefix."""
    assert FAMILIES[0].spec(name) is None
    with pytest.raises(UnknownNameError, match="yahpo-SCENARIO-INSTANCE"):
        benchmark_spec(name)


@pytest.fixture
def rpart_network(shared):
    """Bytes of the network of rpart, which has other inputs than that of svm."""
    path = shared / "data" / "yahpo" / "yahpo_data-1.0.2" / "rbv2_rpart" / "model.onnx"
    return path.read_bytes()


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    "change",
    [
        lambda network: b"<!DOCTYPE html><html><body>Too many requests</body></html>",
        lambda network: b"",
        lambda network: network[:1000],
        lambda network: network,  # a network, but not that of svm
    ],
    ids=["web page", "empty", "cut", "other inputs"],
)
def test_other_content_is_not_stored_as_network(rpart_network, tmp_path, change):
    """Without a known hash, a network of svm is recognised by its inputs."""
    copy = tmp_path / "copy"
    copy.write_bytes(change(rpart_network))
    file = remote_files("svm")["model.onnx"]

    with pytest.raises(DownloadError, match="not the published"):
        file.store(copy)

    assert not file.is_fetched


@pytest.mark.usefixtures("fetched")
def test_loading_imports_nothing_heavy():
    """Slow imports wait until a network is evaluated."""
    code = (
        "import sys, hpobench_ordered.registry as r; r.load('yahpo-xgboost-1220');"
        "heavy = {'onnxruntime', 'numba', 'pandas', 'ConfigSpace', 'sklearn', 'scipy'};"
        "print(sorted(heavy & set(sys.modules)))"
    )

    # In another process, where nothing has been imported yet.
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert result.stdout.strip() == "[]"
