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
from hypothesis import assume, given
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.data.local import LOCAL_VARIABLE
from hpobench_ordered.errors import (
    ArtifactError,
    DuplicateNameError,
    ExperimentError,
    InvalidSpaceError,
    UnknownNameError,
)
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

CLASSIFICATION = PredictionKind.CLASSIFICATION
REGRESSION = PredictionKind.REGRESSION
TREE_CLASS = "sklearn.tree:DecisionTreeClassifier"
NEIGHBOURS_CLASS = "sklearn.neighbors:KNeighborsClassifier"
# "?" and empty cells are missing values.
CSV_OF_THINGS = """colour,size,weight,kind
red,1,2.5,a
blue,?,3.5,b
,3,,a
red,4,1.5,b
green,5,0.5,a
"""
CODE_OF_TOY_MODULE = """
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
MODULE_NUMBERS = itertools.count()


@pytest.fixture
def table_path(tmp_path):
    """Path of a CSV file with five rows, in which a colour, a size and a weight are missing."""
    path = tmp_path / "things.csv"
    path.write_text(CSV_OF_THINGS)
    return path


@pytest.fixture
def write_module(tmp_path, monkeypatch):
    """A function that writes a module of the user's own, and returns its name."""

    def write(code: str) -> str:
        """Write the code into a module of a new name, and return the name."""
        # Each test needs a new name, as Python imports a module once.
        name = f"toy_{next(MODULE_NUMBERS)}"
        (tmp_path / f"{name}.py").write_text(dedent(code))
        monkeypatch.syspath_prepend(tmp_path)
        return name

    return write


@pytest.fixture
def toy_module(write_module):
    """Name of a module of the user's own, with a class, a function and a number.

    The class `Line` predicts a * number of training rows + b, the function `make` returns a `Line`,
    and the number is called `NUMBER`.
    """
    return write_module(CODE_OF_TOY_MODULE)


@pytest.fixture(scope="module")
def digits():
    """The digits of scikit-learn, split with seed 0."""
    return make_split(read_data("sklearn:digits"))


def make_data_set(target: Any, numbers: np.ndarray | None = None) -> DataSet:
    """Make a data set with this target and no categories; by default two columns count up."""
    rows = len(target)
    if numbers is None:
        numbers = np.arange(2.0 * rows).reshape(rows, 2)
    no_categories = np.empty((rows, 0), np.int64)
    return DataSet("made", "made here", numbers, no_categories, np.array(target))


def make_split(
    data: DataSet,
    kind: PredictionKind = CLASSIFICATION,
    *,
    validation: float = 0.25,
    seed: int = 0,
) -> DataSplit:
    """Split a data set, by default into a quarter of the rows for validation and a pool."""
    return split_data(data, kind, validation=validation, seed=seed)


def make_trainer(
    split: DataSplit,
    path: str = TREE_CLASS,
    *,
    scorer: str | None = None,
    seed: int = 0,
    **fixed: Any,
) -> EstimatorTrainer:
    """Make a trainer of the class at a path, by default a decision tree, with fixed keywords."""
    model = Model.from_path(path, fixed=fixed, seed=seed)
    return EstimatorTrainer(split, model, Metric(split.kind, scorer))


