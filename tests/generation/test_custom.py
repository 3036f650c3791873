"""Custom benchmarks: data, split, model, training, and what becomes of it."""

import itertools
import json
import pickle
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered.errors import (
    ArtifactError,
    DuplicateNameError,
    ExperimentError,
    InvalidSpaceError,
    UnknownNameError,
)
from hpobench_ordered.files.artifact import Artifact
from hpobench_ordered.files.local import LOCAL_VARIABLE
from hpobench_ordered.generation._custom.data import DataSet, read_data
from hpobench_ordered.generation._custom.model import Model, infer_kind_of_estimator
from hpobench_ordered.generation._custom.split import (
    DataSplit,
    PredictionKind,
    infer_kind_of_target,
    split_data,
)
from hpobench_ordered.generation._custom.training import (
    EstimatorTrainer,
    Failures,
    Metric,
    TrainingError,
)
from hpobench_ordered.generation._raw import read_raw
from hpobench_ordered.generation._xgboost_training import AS_PUBLISHED, XGBoostTrainer
from hpobench_ordered.generation.base import generators
from hpobench_ordered.generation.custom import Custom, generate_custom
from hpobench_ordered.surrogates import pipeline
from hpobench_ordered.surrogates.best import best_known
from hpobench_ordered.testing import check_benchmark

TREE = "sklearn.tree:DecisionTreeClassifier"
TABLE = """colour,size,weight,kind
red,1,2.5,a
blue,?,3.5,b
,3,,a
red,4,1.5,b
green,5,0.5,a
"""
TOY = """
    import numpy as np

    class Line:
        '''Predicts a * size of its training set + b; lacks a seed and much else.'''

        def __init__(self, a, b=0.0, **others):
            if a > 5:
                raise ValueError("a is too large")
            self.a, self.b = a, b

        def fit(self, x, y):
            if self.a > 3 and len(y) > 25:
                raise ValueError("a is large")
            self.value = self.a * len(y) + self.b

        def predict(self, x):
            return np.full(len(x), self.value)

    def make(a, *, b=1.0, random_state=None):
        return Line(a, b)

    NUMBER = 3
"""
COUNTER = itertools.count()


@pytest.fixture
def table(tmp_path):
    (tmp_path / "things.csv").write_text(TABLE)
    return tmp_path / "things.csv"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Writes a module of the user's own, and returns its name."""

    def write(code: str) -> str:
        name = f"toy_{next(COUNTER)}"  # modules stay imported
        (tmp_path / f"{name}.py").write_text(dedent(code))
        monkeypatch.syspath_prepend(tmp_path)
        return name

    return write


@pytest.fixture
def toy(module):
    return module(TOY)


@pytest.fixture(scope="module")
def digits():
    return parts_of(read_data("sklearn:digits"))


def data_set(target: Any, numbers: np.ndarray | None = None) -> DataSet:
    n = len(target)
    inputs = np.arange(2.0 * n).reshape(n, 2) if numbers is None else numbers
    return DataSet("made", "made here", inputs, np.empty((n, 0), np.int64), np.array(target))


def parts_of(
    data: DataSet,
    kind: PredictionKind = PredictionKind.CLASSIFICATION,
    *,
    validation: float = 0.25,
    seed: int = 0,
) -> DataSplit:
    return split_data(data, kind, validation=validation, seed=seed)


def trainer_of(
    parts: DataSplit, path: str = TREE, *, scorer: str | None = None, seed: int = 0, **fixed: Any
) -> EstimatorTrainer:
    model = Model.from_path(path, fixed=fixed, seed=seed)
    return EstimatorTrainer(parts, model, Metric(parts.kind, scorer))


