"""Evaluations through the public interface, validation included; and how fast one gets there.

pytest tests/performance/test_tasks.py
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks import xgboost_mnist

CONFIGURATIONS = 1000
AT_LEAST = {
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
"""Evaluations a second: one at a time, and in batches of 1000 as an array."""


@pytest.fixture
def task(request, monkeypatch, tmp_path):
    """The second task of a benchmark with a surrogate."""
    name, surrogate = request.param
    if name == "xgboost-mnist" and surrogate.startswith("nearest"):
        # This surrogate looks up published evaluations, here put into an empty cache.
        shared: Path = request.getfixturevalue("shared")
        monkeypatch.setenv("HPOBENCH_ORDERED_CACHE", str(tmp_path))
        published = shared / "data" / "othpo" / "aggregated_experiments.json.gz"
        xgboost_mnist.PUBLISHED.store(published)
    return hbo.load(name, surrogate=surrogate).tasks[1]


@pytest.mark.parametrize("in_batches", [False, True])
@pytest.mark.parametrize("task", AT_LEAST, indirect=True, ids="-".join)
def test_evaluations_a_second(benchmark, task, in_batches, request):
    rng = np.random.default_rng(0)
    values = task.space.decode(task.space.sample_unit(rng, CONFIGURATIONS))
    configs = task.space.configs(values)
    if in_batches:
        benchmark(task.evaluate_many, values)
    else:
        benchmark(lambda: [task.evaluate(config) for config in configs])
    rate = AT_LEAST[request.node.callspec.params["task"]][in_batches]
    assert CONFIGURATIONS / benchmark.stats.stats.median >= rate


def test_import_takes_half_a_second(benchmark):
    """Python's own start, about 20 ms, included."""
    command = [sys.executable, "-c", "import hpobench_ordered"]
    benchmark.pedantic(lambda: subprocess.run(command, check=True), rounds=7, warmup_rounds=1)
    assert benchmark.stats.stats.median < 0.5


@pytest.mark.parametrize("name", hbo.list_benchmarks(ready=True))
def test_first_load_takes_a_third_second(benchmark, name):
    """In a process that has imported the package and loaded nothing."""
    script = (
        "import time, hpobench_ordered as hbo\n"
        f"start = time.perf_counter(); hbo.load({name!r}); print(time.perf_counter() - start)"
    )

    def load() -> float:
        command = [sys.executable, "-c", script]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    times = benchmark.pedantic(lambda: [load() for _ in range(5)], rounds=1)
    on_tables = name in ("fcnet", "fcn-a", "fcn-b", "nas201", "nas-a", "nas-b")
    # Unpickling the tables of the other package takes 0.06 to 0.3 s a data set.
    assert np.median(times) < (3.0 if on_tables else 0.3)