class TestData:
    @pytest.mark.parametrize("name", ["things.csv", "things.parquet", "things.csv.gz"])
    def test_table_is_read_in_any_format(self, table_path, tmp_path, name):
        """The same table as a CSV file, a compressed one, and as Parquet.

        The last column is the target; the others are a colour, a size and a weight, with gaps.
        """
        frame = pd.read_csv(table_path, na_values="?")  # things.csv is there already
        if name.endswith(".parquet"):
            frame.to_parquet(tmp_path / name)
        elif name.endswith(".gz"):
            frame.astype({"colour": "category"}).to_csv(tmp_path / name, index=False)

        data = read_data(str(tmp_path / name))

        assert data.target.tolist() == list("ababa")
        sizes_and_weights = [[1, 2.5], [np.nan, 3.5], [3, np.nan], [4, 1.5], [5, 0.5]]
        np.testing.assert_array_equal(data.numbers, sizes_and_weights)
        # Colours in alphabetical order: blue, green, red; a missing one is -1.
        assert data.categories.tolist() == [[2], [0], [-1], [2], [1]]

    def test_origin_has_the_hash(self, table_path):
        """The hash tells files of the same name apart."""
        data = read_data(str(table_path))

        assert data.name == "things"
        assert "things.csv (SHA-256 " in data.origin

    def test_any_column_can_be_the_target(self, table_path):
        """The weight is asked for; else the last column, the kind, would be the target."""
        with_all_weights = CSV_OF_THINGS.replace("3,,", "3,4.5,")
        table_path.write_text(with_all_weights)

        data = read_data(str(table_path), target="weight")

        assert data.target.tolist() == [2.5, 3.5, 4.5, 1.5, 0.5]
        # The size is a number; colour and kind are categories.
        assert data.numbers.shape == (5, 1)
        assert data.categories.shape == (5, 2)

    def test_missing_target_is_refused(self, table_path):
        """One of the table's five weights is missing, so the weight cannot be the target."""
        with pytest.raises(ArtifactError, match="1 rows have no 'weight'"):
            read_data(str(table_path), target="weight")

    def test_unknown_target_suggests_another(self, table_path):
        misspelt = "wight"

        with pytest.raises(UnknownNameError, match="did you mean 'weight'"):
            read_data(str(table_path), target=misspelt)

    @pytest.mark.parametrize(("inputs", "target"), [("data", "target"), ("X", "y")])
    def test_arrays_of_any_shape_are_read(self, tmp_path, inputs, target):
        """Arrays in a file are called data and target, or X and y; each image becomes a row."""
        images = np.arange(24, dtype=np.uint8).reshape(3, 2, 4)
        labels = np.array(["cat", "dog", "cat"])
        np.savez(tmp_path / "x.npz", **{inputs: images, target: labels})

        data = read_data(str(tmp_path / "x.npz"))

        np.testing.assert_array_equal(data.numbers, images.reshape(3, 8))
        assert data.target.tolist() == ["cat", "dog", "cat"]

    def test_data_of_scikit_learn_are_loaded(self):
        """Data sets that come with scikit-learn are given by their name after `sklearn:`."""
        data = read_data("sklearn:digits")

        assert data.name == "digits"
        # 1797 images of 8 x 8 pixels.
        assert data.numbers.shape == (1797, 64)

    def test_unknown_data_suggest_others(self):
        with pytest.raises(UnknownNameError, match="did you mean 'digits'"):
            read_data("sklearn:digit")

    def test_data_without_columns_have_no_target(self):
        """The digits are an array of pixels, so no column can be chosen as the target."""
        with pytest.raises(ExperimentError, match="no named columns"):
            read_data("sklearn:digits", target="class")

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("a;b\n1;2\n", "separated by commas"),
            ("a,b\n", "0 rows"),
            ("a,b\n1,x\n2,\n", "1 rows have no 'b'"),  # b, the last column, is the target
            ("a,b\ninf,1\n2,3\n", "infinite"),
            # A column of too many texts is no category.
            ("a,b\n" + "".join(f"x{k},1\n" for k in range(101)), "101 different values"),
            ('a,b\n"1,2\n', "cannot read"),  # an open quote
            ("", "cannot read"),
        ],
    )
    def test_other_tables_are_refused(self, tmp_path, content, message):
        """A CSV file that makes no data set is refused with the reason."""
        (tmp_path / "x.csv").write_text(content)

        with pytest.raises(ArtifactError, match=message):
            read_data(str(tmp_path / "x.csv"))

    @pytest.mark.parametrize(
        ("name", "message"),
        [("x.csv", "No such file"), ("x.txt", r"\.parquet, \.npz, or sklearn:NAME")],
    )
    def test_missing_files_are_refused(self, tmp_path, name, message):
        """No file has this name; the second name would be refused anyway, for its ending."""
        with pytest.raises(ArtifactError, match=message):
            read_data(str(tmp_path / name))

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"data": np.array([{}]), "target": np.ones(1)}, "`data`"),
            ({"data": np.ones((3, 2)), "target": np.ones((3, 2))}, "3 rows and a target"),
        ],
    )
    def test_other_arrays_are_refused(self, tmp_path, arrays, message):
        """The one file has an array of objects, the other a target of two columns."""
        np.savez(tmp_path / "x.npz", **arrays, allow_pickle=True)

        with pytest.raises(ArtifactError, match=message):
            read_data(str(tmp_path / "x.npz"))

    def test_dates_are_refused(self, tmp_path):
        """The column a holds dates, which are neither numbers nor categories."""
        frame = pd.DataFrame({"a": pd.to_datetime(["2020-01-01"]), "b": [1]})
        frame.to_parquet(tmp_path / "x.parquet")

        with pytest.raises(ArtifactError, match="'a' holds dates"):
            read_data(str(tmp_path / "x.parquet"))