class TestData:
    def test_reads_a_table_in_any_format(self, table, tmp_path):
        frame = pd.read_csv(table, na_values="?")
        frame.to_parquet(tmp_path / "things.parquet")
        frame.astype({"colour": "category"}).to_csv(tmp_path / "things.csv.gz", index=False)
        for name in ("things.csv", "things.parquet", "things.csv.gz"):
            data = read_data(str(tmp_path / name))
            assert data.name.startswith("things") and f"{name} (SHA-256 " in data.origin
            assert data.target.tolist() == list("ababa")
            np.testing.assert_array_equal(
                data.numbers, [[1, 2.5], [np.nan, 3.5], [3, np.nan], [4, 1.5], [5, 0.5]]
            )
            assert data.categories.tolist() == [[2], [0], [-1], [2], [1]]

    def test_any_column_can_be_the_target(self, table):
        (table.parent / "full.csv").write_text(TABLE.replace("3,,", "3,4.5,"))
        data = read_data(str(table.parent / "full.csv"), target="weight")
        assert data.target.tolist() == [2.5, 3.5, 4.5, 1.5, 0.5]
        assert (data.numbers.shape, data.categories.shape) == ((5, 1), (5, 2))
        with pytest.raises(ArtifactError, match="1 rows have no 'weight'"):
            read_data(str(table), target="weight")
        with pytest.raises(UnknownNameError, match="did you mean 'weight'"):
            read_data(str(table), target="wight")

    @pytest.mark.parametrize("names", [("data", "target"), ("X", "y")])
    def test_reads_arrays_of_any_shape(self, tmp_path, names):
        images = np.arange(24, dtype=np.uint8).reshape(3, 2, 4)
        arrays = dict(zip(names, (images, np.array(["cat", "dog", "cat"])), strict=True))
        np.savez(tmp_path / "x.npz", **arrays)
        data = read_data(str(tmp_path / "x.npz"))
        np.testing.assert_array_equal(data.numbers, images.reshape(3, 8))
        assert data.target.tolist() == ["cat", "dog", "cat"]

    def test_knows_scikit_learns(self):
        data = read_data("sklearn:digits")
        assert (data.name, data.numbers.shape) == ("digits", (1797, 64))
        with pytest.raises(UnknownNameError, match="did you mean 'digits'"):
            read_data("sklearn:digit")
        with pytest.raises(ExperimentError, match="no named columns"):
            read_data("sklearn:digits", target="class")

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("x.csv", "a;b\n1;2\n", "separated by commas"),
            ("x.csv", "a,b\n", "0 rows"),
            ("x.csv", "a,b\n1,x\n2,\n", "1 rows have no 'b'"),
            ("x.csv", "a,b\ninf,1\n2,3\n", "infinite"),
            ("x.csv", "a,b\n" + "".join(f"x{k},1\n" for k in range(101)), "101 different values"),
            ("x.csv", 'a,b\n"1,2\n', "cannot read"),
            ("x.csv", "", "cannot read"),
            ("x.csv", None, "No such file"),
            ("x.txt", None, r"\.parquet, \.npz, or sklearn:NAME"),
            ("x.npz", {"data": np.array([{}]), "target": np.ones(1)}, "`data`"),
            ("x.npz", {"data": np.ones((3, 2)), "target": np.ones((3, 2))}, "3 rows and a target"),
            ("x.parquet", {"a": pd.to_datetime(["2020-01-01"]), "b": [1]}, "'a' holds dates"),
        ],
    )
    def test_other_files_are_refused(self, tmp_path, name, content, message):
        file = tmp_path / name
        if isinstance(content, str):
            file.write_text(content)
        elif name == "x.npz":
            np.savez(file, **content, allow_pickle=True)
        elif name == "x.parquet":
            pd.DataFrame(content).to_parquet(file)
        with pytest.raises(ArtifactError, match=message):
            read_data(str(file))


