"""Trainings of OpenML's flows: values, records, designs of configurations, and tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config
from hpobench_ordered.benchmarks._openml_data import ClassificationData, make_monks_problem
from hpobench_ordered.benchmarks.openml_flows import make_svm_space, make_xgboost_space
from hpobench_ordered.generation._flows import training as flow
from hpobench_ordered.generation._flows.datasets import iter_folds

# Trainers are called with a configuration and the name of the task; they return evaluations:
# several for XGBoost, after different numbers of rounds.
ANY_TASK = "1"
SVM_CONFIGS: list[Config] = [
    {"kernel": "linear", "cost": 0.5},
    {"kernel": "polynomial", "cost": 2.0, "gamma": 0.2, "degree": 3},
    {"kernel": "radial", "cost": 10.0, "gamma": 0.1},
    {"kernel": "sigmoid", "cost": 1.0, "gamma": 0.05},
]
RADIAL_CONFIG = SVM_CONFIGS[2]
LINEAR_BOOSTING_CONFIG: Config = {"booster": "gblinear", "eta": 0.3, "lambda": 0.01, "alpha": 0.002}
SAMPLING_OF_TREES = {"subsample": 0.6, "colsample_bytree": 0.7, "colsample_bylevel": 0.5}
TREE_BOOSTING_CONFIG = (
    LINEAR_BOOSTING_CONFIG
    | SAMPLING_OF_TREES
    | {"booster": "gbtree", "max_depth": 4, "min_child_weight": 1.5}
)

with_each_booster = pytest.mark.parametrize(
    "config", [TREE_BOOSTING_CONFIG, LINEAR_BOOSTING_CONFIG], ids=["gbtree", "gblinear"]
)
with_each_design = pytest.mark.parametrize(
    ("design", "space"),
    [(flow.design_svm, make_svm_space()), (flow.design_xgboost, make_xgboost_space())],
    ids=["svm", "xgboost"],
)


def make_toy_data(classes: int = 2, n: int = 90, seed: int = 0) -> ClassificationData:
    """Make up data of four columns of different scales.

    The first two columns tell something about the class, the last is constant.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    noise = rng.normal(size=(n, 4)) * [1, 50, 0.1, 0]
    signal = y[:, None] * [0.8, 20, 0, 0]
    constants = [0, 9, 0, 3]
    digest = f"digest {classes} {n} {seed}"
    return ClassificationData("toy", noise + signal + constants, y, digest, "toy data")


class ScalerAsInR(TransformerMixin, BaseEstimator):
    """Scales as e1071 does, R's package of SVMs: by R's `scale`, without the constant columns."""

    def fit(self, x: np.ndarray, y: object = None) -> "ScalerAsInR":
        """Learn mean and deviation of each column, such that constant columns are not changed."""
        frame = pd.DataFrame(x)
        is_constant = frame.nunique() == 1
        self.mean_ = frame.mean().mask(is_constant, 0)
        self.deviation_ = frame.std().mask(is_constant, 1)  # like R, pandas divides by n - 1
        return self

    def transform(self, x: np.ndarray) -> np.ndarray:
        return ((pd.DataFrame(x) - self.mean_) / self.deviation_).to_numpy()


def compute_weighted_auc(model: Any, x: np.ndarray, y: np.ndarray) -> float:
    """Area under the ROC curve; of several classes, the mean weighted by frequency."""
    decision = model.decision_function(x)
    has_two_classes = decision.ndim == 1
    if has_two_classes:
        return float(roc_auc_score(y, decision))
    areas = [roc_auc_score(y == k, decision[:, k]) for k in range(decision.shape[1])]
    return float(np.average(areas, weights=np.bincount(y)))