class TestSplit:
    @pytest.fixture
    def data(self):
        """Eighty rows of three numbers, some of them missing, and of two categories.

        The first category has the values 0 to 2, or -1 where it is missing.
        """
        rng = np.random.default_rng(0)
        numbers = rng.normal(5, 3, (80, 3))
        is_missing = rng.random((80, 3)) < 0.2
        numbers[is_missing] = np.nan
        categories = np.stack([rng.integers(-1, 3, 80), rng.integers(0, 2, 80)], axis=1)
        target = rng.integers(0, 2, 80)
        return DataSet("made", "made here", numbers, categories, target)

    @pytest.fixture
    def rows_of_parts(self, data):
        """Which rows the pool has, and which the validation part, in a split with seed 3.

        A row's number is put in place of its target, to be found again in the split.
        """
        data_with_row_numbers = replace(data, target=np.arange(80.0))
        split = make_split(data_with_row_numbers, REGRESSION, seed=3)
        return split.pool_target.astype(int), split.validation_target.astype(int)

    def test_every_row_is_in_one_part(self, rows_of_parts):
        """A row is either in the pool or in the part for validation."""
        pool_rows, validation_rows = rows_of_parts

        # A quarter of 80 rows is for validation.
        assert len(pool_rows) == 60
        assert sorted([*pool_rows, *validation_rows]) == list(range(80))

    def test_features_are_scikit_learns(self, data, rows_of_parts):
        """Features are those that scikit-learn makes: none is missing, and all are standardised.

        Missing numbers become the pool's median, and a category one column for each of its values.
        """
        from sklearn.compose import make_column_transformer
        from sklearn.impute import SimpleImputer
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        split = make_split(data, seed=3)

        columns = np.concatenate([data.numbers, data.categories], axis=1)
        # Three columns of numbers come first, then two of categories.
        imputation = (SimpleImputer(strategy="median"), [0, 1, 2])
        one_hot = (OneHotEncoder(drop="if_binary", sparse_output=False), [3, 4])
        pipeline = make_pipeline(make_column_transformer(imputation, one_hot), StandardScaler())
        pool_rows, validation_rows = rows_of_parts
        expected_pool = pipeline.fit_transform(columns[pool_rows])
        expected_validation = pipeline.transform(columns[validation_rows])
        np.testing.assert_allclose(split.pool, expected_pool, atol=1e-12)
        np.testing.assert_allclose(split.validation, expected_validation, atol=1e-12)

    def test_target_is_in_the_order_of_rows(self, data, rows_of_parts):
        """Rows of features and of the target stay together when they are shuffled."""
        pool_rows, validation_rows = rows_of_parts

        split = make_split(data, seed=3)  # as the rows were found with

        np.testing.assert_array_equal(split.pool_target, data.target[pool_rows])
        np.testing.assert_array_equal(split.validation_target, data.target[validation_rows])

    def test_uninformative_columns_are_dropped_or_centred(self):
        """A column without any number is dropped, a constant one becomes 0."""
        counting, empty, constant = np.arange(8.0), np.full(8, np.nan), np.full(8, 7.0)
        numbers = np.column_stack([counting, empty, constant])

        split = make_split(make_data_set(np.arange(8) % 2, numbers))

        # Two of the eight rows are for validation.
        assert split.pool.shape == (6, 2)
        assert split.pool[:, 1].tolist() == [0.0] * 6

    def test_digests_differ_by_data_and_split(self):
        """A digest tells data, seed and share for validation apart."""
        data = make_data_set(np.arange(40) % 2)
        changed_data = replace(data, numbers=data.numbers + np.eye(40, 2))

        digests = [make_split(data, seed=seed).digest for seed in range(5)]
        digests.append(make_split(changed_data).digest)
        digests.append(make_split(data, validation=0.5).digest)

        # Five seeds, changed numbers, another share for validation: all differ.
        assert len(set(digests)) == 7

    def test_same_split_has_same_digest(self):
        """A digest depends on nothing else than data and split."""
        data = make_data_set(np.arange(40) % 2)

        assert make_split(data).digest == make_split(data).digest

    @given(labels=st.lists(st.integers(0, 3), min_size=12, max_size=60), seed=st.integers(0, 5))
    def test_message_names_the_smallest_size(self, labels, seed):
        """If a training set lacks a class, the error names the smallest size that has all classes.

        Training sets are the first rows of the pool. A single row lacks a class, as there are two
        or more.
        """
        data = make_data_set([*labels, 0, 1] * 4)
        try:
            split = make_split(data, seed=seed)
        except ExperimentError:
            assume(False)  # the pool or the validation part lacks a class, whatever the size
        with pytest.raises(ExperimentError, match=r"lacks the class.* classes is") as caught:
            split.check_sizes([1])

        _, _, last_word = str(caught.value).rpartition(" ")
        smallest_size = int(last_word)

        split.check_sizes([smallest_size, len(split.pool)])
        with pytest.raises(ExperimentError, match="lacks"):
            split.check_sizes([smallest_size - 1])

    def test_size_beyond_the_pool_is_refused(self):
        """A quarter of the 40 rows is for validation, so 30 are left for training."""
        split = make_split(make_data_set([0, 1] * 20))

        with pytest.raises(ExperimentError, match="30 rows are for training"):
            split.check_sizes([10, 31])

    @pytest.mark.parametrize(
        ("target", "kind"),
        [
            (["a", "b"], CLASSIFICATION),
            ([True, False], CLASSIFICATION),
            ([0, 1, 2], CLASSIFICATION),
            ([0.0, 1.0], CLASSIFICATION),
            ([0.5, 1.0], REGRESSION),
            (range(21), REGRESSION),
        ],
    )
    def test_kind_is_inferred_from_target(self, target, kind):
        """Fractions, and more than 20 different numbers, mean regression."""
        assert infer_kind_of_target(np.array(target)) is kind

    def test_classes_are_in_numeric_order(self):
        """As texts, 10 and 100 would be before 9. A target is coded by the place of its class."""
        data = make_data_set([10, 9, 100] * 4)

        split = make_split(data)

        assert split.classes == ("9", "10", "100")
        decoded_target = np.array([9, 10, 100])[split.pool_target]
        # A regression on the same rows keeps the numbers as they are.
        np.testing.assert_array_equal(decoded_target, make_split(data, REGRESSION).pool_target)

    @pytest.mark.parametrize(
        ("target", "kind", "message"),
        [
            (["a"] * 8, CLASSIFICATION, "only one class"),
            ([0.5, 1.5] * 4, CLASSIFICATION, "fractional values, such as 0.5"),
            (["a", "b"] * 4, REGRESSION, "is text, such as 'a'"),
            # Forty classes of one row each
            (range(40), CLASSIFICATION, r"5 more of made, of 40 classes .* regression"),
        ],
    )
    def test_other_targets_are_refused(self, target, kind, message):
        """A target that cannot be predicted as this kind is refused with the reason."""
        with pytest.raises(ExperimentError, match=message):
            make_split(make_data_set(target), kind)

    @pytest.mark.parametrize("validation", [0.0, 0.01, 0.99])
    def test_empty_parts_are_refused(self, validation):
        """With such a share for validation, one of the parts would have none of the eight rows."""
        with pytest.raises(ExperimentError, match="between 0 and 1"):
            make_split(make_data_set([0, 1] * 4), validation=validation)