class TestSplit:
    def test_features_are_what_scikit_learns_preprocessing_makes_of_the_pool(self):
        from sklearn.compose import make_column_transformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        rng = np.random.default_rng(0)
        numbers = rng.normal(5, 3, (80, 3))
        numbers[rng.random((80, 3)) < 0.2] = np.nan
        categories = np.stack([rng.integers(-1, 3, 80), rng.integers(0, 2, 80)], axis=1)
        data = DataSet("made", "", numbers, categories, rng.integers(0, 2, 80))
        parts = parts_of(data, seed=3)
        # The order, told by targets that number the rows.
        rows = parts_of(replace(data, target=np.arange(80.0)), PredictionKind.REGRESSION, seed=3)
        pool, others = (r.astype(int) for r in (rows.pool_target, rows.validation_target))
        assert len(pool) == 60 and sorted([*pool, *others]) == list(range(80))
        median = (SimpleImputer(strategy="median"), [0, 1, 2])
        one_hot = (OneHotEncoder(drop="if_binary", sparse_output=False), [3, 4])
        peer = make_pipeline(make_column_transformer(median, one_hot), StandardScaler())
        both = np.concatenate([numbers, categories], axis=1)
        peer.fit(both[pool])
        for features, chosen in ((parts.pool, pool), (parts.validation, others)):
            np.testing.assert_allclose(features, peer.transform(both[chosen]), atol=1e-12)
        np.testing.assert_array_equal(parts.pool_target, data.target[pool])

    def test_columns_that_tell_nothing(self):
        numbers = np.array([[1.0, np.nan, 7.0]] * 8)
        numbers[:, 0] = range(8)
        parts = parts_of(data_set(np.arange(8) % 2, numbers))
        assert parts.pool.shape == (6, 2)  # one without a number is dropped
        assert not parts.pool[:, 1].any()  # a constant one is centred

    def test_seed_and_data_tell_splits_apart(self):
        data = data_set(np.arange(40) % 2)
        changed = replace(data, numbers=data.numbers + np.eye(40, 2))
        others = [parts_of(changed), parts_of(data, validation=0.5)]
        splits = [parts_of(data, seed=seed) for seed in range(5)] + others
        assert len({parts.digest for parts in splits}) == 7
        assert parts_of(data).digest == parts_of(data).digest

    @given(labels=st.lists(st.integers(0, 3), min_size=12, max_size=60), seed=st.integers(0, 5))
    def test_the_smallest_size_that_is_named_is_the_smallest(self, labels, seed):
        try:
            parts = parts_of(data_set([*labels, 0, 1] * 4), seed=seed)
        except ExperimentError:
            return
        with pytest.raises(
            ExperimentError, match=r"lacks the class(es)? .* classes is (\d+)"
        ) as caught:
            parts.check_sizes([1])
        smallest = int(str(caught.value).rpartition(" ")[2])
        parts.check_sizes([smallest, len(parts.pool)])
        with pytest.raises(ExperimentError, match="lacks"):
            parts.check_sizes([smallest - 1])
        with pytest.raises(ExperimentError, match=f"{len(parts.pool)} rows are for training"):
            parts.check_sizes([smallest, len(parts.pool) + 1])

    def test_the_target_tells_its_kind(self):
        classes: list[Any] = [["a", "b"], [True, False], [0, 1, 2], [0.0, 1.0]]
        assert {infer_kind_of_target(np.array(y)) for y in classes} == {
            PredictionKind.CLASSIFICATION
        }
        numbers: list[Any] = [[0.5, 1.0], range(21)]
        assert {infer_kind_of_target(np.array(y)) for y in numbers} == {PredictionKind.REGRESSION}

    def test_classes_are_numbered_in_order(self):
        parts = parts_of(data_set([10, 9, 100] * 4))
        numbers = parts_of(data_set([10, 9, 100] * 4), PredictionKind.REGRESSION).pool_target
        assert parts.classes == ("9", "10", "100")
        np.testing.assert_array_equal(np.array([9, 10, 100])[parts.pool_target], numbers)

    @pytest.mark.parametrize(
        ("target", "kind", "validation", "message"),
        [
            (["a"] * 8, PredictionKind.CLASSIFICATION, 0.25, "only one class"),
            ([0.5, 1.5] * 4, PredictionKind.CLASSIFICATION, 0.25, "fractional values, such as 0.5"),
            (["a", "b"] * 4, PredictionKind.REGRESSION, 0.25, "is text, such as 'a'"),
            ([0, 1] * 4, PredictionKind.CLASSIFICATION, 0.0, "between 0 and 1"),
            ([0, 1] * 4, PredictionKind.CLASSIFICATION, 0.01, "between 0 and 1"),
            ([0, 1] * 4, PredictionKind.CLASSIFICATION, 0.99, "between 0 and 1"),
            (
                range(40),
                PredictionKind.CLASSIFICATION,
                0.25,
                r"5 more of made, of 40 classes .* regression",
            ),
        ],
    )
    def test_what_cannot_be_split_is_refused(self, target, kind, validation, message):
        with pytest.raises(ExperimentError, match=message):
            parts_of(data_set(target), kind, validation=validation)


