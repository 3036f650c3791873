"""Data sets of OpenML's tasks: read, coded as numbers, split into folds, and scored."""

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB

from hpobench_ordered.benchmarks import _openml_data
from hpobench_ordered.errors import ArtifactError, ExperimentError
from hpobench_ordered.generation._flows import datasets


def write_and_read(folder: Path, text: str) -> datasets.ClassificationData:
    """Write a CSV file with this text, whose last column must be the class, and read it."""
    path = folder / "37_toy.csv"  # files are named after OpenML's number of the task
    path.write_text(text, "latin-1")  # any bytes can be written so
    return datasets.read_csv(path, "toy")


@pytest.mark.parametrize(
    ("text", "x", "y"),
    [
        # numbers, nominal columns and classes
        (
            "a,b,c,class\n1,red,no,y\n2.5,blue,yes,n\n-1,green,no,y\n",
            [[1.0, 0, 0, 1, 0], [2.5, 1, 0, 0, 1], [-1.0, 0, 1, 0, 0]],
            [1, 0, 1],
        ),
        # missing values
        (
            "a,b,class\n1,u,0\n?,,1\n5,v,0\n,v,1\n2,u,1\n",
            [[1, 0, 1, 0], [2, 1, 0, 0], [5, 0, 0, 1], [2, 0, 0, 1], [2, 0, 1, 0]],
            [0, 1, 0, 1, 1],
        ),
        # words that only look missing are choices; truth values are numbers
        ("a,class\nnone,0\nNA,1\nNA,1\n", [[1], [0], [0]], [0, 1, 1]),
        ("a,class\ntrue,false\nfalse,true\n", [[1], [0]], [0, 1]),
    ],
)
def test_columns_are_coded_as_numbers(tmp_path, text, x, y):
    """Texts become one column of 0 and 1 for each choice, in alphabetical order.

    If there are two choices, one column is enough. A missing number becomes the median of its
    column, a missing text a choice of its own.
    """
    data = write_and_read(tmp_path, text)

    assert data.x.tolist() == x
    assert data.y.tolist() == y
    assert data.x.dtype == np.float64
    assert data.y.dtype == np.int64


def test_digest_is_of_coded_data(tmp_path):
    """A data set has the same digest if other names and texts give the same coded numbers."""
    data = write_and_read(tmp_path, "a,class\n1,0\n2,1\n")

    renamed = write_and_read(tmp_path, "b,class\n1.0,no\n2.0,yes\n")
    changed = write_and_read(tmp_path, "a,class\n1,0\n3,1\n")

    assert renamed.digest == data.digest
    assert changed.digest != data.digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a CSV"),
        ("a,b\n1,2\n", "last column .* must be 'class', got 'b'"),
        ("a,class\n1,0\n2,0\n", "1 classes"),
        ("class\n1\n2\n", "0 inputs"),
        ("a,class\n1,0\n2,1\n3,\n", "without a class"),
        ("a,class\n1,0\ninf,1\n", "infinite"),
    ],
)
def test_bad_files_are_refused(tmp_path, text, message):
    with pytest.raises(ArtifactError, match=message):
        write_and_read(tmp_path, text)


class TestFolder:
    @pytest.fixture
    def folder_of_data_sets(self, tmp_path):
        """A folder with data sets of the tasks 37, 3493 and 10101, and another file, a README."""
        for name in ("10101_b.csv", "37_a.csv", "3493_real.csv", "README.md"):
            (tmp_path / name).write_text("a,class\n1,0\n2,1\n")
        return tmp_path

    def test_folder_is_read(self, folder_of_data_sets):
        """The data sets in a folder are read together with those that need no file, sorted by task.

        Tasks 3492 to 3494 are generated, unless the folder has a file for them, as for
        3493. Task 9946 comes with scikit-learn. The name of a file is the task's number,
        `_` and the data set's name.
        """
        data_sets = datasets.read_offline_datasets(folder_of_data_sets)

        assert list(data_sets) == ["37", "3492", "3493", "3494", "9946", "10101"]
        assert data_sets["37"].name == "a"
        assert data_sets["3493"].name == "real"
        assert data_sets["9946"].name == "wdbc"

    def test_folder_without_data_is_refused(self, tmp_path):
        """A folder is refused if no file name begins with a task's number, as 37_toy.csv does."""
        (tmp_path / "notes.csv").touch()

        with pytest.raises(ArtifactError, match="holds no file"):
            datasets.read_offline_datasets(tmp_path)

    def test_two_data_sets_of_task_are_refused(self, folder_of_data_sets):
        """A second file for task 37 is refused: the folder already has 37_a.csv."""
        (folder_of_data_sets / "37_b.csv").write_text("a,class\n1,0\n2,1\n")

        with pytest.raises(ArtifactError, match="two data sets of task 37"):
            datasets.read_offline_datasets(folder_of_data_sets)

    def test_public_data_sets_are_read(self, shared):
        """Ten files, three generated data sets, and one of scikit-learn have two classes.

        OpenML tells the same number of rows; there are more columns, as texts become several.
        """
        data_sets = datasets.read_offline_datasets(shared / "data" / "openml_datasets")

        assert len(data_sets) == 10 + 3 + 1
        assert all(set(np.unique(data.y)) == {0, 1} for data in data_sets.values())
        assert data_sets["31"].x.shape == (1000, 59)