class TestModel:
    @pytest.mark.parametrize(
        ("path", "keywords", "message"),
        [
            ("sklearn.tree.DecisionTreeClassifier", {}, f"did you mean '{TREE_CLASS}'"),
            ("sklearn.tree:", {}, "MODULE:CLASS"),
            ("sklearn.trees:X", {}, r"did you mean 'sklearn\.tree'"),
            ("sklaern.tree:X", {}, "did you mean 'sklearn'"),
            ("qqqqqq:X", {}, "is it installed, or a file in this folder"),
            ("sklearn.tree:DecisionTree", {}, "did you mean 'BaseDecisionTree'"),
            ("{toy_module}:NUMBER", {}, "not a class"),
            (TREE_CLASS, {"depth": 3}, "did you mean 'max_depth'"),
            ("{toy_module}:make", {"c": 3}, "unknown keyword"),
        ],
    )
    def test_unknown_names_are_refused(self, toy_module, path, keywords, message):
        """A path must name a class, or a function that makes one, and keywords must be taken by it.

        In a path, {toy_module} stands for the name of the fixture's module.
        """
        with pytest.raises((ExperimentError, UnknownNameError), match=message):
            Model.from_path(path.format(toy_module=toy_module), fixed=keywords, seed=0)

    @pytest.mark.parametrize(
        ("code", "message"),
        [
            ("import no_such_library", "needs 'no_such_library'"),
            ("1 / 0", "ZeroDivisionError"),
            ("def", "SyntaxError"),
        ],
    )
    def test_broken_modules_are_refused(self, write_module, code, message):
        """A module that cannot be imported is refused with the cause, such as a missing library."""
        name = write_module(code)

        with pytest.raises(ExperimentError, match=message):
            Model.from_path(f"{name}:X", fixed={}, seed=0)

    @pytest.mark.parametrize(
        ("path", "keywords", "all_keywords"),
        [
            ("sklearn.ensemble:RandomForestClassifier", {}, {"random_state": 7, "n_jobs": 1}),
            (TREE_CLASS, {"random_state": 3, "max_depth": 2}, {"random_state": 3, "max_depth": 2}),
            ("sklearn.svm:SVR", {}, {}),
            ("{toy_module}:Line", {"c": 3}, {"c": 3}),  # it takes any keyword
            ("{toy_module}:make", {}, {"random_state": 7}),
        ],
    )
    def test_seed_and_jobs_are_fixed(self, toy_module, path, keywords, all_keywords):
        """To the user's keywords come the seed, 7, and one job, if the class takes these keywords.

        What the user sets stays as it is.
        """
        model = Model.from_path(path.format(toy_module=toy_module), fixed=keywords, seed=7)

        assert dict(model.fixed) == all_keywords

    @pytest.mark.usefixtures("xgboost")
    def test_inherited_keywords_are_fixed(self):
        """XGBoost's classifier inherits the keywords of seed and jobs from other classes."""
        model = Model.from_path("xgboost:XGBClassifier", fixed={}, seed=7)

        assert dict(model.fixed) == {"random_state": 7, "n_jobs": 1}

    @pytest.mark.parametrize(
        ("path", "config", "kind"),
        [
            ("sklearn.svm:SVC", {}, CLASSIFICATION),
            ("sklearn.svm:SVR", {}, REGRESSION),
            ("{toy_module}:make", {"a": 1}, None),
        ],
    )
    def test_kind_is_inferred_from_estimator(self, toy_module, path, config, kind):
        """Classes of scikit-learn tell their kind; a user's own need not."""
        model = Model.from_path(path.format(toy_module=toy_module), fixed={}, seed=0)

        assert infer_kind_of_estimator(model.make_estimator(config)) is kind

    def test_version_is_that_of_package(self):
        """A change of the package that a class comes from may change results."""
        import sklearn

        assert Model.from_path(TREE_CLASS, fixed={}, seed=0).version == sklearn.__version__

    def test_module_without_version_is_hashed(self, toy_module):
        """A file of the user's own has no version, so its hash identifies it."""
        model = Model.from_path(f"{toy_module}:make", fixed={}, seed=0)

        assert model.version.startswith("SHA-256 ")


