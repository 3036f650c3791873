"""Classification data sets of OpenML tasks as numbers, and their folds for cross-validation.

They come from OpenML, from a folder of CSV files, or are made here. A nominal column is one-hot
coded, a two-valued one as a single column of 0 and 1; choices and classes are in ascending order. A
missing number is replaced by its column's median, a missing choice is a choice of its own.

Notation:
    n   number of examples
    p   number of columns after coding
    K   number of classes
"""

import hashlib
import itertools
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._download import check_online
from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.errors import (
    ArtifactError,
    DownloadError,
    ExperimentError,
    needed,
)

if TYPE_CHECKING:
    import pandas as pd

FOLDS = 5
FOLD_SEED = 0

MONKS_SEED = 0
MONKS_VALUES = (3, 3, 2, 3, 4, 2)
"""Number of values of each attribute of the Monk's problems."""
MONKS_TRAINING = (124, 169, 122)
"""Number of training examples of each Monk's problem."""
MONKS_NOISE = 0.05
"""Part of the third problem's training examples with the wrong class."""

BREAST_CANCER_TASK = "9946"
MONKS_TASKS = ("3492", "3493", "3494")

_FILE = re.compile(r"(?P<task>\d+)_(?P<name>.+)\.csv")
_MISSING_CHOICE = "missing value"


@dataclass(frozen=True)
class ClassificationData:
    """A data set to classify.

    Attributes:
        name: OpenML's name.
        x: Inputs, shape (n, p).
        y: Codes 0, 1, ... of the classes, shape (n,).
        digest: Hash of inputs and classes.
        description: Where the data are from, and what was done to them.
    """

    name: str
    x: FloatArray
    y: IntArray
    digest: str
    description: str


def offline_datasets(folder: Path) -> dict[str, ClassificationData]:
    """Data sets that need no download, by OpenML task in ascending order.

    Args:
        folder: Holds files `<OpenML task>_<name>.csv` with `class` as last column. One of a task
            that is also made here (`breast_cancer`, `monks`) is preferred.

    Raises:
        ArtifactError: The folder holds no such file, two of one task, or one that cannot be read.
    """
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
    made = {task: monks(k) for k, task in enumerate(MONKS_TASKS, start=1)}
    every = {BREAST_CANCER_TASK: breast_cancer()} | made | local
    return {task: every[task] for task in sorted(every, key=int)}


def read_csv(path: Path, name: str) -> ClassificationData:
    """Read a data set; empty fields and "?" are missing values.

    Raises:
        ArtifactError: Not a CSV, its last column is not `class`, classes are missing or there is
            one alone, or a number is infinite.
    """
    import pandas as pd

    try:
        frame = pd.read_csv(path, keep_default_na=False, na_values=["", "?"])
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path} is not a CSV file: {error}") from error
    if frame.columns[-1] != "class":
        raise ArtifactError(f"the last column of {path} must be 'class', got {frame.columns[-1]!r}")
    inputs, classes = frame.iloc[:, :-1], frame["class"]
    return _data(name, inputs, classes, f"the local file {path.name}")


def openml_dataset(task: str) -> ClassificationData:
    """Download the data set of an OpenML task, or take it from OpenML's own cache.

    Raises:
        DownloadError: OpenML gives no data set.
    """
    openml = needed("openml", package="openml", extra="train", purpose="OpenML's data")
    check_online(f"the data set of OpenML's task {task}", instead="")
    try:
        described = openml.tasks.get_task(int(task))
        dataset = described.get_dataset()
        inputs, classes, _, _ = dataset.get_data(target=described.target_name)
    except (openml.exceptions.PyOpenMLError, OSError) as error:
        raise DownloadError(f"OpenML does not give the data set of task {task}: {error}") from error
    source = f"OpenML data set {dataset.dataset_id}, task {task}"
    return _data(dataset.name, inputs, classes, source)


def breast_cancer() -> ClassificationData:
    """The data set wdbc: 569 examples, 30 numbers, two classes; scikit-learn's copy."""
    import pandas as pd

    datasets = needed("sklearn.datasets", package="scikit-learn", extra="train", purpose="wdbc")
    loaded = datasets.load_breast_cancer()
    inputs, classes = pd.DataFrame(loaded.data), pd.Series(loaded.target)
    return _data("wdbc", inputs, classes, "scikit-learn's copy of Breast Cancer Wisconsin")


def monks(problem: int) -> ClassificationData:
    """Monk's problem 1, 2 or 3, made from its rule (Thrun et al. 1991, section 1.1).

    As OpenML's version it holds every combination of the attributes once, free of noise, followed
    by as many training examples as the original. Which examples these are the rule does not tell:
    they are drawn here, so this part differs from OpenML's.

    Raises:
        ValueError: There is no such problem.
    """
    import pandas as pd

    if problem not in {1, 2, 3}:
        raise ValueError(f"the Monk's problems are 1, 2 and 3, got {problem}")
    attributes = np.array(list(itertools.product(*(range(1, k + 1) for k in MONKS_VALUES))))
    positive = _monks_rule(problem, attributes)
    rng = np.random.default_rng([MONKS_SEED, problem])
    size = MONKS_TRAINING[problem - 1]
    drawn = rng.choice(len(attributes), size, replace=False)
    labels = positive[drawn]
    if problem == 3:
        labels[rng.choice(size, int(MONKS_NOISE * size), replace=False)] ^= True
    names = [f"attr{j}" for j in range(1, len(MONKS_VALUES) + 1)]
    inputs = pd.DataFrame(np.concatenate([attributes, attributes[drawn]]), columns=names)
    classes = pd.Series(np.concatenate([positive, labels]))
    source = (
        f"made from the rule of Monk's problem {problem} (Thrun et al. 1991): all "
        f"{len(attributes)} combinations and {size} training examples; the original ones cannot be "
        "made from the rule, so these are drawn at random without replacement"
    )
    noise = f", and {MONKS_NOISE:.0%} of them given the wrong class" if problem == 3 else ""
    return _data(f"monks-problems-{problem}", inputs.astype("category"), classes, source + noise)


