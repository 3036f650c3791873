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
        print(name)
"""
"""Runs methods as if some modules were not installed; prints those that raise an error."""


def methods_that_fail_without(modules: str, methods: list[str]) -> set[str]:
    """Find which methods raise `MissingExtraError` where modules are not installed."""
    command = [sys.executable, "-c", SCRIPT_THAT_TRIES_METHODS, modules, ",".join(methods)]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    return set(process.stdout.split())


@pytest.fixture
def extras_of_method():
    """The optional packages that each registered method needs, by its name."""
    return {name: method_spec(name).extras for name in list_methods()}


@pytest.mark.slow
def test_methods_that_need_jax_say_so(extras_of_method):
    """Without JAX, the methods with a neural network raise `MissingExtraError`, and no others."""
    neural = {name for name, extras in extras_of_method.items() if NEURAL in extras}

    assert methods_that_fail_without("jax,jaxlib", list(extras_of_method)) == neural


@pytest.mark.slow
def test_methods_that_need_sklearn_say_so(extras_of_method):
    """Only methods without a network are tried: the others need JAX as well."""
    not_neural = [name for name, extras in extras_of_method.items() if NEURAL not in extras]
    of_sklearn = {name for name in not_neural if SKLEARN in extras_of_method[name]}

    assert methods_that_fail_without("sklearn", not_neural) == of_sklearn


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
