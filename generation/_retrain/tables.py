"""Rows of a stream as numbers: as read, and prepared as features of a model.

Features are made from the rows that a model is trained on alone: a missing number becomes the
median of its column; a category becomes one column of 0 and 1 for each choice (one column in all if
there are two), and one that does not occur in training has only zeros; every feature is then
standardised, and one that never changes only centred.

Notation:
    n   rows
    a   columns of numbers
    b   columns of categories
    p   features
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Rows:
    """Rows to learn from.

    Attributes:
        numbers: Columns of numbers, (n, a); NaN where missing.
        categories: Codes of columns of categories, (n, b); -1 where missing.
        target: What is predicted, (n,).
    """

    numbers: FloatArray
    categories: IntArray
    target: NDArray[Any]

    @classmethod
    def from_frame(cls, frame: "pd.DataFrame") -> "Rows":
        """Split a table into numbers, categories and the target, its last column.

        A category is coded by the rank of its text among those of its column.
        """
        import pandas as pd

        *names, target = frame.columns
        names_of_numbers = [name for name in names if pd.api.types.is_numeric_dtype(frame[name])]
        names_of_categories = [name for name in names if name not in names_of_numbers]

        numbers = frame[names_of_numbers].to_numpy(dtype=np.float64, na_value=np.nan)
        categories = np.empty((len(frame), len(names_of_categories)), dtype=np.int64)
        for column, name in enumerate(names_of_categories):
            texts = frame[name].astype(object).map(str, na_action="ignore")
            codes, _ = pd.factorize(texts, sort=True)  # -1 where the value is missing
            categories[:, column] = codes
        return cls(np.ascontiguousarray(numbers), categories, frame[target].to_numpy())

    def __len__(self) -> int:
        return len(self.target)


@dataclass(frozen=True)
class DataSplit:
    """Rows to train on, and rows to measure a model on."""

    training: FloatArray
    training_target: NDArray[Any]
    test: FloatArray
    test_target: NDArray[Any]


def code_target(target: NDArray[Any], *, is_regression: bool) -> NDArray[Any]:
    """Return a target, (n,), as floats, or the classes of a classification as their indices."""
    if is_regression:
        return target.astype(np.float64)
    _, index_of_class = np.unique(target, return_inverse=True)
    return index_of_class.astype(np.int64)


def make_features(numbers: FloatArray, categories: IntArray, n_training: int) -> FloatArray:
    """Make standardised features, (n, p), from columns of numbers and of categories.

    Missing numbers become the median of their column. Categories are one-hot coded, those of a
    column with two choices by one feature; a choice that does not occur in training has only zeros.
    Medians, choices and scales are those of the first rows, which a model is trained on.

    Args:
        numbers: Columns of numbers, (n, a).
        categories: Codes of columns of categories, (n, b).
        n_training: Number of the rows to train on.
    """
    # A column without any number to train on has no median, and is left out.
    has_numbers = ~np.isnan(numbers[:n_training]).all(axis=0)
    numbers = numbers[:, has_numbers]
    medians = np.nanmedian(numbers[:n_training], axis=0)
    blocks = [np.where(np.isnan(numbers), medians, numbers)]

    for codes in categories.T:
        choices = np.unique(codes[:n_training])
        is_binary = len(choices) == 2  # then one feature tells both choices apart
        coded_choices = choices[1:] if is_binary else choices
        one_hot = codes[:, None] == coded_choices
        blocks.append(one_hot.astype(np.float64))
    return _standardise(np.concatenate(blocks, axis=1), n_training)


def _standardise(features: FloatArray, n_training: int) -> FloatArray:
    """Standardise features, (n, p), by mean and standard deviation of the rows to train on.

    A feature that is constant in these rows is only centred.
    """
    mean = features[:n_training].mean(axis=0)
    deviation = features[:n_training].std(axis=0)
    divisor = np.where(deviation > 0, deviation, 1.0)
    standardised: FloatArray = (features - mean) / divisor
    return standardised
