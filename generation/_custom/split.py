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
from hpobench_ordered.generation._custom.data import DataSet, digest_of

MOST_CLASSES = 20
"""Most classes of a target of whole numbers; with more values it is a number."""
MOST_NAMED = 5
"""Most classes that a message names."""
_SHUFFLE = 1  # makes the shuffle independent of other uses of the seed


class Kind(Enum):
    """What is predicted."""

    CLASSIFICATION = "classification"
    REGRESSION = "regression"


@dataclass(frozen=True)
class Split:
    """Training pool and validation part."""

    kind: Kind
    classes: tuple[str, ...]
    pool: FloatArray
    pool_target: NDArray[Any]
    validation: FloatArray
    validation_target: NDArray[Any]
    digest: str

    def check_sizes(self, sizes: Sequence[int]) -> None:
        """Check that every training set is possible and holds all classes."""
        if not sizes or sizes[0] < 1:
            raise ExperimentError(f"needs training-set sizes of at least 1, but got {list(sizes)}")
        if sizes[-1] > len(self.pool):
            raise ExperimentError(
                f"a training set of {sizes[-1]} rows is too large: {len(self.pool)} rows are for "
                f"training, the other {len(self.validation)} for validation"
            )
        lacking = set(range(len(self.classes))) - set(self.pool_target[: sizes[0]].tolist())
        if lacking:
            names = _named(self.classes, lacking)
            smallest = int(np.unique(self.pool_target, return_index=True)[1].max()) + 1
            raise ExperimentError(
                f"the smallest training set, {sizes[0]} rows, lacks {names}; the smallest size "
                f"that holds all classes is {smallest}"
            )


def kind_of_target(target: NDArray[Any]) -> Kind:
    """Infer what is predicted: text, booleans and few whole numbers are classes."""
    if target.dtype.kind not in "iuf":
        return Kind.CLASSIFICATION
    is_few = len(np.unique(target)) <= MOST_CLASSES and not (target % 1).any()
    return Kind.CLASSIFICATION if is_few else Kind.REGRESSION


def split(data: DataSet, kind: Kind, *, validation: float, seed: int) -> Split:
    """Shuffle, cut and prepare a data set; `validation` is the share of validation rows."""
    cut = len(data) - round(validation * len(data))
    if not (0 < validation < 1 and 0 < cut < len(data)):
        raise ExperimentError(
            f"the share held out to validate must be between 0 and 1, but got {validation} of "
            f"{len(data)} rows"
        )
    order = np.random.default_rng([seed, _SHUFFLE]).permutation(len(data))
    target, classes = coded_target(data, kind)
    target = target[order]
    absent = set(range(len(classes))) - set(target[:cut].tolist())
    if absent:
        raise ExperimentError(
            f"{_named(classes, absent)} of {data.name}, of {len(classes)} classes in {len(data)} "
            "rows, cannot be learnt: all rows are held out to validate; remove such rare classes, "
            "choose another seed, or predict the target as a number, by a regression"
        )
    numbers, categories = data.numbers[order], data.categories[order]
    features = standardised(coded(numbers, categories, cut), cut)
    return Split(
        kind=kind,
        classes=classes,
        pool=features[:cut],
        pool_target=target[:cut],
        validation=features[cut:],
        validation_target=target[cut:],
        digest=digest_of(numbers, categories, target, np.array(cut)),
    )


def standardised(features: FloatArray, cut: int) -> FloatArray:
    """Features, (n, p), standardised by mean and standard deviation of the first `cut` rows."""
    mean, deviation = features[:cut].mean(axis=0), features[:cut].std(axis=0)
    result: FloatArray = (features - mean) / np.where(deviation > 0, deviation, 1.0)
    return result


def coded(numbers: FloatArray, categories: IntArray, cut: int) -> FloatArray:
    """Impute and encode by the first `cut` rows; (n, a) and (n, b) to (n, p)."""
    known = ~np.isnan(numbers[:cut]).all(axis=0)  # drop columns without any number
    medians = np.nanmedian(numbers[:cut, known], axis=0)
    columns = [np.where(np.isnan(numbers[:, known]), medians, numbers[:, known])]
    for codes in categories.T:
        choices = np.unique(codes[:cut])
        coded = choices if len(choices) != 2 else choices[1:]
        columns.append((codes[:, None] == coded).astype(np.float64))
    return np.concatenate(columns, axis=1)


def coded_target(data: DataSet, kind: Kind) -> tuple[NDArray[Any], tuple[str, ...]]:
    target = data.target
    if kind is Kind.REGRESSION:
        if target.dtype.kind not in "iufb":
            raise ExperimentError(
                f"the target of {data.name} is text, such as {str(target[0])!r}; a regression "
                "predicts numbers"
            )
        return target.astype(np.float64), ()
    if target.dtype.kind == "f" and (target % 1).any():
        raise ExperimentError(
            f"the target of {data.name} has fractional values, such as "
            f"{target[np.argmax(target % 1 != 0)]}; a classification predicts classes"
        )
    names, codes = np.unique(target.astype(str), return_inverse=True)
    if target.dtype.kind in "iuf":  # numeric order, not that of text
        numbers, codes = np.unique(target, return_inverse=True)
        names = numbers.astype(str)
    if len(names) < 2:
        raise ExperimentError(f"the target of {data.name} has only one class, {names[0]!r}")
    return codes.astype(np.int64), tuple(names.tolist())


def _named(classes: Sequence[str], chosen: set[int]) -> str:
    """Some of the classes, and the number of others, as text."""
    names = [repr(classes[k]) for k in sorted(chosen)]
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    noun = "class" if len(names) == 1 else "classes"
    return f"the {noun} {', '.join(names[:MOST_NAMED])}{more}"