class TestModel:
    @pytest.mark.parametrize(
        ("path", "keywords", "message"),
        [
            ("sklearn.tree.DecisionTreeClassifier", {}, f"did you mean '{TREE}'"),
            ("sklearn.tree:", {}, "MODULE:CLASS"),
            ("sklearn.trees:X", {}, r"did you mean 'sklearn\.tree'"),
            ("sklaern.tree:X", {}, "did you mean 'sklearn'"),
            ("qqqqqq:X", {}, "is it installed, or a file in this folder"),
            ("sklearn.tree:DecisionTree", {}, "did you mean 'BaseDecisionTree'"),
            ("{toy}:NUMBER", {}, "not a class"),
            (TREE, {"depth": 3}, "did you mean 'max_depth'"),
            ("{toy}:make", {"c": 3}, "unknown keyword"),
        ],
    )
    def test_names_that_cannot_be(self, toy, path, keywords, message):
        with pytest.raises((ExperimentError, UnknownNameError), match=message):
            Model.from_path(path.format(toy=toy), fixed=keywords, seed=0)

    @pytest.mark.parametrize(
        ("code", "message"),
        [
            ("import no_such_library", "needs 'no_such_library'"),
            ("1 / 0", "ZeroDivisionError"),
            ("def", "SyntaxError"),
        ],
    )
    def test_broken_modules(self, module, code, message):
        with pytest.raises(ExperimentError, match=message):
            Model.from_path(f"{module(code)}:X", fixed={}, seed=0)

    def test_seed_and_threads_go_where_they_are_taken(self, toy):
        def fixed(path: str, **keywords: Any) -> dict[str, Any]:
            return dict(Model.from_path(path, fixed=keywords, seed=7).fixed)

        assert fixed("sklearn.ensemble:RandomForestClassifier") == {"random_state": 7, "n_jobs": 1}
        assert fixed(TREE, random_state=3, max_depth=2) == {"random_state": 3, "max_depth": 2}
        assert fixed("sklearn.svm:SVR") == {}
        assert fixed(f"{toy}:Line", c=3) == {"c": 3}  # it takes any keyword
        assert fixed(f"{toy}:make") == {"random_state": 7}
        pytest.importorskip("xgboost", reason="XGBoost comes with the extra `train`")
        assert fixed("xgboost:XGBClassifier") == {"random_state": 7, "n_jobs": 1}  # by inheritance

    def test_kinds_and_versions(self, toy):
        import sklearn
        from sklearn.svm import SVC, SVR

        assert infer_kind_of_estimator(SVC()) is PredictionKind.CLASSIFICATION
        assert infer_kind_of_estimator(SVR()) is PredictionKind.REGRESSION
        made = Model.from_path(f"{toy}:make", fixed={}, seed=0)
        assert infer_kind_of_estimator(made.make_estimator({"a": 1})) is None
        assert made.version.startswith("SHA-256 ")  # of the module
        assert Model.from_path(TREE, fixed={}, seed=0).version == sklearn.__version__


