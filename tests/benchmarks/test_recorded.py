"""Values recorded by others, through the public interface: fetched, loaded by name, evaluated."""

import json
from pathlib import Path
from typing import Any

import pytest

import hpobench_ordered as hbo
from hpobench_ordered.files.remote import CACHE_VARIABLE
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.testing import check_benchmark

SCENARIOS = ("xgboost", "rpart")


@pytest.fixture(scope="module")
def fetched(shared, tmp_path_factory):
    """A cache that holds what can be fetched from local copies."""
    cache = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(CACHE_VARIABLE, str(cache))
        folders = {"yahpo_data-1.0.2": shared / "data" / "yahpo", "othpo": shared / "data"}
        for name in ("xgboost-mnist", *(f"yahpo-{s}-1220" for s in SCENARIOS)):
            for option in benchmark_spec(name).surrogates:
                for file in option.files:
                    copy = folders[Path(file.name).parts[0]] / file.name
                    packed = copy.with_name(copy.name + ".gz")
                    file.store(packed if packed.exists() else copy)
    return cache


def recorded(shared: Path, name: str) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = json.loads((shared / "reference" / name).read_text())
    return records


def test_newsvendor(shared):
    benchmark = hbo.load("newsvendor")
    for record in recorded(shared, "newsvendor_recorded.json"):
        config = {f"price_{i}": price for i, price in enumerate(record["price"])}
        value = benchmark.task(record["task"]).evaluate(config)
        assert value == pytest.approx(record["profit"], abs=1e-9, rel=0)


@pytest.mark.slow
def test_xgboost_mnist(shared, fetched, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(fetched))
    benchmark = hbo.load("xgboost-mnist", surrogate="nearest")
    for record in recorded(shared, "xgboost_mnist_recorded.json"):
        config = {name: record[name] for name in benchmark.space.names}
        task = benchmark.task(str(record["train_size"]))
        assert task.evaluate(config) == record["error_count"]


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_yahpo(shared, fetched, monkeypatch, scenario):
    monkeypatch.setenv(CACHE_VARIABLE, str(fetched))
    records = recorded(shared, "yahpo_gym_values.json")
    chosen = [r for r in records if r["scenario"] == f"rbv2_{scenario}"]
    assert len(chosen) == 80
    for record in chosen:
        benchmark = hbo.load(f"yahpo-{scenario}-{record['instance']}")
        task = next(
            t for t in benchmark.tasks if t.context["train_fraction"] == record["trainsize"]
        )
        assert task.evaluate(record["config"]) == pytest.approx(record["values"]["auc"], rel=1e-5)


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
def test_fetched_surrogates_conform(fetched, monkeypatch, name, surrogate):
    monkeypatch.setenv(CACHE_VARIABLE, str(fetched))
    check_benchmark(hbo.load(name, surrogate=surrogate))