class TestTraining:
    @pytest.mark.usefixtures("xgboost")
    @pytest.mark.parametrize("size", ["20", "90", "300"])
    @pytest.mark.parametrize("rate", [0.01, 0.5])
    @pytest.mark.parametrize("depth", [2, 9])
    @pytest.mark.parametrize("weight", [1.0, 32.0])
    def test_errors_are_those_of_xgboost_mnist(self, image_split, weight, depth, rate, size):
        """The general trainer makes as many errors as the special trainer of `xgboost-mnist`.

        Both train XGBoost with the settings `AS_PUBLISHED` on the same small images.
        """
        split = DataSplit(
            kind=CLASSIFICATION,
            classes=tuple("0123456789"),
            pool=image_split.pool.astype(np.float64),
            pool_target=image_split.pool_labels,
            validation=image_split.validation.astype(np.float64),
            validation_target=image_split.validation_labels,
            digest=image_split.digest,
        )
        config = {
            "min_child_weight": weight,
            "n_estimators": 6,
            "learning_rate": rate,
            "max_depth": depth,
        }

        outcome = make_trainer(split, "xgboost:XGBClassifier", **AS_PUBLISHED)(config, size)

        expected = XGBoostTrainer(image_split, AS_PUBLISHED)(config, size)["error_count"]
        assert outcome["value"] * len(image_split.validation) == pytest.approx(expected)

    @pytest.fixture
    def tree(self, digits):
        """The tree of `train_tree`, but fitted by scikit-learn alone to the first 300 rows."""
        from sklearn.tree import DecisionTreeClassifier

        tree = DecisionTreeClassifier(min_samples_leaf=9, max_depth=7, random_state=5)
        return tree.fit(digits.pool[:300], digits.pool_target[:300])

    def train_tree(self, digits: DataSplit, scorer: str | None) -> float:
        """Train the tree of the fixture `tree` by a trainer, and return its value by a metric."""
        trainer = make_trainer(digits, scorer=scorer, seed=5, min_samples_leaf=9)
        value: float = trainer({"max_depth": 7}, "300")["value"]
        return value

    @pytest.mark.parametrize("scorer", [None, "accuracy", "neg_log_loss"])
    def test_pickled_trainer_trains_the_same(self, digits, scorer):
        """Trainers are pickled for other processes, with each kind of metric."""
        trainer = make_trainer(digits, scorer=scorer, seed=5, min_samples_leaf=9)

        unpickled = pickle.loads(pickle.dumps(trainer))

        value = trainer({"max_depth": 7}, "300")["value"]
        assert unpickled({"max_depth": 7}, "300")["value"] == value

    def test_default_metric_is_the_error(self, digits, tree):
        """Without a scorer, the value is the share of wrong predictions."""
        accuracy = tree.score(digits.validation, digits.validation_target)

        value = self.train_tree(digits, scorer=None)

        assert value == pytest.approx(1 - accuracy)

    def test_scores_are_scikit_learns(self, digits, tree):
        """The value by a scorer is the score that scikit-learn computes."""
        accuracy = tree.score(digits.validation, digits.validation_target)

        value = self.train_tree(digits, scorer="accuracy")

        assert value == pytest.approx(accuracy)

    def test_negated_scores_are_errors(self, digits, tree):
        """Scorers are maximised; that of a loss is negated, and its name starts with `neg_`."""
        from sklearn.metrics import log_loss

        loss = log_loss(digits.validation_target, tree.predict_proba(digits.validation))

        value = self.train_tree(digits, scorer="neg_log_loss")

        assert value == pytest.approx(loss)

    @pytest.mark.parametrize(
        ("scorer", "name", "direction"),
        [
            (None, "error", hbo.Direction.MINIMIZE),
            ("accuracy", "accuracy", hbo.Direction.MAXIMIZE),
            ("neg_log_loss", "log_loss", hbo.Direction.MINIMIZE),
        ],
    )
    def test_objectives_of_metrics(self, scorer, name, direction):
        """The default metric, a score, and a loss, whose scorer is negated."""
        objective = Metric(CLASSIFICATION, scorer).objective(449)  # rows for validation, any number

        assert objective.name == name
        assert objective.direction is direction

    def test_unknown_metric_suggests_another(self):
        with pytest.raises(UnknownNameError, match="did you mean 'roc_auc'"):
            Metric(CLASSIFICATION, "roc-auc")

    @pytest.fixture
    def line_trainer(self, toy_module):
        """A trainer of `Line` on 40 rows: trained on n rows, it predicts a * n + b."""
        split = make_split(make_data_set(np.arange(40) / 4), REGRESSION)
        return make_trainer(split, f"{toy_module}:Line")

    def test_default_metric_is_the_squared_error(self, line_trainer):
        """Without a scorer, the value of a regression is the mean squared error."""
        value = line_trainer({"a": 0.1}, "20")["value"]

        # A line predicts a times the number of training rows.
        prediction = 0.1 * 20
        target = line_trainer.split.validation_target
        assert value == pytest.approx(np.mean((target - prediction) ** 2))

    @pytest.mark.parametrize(
        ("config", "size", "message"),
        [
            ({"a": 4}, "30", r"Line\(a=4\) failed on 30 rows: ValueError: a is large"),
            ({"a": 6}, "10", r"Line\(a=6\) failed on 10 rows: ValueError: a is too large"),
            ({"a": float("inf")}, "10", "the metric is inf|too large"),
            ({"a": 1, "b": float("nan")}, "10", "the metric is nan"),
        ],
    )
    def test_failure_names_the_way_out(self, line_trainer, config, size, message):
        """The error of a failed training names the option with which failures count as worst.

        A line fails with a above 5, with a above 3 on many rows, or with predictions that are not
        finite.
        """
        with pytest.raises(TrainingError, match=f"(?s){message}.*--failures worst"):
            line_trainer(config, size)

    def test_failure_may_be_an_outcome(self, line_trainer):
        """If failures count as worst, there is no error; with a above 3 a line fails here."""
        trainer = replace(line_trainer, failures=Failures.WORST)

        assert trainer({"a": 4}, "30") == {"failure": "ValueError: a is large"}

    def test_identity_ignores_treatment_of_failures(self, digits):
        """Trainings that succeeded are used again, however failures are treated."""
        stopping = make_trainer(digits)

        continuing = replace(stopping, failures=Failures.WORST)

        assert continuing.identity == stopping.identity

    def test_identity_has_what_decides_values(self, digits):
        """Each of these five changes gives a trainer another identity, so none is missing."""
        trainer = make_trainer(digits)
        of_other_data = replace(trainer, split=replace(digits, digest="x"))
        of_other_version = replace(trainer, model=replace(trainer.model, version="0"))
        with_other_seed = make_trainer(digits, seed=1)
        with_fixed_keyword = make_trainer(digits, max_depth=(1, 2))
        with_other_metric = make_trainer(digits, scorer="accuracy")
        trainers = [
            trainer,
            of_other_data,
            of_other_version,
            with_other_seed,
            with_fixed_keyword,
            with_other_metric,
        ]

        identities = {json.dumps(trainer.identity) for trainer in trainers}

        assert len(identities) == len(trainers)

    def test_warnings_of_estimators_are_hidden(self, digits):
        """scikit-learn warns of too few iterations, which would make this test fail."""
        trainer = make_trainer(digits, "sklearn.linear_model:LogisticRegression")

        trainer({"max_iter": 1}, "100")


