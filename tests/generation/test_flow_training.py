"""Trainings of OpenML's flows: values, records, designs of configurations, and tables."""

import json
import sys
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
from hpobench_ordered.benchmarks.openml_flows import svm_space, xgboost_space
from hpobench_ordered.errors import MissingExtraError
from hpobench_ordered.generation._flows import training as flow
from hpobench_ordered.generation._flows.datasets import iter_folds

# Trainers are called with a configuration and the name of the task, here any, "1"; they return
# evaluations: several for XGBoost, after different numbers of rounds.
KERNELS: list[Config] = [
    {"kernel": "linear", "cost": 0.5},
    {"kernel": "polynomial", "cost": 2.0, "gamma": 0.2, "degree": 3},
    {"kernel": "radial", "cost": 10.0, "gamma": 0.1},
    {"kernel": "sigmoid", "cost": 1.0, "gamma": 0.05},
]
RADIAL = KERNELS[2]
LINEAR: Config = {"booster": "gblinear", "eta": 0.3, "lambda": 0.01, "alpha": 0.002}
SAMPLED = {"subsample": 0.6, "colsample_bytree": 0.7, "colsample_bylevel": 0.5}
TREES = LINEAR | SAMPLED | {"booster": "gbtree", "max_depth": 4, "min_child_weight": 1.5}

BOOSTERS = pytest.mark.parametrize("config", [TREES, LINEAR], ids=["gbtree", "gblinear"])
DESIGNS = pytest.mark.parametrize(
    ("design", "space"),
    [(flow.design_svm, svm_space()), (flow.design_xgboost, xgboost_space())],
    ids=["svm", "xgboost"],
)


