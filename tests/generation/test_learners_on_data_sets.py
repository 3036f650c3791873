"""Benchmarks of learners on data sets: files, halves, cross-validation, tables, the artifact."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks.datasets import (
    DATASETS,
    HASHES_A,
    HASHES_B,
    LearnerOnDataSets,
)
from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.generation import datasets
from hpobench_ordered.generation._datasets import figures
from hpobench_ordered.generation._datasets.data import MAX_ROWS, find_data_set, read_data_set
from hpobench_ordered.generation._datasets.learners import LEARNERS
from hpobench_ordered.generation._datasets.training import DataSetTrainer
from hpobench_ordered.generation.base import Request
from hpobench_ordered.testing import check_benchmark

BENCHMARK_OF_LEARNER = {benchmark.learner: benchmark for benchmark in DATASETS}
SEED_0 = 0


@pytest.fixture
def keel(shared):
    """Folder of KEEL's data sets."""
    return shared / "data" / "keel"


class GaussiansOnTwoDataSets(LearnerOnDataSets):
    """A benchmark of two small data sets."""

    data_sets = ("bupa", "saheart")


GAUSSIANS = GaussiansOnTwoDataSets("gaussians", "Gaussian classifiers", "b")


@pytest.fixture(scope="module")
def generated(shared, tmp_path_factory):
    """Folder of an artifact of few configurations, trained for real, and its raw evaluations."""
    folder = tmp_path_factory.mktemp("generated") / GAUSSIANS.name
    keel = shared / "data" / "keel"
    datasets.generate_by_training(GAUSSIANS, Request(folder, local=keel, configurations=20))
    return folder, folder.with_name(f"{GAUSSIANS.name}-evaluations.parquet")


def train(learner, config, path, *, seed=SEED_0):
    """Cross-validate a configuration on the data set of a file, and return the outcome."""
    return DataSetTrainer(learner, {path.stem: path})(config, f"{path.stem}/{seed}")


def make_outcomes(plan, *, value=0.8):
    """Make up an outcome for each training: values grow a little with data set and seed."""
    return [
        {"value": value + 0.001 * len(data_set) + 0.01 * seed + 1e-4 * number, "seconds": 2.0}
        for data_set, seed, number in plan
    ]


class TestDataSets:
    def test_halves_share_nothing(self):
        assert not set(HASHES_A) & set(HASHES_B)
        assert not set(HASHES_A.values()) & set(HASHES_B.values())
        learners_of_halves = [
            {benchmark.learner for benchmark in DATASETS if benchmark.half == half}
            for half in ("a", "b")
        ]
        assert [len(learners) for learners in learners_of_halves] == [5, 5]

    def test_files_are_the_published_ones(self, keel):
        for name in HASHES_A | HASHES_B:
            assert find_data_set(name, keel) == keel / f"{name}.dat"

    def test_other_file_is_refused(self, tmp_path):
        (tmp_path / "pima.dat").write_text("1,2,yes\n")
        with pytest.raises(ArtifactError, match="is not the file that is published"):
            find_data_set("pima", tmp_path)

    def test_missing_file_is_named(self, tmp_path):
        with pytest.raises(ArtifactError, match=r"no file pima\.dat"):
            find_data_set("pima", tmp_path)

    def test_large_data_set_keeps_shares_of_classes(self, keel):
        data = read_data_set(keel / "magic.dat")
        classes = pd.read_csv(keel / "magic.dat", header=None).iloc[:, -1]
        assert data.x.shape == (MAX_ROWS, 10)
        assert data.y.mean() == pytest.approx((classes == "h").mean(), abs=1 / MAX_ROWS)

    def test_categories_are_one_hot_coded(self, keel):
        data = read_data_set(keel / "tic-tac-toe.dat")
        assert data.x.shape == (958, 27)
        assert set(np.unique(data.x)) == {0, 1}

    def test_suites_are_the_halves(self):
        """Each half has five benchmarks, whose tasks are data sets of the half."""
        for half, hashes in (("a", HASHES_A), ("b", HASHES_B)):
            benchmarks = [benchmark for benchmark in DATASETS if benchmark.half == half]
            assert hbo.suite(f"datasets-{half}") == tuple(b.name for b in benchmarks)
            assert len(benchmarks) == 5
            for benchmark in benchmarks:
                tasks = benchmark_spec(benchmark.name).define().tasks
                names = [task.name for task in tasks]
                assert names == [name for name in hashes if name not in benchmark.left_out]


