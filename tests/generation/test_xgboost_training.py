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

CONFIG: Config = {"learning_rate": 0.3, "max_depth": 3, "min_child_weight": 1.0, "n_estimators": 5}
# The same with 2, 3 and 5 trees.
CONFIGS = [CONFIG | {"n_estimators": n} for n in (2, 3, 5)]


@pytest.fixture
def trainer(small):
    """A trainer with the published settings, on small images of ten classes."""
    return training.XGBoostTrainer(small, training.AS_PUBLISHED)


def is_before_estimated_scores(xgboost: Any) -> bool:
    """Whether XGBoost is older than 3.1, the first to start from the frequencies of classes."""
    major, minor, *_ = xgboost.__version__.split(".")
    return (int(major), int(minor)) < (3, 1)


@pytest.mark.usefixtures("xgboost")
class TestTraining:
    def test_more_images_make_fewer_errors(self, trainer):
        """Trained on 20 and on 300 images; errors are counted on 100 others, of ten classes."""
        errors_of_20 = trainer(CONFIG, "20")["error_count"]
        errors_of_300 = trainer(CONFIG, "300")["error_count"]

        assert 0 <= errors_of_300 < 40
        assert errors_of_300 < errors_of_20

    def test_training_again_gives_the_same(self, trainer):
        errors = trainer(CONFIG, "300")["error_count"]

        assert trainer(CONFIG, "300")["error_count"] == errors

    def test_time_is_recorded(self, trainer):
        assert trainer(CONFIG, "300")["seconds"] > 0

    def test_published_ties_go_to_first_class(self, trainer, small):
        """Without trees all classes have the same score, and the first one, 0, is predicted."""
        # More than a node can have: 2 p (1 - p) a image, with p = 0.1 for each of ten classes.
        weight_of_all_images = 2 * 0.1 * 0.9 * 100
        config_without_trees = CONFIG | {"min_child_weight": 32.0}
        assert config_without_trees["min_child_weight"] > weight_of_all_images

        errors = trainer(config_without_trees, "100")["error_count"]

        assert errors == np.count_nonzero(small.validation_labels != 0)

    def test_current_ties_go_to_most_frequent_class(self, trainer, small, xgboost):
        """Without trees the scores at the start decide, from 3.1 on the frequencies of classes."""
        if is_before_estimated_scores(xgboost):
            pytest.skip("XGBoost starts from the classes' frequencies from 3.1 on")
        most_frequent = np.bincount(small.pool_labels[:80]).argmax()
        assert most_frequent != 0
        current_trainer = replace(trainer, settings=training.CURRENT_DEFAULTS)
        config_without_trees = CONFIG | {"min_child_weight": 32.0}

        errors = current_trainer(config_without_trees, "80")["error_count"]

        assert errors == np.count_nonzero(small.validation_labels != most_frequent)

    def test_other_processes_train_the_same(self, trainer, tmp_path):
        errors = training.train_configs(trainer, CONFIGS, [20, 40], tmp_path / "one")

        errors_by_two = training.train_configs(
            trainer, CONFIGS, [20, 40], tmp_path / "two", workers=2
        )

        np.testing.assert_array_equal(errors_by_two, errors)

    def test_rows_are_configurations_and_columns_sizes(self, trainer, tmp_path):
        errors = training.train_configs(trainer, CONFIGS, [20, 40], tmp_path)

        assert errors[1, 1] == trainer(CONFIGS[1], "40")["error_count"]

    def test_version_is_in_identity(self, trainer, xgboost):
        assert trainer.identity["xgboost"] == xgboost.__version__

    def test_settings_are_in_identity(self, trainer):
        other = replace(trainer, settings=training.CURRENT_DEFAULTS)

        assert other.identity != trainer.identity

    def test_data_are_in_identity(self, trainer):
        other = replace(trainer, split=replace(trainer.split, digest="x"))

        assert other.identity != trainer.identity


@pytest.mark.parametrize("size", ["19", "301"])
def test_other_sizes_are_refused(trainer, size):
    """The pool has 300 images, and a training set at least 20."""
    with pytest.raises(ValueError, match=r"20\.\.300"):
        trainer(CONFIG, size)


def test_missing_xgboost_names_the_extra(trainer, monkeypatch):
    # Makes the import fail.
    monkeypatch.setitem(sys.modules, "xgboost", None)

    with pytest.raises(MissingExtraError, match=r"\[train\]"):
        trainer(CONFIG, "20")


class FormulaTrainer:
    """Stands for a training: the number of errors is 1000 - size * n_estimators."""

    identity: Mapping[str, Any] = {}

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        return {"error_count": 1000 - int(where) * config["n_estimators"], "seconds": 0.25}


def test_errors_are_in_the_order_of_sizes(tmp_path):
    errors = training.train_configs(FormulaTrainer(), CONFIGS, [20, 10], tmp_path)

    # 1000 - size * n_estimators, for 2, 3 and 5 estimators; sizes stay in the order asked for.
    assert errors.tolist() == [[960, 980], [940, 970], [900, 950]]
