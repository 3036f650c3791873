"""Trainings of XGBoost on images: errors, ties, repeatability, and what identifies them."""

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from hpobench_ordered._typing import Config
from hpobench_ordered.errors import MissingExtraError
from hpobench_ordered.generation import _xgboost_training as training

CONFIG_WITH_5_TREES: Config = {
    "learning_rate": 0.3,
    "max_depth": 3,
    "min_child_weight": 1.0,
    "n_estimators": 5,
}
TRAINING_SIZES = [20, 40]
"""Numbers of images that models are trained on."""
CONFIGS_WITH_2_3_5_TREES = [CONFIG_WITH_5_TREES | {"n_estimators": n} for n in (2, 3, 5)]


@pytest.fixture
def trainer(image_split):
    """A trainer on small images of ten classes."""
    return training.XGBoostTrainer(image_split)


@pytest.mark.usefixtures("xgboost")
class TestTraining:
    def test_more_images_make_fewer_errors(self, trainer):
        """Errors are counted on 100 validation images of ten classes."""
        errors_of_20 = trainer(CONFIG_WITH_5_TREES, "20")["error_count"]
        errors_of_300 = trainer(CONFIG_WITH_5_TREES, "300")["error_count"]

        # Guessing would make 90 errors.
        assert 0 <= errors_of_300 < 40
        assert errors_of_300 < errors_of_20

    def test_published_ties_go_to_first_class(self, trainer, image_split):
        """Without trees all classes have the same score, and the first one, 0, is predicted."""
        # A tree has no split if no node has the least weight that is asked for. An image weighs
        # 2 p (1 - p) in XGBoost, where its class has the probability p, at the start 1 / 10.
        weight_of_100_images = 100 * 2 * 0.1 * 0.9
        config_without_trees = CONFIG_WITH_5_TREES | {"min_child_weight": 32.0}
        assert config_without_trees["min_child_weight"] > weight_of_100_images

        errors = trainer(config_without_trees, "100")["error_count"]

        assert errors == np.count_nonzero(image_split.validation_labels != 0)

    def test_other_processes_train_the_same(self, trainer, tmp_path):
        """Two worker processes give the same errors as one process."""
        errors = training.train_configs(
            trainer, CONFIGS_WITH_2_3_5_TREES, TRAINING_SIZES, tmp_path / "one"
        )

        errors_by_two = training.train_configs(
            trainer, CONFIGS_WITH_2_3_5_TREES, TRAINING_SIZES, tmp_path / "two", workers=2
        )

        np.testing.assert_array_equal(errors_by_two, errors)

    def test_data_and_version_are_in_identity(self, trainer, xgboost):
        """The digest of the images tells trainings on other images apart."""
        other = replace(trainer, split=replace(trainer.split, digest="x"))

        assert other.identity != trainer.identity
        assert trainer.identity["xgboost"] == xgboost.__version__


def test_missing_xgboost_names_the_extra(trainer, monkeypatch):
    """The error names the extra of this package with which XGBoost is installed."""
    # Makes the import fail.
    monkeypatch.setitem(sys.modules, "xgboost", None)

    with pytest.raises(MissingExtraError, match=r"\[train\]"):
        trainer(CONFIG_WITH_5_TREES, "20")


class FormulaTrainer:
    """Stands for a training: the number of errors is 1000 - size * n_estimators."""

    identity: Mapping[str, Any] = {}

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        return {"error_count": 1000 - int(where) * config["n_estimators"], "seconds": 0.25}


def test_errors_are_in_the_order_of_sizes(tmp_path):
    """Columns are in the order in which the sizes were asked for: here descending."""
    errors = training.train_configs(FormulaTrainer(), CONFIGS_WITH_2_3_5_TREES, [20, 10], tmp_path)

    # The stub makes 1000 - size * number of trees errors.
    expected = [[1000 - 20 * trees, 1000 - 10 * trees] for trees in (2, 3, 5)]
    assert errors.tolist() == expected