@pytest.fixture
def own_benchmarks(tmp_path, monkeypatch):
    """Folder of the user's own benchmarks, empty; the search for best known values is short."""
    monkeypatch.setattr(pipeline, "best_known", partial(best_known, draws=200))
    monkeypatch.setenv(LOCAL_VARIABLE, str(tmp_path / "own"))
    return tmp_path / "own"


WINE_TREE = Custom(
    name="wine-tree",
    model=TREE_CLASS,
    data="sklearn:wine",
    sizes=[60, 20, 120, 20],
    configurations=12,
)
"""Twelve trees on three sizes."""


class TestGeneration:
    @pytest.fixture
    def artifact(self, own_benchmarks):
        """The folder of the benchmark, generated from `WINE_TREE`."""
        return generate_custom(WINE_TREE)

    def test_progress_is_told(self, own_benchmarks):
        """The function `progress` is called with each step of the generation."""
        steps = set()

        generate_custom(WINE_TREE, progress=lambda step, done, total: steps.add(step))

        assert "training" in steps

    def test_benchmark_is_found_by_name(self, artifact, own_benchmarks):
        assert artifact == own_benchmarks / "wine-tree"
        assert "wine-tree" in hbo.list_benchmarks()
        assert hbo.load("wine-tree").name == "wine-tree"

    @pytest.mark.usefixtures("artifact")
    def test_default_objective_is_minimised(self):
        """Without a metric asked for, the objective is the share of errors."""
        assert hbo.load("wine-tree").objective.direction is hbo.Direction.MINIMIZE

    @pytest.mark.usefixtures("artifact")
    def test_benchmark_passes_the_public_checks(self):
        check_benchmark(hbo.load("wine-tree"))

    @pytest.fixture
    def written_table(self, artifact):
        """The evaluations that are written to a file next to the artifact, read back."""
        path = artifact.with_name("wine-tree-evaluations.parquet")
        return read_raw(path, benchmark="wine-tree", space=hbo.load("wine-tree").space)

    def test_tasks_are_the_sizes(self, written_table):
        """Sizes were asked for in another order; tasks are in ascending order."""
        assert list(written_table.tasks) == ["20", "60", "120"]
        assert [task.name for task in hbo.load("wine-tree").tasks] == ["20", "60", "120"]

    def test_context_of_task_is_its_size(self, written_table):
        """A task is a number of training rows, which is its context, too."""
        contexts = {name: {"train_size": float(name)} for name in ("20", "60", "120")}

        assert written_table.about.contexts == contexts
        tasks = hbo.load("wine-tree").tasks
        assert {task.name: dict(task.context) for task in tasks} == contexts

    def test_table_has_the_trainings(self, written_table):
        """The trainings are of the twelve configurations that seed 0 draws."""
        space = hbo.load("wine-tree").space
        values = space.decode(space.sample_unit(np.random.default_rng(0), 12))
        trainer = make_trainer(make_split(read_data("sklearn:wine")))
        for size, evaluations in written_table.tasks.items():
            np.testing.assert_array_equal(evaluations.values, values)
            expected = [trainer(config, size)["value"] for config in space.configs(values)]
            np.testing.assert_array_equal(evaluations.objective, expected)

    def test_forest_is_close_to_trainings(self, written_table):
        """The benchmark's forest predicts the results of the trainings that it was fitted to.

        A forest that predicts the mean result for every configuration has a root mean squared
        error of the standard deviation of the results.
        """
        for task in hbo.load("wine-tree").tasks:
            evaluations = written_table.tasks[task.name]

            predicted = task.evaluate_many(evaluations.values)

            squared_errors = (predicted - evaluations.objective) ** 2
            root_mean_squared_error = np.sqrt(squared_errors.mean())
            assert root_mean_squared_error < np.std(evaluations.objective)

    def test_card_names_sizes_and_command(self, artifact):
        """The card counts evaluations, and has the command that would make the benchmark again."""
        card = Artifact(artifact).read_json("card.json")

        # Twelve configurations on three sizes.
        assert (card["evaluations"], card["configurations"]) == (36, 12)
        assert card["command"] == (
            f"hpobench-ordered generate custom --model {TREE_CLASS} --data sklearn:wine "
            "--name wine-tree --seed 0 --sizes 20,60,120 --configs 12"
        )

    @pytest.mark.parametrize("output", [None, "other"])
    @pytest.mark.parametrize("name", ["newsvendor", "xgboost-mnist", "yahpo-svm-999999"])
    def test_names_of_others_are_refused(self, own_benchmarks, tmp_path, name, output):
        """A benchmark cannot have the name of one of the package, wherever it is written.

        Of yahpo-svm-999999 the package has only a definition, no artifact.
        """
        folder = None if output is None else tmp_path / output
        custom = replace(WINE_TREE, name=name)

        with pytest.raises(DuplicateNameError, match=f"there is a benchmark '{name}' already"):
            # `replace` is for benchmarks of one's own.
            generate_custom(custom, output=folder, replace=True)

        assert not own_benchmarks.exists()

    @pytest.mark.slow
    def test_regenerated_benchmark_is_not_replaced(self, own_benchmarks):
        """`replace` replaces benchmarks of the user's own, but not one of the package.

        That is so even if the user has generated it again, in the folder of the user's own.
        """
        generators()["newsvendor"].generate(own_benchmarks / "newsvendor")

        with pytest.raises(DuplicateNameError, match="already"):
            generate_custom(replace(WINE_TREE, name="newsvendor"), replace=True)

    @pytest.mark.parametrize("name", ["", ".", "..", "a/b", "-x", "x@1", "a b", "ä", "x\n"])
    def test_other_names_are_refused(self, own_benchmarks, name):
        """Names that are no plain names of folders."""
        with pytest.raises(ExperimentError, match="name must be letters"):
            generate_custom(replace(WINE_TREE, name=name))

        assert not list(own_benchmarks.glob("*"))

    @pytest.mark.parametrize(
        ("changes", "error", "message"),
        [
            ({"sizes": []}, ExperimentError, "sizes"),
            ({"sizes": [0, 60]}, ExperimentError, "at least 1, but got"),
            ({"sizes": [1, 60]}, ExperimentError, "smallest size that holds all classes"),
            ({"sizes": [60, 1000]}, ExperimentError, "134 rows are for training"),
            ({"configurations": 9}, ExperimentError, "at least 10"),
            ({"metric": "acuracy"}, UnknownNameError, "did you mean 'accuracy'"),
            ({"model": "sklearn.naive_bayes:GaussianNB"}, ExperimentError, "--space FILE"),
            ({"kind": REGRESSION, "data": "x.csv"}, ArtifactError, "No such file"),
            ({"space": Path("nowhere.json")}, InvalidSpaceError, "nowhere"),
            ({"fixed": {"max_dept": 1}}, UnknownNameError, "did you mean 'max_depth'"),
        ],
    )
    def test_impossible_requests_start_nothing(self, own_benchmarks, changes, error, message):
        """The benchmark `WINE_TREE` can be generated; each case changes one thing about it."""
        with pytest.raises(error, match=message):
            generate_custom(replace(WINE_TREE, **changes))

        assert not list(own_benchmarks.glob("*"))

    @pytest.mark.slow
    @pytest.mark.usefixtures("own_benchmarks")
    def test_scores_are_maximised(self):
        """The accuracy of a classifier by nearest neighbours; guessing would reach a third."""
        generate_custom(replace(WINE_TREE, metric="accuracy", model=NEIGHBOURS_CLASS))

        benchmark = hbo.load("wine-tree")
        assert benchmark.objective.direction is hbo.Direction.MAXIMIZE
        assert all(0.5 < task.best_value <= 1 for task in benchmark.tasks)

    @pytest.mark.slow
    @pytest.mark.usefixtures("own_benchmarks")
    def test_smallest_size_bounds_the_neighbours(self):
        """There cannot be more neighbours than training rows."""
        generate_custom(replace(WINE_TREE, model=NEIGHBOURS_CLASS))

        benchmark = hbo.load("wine-tree")
        assert benchmark.space["n_neighbors"].upper == min(WINE_TREE.sizes)