MONKS_COMBINATIONS = 432
"""Number of combinations of the six attributes, which have 3, 3, 2, 3, 4 and 2 values."""


class TestMonks:
    @pytest.mark.parametrize(
        ("problem", "size", "positives"), [(1, 556, 216), (2, 601, 142), (3, 554, 228)]
    )
    def test_sizes_are_as_published(self, problem, size, positives):
        """A MONK's problem has all combinations of six attributes, then training examples.

        `positives` is the number of combinations of class 1.
        """
        data = _openml_data.make_monks_problem(problem)

        # The attributes have 3, 3, 2, 3, 4 and 2 values; those with two take one column, not two.
        columns = 3 + 3 + 1 + 3 + 4 + 1
        assert data.x.shape == (size, columns)
        classes_of_combinations = data.y[:MONKS_COMBINATIONS]
        assert classes_of_combinations.sum() == positives

    @pytest.mark.parametrize(("problem", "number_wrong"), [(1, 0), (2, 0), (3, 6)])
    def test_training_examples_follow_the_rule(self, problem, number_wrong):
        """Training examples have the class of their combination of attributes.

        In the third problem six of them have the wrong class, as noise.
        """
        data = _openml_data.make_monks_problem(problem)
        rows = [tuple(row) for row in data.x]
        combinations = rows[:MONKS_COMBINATIONS]
        class_of_combination = dict(zip(combinations, data.y[:MONKS_COMBINATIONS], strict=True))
        examples = rows[MONKS_COMBINATIONS:]

        classes_of_examples = data.y[MONKS_COMBINATIONS:]

        right_classes = [class_of_combination[example] for example in examples]
        assert np.count_nonzero(classes_of_examples != right_classes) == number_wrong


@pytest.fixture
def openml(monkeypatch):
    """A stub of OpenML's client, which has one task, 37, with three rows.

    Its columns are a nominal one with a missing value, numbers with a missing one, and plain
    numbers.
    """
    nominal = pd.Categorical(["2", "1", None])
    inputs = pd.DataFrame({"a": nominal, "b": [1.0, np.nan, 3.0], "c": [1, 2, 4]})
    classes = pd.Series(pd.Categorical(["p", "n", "p"]), name="label")
    is_nominal = [True, False, False]

    def get_data(*, target: str) -> tuple[Any, ...]:
        """Return what the client does: inputs, target, and kinds and names of the columns."""
        return inputs, classes, is_nominal, [target]

    dataset = SimpleNamespace(name="toy", dataset_id=5, get_data=get_data)

    def get_task(number: int) -> Any:
        assert number == 37
        return SimpleNamespace(target_name="label", get_dataset=lambda: dataset)

    stub = SimpleNamespace(
        config=SimpleNamespace(set_retry_policy=lambda policy, attempts: None),
        tasks=SimpleNamespace(get_task=get_task),
        exceptions=SimpleNamespace(PyOpenMLError=LookupError),
    )
    monkeypatch.setitem(sys.modules, "openml", stub)
    return stub


@pytest.mark.usefixtures("openml")
def test_downloaded_data_are_coded():
    """Data from OpenML become numbers, as those of a file do, and tell their source."""
    data = datasets.download_dataset("37")

    is_1, is_2, is_missing, b, c = data.x.T.tolist()
    # The nominal column has the values 2, 1 and a missing one.
    assert is_1 == [0, 1, 0]
    assert is_2 == [1, 0, 0]
    assert is_missing == [0, 0, 1]
    # The missing number, the second, became the median of 1 and 3.
    assert b == [1, 2, 3]
    assert c == [1, 2, 4]
    # Classes are coded in alphabetical order: n is 0, p is 1.
    assert data.y.tolist() == [1, 0, 1]
    assert data.name == "toy"
    assert "data set 5, task 37" in data.description


