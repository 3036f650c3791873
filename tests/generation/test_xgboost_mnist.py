"""The generator of `xgboost-mnist`: what becomes of its options; training is a stub."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hpobench_ordered.benchmarks.xgboost_mnist import NAME, SIZES, make_space
from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation import xgboost_mnist
from hpobench_ordered.generation._fitting import ForestData
from hpobench_ordered.surrogates.artifacts import CardTexts

# Training and fitting are stubs.
(GENERATOR,) = xgboost_mnist.GENERATORS


@pytest.fixture
def published_evaluations():
    """Forty configurations, and their errors on each size: number of the configuration plus size.

    Configurations are numbered from 1.
    """
    values = make_space().decode(make_space().sample_unit(np.random.default_rng(0), 40))
    numbers = np.arange(1.0, 41.0)
    errors = numbers[:, None] + np.array(SIZES, dtype=np.float64)
    return values, errors


@pytest.fixture
def training_calls():
    """Number of configurations in each call of the stub that stands for training."""
    return []


@pytest.fixture
def fitting_calls(published_evaluations, training_calls, monkeypatch):
    """Replace training, fitting and data by stubs; return what each call of the fitting got.

    That are the errors to fit a forest to, (configurations, sizes), and the texts for the card.
    """
    calls: list[tuple[np.ndarray, CardTexts]] = []

    def write_forest(
        request: Any, definition: Any, forest: ForestData, texts: CardTexts, **_: Any
    ) -> Path:
        """Stand for fitting and writing a forest, which has one column of errors a task."""
        assert len(definition.tasks) == forest.targets.shape[1]
        calls.append((forest.targets, texts))
        return request.folder

    def train_configs(trainer: Any, configs: Any, sizes: Any, folder: Path, **_: Any) -> np.ndarray:
        """Stand for training; errors are the number of the configuration, from 0, plus the size."""
        folder.parent.mkdir(exist_ok=True)  # as storing trainings would
        training_calls.append(len(configs))
        numbers = np.arange(len(configs), dtype=np.float64)
        return numbers[:, None] + np.array(sizes)

    monkeypatch.setattr(xgboost_mnist, "write_forest", write_forest)
    monkeypatch.setattr(
        xgboost_mnist, "_read_published_evaluations", lambda local: published_evaluations
    )
    monkeypatch.setattr(xgboost_mnist, "load_mnist", lambda local: (None, None))
    monkeypatch.setattr(xgboost_mnist, "split_images", lambda data, target: None)
    monkeypatch.setattr(xgboost_mnist, "train_configs", train_configs)
    return calls


def test_packaged_comparison_is_on_the_card(fitting_calls, tmp_path):
    """By default, the card quotes the comparison with published trainings."""
    GENERATOR.generate(tmp_path / "x")

    ((_, texts),) = fitting_calls
    packaged_card = Artifact.packaged(NAME).read_json("card.json")
    assert texts.comparisons == packaged_card["comparisons"]
    assert texts.command == packaged_card["command"]


def test_training_on_some_sizes(fitting_calls, tmp_path):
    """Sizes that are asked for are trained on once, in ascending order."""
    GENERATOR.generate(tmp_path / "x", source="train", sizes=[155, 56, 155], configurations=12)

    ((errors, _),) = fitting_calls
    assert errors.shape == (12, 2)
    # The stub's errors of configuration number 5 are its number plus the size.
    assert errors[5].tolist() == [56 + 5, 155 + 5]


def test_command_tells_options_of_training(fitting_calls, tmp_path):
    """The command on the card would make the same artifact again."""
    GENERATOR.generate(
        tmp_path / "x", source="train", sizes=[155, 56, 155], configurations=12, seed=3
    )

    ((_, texts),) = fitting_calls
    assert texts.command == (
        "hpobench-ordered generate xgboost-mnist --source train --seed 3 --sizes 56,155 "
        "--configs 12"
    )


def test_command_tells_of_local_images(fitting_calls, tmp_path):
    """The command on the card says that images came from a folder, but not from which."""
    GENERATOR.generate(tmp_path / "x", source="train", sizes=[56], local=tmp_path)

    ((_, texts),) = fitting_calls
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
    ],
)
def test_impossible_requests_start_nothing(
    fitting_calls, training_calls, tmp_path, source, option, message
):
    """An option that a source does not take, or a number beyond its limits, is refused at once."""
    with pytest.raises(ExperimentError, match=message):
        GENERATOR.generate(tmp_path / "x", source=source, **option)

    assert not training_calls
    assert not fitting_calls
