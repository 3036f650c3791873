"""The generator of `xgboost-mnist`: what becomes of its options; training is a stub."""

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

# Training and fitting are stubs.
(GENERATOR,) = xgboost_mnist.GENERATORS


@pytest.fixture
def published():
    """Forty configurations, and their errors: the size plus the configuration's number from 1."""
    values = space().decode(space().sample_unit(np.random.default_rng(0), 40))
    numbers = np.arange(1.0, 41.0)
    return values, np.add.outer(numbers, np.array(SIZES, dtype=np.float64))


@pytest.fixture
def trained():
    """Numbers of configurations in each call of the stub that stands for training."""
    return []


@pytest.fixture
def fitted(published, trained, monkeypatch):
    """What each call of the stub that stands for fitting a forest got: errors, and card texts.

    The stub that stands for training makes as many errors as the size plus the configuration's
    number from 0.
    """
    calls: list[tuple[np.ndarray, CardTexts]] = []

    def write_forest(
        request: Any, definition: Any, forest: ForestData, texts: CardTexts, **_: Any
    ) -> Path:
        assert len(definition.tasks) == forest.targets.shape[1]
        calls.append((forest.targets, texts))
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
    return calls


def test_packaged_comparison_is_on_the_card(fitted, tmp_path):
    """By default, the card is that of the packaged artifact."""
    (tmp_path / "x-comparison.json").write_text("{}")  # a file beside the artifact is not read

    GENERATOR.generate(tmp_path / "x")

    ((_, texts),) = fitted
    packaged_card = Artifact.packaged(NAME).read_json("card.json")
    assert texts.comparisons == packaged_card["comparisons"]
    assert texts.command == packaged_card["command"]


def test_training_on_some_sizes(fitted, tmp_path):
    """Sizes are used once, in ascending order."""
    GENERATOR.generate(
        tmp_path / "x", source="train", sizes=[155, 56, 155], configurations=12, seed=3
    )

    ((errors, texts),) = fitted
    # Of twelve configurations; that of number 5 makes the size plus 5 errors.
    assert errors.shape == (12, 2)
    assert errors[5].tolist() == [56 + 5, 155 + 5]
    assert texts.command == (
        "hpobench-ordered generate xgboost-mnist --source train --seed 3 --sizes 56,155 "
        "--configs 12"
    )


def test_command_tells_of_local_images(fitted, tmp_path):
    """Without the user's path."""
    GENERATOR.generate(tmp_path / "x", source="train", sizes=[56], local=tmp_path)

    ((_, texts),) = fitted
    assert texts.command == (
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


@pytest.mark.usefixtures("fitted")
@pytest.mark.parametrize("number", [3, 20, 40])
def test_comparison_trains_a_sample(trained, tmp_path, number):
    """Of the published configurations, once with each of two settings of XGBoost."""
    GENERATOR.generate(
        tmp_path / "out" / NAME, source="compare", configurations=number, sizes=[56, 155]
    )

    assert trained == [number, number]


@pytest.mark.usefixtures("fitted")
@pytest.mark.parametrize("number", [3, 20, 40])
def test_comparison_counts_configurations(tmp_path, number):
    """All that are compared, and those of them with a large weight."""
    file = GENERATOR.generate(
        tmp_path / "out" / NAME, source="compare", configurations=number, sizes=[56, 155]
    )

    assert file == tmp_path / "out" / "xgboost-mnist-comparison.json"
    content = json.loads(file.read_text())
    assert content["configurations"] == number
    assert 0 < content["min_child_weight of at least 4"] <= number