def make_toy_data(classes: int = 2, n: int = 90, seed: int = 0) -> ClassificationData:
    """Four columns of different scales: two tell something about the class, one is constant."""
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
    @pytest.mark.parametrize("config", KERNELS, ids=lambda config: config["kernel"])
    def test_areas_are_scikit_learns(self, config, classes):
        """Areas on five folds, their mean and standard deviation, by scikit-learn alone."""
        data = make_toy_data(classes)
        # scikit-learn's names where they differ from R's.
        names = {"polynomial": "poly", "radial": "rbf"}
        machine = SVC(
            kernel=names.get(config["kernel"], config["kernel"]),
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

        (evaluation,) = flow.SVMTrainer(data)(config, "1")["evaluations"]

        np.testing.assert_allclose(evaluation["folds"], expected, atol=1e-9)
        assert evaluation["value"] == pytest.approx(expected.mean())
        assert evaluation["spread"] == pytest.approx(expected.std(ddof=1))

    @pytest.mark.parametrize("classes", [2, 3])
    @pytest.mark.parametrize("config", KERNELS, ids=lambda config: config["kernel"])
    def test_time_and_whole_solution_are_recorded(self, config, classes):
        (evaluation,) = flow.SVMTrainer(make_toy_data(classes))(config, "1")["evaluations"]

        # The solver was not stopped early.
        assert evaluation["capped"] is False
        assert evaluation["seconds"] > 0

    def test_early_stop_is_recorded_without_warning(self, monkeypatch):
        """scikit-learn would warn of it, and pytest makes warnings errors."""
        # The work after which the solver is stopped: too little for such a cost.
        monkeypatch.setattr(flow, "SOLVER_WORK", 1000)
        config = {"kernel": "linear", "cost": 900.0}

        (evaluation,) = flow.SVMTrainer(make_toy_data())(config, "1")["evaluations"]

        assert evaluation["capped"] is True

    def test_extreme_kernel_has_a_value(self):
        close_to_upper_bounds = {
            "kernel": "polynomial",
            "cost": 998.0,
            "gamma": 913.0,
            "degree": 5,
        }

        (evaluation,) = flow.SVMTrainer(make_toy_data())(close_to_upper_bounds, "1")["evaluations"]

        assert 0 <= evaluation["value"] <= 1

    def test_single_example_of_class_hardly_matters(self):
        """One of 90 examples of two classes gets a third class."""
        data = make_toy_data()
        (evaluation,) = flow.SVMTrainer(data)(RADIAL, "1")["evaluations"]
        data.y[7] = 2

        (with_third_class,) = flow.SVMTrainer(data)(RADIAL, "1")["evaluations"]

        assert with_third_class["value"] == pytest.approx(evaluation["value"], abs=0.15)


class TestBoosting:
    @BOOSTERS
    @pytest.mark.parametrize("classes", [2, 3])
    def test_several_rounds_equal_separate_trainings(self, xgboost, config, classes):
        """Margins, XGBoost's raw scores, after some rounds of one training are, to the bit, those
        of a training of so many rounds.
        """
        fold = next(iter(iter_folds(make_toy_data(classes))))
        counts = [3, 4, 20, 45]

        margins = list(flow._iter_margins(fold, config | {"rounds": counts}))

        assert not np.array_equal(margins[0], margins[-1])
        # The same settings, in XGBoost's own words.
        parameters = config | {"base_score": 0.5, "nthread": 1}
        if classes == 2:
            parameters |= {"objective": "binary:logistic"}
        else:
            parameters |= {"objective": "multi:softprob", "num_class": classes}
        if config is TREES:
            parameters |= {"tree_method": "hist"}
            train = xgboost.QuantileDMatrix(fold.x, fold.y)
        else:
            parameters |= {"updater": "coord_descent"}
            train = xgboost.DMatrix(fold.x, fold.y)
        test = xgboost.DMatrix(fold.x_test)
        for margin, count in zip(margins, counts, strict=True):
            separate = xgboost.train(parameters, train, count).predict(test, output_margin=True)
            np.testing.assert_array_equal(margin, separate.reshape(margin.shape))

    @BOOSTERS
    @pytest.mark.usefixtures("xgboost")
    def test_evaluations_ignore_other_numbers_of_rounds(self, config):
        """Evaluated together or alone, all but the time is equal."""
        trainer = flow.BoostingTrainer(make_toy_data())
        counts = [3, 9, 30]

        together = trainer(config | {"rounds": counts}, "1")["evaluations"]

        for evaluation, count in zip(together, counts, strict=True):
            (alone,) = trainer(config | {"rounds": [count]}, "1")["evaluations"]
            assert alone | {"seconds": 0} == evaluation | {"seconds": 0}

    @BOOSTERS
    @pytest.mark.usefixtures("xgboost")
    def test_more_rounds_take_longer(self, config):
        """A training is evaluated after several numbers of rounds, with the time until then."""
        trainer = flow.BoostingTrainer(make_toy_data())

        after_3, _, after_30 = trainer(config | {"rounds": [3, 9, 30]}, "1")["evaluations"]

        assert after_3["seconds"] < after_30["seconds"]

    @pytest.mark.usefixtures("xgboost")
    def test_scores_are_logarithms_of_probabilities(self):
        fold = next(iter(iter_folds(make_toy_data(classes=3))))
        (margin,) = flow._iter_margins(fold, TREES | {"rounds": [20]})

        probabilities = np.exp(flow._compute_scores(margin))

        np.testing.assert_allclose(probabilities.sum(axis=1), 1)

    @pytest.mark.usefixtures("xgboost")
    def test_area_is_that_of_the_probabilities(self):
        """On the first of five folds; of three classes, the mean weighted by their frequencies."""
        data = make_toy_data(classes=3)
        config = TREES | {"rounds": [20]}
        first_fold = next(iter(iter_folds(data)))
        (margin,) = flow._iter_margins(first_fold, config)
        probabilities = np.exp(flow._compute_scores(margin))

        (evaluation,) = flow.BoostingTrainer(data)(config, "1")["evaluations"]

        expected = roc_auc_score(
            first_fold.y_test, probabilities, multi_class="ovr", average="weighted"
        )
        assert evaluation["folds"][0] == pytest.approx(expected, abs=1e-9)

    @BOOSTERS
    @pytest.mark.usefixtures("xgboost")
    def test_prints_nothing(self, capfd, config):
        flow.BoostingTrainer(make_toy_data())(config | {"rounds": [2]}, "1")

        output, errors = capfd.readouterr()
        assert output == ""
        assert errors == ""

    def test_missing_xgboost_names_the_extra(self, monkeypatch):
        # Makes the import fail.
        monkeypatch.setitem(sys.modules, "xgboost", None)

        with pytest.raises(MissingExtraError, match=r"\[train\]"):
            flow.BoostingTrainer(make_toy_data())(LINEAR | {"rounds": [2]}, "1")


@pytest.mark.usefixtures("xgboost")
@pytest.mark.parametrize("trainer_class", [flow.SVMTrainer, flow.BoostingTrainer])
def test_data_are_in_identity(trainer_class):
    """The identity tells which stored trainings can be used again."""
    identity = trainer_class(make_toy_data()).identity

    assert trainer_class(make_toy_data()).identity == identity
    assert trainer_class(make_toy_data(seed=1)).identity != identity


@pytest.mark.usefixtures("xgboost")
@pytest.mark.parametrize("trainer_class", [flow.SVMTrainer, flow.BoostingTrainer])
def test_identity_can_be_stored_as_json(trainer_class):
    identity = trainer_class(make_toy_data()).identity

    assert json.loads(json.dumps(identity)) == identity


def test_version_is_in_identity(xgboost):
    assert flow.BoostingTrainer(make_toy_data()).identity["xgboost"] == xgboost.__version__


class TestDesigns:
    @pytest.mark.parametrize("n", [0, 1, 2, 31, 64, 129])
    @DESIGNS
    def test_fewer_configurations_are_the_first(self, design, space, n):
        """A design of n configurations begins the design of 130, with seed 0 on task 37."""
        large = design(space, 130, 0, "37")

        assert len(large) == 130
        assert design(space, n, 0, "37") == large[:n]

    @pytest.mark.parametrize(("seed", "task"), [(1, "37"), (0, "3")])
    @DESIGNS
    def test_seed_and_task_decide_configurations(self, design, space, seed, task):
        assert design(space, 4, seed, task) != design(space, 4, 0, "37")

    def test_svm_configurations_are_spread(self):
        """Kernels are equally frequent, and costs evenly spread on the unit interval."""
        n = 256
        space = svm_space()

        values = space.values(flow.design_svm(space, n, 0, "3"))

        # Of four kernels, up to two configurations more or fewer.
        kernels = values[:, space.names.index("kernel")].astype(int)
        np.testing.assert_allclose(np.bincount(kernels), n / 4, atol=2)
        unit_costs = np.sort(space.encode(values)[:, space.names.index("cost")])
        even_spacing = (np.arange(n) + 0.5) / n
        np.testing.assert_allclose(unit_costs, even_spacing, rtol=0, atol=0.01)

    def test_a_fifth_of_boostings_is_linear(self):
        # 256 configurations, with up to 60 rounds.
        design = flow.design_xgboost(limit_rounds(60), 256, 0, "3")

        is_linear = [config["booster"] == "gblinear" for config in design]
        assert np.mean(is_linear) == pytest.approx(0.2, abs=0.01)

    @pytest.mark.parametrize("most", [60, 5000])
    def test_boostings_are_in_the_space(self, most):
        space = limit_rounds(most)
        for config in flow.design_xgboost(space, 256, 0, "3"):
            others = {name: value for name, value in config.items() if name != "rounds"}

            for count in config["rounds"]:
                space.validate({**others, "nrounds": count})
            # Trees have five hyperparameters more than linear boosting; rounds are a list.
            assert len(config) == (5 if config["booster"] == "gblinear" else 10)

    @pytest.mark.parametrize("most", [60, 5000])
    def test_boostings_have_four_ascending_counts(self, most):
        for config in flow.design_xgboost(limit_rounds(most), 256, 0, "3"):
            # Numbers of rounds after which the same training is evaluated.
            counts = config["rounds"]

            assert len(counts) == 4
            assert counts == sorted(set(counts))
            assert all(type(count) is int for count in counts)

    @pytest.mark.parametrize("most", [60, 5000])
    def test_largest_counts_are_uniform(self, most):
        """The largest of four numbers of rounds, from 3 to the upper bound of the space."""
        design = flow.design_xgboost(limit_rounds(most), 256, 0, "3")

        largest = np.sort([config["rounds"][-1] for config in design])
        # Four distinct numbers from 3 on end with at least 6.
        expected = np.maximum(np.linspace(3, most, 256), 6)
        # Up to half a percent of the range, and rounding.
        np.testing.assert_allclose(largest, expected, atol=0.005 * most + 1)

    def test_smaller_counts_are_log_uniform(self):
        """Half of them are below the middle, on a logarithmic scale, from 3 to the largest."""
        design = flow.design_xgboost(limit_rounds(5000), 256, 0, "3")

        is_below_middle = []
        for config in design:
            *smaller, largest = config["rounds"]
            logarithmic_middle = np.sqrt(3 * largest)
            is_below_middle += [count < logarithmic_middle for count in smaller]
        assert np.mean(is_below_middle) == pytest.approx(0.5, abs=0.02)


DATA = {"3492": make_monks_problem(1), "37": make_toy_data()}
"""Data of two tasks."""


def train_svms(folder: Path, **options: Any) -> pd.DataFrame:
    """The table of six trainings on each of two tasks, with seed 0 unless told otherwise."""
    settings: dict[str, Any] = {"n": 6, "seed": 0} | options
    return flow.train_flow(flow.SVM, DATA, folder=folder, space=svm_space(), **settings)


def limit_rounds(most: int) -> hbo.SearchSpace:
    """The space of XGBoost, with 3 to `most` rounds."""
    parameters = []
    for parameter in xgboost_space().parameters:
        if parameter.name == "nrounds":
            parameters.append(hbo.Parameter.number("nrounds", 3, most, integer=True))
        else:
            parameters.append(parameter)
    return hbo.SearchSpace(parameters, conditions=xgboost_space().conditions)


def select_configurations(frame: pd.DataFrame, space: hbo.SearchSpace) -> pd.DataFrame:
    """The columns `config.NAME` of a table, called NAME."""
    columns = [f"config.{name}" for name in space.names]
    return frame[columns].set_axis(space.names, axis="columns")


class TestSVMTable:
    def test_columns_are_named(self, tmp_path):
        frame = train_svms(tmp_path)

        configs = [f"config.{name}" for name in svm_space().names]
        measured = ["value", "spread", "capped", "seconds"]
        assert list(frame.columns) == ["task", "training", *configs, *measured]

    def test_rows_are_trainings_of_tasks(self, tmp_path):
        frame = train_svms(tmp_path)

        # Six trainings on each of two tasks, one after the other.
        assert frame["task"].tolist() == ["3492"] * 6 + ["37"] * 6
        assert frame["training"].tolist() == [*range(6), *range(6)]

    def test_configurations_are_those_of_design(self, tmp_path):
        space = svm_space()

        frame = train_svms(tmp_path)

        designed = [*flow.design_svm(space, 6, 0, "3492"), *flow.design_svm(space, 6, 0, "37")]
        values = space.values(select_configurations(frame, space))
        np.testing.assert_array_equal(values, space.values(designed))

    def test_values_are_those_of_trainer(self, tmp_path):
        first_config = flow.design_svm(svm_space(), 6, 0, "37")[0]

        frame = train_svms(tmp_path)

        (evaluation,) = flow.SVMTrainer(DATA["37"])(first_config, "37")["evaluations"]
        row = frame[frame["task"] == "37"].iloc[0]
        assert row["value"] == evaluation["value"]
        assert row["spread"] == evaluation["spread"]

    def test_more_trainings_continue_earlier_ones(self, tmp_path):
        few = train_svms(tmp_path, n=3)

        many = train_svms(tmp_path, n=6)

        first = many[many["training"] < 3].reset_index(drop=True)
        # Even the seconds are equal: no training is done again.
        pd.testing.assert_frame_equal(first, few)

    def test_progress_starts_with_earlier_trainings(self, tmp_path):
        train_svms(tmp_path, n=3)
        progress: list[tuple[str, int, int]] = []

        train_svms(tmp_path, n=6, progress=lambda *step: progress.append(step))

        assert progress[0] == ("task 3492", 3, 6)
        assert progress[-1] == ("task 37", 6, 6)

    @pytest.mark.slow
    def test_workers_do_not_matter(self, tmp_path):
        by_one = train_svms(tmp_path / "one").drop(columns="seconds")

        by_two = train_svms(tmp_path / "two", workers=2).drop(columns="seconds")

        pd.testing.assert_frame_equal(by_two, by_one)


@pytest.mark.usefixtures("xgboost")
class TestXGBoostTable:
    """Five trainings on each of two tasks, each evaluated after four numbers of rounds."""

    SPACE = limit_rounds(60)

    @pytest.fixture
    def frame(self, tmp_path):
        """The table of five trainings on each of two tasks, whose files are in `tmp_path`."""
        return flow.train_flow(
            flow.XGBOOST, DATA, folder=tmp_path, space=self.SPACE, n=5, seed=1, workers=1
        )

    def test_training_has_four_rows(self, frame):
        """Of five trainings on each of two tasks, evaluated after four numbers of rounds each."""
        assert frame["task"].tolist() == ["3492"] * (5 * 4) + ["37"] * (5 * 4)
        numbers_of_trainings = [*range(5), *range(5)]
        assert frame["training"].tolist() == np.repeat(numbers_of_trainings, 4).tolist()

    def test_rounds_are_those_of_design(self, frame):
        design = flow.design_xgboost(self.SPACE, 5, 1, "37")

        rounds = [count for config in design for count in config["rounds"]]
        rows = frame[frame["task"] == "37"]
        assert rows["config.nrounds"].tolist() == rounds

    def test_linear_boosting_has_inactive_hyperparameters(self, frame):
        configurations = select_configurations(frame, self.SPACE)

        has_inactive = np.isnan(self.SPACE.values(configurations)).any(axis=1)
        is_linear = configurations["booster"] == "gblinear"
        assert has_inactive.tolist() == is_linear.tolist()

    def test_boosting_is_never_stopped_early(self, frame):
        assert not frame["capped"].any()

    @pytest.mark.usefixtures("frame")
    def test_training_is_one_file(self, tmp_path):
        """However many numbers of rounds it is evaluated after."""
        files = list(tmp_path.rglob("*.json"))

        # Of five trainings on each of two tasks.
        assert len(files) == 5 * 2