class TestSVM:
    @pytest.mark.parametrize("classes", [2, 3])
    @pytest.mark.parametrize("config", SVM_CONFIGS, ids=lambda config: config["kernel"])
    def test_areas_are_scikit_learns(self, config, classes):
        """The areas under the curve on five folds, their mean and deviation are scikit-learn's.

        Kernels are configured by the names that R gives them.
        """
        data = make_toy_data(classes)
        scikit_learns_name = {"polynomial": "poly", "radial": "rbf"}
        machine = SVC(
            kernel=scikit_learns_name.get(config["kernel"], config["kernel"]),
            C=config["cost"],
            gamma=config.get("gamma", 1.0),
            degree=config.get("degree", 1),
        )
        expected = cross_val_score(
            make_pipeline(ScalerAsInR(), machine),
            data.x,
            data.y,
            cv=StratifiedKFold(5, shuffle=True, random_state=0),
            scoring=compute_weighted_auc,
        )

        (evaluation,) = flow.SVMTrainer(data)(config, ANY_TASK)["evaluations"]

        np.testing.assert_allclose(evaluation["folds"], expected, atol=1e-9)
        assert evaluation["value"] == pytest.approx(expected.mean())
        assert evaluation["spread"] == pytest.approx(expected.std(ddof=1))
        assert evaluation["capped"] is False
        assert evaluation["seconds"] > 0

    def test_early_stop_is_recorded_without_warning(self, monkeypatch):
        """An evaluation is marked as `capped` if the solver was stopped before it converged.

        A warning of scikit-learn about it would fail the test, as pytest turns it into an error.
        """
        too_little_work = 1000  # for a cost as great as this one
        monkeypatch.setattr(flow, "SOLVER_WORK", too_little_work)
        config = {"kernel": "linear", "cost": 900.0}

        (evaluation,) = flow.SVMTrainer(make_toy_data())(config, ANY_TASK)["evaluations"]

        assert evaluation["capped"] is True

    def test_single_example_of_class_hardly_matters(self):
        """The area under the curve hardly changes if one of 90 examples gets a class of its own.

        The area of a fold is a mean over the classes in its test part, weighted by how frequent
        they are there. The new class is in the test part of one fold only, as one of 18 examples.
        """
        data = make_toy_data()
        (evaluation,) = flow.SVMTrainer(data)(RADIAL_CONFIG, ANY_TASK)["evaluations"]
        any_row = 7
        data.y[any_row] = 2

        (with_third_class,) = flow.SVMTrainer(data)(RADIAL_CONFIG, ANY_TASK)["evaluations"]

        # The change was measured as 0.03. It would be about 0.2 if the class had an area of 0 and
        # counted as much as the others in all five folds.
        largest_change = 0.15
        assert with_third_class["value"] == pytest.approx(evaluation["value"], abs=largest_change)


def describe_booster_to_xgboost(config: Config, classes: int) -> dict[str, Any]:
    """Settings that every training of a booster must have, in XGBoost's own words.

    They are written independently of the package, to train beside it.
    """
    settings: dict[str, Any] = {"base_score": 0.5, "nthread": 1}
    if classes == 2:
        settings |= {"objective": "binary:logistic"}
    else:
        settings |= {"objective": "multi:softprob", "num_class": classes}
    if config["booster"] == "gbtree":
        settings |= {"tree_method": "hist"}
    else:
        settings |= {"updater": "coord_descent"}
    return settings


