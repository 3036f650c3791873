import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hpobench_ordered._typing import Config
from hpobench_ordered.errors import MissingExtraError
from hpobench_ordered.generation import _xgboost_training as training

CONFIG: Config = {"learning_rate": 0.3, "max_depth": 3, "min_child_weight": 1.0, "n_estimators": 5}
CONFIGS = [CONFIG | {"n_estimators": n} for n in (2, 3, 5)]
SIZES = [10, 20]


@dataclass(frozen=True)
class StubTrainer:
    """Counts errors by a formula, and leaves a mark for every call."""

    marks: Path
    name: str = "stub"

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"name": self.name}

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        number = config["n_estimators"]
        (self.marks / f"{where}-{number}-{time.monotonic_ns()}").touch()
        return {"error_count": 1000 - int(where) * number, "seconds": 0.25}

    def calls(self) -> int:
        return len(list(self.marks.iterdir()))


@pytest.fixture
def stub(tmp_path):
    (tmp_path / "marks").mkdir()
    return StubTrainer(tmp_path / "marks")


@pytest.fixture
def xgboost():
    return pytest.importorskip("xgboost", reason="XGBoost comes with the extra `train`")


class TestTraining:
    def test_counts_errors(self, small, xgboost):
        outcome = training.train_and_count(small, CONFIG, 300)
        assert 0 <= outcome.error_count < 40
        assert outcome.seconds > 0
        assert training.train_and_count(small, CONFIG, 300).error_count == outcome.error_count

    def test_more_data_means_fewer_errors(self, small, xgboost):
        few, many = (training.train_and_count(small, CONFIG, s).error_count for s in (20, 300))
        assert many < few

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

    @pytest.mark.parametrize("size", [19, 301])
    def test_impossible_sizes_are_refused(self, small, size):
        with pytest.raises(ValueError, match=r"20\.\.300"):
            training.train_and_count(small, CONFIG, size)

    def test_without_xgboost_the_extra_is_named(self, small, monkeypatch):
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


class TestManyEvaluations:
    def test_table_is_in_the_order_asked(self, stub, tmp_path):
        table = training.train_many(stub, CONFIGS, SIZES[::-1], tmp_path / "kept")
        assert table["train_size"].tolist() == [20, 20, 20, 10, 10, 10]
        assert table["configuration"].tolist() == [0, 1, 2, 0, 1, 2]
        assert table["error_count"].tolist() == [960, 940, 900, 980, 970, 950]
        assert list(table.columns) == [
            "train_size",
            "configuration",
            *sorted(CONFIG),
            "error_count",
            "seconds",
        ]
