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

KERNELS: list[Config] = [
    {"kernel": "linear", "cost": 0.5},
    {"kernel": "polynomial", "cost": 2.0, "gamma": 0.2, "degree": 3},
    {"kernel": "radial", "cost": 10.0, "gamma": 0.1},
    {"kernel": "sigmoid", "cost": 1.0, "gamma": 0.05},
]
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
    """Numbers of different scales that tell something about the class; one of them constant."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    noise = rng.normal(size=(n, 4)) * [1, 50, 0.1, 0]
    signal = y[:, None] * [0.8, 20, 0, 0]
    x = noise + signal + [0, 9, 0, 3]
    return ClassificationData(
        "make_toy_data", x, y, f"digest {classes} {n} {seed}", "make_toy_data"
    )


class ScaledAsInR(TransformerMixin, BaseEstimator):
    """What e1071 does: R's `scale`, without the constant columns."""

    def fit(self, x: np.ndarray, y: object = None) -> "ScaledAsInR":
        frame = pd.DataFrame(x)
        constant = frame.nunique() == 1
        self.mean_ = frame.mean().mask(constant, 0)
        self.deviation_ = frame.std().mask(constant, 1)  # pandas has R's ddof
        return self

    def transform(self, x: np.ndarray) -> np.ndarray:
        return ((pd.DataFrame(x) - self.mean_) / self.deviation_).to_numpy()


def weighted_areas(model: Any, x: np.ndarray, y: np.ndarray) -> float:
    """Area under the ROC curve; of several classes, the mean weighted by frequency."""
    decision = model.decision_function(x)
    if decision.ndim == 1:
        return float(roc_auc_score(y, decision))
    areas = [roc_auc_score(y == k, decision[:, k]) for k in range(decision.shape[1])]
    return float(np.average(areas, weights=np.bincount(y)))


class TestSVM:
    @pytest.mark.parametrize("classes", [2, 3])
    @pytest.mark.parametrize("config", KERNELS, ids=lambda config: config["kernel"])
    def test_equals_an_independent_pipeline(self, config, classes):
        """Areas on five folds, with their mean and deviation, by scikit-learn alone."""
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
            make_pipeline(ScaledAsInR(), machine),
            data.x,
            data.y,
            cv=StratifiedKFold(5, shuffle=True, random_state=0),
            scoring=weighted_areas,
        )
        (evaluation,) = flow.SVMTrainer(data)(config, "1")["evaluations"]
        np.testing.assert_allclose(evaluation["folds"], expected, atol=1e-9)
        assert evaluation["value"] == pytest.approx(expected.mean())
        assert evaluation["spread"] == pytest.approx(pd.Series(expected).std())
        # The solver was not stopped early.
        assert evaluation["capped"] is False
        assert evaluation["seconds"] > 0

    # The work after which the solver is stopped: too little for such a cost.
    def test_early_stop_is_recorded_without_warning(self, monkeypatch):
        monkeypatch.setattr(flow, "SOLVER_WORK", 1000)
        config = {"kernel": "linear", "cost": 900.0}
        (evaluation,) = flow.SVMTrainer(make_toy_data())(config, "1")["evaluations"]
        assert evaluation["capped"] is True

    def test_extreme_kernel_has_a_value(self):
        # Close to the upper bounds.
        config = {"kernel": "polynomial", "cost": 998.0, "gamma": 913.0, "degree": 5}

        (evaluation,) = flow.SVMTrainer(make_toy_data())(config, "1")["evaluations"]

        assert 0 <= evaluation["value"] <= 1

    def test_single_example_of_class_hardly_matters(self):
        data = make_toy_data()
        (evaluation,) = flow.SVMTrainer(data)(KERNELS[2], "1")["evaluations"]
        # One example of a third class.
        data.y[7] = 2

        (with_third_class,) = flow.SVMTrainer(data)(KERNELS[2], "1")["evaluations"]

        assert with_third_class["value"] == pytest.approx(evaluation["value"], abs=0.15)


