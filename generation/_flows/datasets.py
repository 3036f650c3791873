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
from hpobench_ordered.core.extras import import_extra
from hpobench_ordered.errors import ArtifactError, DownloadError, ExperimentError
from hpobench_ordered.files.download import check_online

FOLDS = 5
FOLD_SEED = 0

BREAST_CANCER_TASK = "9946"

_FILE = re.compile(r"(?P<task>\d+)_(?P<name>.+)\.csv")


def offline_datasets(folder: Path) -> dict[str, ClassificationData]:
    """Data sets that need no download, by OpenML task in ascending order."""
    local: dict[str, ClassificationData] = {}
    for path in sorted(folder.glob("*.csv")):
        match = _FILE.fullmatch(path.name)
        if match is None:
            continue
        if match["task"] in local:
            raise ArtifactError(f"{folder} holds two data sets of task {match['task']}")
        local[match["task"]] = read_csv(path, match["name"])
    if not local:
        raise ArtifactError(f"{folder} holds no file named <OpenML task>_<name>.csv")
    made = {task: make_monks_problem(k) for k, task in enumerate(MONKS_TASKS, start=1)}
    every = {BREAST_CANCER_TASK: breast_cancer()} | made | local
    return {task: every[task] for task in sorted(every, key=int)}


def read_csv(path: Path, name: str) -> ClassificationData:
    """Read a data set; empty fields and "?" are missing values."""
    import pandas as pd

    try:
        frame = pd.read_csv(path, keep_default_na=False, na_values=["", "?"])
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path} is not a CSV file: {error}") from error
    if frame.columns[-1] != "class":
        raise ArtifactError(f"the last column of {path} must be 'class', got {frame.columns[-1]!r}")
    inputs, classes = frame.iloc[:, :-1], frame["class"]
    return code_data(name, inputs, classes, f"the local file {path.name}")


def openml_dataset(task: str) -> ClassificationData:
    """Download the data set of an OpenML task, or take it from OpenML's own cache."""
    openml = import_extra("openml", package="openml", extra="train", purpose="OpenML's data")
    check_online(f"the data set of OpenML's task {task}", instead="")
    try:
        described = openml.tasks.get_task(int(task))
        dataset = described.get_dataset()
        inputs, classes, _, _ = dataset.get_data(target=described.target_name)
    except (openml.exceptions.PyOpenMLError, OSError) as error:
        raise DownloadError(f"OpenML does not give the data set of task {task}: {error}") from error
    source = f"OpenML data set {dataset.dataset_id}, task {task}"
    return code_data(dataset.name, inputs, classes, source)


def breast_cancer() -> ClassificationData:
    """The data set wdbc: 569 examples, 30 numbers, two classes; scikit-learn's copy."""
    import pandas as pd

    datasets = import_extra(
        "sklearn.datasets", package="scikit-learn", extra="train", purpose="wdbc"
    )
    loaded = datasets.load_breast_cancer()
    inputs, classes = pd.DataFrame(loaded.data), pd.Series(loaded.target)
    return code_data("wdbc", inputs, classes, "scikit-learn's copy of Breast Cancer Wisconsin")


@dataclass(frozen=True, slots=True)
class Fold:
    """One split of a data set for cross-validation."""

    x: FloatArray
    y: IntArray
    x_test: FloatArray
    y_test: IntArray
    classes: int

    def standardised(self) -> "Fold":
        """Mean 0 and standard deviation 1 (ddof 1) of the training inputs; constants stay."""
        varies = np.ptp(self.x, axis=0) > 0
        shift = np.where(varies, self.x.mean(axis=0), 0.0)
        scale = np.where(varies, self.x.std(axis=0, ddof=1), 1.0)
        return replace(self, x=(self.x - shift) / scale, x_test=(self.x_test - shift) / scale)

    def auc(self, scores: FloatArray) -> float:
        """Area under the ROC curve of the test examples.

        With more than two classes it is the mean of the one-against-rest areas, weighted by the
        classes' frequencies in the test, as OpenML defines it.
        """
        finite = np.where(np.isfinite(scores), scores, 0.0)
        if finite.shape[1] == 1:
            return _auc(self.y_test == 1, finite[:, 0])
        classes, counts = np.unique(self.y_test, return_counts=True)
        areas = [_auc(self.y_test == k, finite[:, k]) for k in classes]
        return float(np.average(areas, weights=counts))


def folds(data: ClassificationData) -> Iterator[Fold]:
    """The five stratified splits of a data set, from a constant seed."""
    selection = import_extra(
        "sklearn.model_selection", package="scikit-learn", extra="train", purpose="training"
    )
    counts = np.bincount(data.y)
    if np.sum(counts >= FOLDS) < 2:
        raise ExperimentError(
            f"{FOLDS} folds need two classes of {FOLDS} examples; {data.name} has classes of "
            f"{counts.tolist()}"
        )
    with warnings.catch_warnings():
        # A rarer class has weight 0 in folds without it.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splitter = selection.StratifiedKFold(FOLDS, shuffle=True, random_state=FOLD_SEED)
        splits = list(splitter.split(data.x, data.y))
    for train, test in splits:
        yield Fold(data.x[train], data.y[train], data.x[test], data.y[test], len(counts))


def naive_bayes_auc(data: ClassificationData) -> float:
    """Landmarker: area under the ROC curve of Gaussian naive Bayes, mean over the folds."""
    bayes = import_extra(
        "sklearn.naive_bayes", package="scikit-learn", extra="train", purpose="training"
    )
    areas = []
    for fold in folds(data):
        model = bayes.GaussianNB().fit(fold.x, fold.y)
        scores = np.zeros((len(fold.y_test), fold.classes))
        scores[:, model.classes_] = model.predict_proba(fold.x_test)
        areas.append(fold.auc(scores[:, 1:] if fold.classes == 2 else scores))
    return float(np.mean(areas))


def _auc(positive: BoolArray, scores: FloatArray) -> float:
    """Area under the ROC curve, ties counted by half; both of shape (m,)."""
    from scipy.stats import rankdata

    count = int(positive.sum())
    above = rankdata(scores)[positive].sum() - count * (count + 1) / 2
    return float(above / (count * (len(positive) - count)))