class TestTraining:
    @pytest.mark.parametrize("weight", [1.0, 32.0])
    def test_counts_the_errors_that_the_trainer_of_xgboost_mnist_counts(
        self, small, xgboost, weight
    ):
        parts = DataSplit(
            kind=PredictionKind.CLASSIFICATION,
            classes=tuple("0123456789"),
            pool=small.pool.astype(np.float64),
            pool_target=small.pool_labels,
            validation=small.validation.astype(np.float64),
            validation_target=small.validation_labels,
            digest=small.digest,
        )
        trainer = trainer_of(parts, "xgboost:XGBClassifier", **AS_PUBLISHED)
        authors = XGBoostTrainer(small, AS_PUBLISHED)
        config: dict[str, Any] = {"min_child_weight": weight, "n_estimators": 6}
        for rate, depth, size in itertools.product((0.01, 0.5), (2, 9), ("20", "90", "300")):
            config |= {"learning_rate": rate, "max_depth": depth}
            errors = trainer(config, size)["value"] * len(small.validation)
            assert errors == pytest.approx(authors(config, size)["error_count"])

    def test_metrics_are_scikit_learns(self, digits):
        from sklearn.metrics import log_loss
        from sklearn.tree import DecisionTreeClassifier

        tree = DecisionTreeClassifier(min_samples_leaf=9, max_depth=7, random_state=5)
        tree.fit(digits.pool[:300], digits.pool_target[:300])
        accuracy = tree.score(digits.validation, digits.validation_target)
        loss = log_loss(digits.validation_target, tree.predict_proba(digits.validation))
        for scorer, expected, direction in (
            (None, 1 - accuracy, hbo.Direction.MINIMIZE),
            ("accuracy", accuracy, hbo.Direction.MAXIMIZE),
            ("neg_log_loss", loss, hbo.Direction.MINIMIZE),
        ):
            trainer = trainer_of(digits, scorer=scorer, seed=5, min_samples_leaf=9)
            for one in (trainer, pickle.loads(pickle.dumps(trainer))):
                assert one({"max_depth": 7}, "300")["value"] == pytest.approx(expected)
            assert trainer.metric.objective(449).direction is direction
        assert (
            Metric(PredictionKind.CLASSIFICATION, "neg_log_loss").objective(449).name == "log_loss"
        )
        with pytest.raises(UnknownNameError, match="did you mean 'roc_auc'"):
            Metric(PredictionKind.CLASSIFICATION, "roc-auc")

    @pytest.mark.parametrize(
        ("config", "size", "message"),
        [
            ({"a": 4}, "30", r"Line\(a=4\) failed on 30 rows: ValueError: a is large"),
            ({"a": 6}, "10", r"Line\(a=6\) failed on 10 rows: ValueError: a is too large"),
            ({"a": float("inf")}, "10", "the metric is inf|too large"),
            ({"a": 1, "b": float("nan")}, "10", "the metric is nan"),
        ],
    )
    def test_failures(self, toy, config, size, message):
        parts = parts_of(data_set(np.arange(40) / 4), PredictionKind.REGRESSION)
        trainer = trainer_of(parts, f"{toy}:Line")
        with pytest.raises(TrainingError, match=message) as caught:
            trainer(config, size)
        assert "--failures worst" in str(caught.value)
        outcome = replace(trainer, failures=Failures.WORST)(config, size)
        assert outcome["failure"] in str(caught.value)
        # Without a failure there is the mean squared error.
        value = trainer({"a": 0.1}, "20")["value"]
        assert value == pytest.approx(np.mean((parts.validation_target - 2.0) ** 2))

    def test_identity_holds_what_decides_a_value(self, digits):
        trainer = trainer_of(digits)
        assert replace(trainer, failures=Failures.WORST).identity == trainer.identity
        others = [
            replace(trainer, split=replace(digits, digest="x")),
            trainer_of(digits, seed=1),
            trainer_of(digits, max_depth=(1, 2)),
            replace(trainer, model=replace(trainer.model, version="0")),
            trainer_of(digits, scorer="accuracy"),
        ]
        assert len({json.dumps(one.identity) for one in [trainer, *others]}) == 6

    def test_warnings_of_estimators_are_not_shown(self, digits):  # pytest makes them errors
        trainer = trainer_of(digits, "sklearn.linear_model:LogisticRegression")
        trainer({"max_iter": 1}, "100")


@pytest.fixture
def local(tmp_path, monkeypatch):
    """Folder of the user's own benchmarks, empty; the search for best known values is short."""
    monkeypatch.setattr(pipeline, "best_known", partial(best_known, draws=200))
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path / "own"))
    return tmp_path / "own"


CUSTOM = Custom(
    name="wine-tree", model=TREE, data="sklearn:wine", sizes=[60, 20, 120, 20], configurations=12
)
"""Twelve trees on three sizes."""


