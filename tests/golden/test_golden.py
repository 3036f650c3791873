"""Values and suggestions that may not change silently; `write.py` beside this file wrote them."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import hpobench_ordered as hbo

FOLDER = Path(__file__).parent
BENCHMARKS = json.loads((FOLDER / "benchmarks.json").read_text(encoding="utf-8"))
METHODS = json.loads((FOLDER / "methods.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def write() -> ModuleType:
    spec = importlib.util.spec_from_file_location("write", FOLDER / "write.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_same_config(config: dict[str, object], golden: dict[str, object], rel: float) -> None:
    assert config.keys() == golden.keys()
    for name, value in config.items():
        close = pytest.approx(golden[name], rel=rel) if type(value) is float else golden[name]
        assert value == close, name


def test_nothing_is_without_golden_values() -> None:
    assert set(BENCHMARKS) == {hbo.load(name).id for name in hbo.list_benchmarks(ready=True)}
    assert set(METHODS) == set(hbo.list_methods())


@pytest.mark.parametrize("identity", BENCHMARKS)
def test_values(identity: str) -> None:
    loaded, golden = hbo.load(identity), BENCHMARKS[identity]
    for task, values in golden["values"].items():
        measured = [loaded.task(task).evaluate(config) for config in golden["configs"]]
        # Exact on one machine; the last bits of logarithms may differ between processors.
        assert measured == pytest.approx(values, rel=1e-12, abs=0)


@pytest.mark.parametrize("identity", BENCHMARKS)
def test_sampling(identity: str, write: ModuleType) -> None:
    measured = write.benchmark_values(identity)["configs"]
    for config, golden in zip(measured, BENCHMARKS[identity]["configs"], strict=True):
        assert_same_config(config, golden, 1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_suggestions(method: str, write: ModuleType) -> None:
    runs = write.trajectories(method)
    assert runs.keys() == METHODS[method].keys()
    for name, rows in runs.items():
        golden = np.array(METHODS[method][name], dtype=float)
        np.testing.assert_allclose(np.array(rows, dtype=float), golden, rtol=1e-6, atol=1e-9)