class TestTraining:
    def test_scaled_learner_has_scikit_learns_value(self, keel):
        """Two classes; the inputs are standardised in every fold."""
        config = {"kernel": "rbf", "C": 3.0, "gamma": 0.02, "class_weight": "none"}
        frame = pd.read_csv(keel / "pima.dat", header=None, skipinitialspace=True)
        x = frame.iloc[:, :-1].to_numpy(float)
        y = frame.iloc[:, -1] == "tested_positive"
        areas = []
        for fit, test in StratifiedKFold(5, shuffle=True, random_state=0).split(x, y):
            scaler = StandardScaler().fit(x[fit])
            machine = SVC(C=3.0, gamma=0.02).fit(scaler.transform(x[fit]), y[fit])
            scores = machine.decision_function(scaler.transform(x[test]))
            areas.append(roc_auc_score(y[test], scores))
        outcome = train("svm", config, keel / "pima.dat")
        assert outcome["value"] == pytest.approx(np.mean(areas), rel=1e-3)  # ddof of the scaler
        assert outcome["spread"] == pytest.approx(np.std(areas, ddof=1), rel=0.05)

    def test_many_classes_have_scikit_learns_value(self, keel):
        config = LEARNERS["tree"].space.default | {"max_depth": 4}
        frame = pd.read_csv(keel / "vehicle.dat", header=None, skipinitialspace=True)
        x = frame.iloc[:, :-1].to_numpy(float)
        y = pd.factorize(frame.iloc[:, -1].astype(str), sort=True)[0]
        areas = []
        for fit, test in StratifiedKFold(5, shuffle=True, random_state=0).split(x, y):
            tree = DecisionTreeClassifier(
                max_depth=4, max_features=1.0, ccp_alpha=1e-5, random_state=0
            ).fit(x[fit], y[fit])
            areas.append(
                roc_auc_score(
                    y[test], tree.predict_proba(x[test]), multi_class="ovr", average="weighted"
                )
            )
        assert train("tree", config, keel / "vehicle.dat")["value"] == pytest.approx(np.mean(areas))

    def test_learner_that_cannot_be_fitted_fails(self, keel):
        """More neighbours than examples to train on are an error of scikit-learn."""
        config = LEARNERS["neighbours"].space.default | {"n_neighbors": 100_000}
        outcome = train("neighbours", config, keel / "bupa.dat")
        assert outcome["value"] is None
        assert outcome["spread"] is None

    @pytest.mark.slow
    @pytest.mark.parametrize("learner", LEARNERS)
    def test_default_and_random_configurations_are_trained(self, learner, keel, xgboost):
        default, random = datasets.draw_configs(LEARNERS[learner].space, 1, seed=3)
        for config in (default, random):
            first = train(learner, config, keel / "bupa.dat")
            again = train(learner, config, keel / "bupa.dat")
            assert 0.3 < first["value"] < 1
            assert again["value"] == first["value"]


class TestTable:
    def test_value_is_mean_over_seeds(self):
        benchmark = BENCHMARK_OF_LEARNER["neighbours"]
        configs = datasets.draw_configs(LEARNERS["neighbours"].space, 2, seed=0)
        plan = datasets.plan_trainings(benchmark, len(configs))
        rows = datasets.make_rows(plan, configs, make_outcomes(plan, value=0.5), averaged=2)
        assert len(rows) == 3 * len(benchmark.data_sets)
        first = rows[0]
        mean = 0.5 + 0.001 * len(first["task"]) + 0.005
        assert first["value"] == pytest.approx(mean)
        assert first["spread"] == pytest.approx(0.01 / np.sqrt(2))
        assert first["seconds"] == 2.0

    def test_failed_training_counts_as_guessing(self):
        """The learner cannot be fitted with the second of two seeds."""
        configs = datasets.draw_configs(LEARNERS["tree"].space, 1, seed=0)
        plan = [datasets.Training("heart", seed, config=0) for seed in (0, 1)]
        outcomes = [{"value": 0.9, "seconds": 2.0}, {"value": None, "seconds": 1.0}]
        (row,) = datasets.make_rows(plan, configs, outcomes, averaged=2)
        assert row["failed"] == 1
        assert row["value"] == pytest.approx((0.9 + 0.5) / 2)

    def test_single_seed_is_repeated_for_some(self):
        benchmark = BENCHMARK_OF_LEARNER["svm"]
        configs = datasets.draw_configs(LEARNERS["svm"].space, 40, seed=0)
        plan = datasets.plan_trainings(benchmark, len(configs))
        rows = datasets.make_rows(plan, configs, make_outcomes(plan), averaged=1)
        has_spread = [np.isfinite(row["spread"]) for row in rows[: len(configs)]]
        assert has_spread == [True] * 32 + [False] * 9
        assert rows[0]["value"] == pytest.approx(0.8 + 0.001 * len(rows[0]["task"]))


class TestFigures:
    LOSSES = np.array([[0.3, 0.5, 0.2], [0.1, 0.1, 0.4], [0.2, 0.3, 0.0], [0.4, 0.4, 0.1]])

    def test_noise_is_share_of_way_from_best_to_median(self):
        """Of the three configurations with a spread, the first is in the worse half everywhere."""
        spread = np.full((4, 3), np.nan)
        spread[:3] = [[0.5], [0.02], [0.02]]
        shares = figures.compute_noise_shares(self.LOSSES, spread, averaged=2)
        deviation_of_mean = 0.02 / np.sqrt(2)
        assert shares == pytest.approx(deviation_of_mean / np.array([0.15, 0.25, 0.15]))


@pytest.mark.slow
class TestArtifact:
    def test_is_a_benchmark(self, generated):
        folder, _ = generated
        check_benchmark(hbo.load(folder))

    def test_costs_are_seconds_of_trainings(self, generated):
        """A configuration that was trained costs what its training took."""
        folder, path = generated
        frame = pd.read_parquet(path)
        for task in hbo.load(folder).tasks:
            trainings = frame[frame["task"] == task.name]
            configs = trainings.filter(like="config.").rename(
                columns=lambda column: column.removeprefix("config.")
            )
            assert task.costs(configs).tolist() == trainings["seconds"].tolist()

    def test_raw_evaluations_give_same_bytes(self, generated, tmp_path):
        folder, path = generated
        again = tmp_path / GAUSSIANS.name
        datasets.generate_from_evaluations(GAUSSIANS, Request(again, local=path))
        names = sorted(file.name for file in folder.iterdir())
        assert sorted(file.name for file in again.iterdir()) == names
        for name in names:
            assert (again / name).read_bytes() == (folder / name).read_bytes()
