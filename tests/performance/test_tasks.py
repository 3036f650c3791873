"""Evaluations through the public interface, validation included; and how fast one gets there.

pytest tests/performance/test_tasks.py
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmarks import xgboost_mnist

CONFIGURATIONS = 1000
LEAST_RATES = {
    ("newsvendor", "table"): (30_000, 1_000_000),
    ("xgboost-mnist", "nearest"): (20_000, 1_000_000),
    ("xgboost-mnist", "nearest-log"): (20_000, 1_000_000),
    ("xgboost-mnist", "forest"): (20_000, 200_000),
    ("yahpo-svm-1220", "forest"): (20_000, 200_000),
    ("yahpo-ranger-4154", "forest"): (20_000, 200_000),
    ("openml-svm", "forest"): (20_000, 200_000),
    ("openml-svm", "nearest"): (20_000, 200_000),
    ("openml-xgboost", "forest"): (20_000, 200_000),
    ("openml-xgboost", "nearest"): (20_000, 200_000),
    ("fcnet", "table"): (20_000, 500_000),
    ("nas201", "table"): (20_000, 500_000),
    ("fcn-b", "table"): (20_000, 200_000),
    ("svm-a", "forest"): (20_000, 200_000),
    ("xgb-a", "forest"): (20_000, 200_000),
    ("forrester", "exact"): (30_000, 1_000_000),
    ("quadratic", "exact"): (30_000, 500_000),
}
"""Evaluations a second, one at a time and in batches, by benchmark and surrogate."""

LEAST_RATES_OF_SINGLES = {names: singles for names, (singles, _) in LEAST_RATES.items()}
LEAST_RATES_OF_BATCHES = {names: batches for names, (_, batches) in LEAST_RATES.items()}
IDS = ["-".join(names) for names in LEAST_RATES]


@pytest.fixture
def task(request, monkeypatch, tmp_path):
    """A task of the benchmark and the surrogate that the test is run for."""
    name, surrogate = request.param
    if name == "xgboost-mnist" and surrogate.startswith("nearest"):
        # This surrogate looks up published evaluations, here put into an empty cache.
        shared: Path = request.getfixturevalue("shared")
        monkeypatch.setenv("HPOBENCH_ORDERED_CACHE", str(tmp_path))
        published = shared / "data" / "othpo" / "aggregated_experiments.json.gz"
        xgboost_mnist.PUBLISHED.store(published)

    benchmark = hbo.load(name, surrogate=surrogate)
    _, second_task, *_ = benchmark.tasks
    return second_task


def sample_values(task: hbo.Task) -> FloatArray:
    """Sample the coded values of a thousand configurations, shape (1000, d)."""
    unit = task.space.sample_unit(np.random.default_rng(0), CONFIGURATIONS)
    return task.space.decode(unit)


@pytest.mark.parametrize(
    ("task", "least_rate"), LEAST_RATES_OF_SINGLES.items(), indirect=["task"], ids=IDS
)
def test_single_evaluations_are_fast(benchmark, task, least_rate):
    """Configurations are evaluated one by one, as dicts, at a least rate a second."""
    configs = task.space.configs(sample_values(task))

    benchmark(lambda: [task.evaluate(config) for config in configs])

    assert CONFIGURATIONS / benchmark.stats.stats.median >= least_rate


@pytest.mark.parametrize(
    ("task", "least_rate"), LEAST_RATES_OF_BATCHES.items(), indirect=["task"], ids=IDS
)
def test_batches_are_fast(benchmark, task, least_rate):
    """A thousand configurations, an array, are evaluated together at a least rate a second."""
    values = sample_values(task)

    benchmark(task.evaluate_many, values)

    assert CONFIGURATIONS / benchmark.stats.stats.median >= least_rate


def test_import_takes_half_a_second(benchmark):
    """The median time includes Python's own start, about 20 ms."""
    command = [sys.executable, "-c", "import hpobench_ordered"]

    benchmark.pedantic(lambda: subprocess.run(command, check=True), rounds=7, warmup_rounds=1)

    assert benchmark.stats.stats.median < 0.5


def time_first_load(name: str) -> float:
    """Measure the seconds of `load` in a new process that has imported the package."""
    script = (
        "import time, hpobench_ordered as hbo\n"
        f"start = time.perf_counter(); hbo.load({name!r}); print(time.perf_counter() - start)"
    )
    command = [sys.executable, "-c", script]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(result.stdout)


ON_TABLES_OF_OTHERS = ("fcnet", "fcn-a", "fcn-b", "nas201", "nas-a", "nas-b")
"""Benchmarks on tables of another package; to unpickle these takes 0.06 to 0.3 s a data set."""


@pytest.mark.parametrize("name", hbo.list_benchmarks(ready=True))
def test_first_load_takes_limited_time(name):
    """The first `load` in a process is measured in five processes, whose median counts."""
    most_seconds = 3.0 if name in ON_TABLES_OF_OTHERS else 0.3

    seconds = [time_first_load(name) for _ in range(5)]

    assert np.median(seconds) < most_seconds