class TestBoosting:
    @BOOSTERS
    @pytest.mark.parametrize("classes", [2, 3])
    def test_several_rounds_equal_separate_trainings(self, xgboost, config, classes):
        """Margins after some rounds of one training are, to the bit, those of trainings of so many
        rounds.
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
        for margin, count in zip(margins, counts, strict=True):
            booster = xgboost.train(parameters, train, count)
            separate = booster.predict(xgboost.DMatrix(fold.x_test), output_margin=True)
            np.testing.assert_array_equal(margin, separate.reshape(margin.shape))

    @BOOSTERS
    def test_evaluations_ignore_other_numbers_of_rounds(self, xgboost, config):
        trainer = flow.BoostingTrainer(make_toy_data())
        together = trainer(config | {"rounds": [3, 9, 30]}, "1")["evaluations"]
        for evaluation, count in zip(together, [3, 9, 30], strict=True):
            (alone,) = trainer(config | {"rounds": [count]}, "1")["evaluations"]
            # All but the time is equal.
            assert alone | {"seconds": 0} == evaluation | {"seconds": 0}
        assert together[0]["seconds"] < together[2]["seconds"]

    def test_area_is_that_of_the_probabilities(self, xgboost):
        """Scores are logarithms of probabilities, and the area under the curve is theirs."""
        fold = next(iter(iter_folds(make_toy_data(3))))
        (margin,) = flow._iter_margins(fold, TREES | {"rounds": [20]})
        scores = np.exp(flow._compute_scores(margin))
        np.testing.assert_allclose(scores.sum(axis=1), 1)
        expected = roc_auc_score(fold.y_test, scores, multi_class="ovr", average="weighted")
        (evaluation,) = flow.BoostingTrainer(make_toy_data(3))(TREES | {"rounds": [20]}, "1")[
            "evaluations"
        ]
        assert evaluation["folds"][0] == pytest.approx(expected, abs=1e-9)

    def test_prints_nothing(self, xgboost, capfd):
        for config in (TREES, LINEAR):
            flow.BoostingTrainer(make_toy_data())(config | {"rounds": [2]}, "1")
        # Neither on standard output nor as errors.
        assert capfd.readouterr() == ("", "")

    # Makes the import fail.
    def test_without_xgboost_the_extra_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "xgboost", None)
        with pytest.raises(MissingExtraError, match=r"\[train\]"):
            flow.BoostingTrainer(make_toy_data())(LINEAR | {"rounds": [2]}, "1")


@pytest.mark.usefixtures("xgboost")
@pytest.mark.parametrize("trainer_class", [flow.SVMTrainer, flow.BoostingTrainer])
def test_data_are_in_identity(trainer_class):
    identity = trainer_class(make_toy_data()).identity

    # The identity can be stored as JSON.
    assert json.loads(json.dumps(identity)) == identity
    assert trainer_class(make_toy_data()).identity == identity
    assert trainer_class(make_toy_data(seed=1)).identity != identity


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
        values = svm_space().values(flow.design_svm(svm_space(), 256, 0, "3"))

        kernels = values[:, 0].astype(int)
        # 256 configurations of four kernels.
        np.testing.assert_allclose(np.bincount(kernels), 64, atol=2)
        costs = np.sort(svm_space().encode(values)[:, 1])
        # Costs are evenly spread on the unit interval.
        np.testing.assert_allclose(costs, (np.arange(256) + 0.5) / 256, rtol=0, atol=0.01)

    def test_a_fifth_of_boostings_is_linear(self):
        # 256 configurations, with up to 60 rounds.
        design = flow.design_xgboost(boosting_space(60), 256, 0, "3")

        is_linear = [config["booster"] == "gblinear" for config in design]
        assert np.mean(is_linear) == pytest.approx(0.2, abs=0.01)

    @pytest.mark.parametrize("most", [60, 5000])
    def test_boostings_are_in_the_space(self, most):
        space = boosting_space(most)
        for config in flow.design_xgboost(space, 256, 0, "3"):
            others = {name: value for name, value in config.items() if name != "rounds"}

            for count in config["rounds"]:
                space.validate({**others, "nrounds": count})
            # Trees have five hyperparameters more than linear boosting; rounds are a list.
            assert len(config) == (5 if config["booster"] == "gblinear" else 10)

    @pytest.mark.parametrize("most", [60, 5000])
    def test_boostings_have_four_ascending_counts(self, most):
        for config in flow.design_xgboost(boosting_space(most), 256, 0, "3"):
            # Numbers of rounds after which the same training is evaluated.
            counts = config["rounds"]

            assert len(counts) == 4
            assert counts == sorted(set(counts))
            assert all(type(count) is int for count in counts)

    @pytest.mark.parametrize("most", [60, 5000])
    def test_largest_counts_are_uniform(self, most):
        design = flow.design_xgboost(boosting_space(most), 256, 0, "3")

        largest = np.sort([config["rounds"][-1] for config in design])
        # The largest of four distinct counts from 3 on is at least 6.
        expected = np.maximum(np.linspace(3, most, 256), 6)
        np.testing.assert_allclose(largest, expected, atol=0.005 * most + 1)

    def test_smaller_counts_are_log_uniform(self):
        design = flow.design_xgboost(boosting_space(5000), 256, 0, "3")

        # Of the range from 3 to the largest count, on a logarithmic scale.
        is_below_middle = []
        for config in design:
            *smaller, largest = config["rounds"]
            middle = np.sqrt(3 * largest)
            is_below_middle += [count < middle for count in smaller]
        assert np.mean(is_below_middle) == pytest.approx(0.5, abs=0.02)


DATA = {"3492": make_monks_problem(1), "37": make_toy_data()}


def train_svms(folder: Path, **options: Any) -> pd.DataFrame:
    """The table of six trainings a task, with seed 0 unless told otherwise."""
    settings: dict[str, Any] = {"n": 6, "seed": 0} | options
    return flow.train_flow(flow.SVM, DATA, folder=folder, space=svm_space(), **settings)


def boosting_space(most: int) -> hbo.SearchSpace:
    """The space of XGBoost, with at most so many rounds."""
    parameters = []
    for parameter in xgboost_space().parameters:
        if parameter.name == "nrounds":
            parameters.append(hbo.Parameter.number("nrounds", 3, most, integer=True))
        else:
            parameters.append(parameter)
    return hbo.SearchSpace(parameters, conditions=xgboost_space().conditions)


class TestFlow:
    def test_svm_table_has_designed_configurations(self, tmp_path):
        frame = train_svms(tmp_path)
        configs = [f"config.{name}" for name in svm_space().names]
        measured = ["value", "spread", "capped", "seconds"]
        assert list(frame.columns) == ["task", "training", *configs, *measured]
        assert frame["task"].tolist() == ["3492"] * 6 + ["37"] * 6
        assert frame["training"].tolist() == [*range(6)] * 2
        # The configurations of the design, in the order of tasks.
        native = frame[configs].set_axis(svm_space().names, axis="columns")
        expected = [c for task in DATA for c in flow.design_svm(svm_space(), 6, 0, task)]
        np.testing.assert_array_equal(svm_space().values(native), svm_space().values(expected))
        # Row 6 is the first of the second task.
        (alone,) = flow.SVMTrainer(DATA["37"])(expected[6], "37")["evaluations"]
        assert (frame["value"][6], frame["spread"][6]) == (alone["value"], alone["spread"])

    def test_xgboost_table_has_four_rows_a_training(self, xgboost, tmp_path):
        space = boosting_space(60)
        of, settings = flow.XGBOOST, {"n": 5, "seed": 1, "workers": 1}
        # Five trainings of each of two tasks, each evaluated after four numbers of rounds.
        frame = flow.train_flow(of, DATA, folder=tmp_path, space=space, **settings)
        assert frame["task"].tolist() == ["3492"] * 20 + ["37"] * 20
        assert frame["training"].tolist() == [k for k in range(5) for _ in range(4)] * 2
        design = flow.design_xgboost(space, 5, 1, "37")
        rounds = [count for config in design for count in config["rounds"]]
        assert frame["config.nrounds"][20:].tolist() == rounds
        assert not frame["capped"].any()
        configs = frame[[f"config.{name}" for name in space.names]]
        native = configs.set_axis(space.names, axis="columns")
        # Linear boosting leaves some hyperparameters inactive, NaN.
        linear = native["booster"] == "gblinear"
        assert np.isnan(space.values(native)).any(axis=1).tolist() == linear.tolist()
        # One file a training.
        assert len(list(tmp_path.rglob("*.json"))) == 10

    def test_more_trainings_continue_earlier_ones(self, tmp_path):
        few = train_svms(tmp_path, n=3)
        seen: list[tuple[str, int, int]] = []
        many = train_svms(tmp_path, progress=lambda *step: seen.append(step))
        first = many[many["training"] < 3].reset_index(drop=True)
        pd.testing.assert_frame_equal(first, few)  # even the seconds: nothing is done again
        # Three of six trainings were there already.
        assert seen[0] == ("task 3492", 3, 6)
        assert seen[-1] == ("task 37", 6, 6)

    @pytest.mark.slow
    def test_workers_do_not_matter(self, tmp_path):
        one = train_svms(tmp_path / "one").drop(columns="seconds")
        two = train_svms(tmp_path / "two", workers=2).drop(columns="seconds")
        pd.testing.assert_frame_equal(one, two)
