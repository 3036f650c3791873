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
    """The script `write.py` beside this file, as a module."""
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("write")


def mark_slow(names, is_slow):
    """Parameters of a test; those names for which `is_slow(name)` are marked as slow."""
    parameters = []
    for name in names:
        marks = pytest.mark.slow if is_slow(name) else ()
        parameters.append(pytest.param(name, marks=marks))
    return parameters


# -- benchmarks ------------------------------------------------------------------------------------


def test_every_benchmark_has_golden_values():
    names = hbo.list_benchmarks(ready=True)

    assert set(BENCHMARKS) == {benchmark_spec(name).id for name in names}


@pytest.mark.parametrize("identity", BENCHMARKS)
def test_every_shipped_surrogate_has_golden_values(identity):
    """Shipped are those that need neither be fetched, as files, nor generated."""
    surrogates = benchmark_spec(identity).surrogates
    shipped = [option for option in surrogates if not option.files and option.generated is None]

    names_with_golden_values = list(BENCHMARKS[identity]["values"])
    assert names_with_golden_values == [option.name for option in shipped]


def trains(identity):
    """Whether the benchmark trains models, which is slow."""
    return benchmark_spec(identity).option().trains


@pytest.mark.parametrize("identity", mark_slow(BENCHMARKS, trains))
def test_values_are_golden(identity):
    """`check_golden` evaluates six configurations on three tasks of each surrogate, and raises an
    error if a value is not the recorded one.
    """
    golden_of_surrogate = BENCHMARKS[identity]["values"]
    recorded = 0
    for values_of_task in golden_of_surrogate.values():
        assert len(values_of_task) <= 3
        recorded += sum(len(values) for values in values_of_task.values())

    number_compared = check_golden(benchmark_spec(identity), BENCHMARKS)

    assert number_compared == recorded
    assert number_compared >= 3 * 6 * len(golden_of_surrogate)


@pytest.mark.parametrize("identity", BENCHMARKS)
def test_sampled_configurations_are_golden(identity):
    space = hbo.load(identity).space
    # Seed and number of configurations are those that the golden ones were drawn with.
    unit_values = space.sample_unit(np.random.default_rng(2023), 6)

    configs = space.configs(space.decode(unit_values))

    for config, golden in zip(configs, BENCHMARKS[identity]["configs"], strict=True):
        assert config.keys() == golden.keys()
        for name, golden_value in golden.items():
            if type(golden_value) is float:
                # Up to rounding, as JSON keeps decimal digits.
                assert config[name] == pytest.approx(golden_value, rel=1e-12)
            else:
                assert config[name] == golden_value


def test_changed_value_is_noticed():
    spec = benchmark_spec("newsvendor")
    golden = copy.deepcopy(dict(BENCHMARKS))
    values_of_last_task = golden[spec.id]["values"]["table"]["8"]
    values_of_last_task[5] *= 1 + 1e-9

    with pytest.raises(ArtifactError, match=r"'table', task '8': .* must be .*, but is"):
        check_golden(spec, golden)


def test_missing_surrogate_is_noticed():
    spec = benchmark_spec("newsvendor")
    golden = copy.deepcopy(dict(BENCHMARKS))
    del golden[spec.id]["values"]["table"]

    with pytest.raises(ArtifactError, match="no golden values of surrogate 'table'"):
        check_golden(spec, golden)


# -- methods ---------------------------------------------------------------------------------------


def test_every_method_has_golden_suggestions():
    assert set(METHODS) == set(hbo.list_methods())


QUICK_NETWORKS = {"ablr", "none-gp"}
"""Of the methods with networks: what the others share with these is compiled for seconds."""


def has_networks(method):
    return method_spec(method).method.__module__ in LINEAR | SAMPLED


def is_slow_method(method):
    return has_networks(method) and method not in QUICK_NETWORKS


def is_old_jax():
    """Before JAX 0.10 the last bits of networks were others, and so suggestions."""
    major, minor, *_ = metadata.version("jax").split(".")
    return (int(major), int(minor)) < (0, 10)


@pytest.mark.parametrize("method", mark_slow(METHODS, is_slow_method))
def test_suggestions_are_golden(method, write):
    """Configurations and losses of short runs, as they were written with this version of the
    method.
    """
    golden = METHODS[method]
    if has_networks(method) and is_old_jax():
        pytest.skip("the last bits of networks were others before JAX 0.10")
    assert method_spec(method).version == golden["version"], REMEDY

    runs = write.compute_trajectories(method)

    assert runs.keys() == golden["runs"].keys()
    for task, rows in runs.items():
        expected = np.array(golden["runs"][task], dtype=float)
        actual = np.array(rows, dtype=float)
        message = f"{method} suggests something else on {task!r}. {REMEDY}"
        # Golden numbers have nine digits; other versions of libraries round differently.
        np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-9, err_msg=message)


# -- writing ---------------------------------------------------------------------------------------

GOLDEN_RUNS = {"a task": [[0.5, None, 1.0], [0.25, 3.0, 0.5]]}
ROUNDED_RUNS = {"a task": [[0.5 + 1e-12, None, 1.0], [0.25, 3.0, 0.5]]}
"""Equal to the golden ones up to rounding."""
CHANGED_RUNS = {"a task": [[0.5, None, 1.0], [0.2500003, 3.0, 0.5]]}
GOLDEN = {"version": 2, "runs": GOLDEN_RUNS}
"""What was golden before: the runs of a method of version 2."""


def test_rounding_keeps_the_golden_runs(write):
    """Runs of the same version that differ by 1e-12 do not replace the golden ones."""
    assert write.make_golden("mine", 2, ROUNDED_RUNS, GOLDEN) == GOLDEN


def test_changed_runs_get_a_new_version(write):
    """The golden runs were of version 2; the method, now of version 3, runs differently."""
    golden = write.make_golden("mine", 3, CHANGED_RUNS, GOLDEN)

    assert golden == {"version": 3, "runs": CHANGED_RUNS}


def test_new_method_gets_its_runs(write):
    nothing_before = None
    golden = write.make_golden("mine", 1, CHANGED_RUNS, nothing_before)

    assert golden == {"version": 1, "runs": CHANGED_RUNS}


@pytest.mark.parametrize("version", [1, 2])
def test_changed_runs_need_a_higher_version(write, version):
    """The golden runs, which differ, are of version 2."""
    with pytest.raises(SystemExit, match="mine: suggestions changed, so raise `version`"):
        write.make_golden("mine", version, CHANGED_RUNS, GOLDEN)


def test_version_must_not_fall(write):
    """Even if the runs are the same up to rounding."""
    with pytest.raises(SystemExit, match="it is 1, the goldens are of 2"):
        write.make_golden("mine", 1, ROUNDED_RUNS, GOLDEN)
