"""Values and suggestions that may not change silently; `write.py` beside this file wrote them."""

import copy
import importlib
import json
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from by_speed import LINEAR, SAMPLED

import hpobench_ordered as hbo
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.registry import benchmark_spec, method_spec
from hpobench_ordered.testing.golden import check_golden, read_golden

FOLDER = Path(__file__).parent
BENCHMARKS = read_golden()
METHODS = json.loads((FOLDER / "methods.json").read_text(encoding="utf-8"))
REMEDY = (
    "If that is meant to be, raise the version in the method's MethodSpec and write the goldens "
    "again by `python tests/golden/write.py`"
)


@pytest.fixture
def write(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("write")


def test_nothing_is_without_golden_values():
    names = hbo.list_benchmarks(ready=True)
    assert set(BENCHMARKS) == {benchmark_spec(name).id for name in names}
    for name in names:
        spec = benchmark_spec(name)
        options = [o.name for o in spec.surrogates if not o.files and o.generated is None]
        assert list(BENCHMARKS[spec.id]["values"]) == options
    assert set(METHODS) == set(hbo.list_methods())


def slow_if(is_slow, names):
    return [pytest.param(n, marks=pytest.mark.slow if is_slow(n) else ()) for n in names]


@pytest.mark.parametrize(
    "identity", slow_if(lambda name: benchmark_spec(name).option().trains, BENCHMARKS)
)
def test_values(identity):
    values = BENCHMARKS[identity]["values"]
    compared = check_golden(benchmark_spec(identity), BENCHMARKS)
    assert compared == sum(len(v) for tasks in values.values() for v in tasks.values())
    assert compared >= 3 * 6 * len(values)


@pytest.mark.parametrize("identity", BENCHMARKS)
def test_sampling(identity):
    space = hbo.load(identity).space
    configs = space.configs(space.decode(space.sample_unit(np.random.default_rng(2023), 6)))
    for config, golden in zip(configs, BENCHMARKS[identity]["configs"], strict=True):
        close = {n: pytest.approx(v, rel=1e-12) for n, v in golden.items() if type(v) is float}
        assert config == golden | close


def test_another_value_is_noticed():
    spec = benchmark_spec("newsvendor")
    golden = copy.deepcopy(dict(BENCHMARKS))
    golden[spec.id]["values"]["table"]["8"][5] *= 1 + 1e-9
    with pytest.raises(ArtifactError, match=r"'table', task '8': .* must be .*, but is"):
        check_golden(spec, golden)
    del golden[spec.id]["values"]["table"]
    with pytest.raises(ArtifactError, match="no golden values of surrogate 'table'"):
        check_golden(spec, golden)


QUICK = {"ablr", "none-gp"}
"""Of the methods with networks: what they share is compiled for seconds."""


def has_networks(method):
    return method_spec(method).method.__module__ in LINEAR | SAMPLED


@pytest.mark.parametrize(
    "method", slow_if(lambda name: has_networks(name) and name not in QUICK, METHODS)
)
def test_suggestions(method, write):
    golden = METHODS[method]
    if has_networks(method) and [*map(int, metadata.version("jax").split(".")[:2])] < [0, 10]:
        pytest.skip("the last bits of networks were others before JAX 0.10, and so suggestions")
    assert method_spec(method).version == golden["version"], REMEDY
    runs = write.trajectories(method)
    assert runs.keys() == golden["runs"].keys()
    for task, rows in runs.items():
        expected = np.array(golden["runs"][task], dtype=float)
        actual = np.array(rows, dtype=float)
        message = f"{method} suggests something else on {task!r}. {REMEDY}"
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-9, err_msg=message)
    assert write.is_same(runs, golden["runs"])


def test_a_changed_trajectory_needs_a_new_version(write):
    golden = {"version": 2, "runs": {"a task": [[0.5, None, 1.0], [0.25, 3.0, 0.5]]}}
    rounded = {"a task": [[0.5 + 1e-12, None, 1.0], [0.25, 3.0, 0.5]]}
    changed = {"a task": [[0.5, None, 1.0], [0.2500003, 3.0, 0.5]]}
    assert write.next_golden("mine", 2, rounded, golden) == golden
    assert write.next_golden("mine", 3, changed, golden) == {"version": 3, "runs": changed}
    assert write.next_golden("mine", 1, changed, None) == {"version": 1, "runs": changed}
    for version in (1, 2):
        with pytest.raises(SystemExit, match="mine: suggestions changed, so raise `version`"):
            write.next_golden("mine", version, changed, golden)
    with pytest.raises(SystemExit, match="it is 1, the goldens are of 2"):
        write.next_golden("mine", 1, rounded, golden)