class TestGeneration:
    def test_makes_a_benchmark_with_the_values_and_table_of_the_trainings(self, local):
        steps: set[str] = set()
        written = generate_custom(CUSTOM, progress=lambda step, done, total: steps.add(step))
        assert written == local / "wine-tree"
        assert "training" in steps
        assert "wine-tree" in hbo.list_benchmarks()
        bench = hbo.load("wine-tree")
        assert bench.objective.direction is hbo.Direction.MINIMIZE
        check_benchmark(bench)
        table = local / "wine-tree-evaluations.parquet"
        raw = read_raw(table, benchmark="wine-tree", space=bench.space)
        assert list(raw.tasks) == ["20", "60", "120"]
        contexts = {name: {"train_size": float(name)} for name in raw.tasks}
        assert raw.about.contexts == {t.name: dict(t.context) for t in bench.tasks} == contexts
        trainer = trainer_of(parts_of(read_data("sklearn:wine")))
        drawn = bench.space.sample_unit(np.random.default_rng(0), 12)
        for task in bench.tasks:
            evaluations = raw.tasks[task.name]
            np.testing.assert_array_equal(evaluations.values, bench.space.decode(drawn))
            configs = bench.space.configs(evaluations.values)
            expected = [trainer(config, task.name)["value"] for config in configs]
            np.testing.assert_array_equal(evaluations.objective, expected)
            # The forest was fitted to these, so it is close to them.
            predicted = task.evaluate_many(evaluations.values)
            assert np.abs(predicted - expected).mean() < np.std(expected)
        card = Artifact(written).read_json("card.json")
        assert (card["evaluations"], card["configurations"]) == (36, 12)
        assert card["command"] == (
            f"hpobench-ordered generate custom --model {TREE} --data sklearn:wine --name wine-tree "
            "--seed 0 --sizes 20,60,120 --configs 12"
        )

    @pytest.mark.parametrize("name", ["newsvendor", "xgboost-mnist", "yahpo-svm-999999"])
    def test_names_of_others_are_refused(self, local, tmp_path, name):
        for output in (None, tmp_path / "other"):
            with pytest.raises(DuplicateNameError, match=f"there is a benchmark '{name}' already"):
                generate_custom(replace(CUSTOM, name=name), output=output, replace=True)
        assert not local.exists()

    @pytest.mark.slow
    def test_a_regenerated_benchmark_is_not_replaced(self, local):
        """Some benchmarks of the package are generated into the folder of the user's own."""
        generators()["newsvendor"].generate(local / "newsvendor")
        with pytest.raises(DuplicateNameError, match="already"):
            generate_custom(replace(CUSTOM, name="newsvendor"), replace=True)

    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            *(
                ({"name": name}, ExperimentError, "name must be letters")
                for name in ("", ".", "..", "a/b", "-x", "x@1", "a b", "ä", "x\n")
            ),
            ({"sizes": []}, ExperimentError, "sizes"),
            ({"sizes": [0, 60]}, ExperimentError, "at least 1, but got"),
            ({"sizes": [1, 60]}, ExperimentError, "smallest size that holds all classes"),
            ({"sizes": [60, 1000]}, ExperimentError, "134 rows are for training"),
            ({"configurations": 9}, ExperimentError, "at least 10"),
            ({"metric": "acuracy"}, UnknownNameError, "did you mean 'accuracy'"),
            ({"model": "sklearn.naive_bayes:GaussianNB"}, ExperimentError, "--space FILE"),
            ({"kind": PredictionKind.REGRESSION, "data": "x.csv"}, ArtifactError, "No such file"),
            ({"space": Path("nowhere.json")}, InvalidSpaceError, "nowhere"),
            ({"fixed": {"max_dept": 1}}, UnknownNameError, "did you mean 'max_depth'"),
        ],
    )
    def test_impossible_requests_are_refused_before_training(self, local, changes, error, message):
        with pytest.raises(error, match=message):
            generate_custom(replace(CUSTOM, **changes))
        assert not list(local.glob("*"))

    @pytest.mark.slow
    def test_scores_are_maximised(self, local):
        changes = {"metric": "accuracy", "model": "sklearn.neighbors:KNeighborsClassifier"}
        generate_custom(replace(CUSTOM, **changes))
        bench = hbo.load("wine-tree")
        assert bench.objective.direction is hbo.Direction.MAXIMIZE
        assert bench.space["n_neighbors"].upper == 20
        for task in bench.tasks:
            assert task.best_value is not None and 0.5 < task.best_value <= 1