class TestBoosting:
    @with_each_booster
    @pytest.mark.parametrize("classes", [2, 3])
    def test_several_rounds_equal_separate_trainings(self, xgboost, config, classes):
        """One training gives, after each number of rounds, what a training of so many rounds gives.

        Margins, XGBoost's raw scores, are equal to the bit.
        """
        fold = next(iter(iter_folds(make_toy_data(classes))))
        numbers_of_rounds = [3, 4, 20, 45]

        margins = list(flow._iter_margins(fold, config | {"rounds": numbers_of_rounds}))

        assert not np.array_equal(margins[0], margins[-1])
        parameters = config | describe_booster_to_xgboost(config, classes)
        is_tree = config["booster"] == "gbtree"
        matrix_class = xgboost.QuantileDMatrix if is_tree else xgboost.DMatrix
        training_data = matrix_class(fold.x, fold.y)
        test_data = xgboost.DMatrix(fold.x_test)
        for margin, rounds in zip(margins, numbers_of_rounds, strict=True):
            booster = xgboost.train(parameters, training_data, rounds)
            expected = booster.predict(test_data, output_margin=True)
            np.testing.assert_array_equal(margin, expected.reshape(margin.shape))

    @with_each_booster
    @pytest.mark.usefixtures("xgboost")
    def test_evaluations_ignore_other_numbers_of_rounds(self, config):
        """An evaluation after some rounds is the same, but for the time, alone or with others."""
        trainer = flow.BoostingTrainer(make_toy_data())
        numbers_of_rounds = [3, 9, 30]

        together = trainer(config | {"rounds": numbers_of_rounds}, ANY_TASK)["evaluations"]

        for evaluation, rounds in zip(together, numbers_of_rounds, strict=True):
            (alone,) = trainer(config | {"rounds": [rounds]}, ANY_TASK)["evaluations"]
            without_time = {"seconds": 0}
            assert alone | without_time == evaluation | without_time

    @pytest.mark.usefixtures("xgboost")
    def test_area_is_that_of_the_probabilities(self):
        """The area under the curve on a fold, here the first of five, is scikit-learn's.

        Of three classes it is the mean weighted by their frequencies.
        """
        data = make_toy_data(classes=3)
        config = TREE_BOOSTING_CONFIG | {"rounds": [20]}
        first_fold = next(iter(iter_folds(data)))
        (margins,) = flow._iter_margins(first_fold, config)
        probabilities = np.exp(flow._turn_into_scores(margins))

        (evaluation,) = flow.BoostingTrainer(data)(config, ANY_TASK)["evaluations"]

        expected = roc_auc_score(
            first_fold.y_test, probabilities, multi_class="ovr", average="weighted"
        )
        assert evaluation["folds"][0] == pytest.approx(expected, abs=1e-9)


@pytest.mark.usefixtures("xgboost")
@pytest.mark.parametrize("trainer_class", [flow.SVMTrainer, flow.BoostingTrainer])
def test_data_are_in_identity(trainer_class):
    """The identity decides which stored trainings are used again: not those on other data."""
    identity = trainer_class(make_toy_data()).identity

    assert trainer_class(make_toy_data()).identity == identity
    assert trainer_class(make_toy_data(seed=1)).identity != identity


class TestDesigns:
    @pytest.mark.parametrize("n", [31, 64])
    @with_each_design
    def test_fewer_configurations_are_the_first(self, design, space, n):
        """A design of n configurations is the beginning of a larger one, here of 130."""
        large = design(space, n=130, seed=0, task="37")

        assert len(large) == 130
        assert design(space, n=n, seed=0, task="37") == large[:n]

    @pytest.mark.parametrize(("seed", "task"), [(1, "37"), (0, "3")])
    @with_each_design
    def test_seed_and_task_decide_configurations(self, design, space, seed, task):
        """A design with another seed, or of another task, has other configurations."""
        design_with_seed_0 = design(space, n=4, seed=0, task="37")

        assert design(space, n=4, seed=seed, task=task) != design_with_seed_0

    @pytest.mark.parametrize("most", [60, 5000])
    def test_boostings_have_four_ascending_counts(self, most):
        """A designed configuration has a list of four numbers of rounds, all within the space.

        One training is evaluated after each of them. The space allows up to `most` rounds.
        """
        space = limit_rounds(most)
        for config in flow.design_xgboost(space, n=256, seed=0, task="3"):
            numbers_of_rounds = config.pop("rounds")

            assert len(numbers_of_rounds) == 4
            assert numbers_of_rounds == sorted(set(numbers_of_rounds))
            for rounds in numbers_of_rounds:
                space.validate({**config, "nrounds": rounds})


DATA_OF_TASK = {"3492": make_monks_problem(1), "37": make_toy_data()}
"""Data of two tasks."""


def train_svms(folder: Path, **options: Any) -> pd.DataFrame:
    """Train six SVMs on each of two tasks, with seed 0 unless told otherwise; return the table."""
    settings: dict[str, Any] = {"n": 6, "seed": 0} | options
    return flow.train_flow(
        flow.SVM, DATA_OF_TASK, folder=folder, space=make_svm_space(), **settings
    )


