"""Packages that only some users need: what needs them says so, before anything is run."""

import subprocess
import sys

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.adapters import import_object
from hpobench_ordered.core.extras import NEURAL, SKLEARN
from hpobench_ordered.errors import MissingExtraError
from hpobench_ordered.registry import list_methods, method_spec

WITHOUT = """
import sys, warnings
class Absent:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Absent)
import numpy as np
import hpobench_ordered as hbo
from hpobench_ordered.registry import method_spec
from hpobench_ordered.testing.toy import numeric_space, random_history, toy_benchmark

warnings.simplefilter("ignore")
*earlier, task = toy_benchmark(numeric_space(), tasks=4).tasks
history = random_history(earlier, seed=0)
X = np.random.default_rng(0).random((40, 3))
data = [hbo.TaskData(X, (X[:, 0] > 0.5).astype(int), "classification")] * 4
for name in sys.argv[2].split(","):
    spec = method_spec(name)
    settings = {"space": task.space, "history": history, "context": task.context, "budget": 12}
    try:
        method = spec.method(
            **settings, rng=np.random.default_rng(0), **({"data": data} if spec.uses_data else {})
        )
        for loss in range(12):
            method.tell(method.ask(), float(loss))
    except hbo.HPOBenchOrderedError as error:
        assert type(error).__name__ == "MissingExtraError", error
        print(name)
"""


def without(modules: str, methods: list[str]) -> set[str]:
    """Which methods lack something where modules are not installed."""
    command = [sys.executable, "-c", WITHOUT, modules, ",".join(methods)]
    return set(subprocess.run(command, check=True, capture_output=True, text=True).stdout.split())


@pytest.mark.slow
def test_methods_say_what_they_need():
    needs = {name: method_spec(name).extras for name in list_methods()}
    neural = {name for name, extras in needs.items() if NEURAL in extras}
    assert without("jax,jaxlib", [*needs]) == neural
    plain = [name for name in needs if name not in neural]
    assert without("sklearn", plain) == {name for name in plain if SKLEARN in needs[name]}


@pytest.fixture
def absent(monkeypatch):
    """JAX and Optuna are not installed, and not imported either."""
    for name in ("jax", "optuna"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.usefixtures("absent")
def test_what_needs_a_package_is_refused_before_its_first_run(tmp_path):
    with pytest.raises(MissingExtraError, match="method 'ablr-transfer' needs the package 'jax'"):
        methods = ["random-search", "ablr-transfer"]
        hbo.run(benchmarks=["newsvendor"], methods=methods, seeds=[0], folder=tmp_path / "store")
    assert not (tmp_path / "store").exists()
    with pytest.raises(MissingExtraError, match="'jax'"):
        hbo.optimiser("ablr", space=hbo.load("newsvendor").space, direction="minimize")
    with pytest.raises(MissingExtraError) as caught:
        import_object("optuna.samplers:TPESampler")
    said = "pip install optuna (or, in a checkout of hpobench-ordered, pip install '.[optuna]')"
    assert said in str(caught.value)


@pytest.mark.slow
def test_a_missing_package_is_no_broken_contract(tmp_path):
    (tmp_path / "mine.py").write_text("def Mine(space, rng):\n    import no_such_package\n")
    command = [sys.executable, "-m", "hpobench_ordered", "check", f"{tmp_path}/mine.py:Mine"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2, done.stderr
    assert "mine.py:Mine cannot be run here: No module named 'no_such_package'" in done.stderr
    assert "contract" not in done.stderr