def _monks_rule(problem: int, attributes: IntArray) -> BoolArray:
    """Class of every combination of the six attributes, shape (n, 6) to (n,)."""
    a1, a2, _, a4, a5, _ = attributes.T
    rules: dict[int, BoolArray] = {
        1: (a1 == a2) | (a5 == 1),
        2: (attributes == 1).sum(axis=1) == 2,
        3: ((a5 == 3) & (a4 == 1)) | ((a5 != 4) & (a2 != 3)),
    }
    return rules[problem]


@dataclass(frozen=True, slots=True)
class Fold:
    """One split of a data set for cross-validation.

    Attributes:
        x: Inputs to train on, shape (n, p).
        y: Their classes, shape (n,).
        x_test: Inputs to predict, shape (m, p).
        y_test: Their classes, shape (m,).
        classes: Number of classes of the whole data set, K.
    """

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

        Args:
            scores: Of class 1, shape (m, 1), or of every class, shape (m, K). A score that is not
                finite counts as 0.
        """
        finite = np.where(np.isfinite(scores), scores, 0.0)
        if finite.shape[1] == 1:
            return _auc(self.y_test == 1, finite[:, 0])
        classes, counts = np.unique(self.y_test, return_counts=True)
        areas = [_auc(self.y_test == k, finite[:, k]) for k in classes]
        return float(np.average(areas, weights=counts))


def folds(data: ClassificationData) -> Iterator[Fold]:
    """The five stratified splits of a data set, from a constant seed.

    Raises:
        ExperimentError: Fewer than two classes have an example for every fold.
    """
    selection = needed(
        "sklearn.model_selection", package="scikit-learn", extra="train", purpose="training"
    )
    counts = np.bincount(data.y)
    if np.sum(counts >= FOLDS) < 2:
        raise ExperimentError(
            f"{FOLDS} folds need two classes of {FOLDS} examples; {data.name} has classes of "
            f"{counts.tolist()}"
        )
    with warnings.catch_warnings():
        # A class that is rarer than that has no weight in the folds without it.
        warnings.filterwarnings("ignore", "The least populated class", UserWarning)
        splitter = selection.StratifiedKFold(FOLDS, shuffle=True, random_state=FOLD_SEED)
        splits = list(splitter.split(data.x, data.y))
    for train, test in splits:
        yield Fold(data.x[train], data.y[train], data.x[test], data.y[test], len(counts))


def naive_bayes_auc(data: ClassificationData) -> float:
    """Landmarker: area under the ROC curve of Gaussian naive Bayes, mean over the folds."""
    bayes = needed("sklearn.naive_bayes", package="scikit-learn", extra="train", purpose="training")
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


def _data(
    name: str, inputs: "pd.DataFrame", classes: "pd.Series[Any]", source: str
) -> ClassificationData:
    """Code inputs and classes as numbers; the description also gives the sizes."""
    import pandas as pd

    if classes.isna().any():
        raise ArtifactError(f"{name} ({source}) has examples without a class")
    codes, kinds = pd.factorize(classes, sort=True)
    if len(kinds) < 2 or not inputs.shape[1]:
        raise ArtifactError(
            f"{name} ({source}) has {len(kinds)} classes and {inputs.shape[1]} inputs; needed are "
            "two classes and one input"
        )
    x = np.concatenate([_coded(inputs.iloc[:, j]) for j in range(inputs.shape[1])], axis=1)
    if not np.isfinite(x).all():
        raise ArtifactError(f"{name} ({source}) has infinite numbers")
    y = codes.astype(np.int64)
    content = x.astype("<f8").tobytes() + y.astype("<i8").tobytes()
    data = ClassificationData(name, x, y, hashlib.sha256(content).hexdigest(), source)
    summary = f"{len(y)} examples, {x.shape[1]} columns, {len(kinds)} classes"
    return replace(data, description=f"{name}: {source}; {summary}")


def _coded(column: "pd.Series[Any]") -> FloatArray:
    """Columns of numbers that stand for one column of the data, shape (n, 1 or more)."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
        known = numbers[~np.isnan(numbers)]
        filled = np.where(np.isnan(numbers), np.median(known) if len(known) else 0.0, numbers)
        return filled[:, None]
    texts = column.astype(object).where(column.notna(), _MISSING_CHOICE).astype(str)
    codes, choices = pd.factorize(texts, sort=True)
    coded = range(len(choices)) if len(choices) > 2 else [1]
    return np.stack([(codes == k).astype(np.float64) for k in coded], axis=1)