def limit_rounds(most: int) -> hbo.SearchSpace:
    """Make the search space of XGBoost, but with 3 to `most` rounds."""
    parameters = []
    for parameter in make_xgboost_space().parameters:
        if parameter.name == "nrounds":
            parameters.append(hbo.Parameter.number("nrounds", 3, most, integer=True))
        else:
            parameters.append(parameter)
    return hbo.SearchSpace(parameters, conditions=make_xgboost_space().conditions)


def select_configurations(frame: pd.DataFrame, space: hbo.SearchSpace) -> pd.DataFrame:
    """Select the columns `config.NAME` of a table, and call them NAME."""
    columns = [f"config.{name}" for name in space.names]
    return frame[columns].set_axis(space.names, axis="columns")


class TestSVMTable:
    def test_rows_are_trainings_of_tasks(self, tmp_path):
        """Six trainings on each of two tasks, one after the other, as they were designed."""
        space = make_svm_space()

        frame = train_svms(tmp_path)

        configs = [f"config.{name}" for name in space.names]
        measured = ["value", "spread", "capped", "seconds"]
        assert list(frame.columns) == ["task", "training", *configs, *measured]
        assert frame["task"].tolist() == ["3492"] * 6 + ["37"] * 6
        assert frame["training"].tolist() == [*range(6), *range(6)]
        designed = []
        for task in ("3492", "37"):
            designed += flow.design_svm(space, n=6, seed=0, task=task)
        values = space.values(select_configurations(frame, space))
        np.testing.assert_array_equal(values, space.values(designed))
        # The first training on task 37, done again by the trainer alone.
        (evaluation,) = flow.SVMTrainer(DATA_OF_TASK["37"])(designed[6], "37")["evaluations"]
        assert frame["value"][6] == evaluation["value"]
        assert frame["spread"][6] == evaluation["spread"]

    def test_more_trainings_continue_earlier_ones(self, tmp_path):
        """The first three of six trainings were done before, and are not done again."""
        few = train_svms(tmp_path, n=3)

        many = train_svms(tmp_path, n=6)

        first = many[many["training"] < 3].reset_index(drop=True)
        # Even the seconds are equal.
        pd.testing.assert_frame_equal(first, few)


@pytest.mark.usefixtures("xgboost")
class TestXGBoostTable:
    """Five trainings on each of two tasks, each evaluated after four numbers of rounds."""

    SPACE_OF_60_ROUNDS = limit_rounds(60)

    @pytest.fixture
    def frame(self, tmp_path):
        """The table of five trainings on each of two tasks; they are stored in `tmp_path`."""
        return flow.train_flow(
            flow.XGBOOST,
            DATA_OF_TASK,
            folder=tmp_path,
            space=self.SPACE_OF_60_ROUNDS,
            n=5,
            seed=1,
            workers=1,
        )

    def test_training_has_four_rows(self, frame, tmp_path):
        """A training is one file, however many numbers of rounds it is evaluated after."""
        design = flow.design_xgboost(self.SPACE_OF_60_ROUNDS, n=5, seed=1, task="37")

        assert frame["task"].tolist() == ["3492"] * (5 * 4) + ["37"] * (5 * 4)
        numbers_of_trainings = [*range(5), *range(5)]
        assert frame["training"].tolist() == np.repeat(numbers_of_trainings, 4).tolist()
        designed_rounds = np.concatenate([config["rounds"] for config in design])
        rows = frame[frame["task"] == "37"]
        assert rows["config.nrounds"].tolist() == designed_rounds.tolist()
        assert len(list(tmp_path.rglob("*.json"))) == 5 * 2

    def test_linear_boosting_has_inactive_hyperparameters(self, frame):
        """Hyperparameters of trees are missing in rows of linear boosting, and only there."""
        configurations = select_configurations(frame, self.SPACE_OF_60_ROUNDS)

        has_inactive = np.isnan(self.SPACE_OF_60_ROUNDS.values(configurations)).any(axis=1)
        is_linear = configurations["booster"] == "gblinear"
        assert has_inactive.tolist() == is_linear.tolist()
