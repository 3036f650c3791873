"""What is asked for becomes evaluations, command and comparison; training and fitting are stubs."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpobench_ordered.benchmarks.xgboost_mnist import NAME, SIZES, space
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.files.artifact import Artifact
from hpobench_ordered.generation import _xgboost_comparison as comparison
from hpobench_ordered.generation import xgboost_mnist
from hpobench_ordered.generation._fitting import ForestData
from hpobench_ordered.surrogates.artifacts import CardTexts

(GENERATOR,) = xgboost_mnist.GENERATORS


@pytest.fixture
def published():
    """Forty configurations, and as many errors as the size and the configuration's number."""
    values = space().decode(space().sample_unit(np.random.default_rng(0), 40))
    return values, np.arange(1.0, 41.0)[:, None] + np.array(SIZES, dtype=np.float64)


@pytest.fixture
def trained():
    """Numbers of configurations in each call of the stub that stands for training."""
    return []


@pytest.fixture
def fitted(published, trained, monkeypatch):
    """What forests would have been fitted to."""
    seen: list[tuple[np.ndarray, CardTexts]] = []

    def write_forest(
        request: Any, defined: Any, forest: ForestData, report: CardTexts, **_: Any
    ) -> Path:
        assert len(defined.tasks) == forest.targets.shape[1]
        seen.append((forest.targets, report))
        return request.folder

    def train_configs(trainer: Any, configs: Any, sizes: Any, folder: Path, **_: Any) -> np.ndarray:
        folder.parent.mkdir(exist_ok=True)
        trained.append(len(configs))
        return np.add.outer(np.arange(len(configs)), np.array(sizes)).astype(float)

    monkeypatch.setattr(xgboost_mnist, "write_forest", write_forest)
    monkeypatch.setattr(xgboost_mnist, "_read_published_evaluations", lambda local: published)
    monkeypatch.setattr(xgboost_mnist, "load_mnist", lambda local: (None, None))
    monkeypatch.setattr(xgboost_mnist, "split_images", lambda data, target: None)
    monkeypatch.setattr(xgboost_mnist, "train_configs", train_configs)
    monkeypatch.setattr(comparison, "train_configs", train_configs)
    return seen


def test_packaged_comparison_is_on_the_card(fitted, tmp_path):
    (tmp_path / "x-comparison.json").write_text("{}")  # a file beside the artifact is not read

    GENERATOR.generate(tmp_path / "x")

    ((_, report),) = fitted
    card = Artifact.packaged(NAME).read_json("card.json")
    assert report.comparisons == card["comparisons"]
    assert report.command == card["command"]


def test_training_on_some_sizes(fitted, tmp_path):
    options = {"sizes": [155, 56, 155], "configurations": 12, "seed": 3}

    GENERATOR.generate(tmp_path / "x", source="train", **options)

    ((targets, report),) = fitted
    assert targets.shape == (12, 2)
    # The stub's errors are the size plus the number of the configuration.
    assert targets[5].tolist() == [56 + 5, 155 + 5]
    assert report.command == (
        "hpobench-ordered generate xgboost-mnist --source train --seed 3 --sizes 56,155 "
        "--configs 12"
    )


def test_command_tells_of_local_images(fitted, tmp_path):
    GENERATOR.generate(tmp_path / "x", source="train", sizes=[56], local=tmp_path)

    ((_, report),) = fitted
    assert report.command == (
        "hpobench-ordered generate xgboost-mnist --source train --from DATA --seed 0 --sizes 56"
    )


@pytest.mark.parametrize(
    ("source", "option", "message"),
    [
        ("published", {"sizes": [56]}, "it takes --from, --seed, --workers"),
        ("published", {"configurations": 20}, "it takes --from, --seed, --workers"),
        ("train", {"configurations": 5}, "at least 10 configurations, got 5"),
        ("train", {"sizes": [56, 57]}, "57 is not a training-set size"),
        ("compare", {"configurations": 2}, "at least 3 configurations, got 2"),
        ("compare", {"configurations": 41}, "40 configurations are published"),
        ("compare", {"sizes": [57]}, "57 is not a training-set size"),
    ],
)
def test_impossible_requests_start_nothing(fitted, trained, tmp_path, source, option, message):
    """Each source takes other options, within limits."""
    with pytest.raises(ExperimentError, match=message):
        GENERATOR.generate(tmp_path / "x", source=source, **option)
    assert not trained
    assert not fitted


@pytest.mark.parametrize("number", [3, 20, 40])
def test_comparison_trains_a_sample(fitted, trained, tmp_path, number):
    options = {"configurations": number, "sizes": [56, 155]}

    file = GENERATOR.generate(tmp_path / "out" / NAME, source="compare", **options)

    assert file == tmp_path / "out" / "xgboost-mnist-comparison.json"
    comparison = json.loads(file.read_text())
    assert comparison["configurations"] == number
    assert 0 < comparison["min_child_weight of at least 4"] <= number
    assert trained == [number, number]  # once with each of two settings
