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
CONFIGS = [CONFIG | {"n_estimators": n} for n in (2, 3, 5)]


@pytest.fixture
def trainer(small):
    return training.XGBoostTrainer(small, training.AS_PUBLISHED)


class TestTraining:
    def test_counts_errors(self, trainer, xgboost):
        few, many, again = (trainer(CONFIG, size) for size in ("20", "300", "300"))
        assert 0 <= many["error_count"] < 40
        assert many["seconds"] > 0
        assert many["error_count"] == again["error_count"] < few["error_count"]

    def test_without_weight_the_first_class_is_predicted_as_published(
        self, trainer, small, xgboost
    ):
        config, size = CONFIG | {"min_child_weight": 32.0}, 100
        assert 2 * 0.1 * 0.9 * size < config["min_child_weight"]
        errors = trainer(config, str(size))["error_count"]
        assert errors == np.count_nonzero(small.validation_labels != 0)

    def test_without_weight_the_most_frequent_class_is_predicted_by_current_defaults(
        self, trainer, small, xgboost
    ):
        if tuple(map(int, xgboost.__version__.split(".")[:2])) < (3, 1):
            pytest.skip("XGBoost starts from the classes' frequencies from 3.1 on")
        config, size = CONFIG | {"min_child_weight": 32.0}, 80
        frequent = np.bincount(small.pool_labels[:size]).argmax()
        assert frequent != 0
        current = replace(trainer, settings=training.CURRENT_DEFAULTS)
        errors = current(config, str(size))["error_count"]
        assert errors == np.count_nonzero(small.validation_labels != frequent)

    def test_what_cannot_be_trained_is_refused(self, trainer, monkeypatch):
        for size in ("19", "301"):
            with pytest.raises(ValueError, match=r"20\.\.300"):
                trainer(CONFIG, size)
        monkeypatch.setitem(sys.modules, "xgboost", None)
        with pytest.raises(MissingExtraError, match=r"\[train\]"):
            trainer(CONFIG, "20")

    def test_trainer_in_other_processes_equals_this_one(self, trainer, tmp_path, xgboost):
        one = training.train_configs(trainer, CONFIGS, [20, 40], tmp_path / "one")
        two = training.train_configs(trainer, CONFIGS, [20, 40], tmp_path / "two", workers=2)
        np.testing.assert_array_equal(one, two)
        assert one[1, 1] == trainer(CONFIGS[1], "40")["error_count"]

    def test_trainer_is_identified_by_data_settings_and_version(self, trainer, xgboost):
        assert trainer.identity["xgboost"] == xgboost.__version__
        assert trainer.identity != replace(trainer, settings=training.CURRENT_DEFAULTS).identity
        other = replace(trainer, split=replace(trainer.split, digest="x"))
        assert trainer.identity != other.identity


def test_table_is_in_the_order_asked(tmp_path):
    class Stub:
        """Counts errors by a formula."""

        identity: Mapping[str, Any] = {}

        def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
            return {"error_count": 1000 - int(where) * config["n_estimators"], "seconds": 0.25}

    table = training.train_configs(Stub(), CONFIGS, [20, 10], tmp_path)
    assert table.tolist() == [[960, 980], [940, 970], [900, 950]]
