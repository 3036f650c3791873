"""Classification data sets of OpenML tasks, and their folds for cross-validation.

They come from OpenML, from a folder of CSV files, or are made here.

Notation:
    n   number of examples
    p   number of columns after coding
    K   number of classes
"""

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.benchmarks._openml_data import (
    MONKS_TASKS,
    ClassificationData,
    code_data,
    make_monks_problem,
)
from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.errors import ArtifactError, ExperimentError
from hpobench_ordered.generation._openml.client import openml_client

FOLDS = 5
FOLD_SEED = 0

BREAST_CANCER_TASK = "9946"

_FILE_NAME = re.compile(r"(?P<task>\d+)_(?P<name>.+)\.csv")


def read_offline_datasets(folder: Path) -> dict[str, ClassificationData]:
    """Read or make the data sets that need no download, by OpenML task in ascending order.

    They are the files of the folder, scikit-learn's breast cancer data and the MONK's problems. A
    file replaces one of the others if it is of the same task.
    """
    data_set_of_task = {BREAST_CANCER_TASK: load_breast_cancer_data()}
    # One task for each of the MONK's problems 1, 2 and 3.
    for problem, task in enumerate(MONKS_TASKS, start=1):
        data_set_of_task[task] = make_monks_problem(problem)
    data_set_of_task.update(_read_folder(folder))
    return {task: data_set_of_task[task] for task in sorted(data_set_of_task, key=int)}


def _read_folder(folder: Path) -> dict[str, ClassificationData]:
    """Read the files TASK_NAME.csv of a folder, by OpenML task; other files are ignored.

    Raises:
        ArtifactError: There are no such files, or two of the same task.
    """
    data_set_of_task: dict[str, ClassificationData] = {}
    for path in sorted(folder.glob("*.csv")):
        match = _FILE_NAME.fullmatch(path.name)
        if match is None:
            continue
        task = match["task"]
        if task in data_set_of_task:
            raise ArtifactError(f"{folder} holds two data sets of task {task}")
        data_set_of_task[task] = read_csv(path, match["name"])
    if not data_set_of_task:
        raise ArtifactError(f"{folder} holds no file named <OpenML task>_<name>.csv")
    return data_set_of_task


def read_csv(path: Path, name: str) -> ClassificationData:
    """Read a data set from a CSV file, whose last column must be `class`.

    Empty fields and "?" are missing values.

    Args:
        path: The file.
        name: Name of the data set.

    Raises:
        ArtifactError: The file is not such a file.
    """
    import pandas as pd

    try:
        # Other texts that pandas takes for missing values, such as NA, are values here.
        frame = pd.read_csv(path, keep_default_na=False, na_values=["", "?"])
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path} is not a CSV file: {error}") from error
    if frame.columns[-1] != "class":
        raise ArtifactError(f"the last column of {path} must be 'class', got {frame.columns[-1]!r}")
    return code_data(name, frame.iloc[:, :-1], frame["class"], f"the local file {path.name}")


def download_dataset(task: str) -> ClassificationData:
    """Download the data set of an OpenML task, or take it from OpenML's own cache."""
    with openml_client(f"the data set of OpenML's task {task}") as openml:
        openml_task = openml.tasks.get_task(int(task))
        dataset = openml_task.get_dataset()
        inputs, classes, _, _ = dataset.get_data(target=openml_task.target_name)
    source = f"OpenML data set {dataset.dataset_id}, task {task}"
    return code_data(dataset.name, inputs, classes, source)


def load_breast_cancer_data() -> ClassificationData:
    """Load scikit-learn's copy of the data set wdbc: 569 examples, 30 numbers, two classes."""
    import pandas as pd

    datasets = import_extra(
        "sklearn.datasets", package="scikit-learn", extra="train", purpose="wdbc"
    )
    loaded = datasets.load_breast_cancer()
    return code_data(
        "wdbc",
        pd.DataFrame(loaded.data),
        pd.Series(loaded.target),
        "scikit-learn's copy of Breast Cancer Wisconsin",
    )


