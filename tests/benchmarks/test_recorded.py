"""Values that others recorded, against those of benchmarks loaded by name."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.benchmarks.xgboost_mnist import PUBLISHED
from hpobench_ordered.benchmarks.yahpo import name_task
from hpobench_ordered.data.remote import CACHE_VARIABLE
from hpobench_ordered.testing import check_benchmark

SCENARIOS_OF_YAHPO = ("xgboost", "rpart")


@pytest.fixture(scope="module")
def folder_of_cache(shared, tmp_path_factory):
    """The folder of a cache of downloads that holds the files of all benchmarks of this file."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(CACHE_VARIABLE, str(folder))
        store_files("xgboost-mnist", shared / "data")
        for scenario in SCENARIOS_OF_YAHPO:
            # All benchmarks of a scenario have the same files, whatever the data set, here 1220.
            store_files(f"yahpo-{scenario}-1220", shared / "data" / "yahpo")
    return folder


def store_files(benchmark: str, folder: Path) -> None:
    """Copy the files that a benchmark needs from a folder into the cache of downloads.

    In the folder, a file may be compressed.
    """
    for surrogate in benchmark_spec(benchmark).surrogates:
        for file in surrogate.files:
            copy = folder / file.name
            compressed_copy = copy.with_name(copy.name + ".gz")
            file.store(compressed_copy if compressed_copy.exists() else copy)


def read_records(shared: Path, name: str) -> list[dict[str, Any]]:
    """Read evaluations that others recorded: a dict for each, with configuration and value."""
    records: list[dict[str, Any]] = json.loads((shared / "reference" / name).read_text())
    return records


def test_newsvendor_has_recorded_profits(shared):
    benchmark = hbo.load("newsvendor")
    for record in read_records(shared, "newsvendor_recorded.json"):
        config = {f"price_{i}": price for i, price in enumerate(record["price"])}

        profit = benchmark.task(record["task"]).evaluate(config)

        # Sums in another order may have other last digits.
        assert profit == pytest.approx(record["profit"], abs=1e-9, rel=0)


@pytest.mark.slow
def test_xgboost_mnist_has_recorded_errors(shared, folder_of_cache, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(folder_of_cache))
    # The authors' own surrogate.
    benchmark = hbo.load("xgboost-mnist", surrogate="nearest")
    for record in read_records(shared, "xgboost_mnist_recorded.json"):
        config = {name: record[name] for name in benchmark.space.names}
        task = benchmark.task(str(record["train_size"]))

        assert task.evaluate(config) == record["error_count"]


@pytest.mark.slow
@pytest.mark.parametrize("surrogate", ["nearest", "nearest-log"])
def test_xgboost_mnist_has_published_costs(folder_of_cache, monkeypatch, surrogate):
    """A configuration that the authors evaluated has the seconds that they published."""
    monkeypatch.setenv(CACHE_VARIABLE, str(folder_of_cache))
    benchmark = hbo.load("xgboost-mnist", surrogate=surrogate)
    published = json.loads(PUBLISHED.open_path().read_text())
    configs = {}
    for name in benchmark.space.names:
        configs[name] = published["parameters_mat"][name.replace("ning_rate", "ning_rates")]

    for task, seconds in zip(benchmark.tasks, published["execution_times"], strict=True):
        assert task.costs(pd.DataFrame(configs)).tolist() == [row[0] for row in seconds]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS_OF_YAHPO)
def test_yahpo_has_recorded_aucs(shared, folder_of_cache, monkeypatch, scenario):
    """YAHPO's own Python package predicted 80 AUCs in each scenario with the same network."""
    monkeypatch.setenv(CACHE_VARIABLE, str(folder_of_cache))
    all_records = read_records(shared, "yahpo_gym_values.json")
    yahpos_name = f"rbv2_{scenario}"
    records = [record for record in all_records if record["scenario"] == yahpos_name]
    assert len(records) == 80

    for record in records:
        benchmark = hbo.load(f"yahpo-{scenario}-{record['instance']}")
        task = benchmark.task(name_task(record["trainsize"]))
        auc = task.evaluate(record["config"])

        # The network computes with float32, of about seven digits.
        assert auc == pytest.approx(record["values"]["auc"], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "surrogate"),
    [
        ("xgboost-mnist", "nearest"),
        ("xgboost-mnist", "nearest-log"),
        ("yahpo-xgboost-1220", "onnx"),
        ("yahpo-rpart-40981", "onnx"),
    ],
)
def test_fetched_surrogates_conform(folder_of_cache, monkeypatch, name, surrogate):
    """Surrogates whose files have been downloaded pass `check_benchmark`, the public check."""
    monkeypatch.setenv(CACHE_VARIABLE, str(folder_of_cache))

    check_benchmark(hbo.load(name, surrogate=surrogate))