class TestFolds:
    def test_folds_are_scikit_learns(self):
        """Five folds of equal shares of classes, shuffled with the seed 0."""
        data = _openml_data.make_monks_problem(2)

        folds = list(datasets.iter_folds(data))

        splitter = StratifiedKFold(5, shuffle=True, random_state=0)
        splits = list(splitter.split(data.x, data.y))
        for fold, (train_rows, test_rows) in zip(folds, splits, strict=True):
            np.testing.assert_array_equal(fold.x, data.x[train_rows])
            np.testing.assert_array_equal(fold.y_test, data.y[test_rows])

    def test_standardised_as_r_does(self):
        """Features are divided by the deviation that R computes, with n - 1.

        Constant columns are not changed.
        """
        fold = datasets.Fold(
            x=np.array([[1.0, 7.0], [2.0, 7.0], [6.0, 7.0]]),
            y=np.zeros(3),
            x_test=np.array([[3.0, 8.0]]),
            y_test=np.zeros(1),
            classes=2,
        )

        scaled = fold.standardise()

        first_column, constant_column = scaled.x.T
        np.testing.assert_allclose(first_column.mean(), 0, atol=1e-15)
        np.testing.assert_allclose(first_column.std(ddof=1), 1)
        assert constant_column.tolist() == [7, 7, 7]
        # The test row's first number, 3, is the mean of the training rows 1, 2 and 6.
        assert scaled.x_test.tolist() == [[0.0, 8.0]]

    def test_two_classes_must_be_frequent(self):
        """If only one class has an example for each of the five folds, no curve can be drawn."""
        data = _openml_data.make_monks_problem(1)
        n_rare = 4
        labels = np.array([1] * n_rare + [0] * (len(data.y) - n_rare))

        with pytest.raises(ExperimentError, match=r"monks-problems-1 .*\[552, 4\]"):
            list(datasets.iter_folds(replace(data, y=labels)))

    def test_third_class_may_be_rare(self):
        """Two examples of a third class are enough, though some of the five folds test none."""
        data = _openml_data.make_monks_problem(1)
        labels = np.zeros_like(data.y)
        labels[:2] = 2
        labels[2:56] = 1

        folds = list(datasets.iter_folds(replace(data, y=labels)))

        assert [fold.classes for fold in folds] == [3, 3, 3, 3, 3]


def make_fold(y_test: np.ndarray, classes: int) -> datasets.Fold:
    """Make a fold whose test examples have these classes; its other parts do not matter here."""
    n = len(y_test)
    return datasets.Fold(np.zeros((0, 1)), np.zeros(0), np.zeros((n, 1)), y_test, classes)


class TestAUC:
    """Areas under the curve; of more than two classes the mean, weighted by their frequencies."""

    @given(
        hnp.arrays(np.int64, 30, elements=st.integers(0, 1)).filter(lambda y: 0 < y.sum() < 30),
        hnp.arrays(np.float64, 30, elements=st.integers(-4, 4).map(float)),
    )
    def test_auc_of_two_classes_is_scikit_learns(self, y, scores):
        """Of two classes, a fold has one score for each row."""
        area = make_fold(y, classes=2).compute_auc(scores[:, None])

        assert area == pytest.approx(roc_auc_score(y, scores), abs=1e-12)

    @given(
        hnp.arrays(np.int64, 30, elements=st.integers(0, 3)).filter(lambda y: len(set(y)) == 4),
        hnp.arrays(np.float64, (30, 4), elements=st.floats(0.1, 9)),
    )
    def test_auc_of_four_classes_is_scikit_learns(self, y, scores):
        """With four classes, the areas of each class against the others are averaged.

        The weights of the mean are the frequencies of the classes.
        """
        probabilities = scores / scores.sum(axis=1, keepdims=True)

        area = make_fold(y, classes=4).compute_auc(probabilities)

        expected = roc_auc_score(y, probabilities, multi_class="ovr", average="weighted")
        assert area == pytest.approx(expected, abs=1e-12)

    def test_class_that_is_not_tested_has_no_weight(self):
        """A class without any example in the test fold has no weight in the mean of areas.

        Class 1 of three is not tested; classes 0 and 2 are equally frequent.
        """
        y = np.array([0, 2, 2, 0])
        scores_of_0 = [0.9, 0.2, 0.3, 0.8]  # they separate class 0 from the others
        scores_of_1 = [5, 6, 1, 0]
        scores_of_2 = [0.1, 0.7, 0.05, 0.2]  # one of two is above those of class 0, one below
        scores = np.column_stack([scores_of_0, scores_of_1, scores_of_2])

        area = make_fold(y, classes=3).compute_auc(scores)

        area_of_0, area_of_2 = 1, 0.5
        assert area == pytest.approx((area_of_0 + area_of_2) / 2)

    def test_scores_that_are_not_finite_count_as_zero(self):
        """A model may predict NaN or infinity, which cannot be ranked."""
        y = np.array([0, 0, 1, 1])
        scores = np.array([-1, np.nan, np.inf, 1.0])

        area = make_fold(y, classes=2).compute_auc(scores[:, None])

        scores_with_zeros = [-1, 0, 0, 1]
        assert area == roc_auc_score(y, scores_with_zeros)


def test_landmark_is_auc_of_naive_bayes():
    """The mean area under the curve of naive Bayes tells how hard the classes are to predict."""
    data = datasets.load_breast_cancer_data()

    auc = datasets.compute_naive_bayes_auc(data)

    same_folds = StratifiedKFold(datasets.FOLDS, shuffle=True, random_state=datasets.FOLD_SEED)
    areas = cross_val_score(GaussianNB(), data.x, data.y, scoring="roc_auc", cv=same_folds)
    assert auc == pytest.approx(areas.mean(), abs=1e-12)
