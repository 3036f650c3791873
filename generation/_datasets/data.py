"""The KEEL data sets of the benchmarks datasets-LEARNER, from a local folder or the cache."""

from functools import lru_cache
from pathlib import Path

import numpy as np

from hpobench_ordered.benchmarks._openml_data import ClassificationData, code_data
from hpobench_ordered.benchmarks.datasets import KEEL_FILES
from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.data.identity import hash_file
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.generation._flows.datasets import Fold, iter_folds

MAX_ROWS = 1500
"""Larger data sets are reduced to this many rows, drawn at random in each class."""
ROWS_SEED = 0


def find_data_set(name: str, folder: Path | None) -> Path:
    """Find the file of a data set: in a folder, or else in the cache, where it is downloaded to.

    Raises:
        ArtifactError: It is not in the folder, or is another file than the published one.
    """
    published = KEEL_FILES[name]
    if folder is None:
        if not published.is_fetched:
            published.download()
        return published.open_path()

    path = folder / f"{name}.dat"
    if not path.is_file():
        raise ArtifactError(f"{folder} has no file {path.name}; it is published at {published.url}")
    if hash_file(path) != published.sha256:
        raise ArtifactError(f"{path} is not the file that is published at {published.url}")
    return path


def read_data_set(path: Path) -> ClassificationData:
    """Read a data set of KEEL: values separated by commas, the class last, no header.

    Numbers stay numbers, and all other columns are one-hot coded. A data set with more than
    `MAX_ROWS` rows is reduced to that many, with the same share of each class.
    """
    import pandas as pd

    frame = pd.read_csv(path, header=None, skipinitialspace=True, keep_default_na=False)
    classes = frame.iloc[:, -1].astype(str)
    if len(frame) > MAX_ROWS:
        selection = import_extra(
            "sklearn.model_selection", package="scikit-learn", extra="train", purpose="training"
        )
        rows, _ = selection.train_test_split(
            np.arange(len(frame)), train_size=MAX_ROWS, random_state=ROWS_SEED, stratify=classes
        )
        rows = np.sort(rows)
        frame = frame.iloc[rows]
        classes = classes.iloc[rows]
    return code_data(path.stem, frame.iloc[:, :-1], classes, f"KEEL data set {path.stem}")


@lru_cache(maxsize=64)
def make_folds(path: Path, seed: int, *, are_scaled: bool) -> tuple[Fold, ...]:
    """Read a data set and split it into five stratified folds, once in each process.

    Args:
        path: The file of the data set.
        seed: Seed of the split.
        are_scaled: Whether the inputs of each fold are standardised.
    """
    folds = iter_folds(read_data_set(path), seed)
    if are_scaled:
        return tuple(fold.standardise() for fold in folds)
    return tuple(folds)