# Bounds are filled in.
SPACE_FILE_WITH_BOUNDS = """{"hyperparameters": [
  {"type": "uniform_float", "name": "a", "lower": %s, "upper": %s, "log": false},
  {"type": "categorical", "name": "mode", "choices": ["one", 2, true]},
  {"type": "constant", "name": "c", "value": 3}
]}"""


class TestOwnModels:
    @pytest.fixture
    def make_custom(self, toy_module, tmp_path):
        """A function that describes a benchmark of the user's class `Line`.

        The data are a file of 60 rows. The search space is a file, too; `lower` and `upper` are the
        bounds of a. Each of `changes` replaces another part of the description.
        """

        def make(*, lower: float = 0.0, upper: float, **changes: Any) -> Custom:
            """Write the files of the data and of the search space; describe the benchmark."""
            space_path = tmp_path / "space.json"
            space_path.write_text(SPACE_FILE_WITH_BOUNDS % (lower, upper))
            data_path = tmp_path / "numbers.csv"
            frame = pd.DataFrame({"x": np.arange(60), "y": np.arange(60) / 7, "z": ["u", "v"] * 30})
            frame.to_csv(data_path, index=False)
            custom = Custom(
                name="line",
                model=f"{toy_module}:Line",
                data=str(data_path),
                target="y",
                sizes=[10, 20, 30],
                space=space_path,
                configurations=20,
                fixed={"b": 0.5},
            )
            return replace(custom, **changes)

        return make

    @pytest.mark.usefixtures("own_benchmarks")
    def test_benchmark_has_own_space(self, make_custom):
        """The user's file has the hyperparameters a and mode, and the constant c."""
        generate_custom(make_custom(upper=2.0))

        space = hbo.load("line").space
        assert space["a"].upper == 2.0
        assert space.constants == {"c": 3}

    @pytest.mark.usefixtures("own_benchmarks")
    def test_regression_minimises_squared_error(self, make_custom):
        """Without a metric asked for, the objective of a regression is the squared error."""
        generate_custom(make_custom(upper=2.0))

        objective = hbo.load("line").objective
        assert objective.name == "squared_error"
        assert objective.direction is hbo.Direction.MINIMIZE

    def test_command_has_no_folders(self, own_benchmarks, make_custom, tmp_path):
        """The card's command names files without their folder, which other users do not have."""
        generate_custom(make_custom(upper=2.0))

        command = Artifact(own_benchmarks / "line").read_json("card.json")["command"]
        assert str(tmp_path) not in command
        assert "--data numbers.csv --target y --space space.json" in command
        assert "--set b=0.5" in command

    def test_table_has_choices_as_text(self, own_benchmarks, make_custom):
        """The choices of mode are "one", the number 2 and true, which one column cannot hold."""
        generate_custom(make_custom(upper=2.0))

        frame = pd.read_parquet(own_benchmarks / "line-evaluations.parquet")
        assert set(frame["config.mode"]) == {"one", "2", "True"}

    def test_table_has_the_seconds_of_trainings(self, own_benchmarks, make_custom):
        """Times are stored next to the values of the trainings."""
        generate_custom(make_custom(upper=2.0))

        frame = pd.read_parquet(own_benchmarks / "line-evaluations.parquet")
        assert (frame["seconds"] > 0).all()

    def test_failure_stops_everything(self, own_benchmarks, make_custom):
        """By default a failure ends the generation: with a above 3, a line fails on 30 rows."""
        with pytest.raises(TrainingError, match=r"Line\(a=.* failed on 30 rows: ValueError: a is"):
            generate_custom(make_custom(upper=4.9))

        assert not (own_benchmarks / "line").exists()

    @pytest.mark.usefixtures("own_benchmarks")
    def test_task_without_success_is_refused(self, make_custom):
        """If all trainings of a task fail, as with a above 3 on 30 rows, there is no worst value to
        replace them by.
        """
        custom = make_custom(lower=3.1, upper=4.9, failures=Failures.WORST)

        with pytest.raises(TrainingError, match="failed on 30 rows"):
            generate_custom(custom)

    @pytest.mark.slow
    def test_failures_may_count_as_worst(self, own_benchmarks, make_custom):
        """Trainings with a above 3 fail on 30 rows; they get the worst value of the others."""
        generate_custom(make_custom(upper=4.9, failures=Failures.WORST))

        frame = pd.read_parquet(own_benchmarks / "line-evaluations.parquet")
        has_failed = frame["failure"].notna()
        is_on_30_rows = frame["task"] == "30"
        np.testing.assert_array_equal(has_failed, (frame["config.a"] > 3) & is_on_30_rows)
        # Some of the 20 configurations, not all.
        assert 0 < has_failed.sum() < 20
        worst_success = frame["value"][~has_failed & is_on_30_rows].max()
        assert set(frame["value"][has_failed]) == {worst_success}

    @pytest.mark.slow
    def test_card_counts_failures(self, own_benchmarks, make_custom):
        """Trainings with a above 3 fail on the largest of three sizes."""
        generate_custom(make_custom(upper=4.9, failures=Failures.WORST))

        frame = pd.read_parquet(own_benchmarks / "line-evaluations.parquet")
        failures = frame["failure"].notna().sum()
        limits = Artifact(own_benchmarks / "line").read_json("card.json")["limits"]
        # Twenty configurations on three sizes.
        assert any(f"{failures} of 60 trainings failed" in limit for limit in limits)

    @pytest.mark.slow
    @pytest.mark.usefixtures("own_benchmarks")
    def test_stored_failures_stop_later(self, make_custom):
        """Failures that counted as worst are stored; they end a generation that allows none."""
        generate_custom(make_custom(upper=4.9, failures=Failures.WORST))

        with pytest.raises(TrainingError, match="failed on 30 rows"):
            generate_custom(make_custom(upper=4.9), replace=True)

    @pytest.mark.usefixtures("own_benchmarks")
    def test_refused_configurations_are_an_error(self, make_custom):
        """A class must take all configurations of its space; `Line` refuses every a above 5."""
        custom = make_custom(lower=5.1, upper=9.0)

        with pytest.raises(ExperimentError, match=r"cannot be made with .* a is too large"):
            generate_custom(custom)

    @pytest.mark.usefixtures("own_benchmarks")
    def test_hyperparameter_cannot_be_fixed_too(self, make_custom):
        """The search space has a, which so cannot have a fixed value."""
        custom = make_custom(upper=2.0, fixed={"a": 1})

        with pytest.raises(ExperimentError, match="a: both fixed and in the search space"):
            generate_custom(custom)

    @pytest.mark.usefixtures("own_benchmarks")
    def test_hyperparameters_must_be_keywords(self, make_custom, toy_module):
        """The function `make` takes a, but neither mode nor c, which the search space has, too."""
        custom = make_custom(upper=2.0, model=f"{toy_module}:make", fixed={})

        with pytest.raises(UnknownNameError, match="keyword"):
            generate_custom(custom)