@dataclass(frozen=True, slots=True)
class Fold:
    """One split of a data set for cross-validation.

    Attributes:
        x: Inputs to train on, (n, p).
        y: Their classes, (n,).
        x_test: Inputs to test on, (m, p).
        y_test: Their classes, (m,).
        classes: Number of classes in the whole data set, K.
    """

    x: FloatArray
    y: IntArray
    x_test: FloatArray
    y_test: IntArray
    classes: int

    def standardise(self) -> "Fold":
        """Return the fold with inputs standardised by mean and deviation of the training inputs.

        An input that is constant in training stays as it is.
        """
        varies = np.ptp(self.x, axis=0) > 0  # largest minus smallest value of each input
        shift = np.where(varies, self.x.mean(axis=0), 0.0)
        scale = np.where(varies, self.x.std(axis=0, ddof=1), 1.0)  # with ddof 1, as R does
        return replace(self, x=(self.x - shift) / scale, x_test=(self.x_test - shift) / scale)

    def compute_auc(self, scores: FloatArray) -> float:
        """Compute the area under the ROC curve of the fold's test examples.

        With more than two classes it is the mean of the one-against-rest areas, weighted by the
        classes' frequencies in the test, as OpenML defines it.

        Args:
            scores: Scores of the m test examples: of class 1, (m, 1), or of each of K classes, (m,
                K).
        """
        # Scores of a model that diverged may be infinite or NaN, which cannot be ranked.
        finite_scores = np.where(np.isfinite(scores), scores, 0.0)
        has_one_column = finite_scores.shape[1] == 1
        if has_one_column:
            return _compute_binary_auc(self.y_test == 1, finite_scores[:, 0])

        classes, counts = np.unique(self.y_test, return_counts=True)
        areas = [_compute_binary_auc(self.y_test == k, finite_scores[:, k]) for k in classes]
        return float(np.average(areas, weights=counts))


def iter_folds(data: ClassificationData, seed: int = FOLD_SEED) -> Iterator[Fold]:
    """Split a data set into five stratified folds, which are the same at every call with a seed.

    Yields:
        Each fold as test examples, with the examples of the four others to train on.

    Raises:
        ExperimentError: Fewer than two classes have an example for every fold.
    """
    selection = import_extra(
        "sklearn.model_selection", package="scikit-learn", extra="train", purpose="training"
    )
    rows_of_classes = np.bincount(data.y)
    number_of_large_classes = np.sum(rows_of_classes >= FOLDS)
    if number_of_large_classes < 2:
        raise ExperimentError(
            f"{FOLDS} folds need two classes of {FOLDS} examples; {data.name} has classes of "
            f"{rows_of_classes.tolist()}"
        )
    with warnings.catch_warnings():
        # scikit-learn warns of classes with fewer examples than folds. Test parts may lack these,
        # which is allowed: the AUC weights classes by their frequency in the test.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splitter = selection.StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
        splits = list(splitter.split(data.x, data.y))

    for train_rows, test_rows in splits:
        yield Fold(
            x=data.x[train_rows],
            y=data.y[train_rows],
            x_test=data.x[test_rows],
            y_test=data.y[test_rows],
            classes=len(rows_of_classes),
        )


def compute_naive_bayes_auc(data: ClassificationData) -> float:
    """Compute the area under the ROC curve of Gaussian naive Bayes, mean over the folds.

    It describes a data set ("landmarking"): how well a simple classifier does on it.
    """
    bayes = import_extra(
        "sklearn.naive_bayes", package="scikit-learn", extra="train", purpose="training"
    )
    areas = []
    for fold in iter_folds(data):
        model = bayes.GaussianNB().fit(fold.x, fold.y)
        # The training part may lack a class, whose probability is 0.
        probabilities = np.zeros((len(fold.y_test), fold.classes))
        probabilities[:, model.classes_] = model.predict_proba(fold.x_test)
        # Of two classes, the second's probability is the score.
        scores = probabilities[:, 1:] if fold.classes == 2 else probabilities
        areas.append(fold.compute_auc(scores))
    return float(np.mean(areas))


def _compute_binary_auc(is_positive: BoolArray, scores: FloatArray) -> float:
    """Compute the area under the ROC curve of m examples.

    A pair of examples with equal scores counts as half in order.

    Args:
        is_positive: Whether each example is of the positive class, (m,).
        scores: Their scores, (m,).
    """
    from scipy.stats import rankdata

    positives = int(is_positive.sum())
    negatives = len(is_positive) - positives

    # The area is the share of pairs of a positive and a negative in which the positive scores
    # higher. A positive's rank counts all scores up to its own; among the positives alone, such
    # ranks add up to 1 + 2 + ... + positives, which is deducted (Mann and Whitney).
    sum_of_ranks = rankdata(scores)[is_positive].sum()
    pairs_in_order = sum_of_ranks - positives * (positives + 1) / 2
    return float(pairs_in_order / (positives * negatives))
