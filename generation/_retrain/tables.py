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
        """Split a table into features and target, the last column."""
        import pandas as pd

        *names, target = frame.columns
        is_number = [pd.api.types.is_numeric_dtype(frame[name]) for name in names]
        numbers = frame[names].loc[:, is_number].to_numpy(dtype=np.float64, na_value=np.nan)
        categories = np.empty((len(frame), len(names) - sum(is_number)), dtype=np.int64)
        for column, name in enumerate(frame[names].loc[:, np.logical_not(is_number)]):
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
    """Code a target, (n,): numbers as floats, classes as their indices."""
    if is_regression:
        return target.astype(np.float64)
    _, codes = np.unique(target, return_inverse=True)
    return codes.astype(np.int64)


def make_features(numbers: FloatArray, categories: IntArray, n_training: int) -> FloatArray:
    """Make standardised features, (n, p), from columns of numbers and of categories.

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
        is_binary = len(choices) == 2  # then one column tells both choices apart
        coded_choices = choices[1:] if is_binary else choices
        blocks.append((codes[:, None] == coded_choices).astype(np.float64))
    return _standardise(np.concatenate(blocks, axis=1), n_training)


def _standardise(features: FloatArray, n_training: int) -> FloatArray:
    """Standardise features, (n, p), by mean and standard deviation of the rows to train on."""
    mean = features[:n_training].mean(axis=0)
    deviation = features[:n_training].std(axis=0)
    divisor = np.where(deviation > 0, deviation, 1.0)
    standardised: FloatArray = (features - mean) / divisor
    return standardised
