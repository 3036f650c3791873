"""Packages that only some users need: what needs them says so, before anything is run."""

import subprocess
import sys

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.data.extras import NEURAL, SKLEARN
from hpobench_ordered.errors import MissingExtraError
from hpobench_ordered.methods.registry import list_methods, method_spec
from hpobench_ordered.tuning import import_object

SCRIPT_THAT_TRIES_METHODS = """
import sys
import warnings

absent_modules, methods = [words.split(",") for words in sys.argv[1:]]


class Absent:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in absent_modules:
            raise ModuleNotFoundError(name, name=name)


sys.meta_path.insert(0, Absent)

import numpy as np
import hpobench_ordered as hbo
from hpobench_ordered.data.task_data import TaskData
from hpobench_ordered.errors import HPOBenchOrderedError
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.testing.toy import numeric_space, random_history, toy_benchmark

warnings.simplefilter("ignore")
*earlier, task = toy_benchmark(numeric_space(), tasks=4).tasks
history = random_history(earlier, seed=0)
features = np.random.default_rng(0).random((40, 3))
labels = (features[:, 0] > 0.5).astype(int)
data_of_tasks = [TaskData(features, labels, "classification")] * 4

for name in methods:
    spec = method_spec(name)
    settings = {"space": task.space, "history": history, "context": task.context, "budget": 12}
    if spec.uses_data:
        settings["data"] = data_of_tasks
    try:
        method = spec.method(**settings, rng=np.random.default_rng(0))
        for loss in range(12):
            method.tell(method.ask(), float(loss))
    except HPOBenchOrderedError as error:
        assert type(error).__name__ == "MissingExtraError", error
        print(name, "needs", str(error).partition("needs the package ")[2].split("'")[1])
"""
"""Runs methods as if some modules were not installed; prints the package that one lacks."""


def find_missing_packages(modules: str, methods: list[str]) -> dict[str, str]:
    """Find the package that `MissingExtraError` names, by method, where modules are missing."""
    command = [sys.executable, "-c", SCRIPT_THAT_TRIES_METHODS, modules, ",".join(methods)]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(line.split(" needs ") for line in process.stdout.splitlines())


@pytest.mark.slow
def test_methods_name_their_missing_package():
    """Without JAX and scikit-learn, methods that need one say so, and all others work."""
    needed_packages = {}
    for name in list_methods():
        extras = {NEURAL, SKLEARN}.intersection(method_spec(name).extras)
        if extras:
            needed_packages[name] = {extra.package for extra in extras}

    missing_package = find_missing_packages("jax,jaxlib,sklearn", list_methods())

    assert missing_package.keys() == needed_packages.keys()
    for name, package in missing_package.items():
        assert package in needed_packages[name]


@pytest.fixture
def without_jax_and_optuna(monkeypatch):
    """Make every import of JAX and Optuna fail, as if they were not installed."""
    for name in ("jax", "optuna"):
        # Python refuses to import a module whose entry is None.
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("without_jax_and_optuna")
def test_missing_package_is_noticed_before_running(tmp_path):
    """No run is made, not even of the first method, if the second needs JAX and it is missing."""
    methods = ["random-search", "ablr-transfer"]
    store = tmp_path / "store"

    with pytest.raises(MissingExtraError, match="method 'ablr-transfer' needs the package 'jax'"):
        hbo.run(benchmarks=["newsvendor"], methods=methods, seeds=[0], folder=store)

    assert not store.exists()


@pytest.mark.usefixtures("without_jax_and_optuna")
def test_optimiser_names_missing_package():
    """The method ABLR needs JAX, which is as if not installed."""
    space = hbo.load("newsvendor").space

    with pytest.raises(MissingExtraError, match="'jax'"):
        hbo.optimiser("ablr", space=space, direction="minimize")


@pytest.mark.usefixtures("without_jax_and_optuna")
def test_missing_package_error_names_command():
    """The error tells how to install Optuna, which is as if not installed."""
    with pytest.raises(MissingExtraError) as caught:
        import_object("optuna.samplers:TPESampler")

    command = "pip install optuna (or, in a checkout of hpobench-ordered, pip install '.[optuna]')"
    assert command in str(caught.value)