SPACE = """{"hyperparameters": [
  {"type": "uniform_float", "name": "a", "lower": 0.0, "upper": %s, "log": false},
  {"type": "categorical", "name": "mode", "choices": ["one", 2, true]},
  {"type": "constant", "name": "c", "value": 3}
]}"""


class TestModelsOfOnesOwn:
    @pytest.fixture
    def line(self, toy, tmp_path):
        """Asks for a class of the user's own, on a file, in a space from a file."""

        def make(upper: float, **changes: Any) -> Custom:
            (tmp_path / "space.json").write_text(SPACE % upper)
            numbers, space = tmp_path / "numbers.csv", tmp_path / "space.json"
            frame = pd.DataFrame({"x": np.arange(60), "y": np.arange(60) / 7, "z": ["u", "v"] * 30})
            frame.to_csv(numbers, index=False)
            custom = Custom(name="line", model=f"{toy}:Line", data=str(numbers), sizes=[10, 20, 30])
            changes = {"configurations": 20, "fixed": {"b": 0.5}} | changes
            return replace(custom, target="y", space=space, **changes)

        return make

    def test_are_trained_as_those_of_others(self, local, line, tmp_path):
        generate_custom(line(2.0))
        bench = hbo.load("line")
        assert bench.objective.name == "squared_error"
        assert bench.objective.direction is hbo.Direction.MINIMIZE
        assert bench.space.constants == {"c": 3}
        command = Artifact(local / "line").read_json("card.json")["command"]
        assert str(tmp_path) not in command
        assert "--data numbers.csv --target y --space space.json" in command
        assert "--set b=0.5" in command
        frame = pd.read_parquet(local / "line-evaluations.parquet")
        assert set(frame["config.mode"]) == {"one", "2", "True"}
        np.testing.assert_allclose(frame["seconds"] > 0, True)

    def test_a_failure_stops_everything(self, local, line, tmp_path):
        with pytest.raises(TrainingError, match=r"Line\(a=.* failed on 30 rows: ValueError: a is"):
            generate_custom(line(4.9))
        assert not (local / "line").exists()
        custom = line(4.9, failures=Failures.WORST)
        (tmp_path / "space.json").write_text((SPACE % 4.9).replace("0.0", "3.1"))
        with pytest.raises(TrainingError, match="failed on 30 rows"):  # without a worst value
            generate_custom(custom)

    @pytest.mark.slow
    def test_failures_may_count_as_worst(self, local, line):
        generate_custom(line(4.9, failures=Failures.WORST))
        frame = pd.read_parquet(local / "line-evaluations.parquet")
        failed = frame["failure"].notna()
        np.testing.assert_array_equal(failed, (frame["config.a"] > 3) & (frame["task"] == "30"))
        assert 0 < failed.sum() < 20
        worst = frame["value"][~failed & (frame["task"] == "30")].max()
        assert set(frame["value"][failed]) == {worst}
        limits = Artifact(local / "line").read_json("card.json")["limits"]
        assert any(f"{failed.sum()} of 60 trainings failed" in limit for limit in limits)
        with pytest.raises(TrainingError, match="failed on 30 rows"):
            generate_custom(line(4.9), replace=True)

    def test_what_cannot_even_be_made_is_refused(self, local, line, tmp_path):
        custom = line(9.0)
        (tmp_path / "space.json").write_text((SPACE % 9.0).replace("0.0", "5.1"))
        with pytest.raises(ExperimentError, match=r"cannot be made with .* a is too large"):
            generate_custom(custom)
        with pytest.raises(ExperimentError, match="a: both fixed and in the search space"):
            generate_custom(line(2.0, fixed={"a": 1}))
        with pytest.raises(UnknownNameError, match="keyword"):
            generate_custom(replace(custom, model=custom.model.replace("Line", "make"), fixed={}))
