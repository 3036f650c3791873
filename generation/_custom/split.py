"""Split of a custom benchmark's data: nested training sets and a validation part.

One seeded shuffle orders the rows. The last ones validate, the others are the training pool, and a
training set of size s is the first s rows of the pool, so that every larger one holds it.

Features are made from the pool alone: a missing number becomes its column's median; a category
becomes one column of 0 and 1 per choice (one column in all if there are two), a missing one is a
choice of its own, and one that is not in the pool has only zeros; every feature is then
standardised by the pool's mean and standard deviation, and one that never changes only centred.

Notation:
    n   rows: N in the pool, M to validate
    p   features
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation._custom.data import DataSet, hash_arrays

CLASSES_LIMIT = 20
"""Whole numbers with more values than this are numbers, not classes."""
NAMED_CLASSES_LIMIT = 5
"""Most classes that a message names."""
SHUFFLE_STREAM = 1
"""Part of the seed, so that the shuffle is independent of other uses of it."""


class PredictionKind(Enum):
    """What is predicted."""

    CLASSIFICATION = "classification"
    REGRESSION = "regression"


@dataclass(frozen=True)
class DataSplit:
    """Training pool and validation part.

    Attributes:
        kind: What is predicted.
        classes: Names of the classes, of which targets are indices; empty for a regression.
        pool: Features of the pool, (N, p).
        pool_target: Target of the pool, (N,).
        validation: Features to validate, (M, p).
        validation_target: Target to validate, (M,).
        digest: Hash of the data and the size of the pool.
    """

    kind: PredictionKind
    classes: tuple[str, ...]
    pool: FloatArray
    pool_target: NDArray[Any]
    validation: FloatArray
    validation_target: NDArray[Any]
    digest: str

    def check_sizes(self, sizes: Sequence[int]) -> None:
        """Check that every training set is possible and holds all classes; `sizes` ascend."""
        if not sizes or sizes[0] < 1:
            raise ExperimentError(f"needs training-set sizes of at least 1, but got {list(sizes)}")
        if sizes[-1] > len(self.pool):
            raise ExperimentError(
                f"a training set of {sizes[-1]} rows is too large: {len(self.pool)} rows are for "
                f"training, the other {len(self.validation)} for validation"
            )

        missing = _find_missing_classes(self.classes, self.pool_target[: sizes[0]])
        if missing:
            _, first_rows_of_classes = np.unique(self.pool_target, return_index=True)
            smallest_size = int(first_rows_of_classes.max()) + 1
            raise ExperimentError(
                f"the smallest training set, {sizes[0]} rows, lacks {_name_classes(missing)}; the "
                f"smallest size that holds all classes is {smallest_size}"
            )


def infer_kind_of_target(target: NDArray[Any]) -> PredictionKind:
    """Infer what is predicted: text, booleans and few whole numbers are classes."""
    is_number = target.dtype.kind in "iuf"  # integers and floats, no booleans
    if not is_number:
        return PredictionKind.CLASSIFICATION

    has_fractions = (target % 1).any()
    if has_fractions or len(np.unique(target)) > CLASSES_LIMIT:
        return PredictionKind.REGRESSION
    return PredictionKind.CLASSIFICATION


def split_data(data: DataSet, kind: PredictionKind, *, validation: float, seed: int) -> DataSplit:
    """Shuffle, cut and prepare a data set.

    Args:
        data: The data set.
        kind: What is predicted.
        validation: Share of the rows that validate.
        seed: Seed of the shuffle.

    Raises:
        ExperimentError: A part would be empty, or no row of a class would be in the pool.
    """
    pool_size = len(data) - round(validation * len(data))
    is_part_empty = pool_size in (0, len(data))
    if not 0 < validation < 1 or is_part_empty:
        raise ExperimentError(
            f"the share held out to validate must be between 0 and 1, but got {validation} of "
            f"{len(data)} rows"
        )

    # The stream is a part of the seed that only the shuffle has.
    order = np.random.default_rng([seed, SHUFFLE_STREAM]).permutation(len(data))
    target, classes = code_target(data, kind)
    target = target[order]
    missing = _find_missing_classes(classes, target[:pool_size])
    if missing:
        raise ExperimentError(
            f"{_name_classes(missing)} of {data.name}, of {len(classes)} classes in {len(data)} "
            "rows, cannot be learnt: all rows are held out to validate; remove such rare classes, "
            "choose another seed, or predict the target as a number, by a regression"
        )

    numbers = data.numbers[order]
    categories = data.categories[order]
    features = standardise(code_features(numbers, categories, pool_size), pool_size)
    return DataSplit(
        kind=kind,
        classes=classes,
        pool=features[:pool_size],
        pool_target=target[:pool_size],
        validation=features[pool_size:],
        validation_target=target[pool_size:],
        digest=hash_arrays(numbers, categories, target, np.array(pool_size)),
    )


def standardise(features: FloatArray, pool_size: int) -> FloatArray:
    """Standardise features, (n, p), by mean and standard deviation of the first rows, the pool."""
    mean = features[:pool_size].mean(axis=0)
    deviation = features[:pool_size].std(axis=0)
    divisor = np.where(deviation > 0, deviation, 1.0)
    standardised: FloatArray = (features - mean) / divisor
    return standardised


def code_features(numbers: FloatArray, categories: IntArray, pool_size: int) -> FloatArray:
    """Code columns as features, (n, p), by what occurs in the first rows, the pool.

    Args:
        numbers: Columns of numbers, (n, a); a missing one, NaN, becomes the column's median.
        categories: Codes of columns of categories, (n, b); each choice becomes a column.
        pool_size: Number of rows in the pool.
    """
    # A column without any number in the pool has no median, and is left out.
    has_numbers = ~np.isnan(numbers[:pool_size]).all(axis=0)
    numbers = numbers[:, has_numbers]
    medians = np.nanmedian(numbers[:pool_size], axis=0)
    blocks = [np.where(np.isnan(numbers), medians, numbers)]

    for codes in categories.T:
        choices = np.unique(codes[:pool_size])
        is_binary = len(choices) == 2  # then one column tells both choices apart
        coded_choices = choices[1:] if is_binary else choices
        blocks.append((codes[:, None] == coded_choices).astype(np.float64))
    return np.concatenate(blocks, axis=1)


def code_target(data: DataSet, kind: PredictionKind) -> tuple[NDArray[Any], tuple[str, ...]]:
    """Code the target as numbers, (n,), or as indices of classes.

    Returns:
        The coded target, and the names of the classes, none for a regression.

    Raises:
        ExperimentError: The target is not of this kind, or has only one class.
    """
    if kind is PredictionKind.REGRESSION:
        return _code_numbers(data), ()
    return _code_classes(data)


def _code_numbers(data: DataSet) -> FloatArray:
    """Return the target of a regression as floats, (n,); an `ExperimentError` if it is text."""
    target = data.target
    is_number = target.dtype.kind in "iufb"  # integers, floats and booleans
    if not is_number:
        raise ExperimentError(
            f"the target of {data.name} is text, such as {str(target[0])!r}; a regression "
            "predicts numbers"
        )
    return target.astype(np.float64)


def _code_classes(data: DataSet) -> tuple[IntArray, tuple[str, ...]]:
    """Code the target of a classification as indices of classes, (n,); also return their names.

    Raises:
        ExperimentError: The target has fractional values, or only one class.
    """
    target = data.target
    if target.dtype.kind == "f" and (target % 1).any():
        raise ExperimentError(
            f"the target of {data.name} has fractional values, such as "
            f"{target[np.argmax(target % 1 != 0)]}; a classification predicts classes"
        )

    is_number = target.dtype.kind in "iuf"  # integers and floats, no booleans
    if is_number:  # in numeric order, not that of text
        numbers, codes = np.unique(target, return_inverse=True)
        names = numbers.astype(str)
    else:
        names, codes = np.unique(target.astype(str), return_inverse=True)
    if len(names) < 2:
        raise ExperimentError(f"the target of {data.name} has only one class, {names[0]!r}")
    return codes.astype(np.int64), tuple(names.tolist())


def _find_missing_classes(classes: Sequence[str], target: NDArray[Any]) -> list[str]:
    """Names of the classes that do not occur in a target."""
    occurring = set(target.tolist())
    return [name for index, name in enumerate(classes) if index not in occurring]


def _name_classes(names: Sequence[str]) -> str:
    """Name some of the classes, and tell the number of others."""
    noun = "class" if len(names) == 1 else "classes"
    first_names = ", ".join(repr(name) for name in names[:NAMED_CLASSES_LIMIT])
    number_of_others = len(names) - NAMED_CLASSES_LIMIT
    if number_of_others <= 0:
        return f"the {noun} {first_names}"
    return f"the {noun} {first_names} and {number_of_others} more"
