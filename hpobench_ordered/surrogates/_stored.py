"""Surrogates from stored arrays of unknown origin, checked before compiled kernels see them.

Kernels do not check bounds: types and dimensions are therefore checked first.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered.surrogates.base import StoredArray, StoredSurrogate, SurrogateType

if TYPE_CHECKING:
    from hpobench_ordered.space import SearchSpace


def load_stored(
    kind: SurrogateType, arrays: Mapping[str, NDArray[Any]], *, space: "SearchSpace", n_tasks: int
) -> StoredSurrogate:
    """Build a surrogate from arrays made by `StoredSurrogate.to_arrays`, and check that it fits."""
    expected = dict(kind.surrogate_class.ARRAYS)
    if kind is SurrogateType.PER_TASK:
        inner = SurrogateType[str(arrays["kind"])]
        if inner is SurrogateType.PER_TASK:
            raise ValueError("a task's surrogate must not be of kind PER_TASK")
        expected |= inner.surrogate_class.ARRAYS
    check_arrays(arrays, expected)
    model = kind.from_arrays(arrays)
    model.check_covers(space)
    if model.n_tasks != n_tasks or model.dimension != space.dimension:
        raise ValueError(
            f"it must have {n_tasks} tasks and {space.dimension} hyperparameters, but got "
            f"{model.n_tasks} and {model.dimension}"
        )
    return model


def check_arrays(arrays: Mapping[str, NDArray[Any]], expected: Mapping[str, StoredArray]) -> None:
    """Check type, dimensions and finiteness of arrays by NAME or TASK/NAME, `expected` by NAME."""
    for name, array in arrays.items():
        allowed = expected.get(name.rpartition("/")[2])
        if allowed is None:
            raise ValueError(f"array {name!r} is unknown; known are {sorted(expected)}")
        if array.dtype.type not in allowed.types or not array.dtype.isnative:
            names = " or ".join(sorted(np.dtype(kind).name for kind in allowed.types))
            raise ValueError(f"array {name!r} must be of type {names}, but got {array.dtype}")
        if array.ndim != allowed.dimensions and allowed.dimensions is not None:
            raise ValueError(
                f"array {name!r} must have {allowed.dimensions} dimensions, but got {array.ndim}"
            )
        if array.dtype.kind == "f" and not (allowed.may_be_nan or np.isfinite(array).all()):
            raise ValueError(f"array {name!r} must be finite")
