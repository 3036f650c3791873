import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hpobench_ordered._typing import Config
from hpobench_ordered.errors import MissingExtraError
from hpobench_ordered.generation import _xgboost_training as training

CONFIG: Config = {"learning_rate": 0.3, "max_depth": 3, "min_child_weight": 1.0, "n_estimators": 5}
CONFIGS = [CONFIG | {"n_estimators": n} for n in (2, 3, 5)]


class TestTraining:
    def test_counts_errors(self, small, xgboost):
        few, many, again = (training.train_and_count(small, CONFIG, s) for s in (20, 300, 300))
        assert 0 <= many.error_count == again.error_count < min(40, few.error_count)
        assert many.seconds > 0

    def test_without_weight_the_first_class_is_predicted_as_published(self, small, xgboost):
        config, size = CONFIG | {"min_child_weight": 32.0}, 100
        assert 2 * 0.1 * 0.9 * size < config["min_child_weight"]
        outcome = training.train_and_count(small, config, size)
        assert outcome.error_count == np.count_nonzero(small.validation_labels != 0)

    def test_without_weight_the_most_frequent_class_is_predicted_by_current_defaults(
        self, small, xgboost
    ):
        if tuple(map(int, xgboost.__version__.split(".")[:2])) < (3, 1):
            pytest.skip("XGBoost starts from the classes' frequencies from 3.1 on")
        config, size = CONFIG | {"min_child_weight": 32.0}, 80
        frequent = np.bincount(small.pool_labels[:size]).argmax()
        assert frequent != 0
        outcome = training.train_and_count(small, config, size, settings=training.CURRENT_DEFAULTS)
        assert outcome.error_count == np.count_nonzero(small.validation_labels != frequent)

    def test_what_cannot_be_trained_is_refused(self, small, monkeypatch):
        for size in (19, 301):
            with pytest.raises(ValueError, match=r"20\.\.300"):
                training.train_and_count(small, CONFIG, size)
        monkeypatch.setitem(sys.modules, "xgboost", None)
        with pytest.raises(MissingExtraError, match=r"\[train\]"):
            training.train_and_count(small, CONFIG, 20)

    def test_trainer_in_other_processes_equals_this_one(self, small, tmp_path, xgboost):
        trainer = training.XGBoostTrainer(small)
        sizes = [20, 40]
        one = training.train_many(trainer, CONFIGS, sizes, tmp_path / "one")
        two = training.train_many(trainer, CONFIGS, sizes, tmp_path / "two", workers=2)
        pd.testing.assert_frame_equal(one.drop(columns="seconds"), two.drop(columns="seconds"))
        expected = training.train_and_count(small, CONFIGS[1], 40).error_count
        assert one["error_count"].iloc[4] == expected

    def test_trainer_is_identified_by_data_settings_and_version(self, small, xgboost):
        trainer = training.XGBoostTrainer(small)
        assert trainer.identity == replace(trainer, threads=2).identity
        assert trainer.identity["xgboost"] == xgboost.__version__
        assert trainer.identity != replace(trainer, settings=training.CURRENT_DEFAULTS).identity
        assert trainer.identity != replace(trainer, split=replace(small, digest="x")).identity


def test_table_is_in_the_order_asked(tmp_path):
    class Stub:
        """Counts errors by a formula."""

        identity: Mapping[str, Any] = {}

        def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
            return {"error_count": 1000 - int(where) * config["n_estimators"], "seconds": 0.25}

    table = training.train_many(Stub(), CONFIGS, [20, 10], tmp_path)
    assert table["train_size"].tolist() == [20, 20, 20, 10, 10, 10]
    assert table["configuration"].tolist() == [0, 1, 2, 0, 1, 2]
    assert table["error_count"].tolist() == [960, 940, 900, 980, 970, 950]
    columns = ["train_size", "configuration", *sorted(CONFIG), "error_count", "seconds"]
    assert list(table.columns) == columns
