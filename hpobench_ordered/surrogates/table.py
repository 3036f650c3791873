"""Exact lookup in a table of all configurations of an integer grid.

Notation:
    T           number of tasks
    d           dimension of the grid
    l_j, m_j    lowest value and number of values of hyperparameter j
    D           divisor: objective = code / D, with integer codes
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.arrays import StoredArray
from hpobench_ordered.errors import InvalidConfigError
from hpobench_ordered.surrogates.base import StoredSurrogate, SurrogateType, check_task

if TYPE_CHECKING:
    from hpobench_ordered.space import SearchSpace

_DIVISORS = (1, 10, 100, 1000, 10_000)
_CODE_TYPES = (np.int8, np.int16, np.int32)


@dataclass(eq=False)
class TableSurrogate(StoredSurrogate):
    """The objective itself, tabulated over an integer grid."""

    STORED_AS = SurrogateType.TABLE
    ARRAYS = {  # noqa: RUF012  # declared a ClassVar by the base class
        "lower": StoredArray(1, (np.int64,)),
        "codes": StoredArray(None, (np.int8, np.int16, np.int32, np.float64)),
        "divisor": StoredArray(0, (np.int64,)),
    }

    lower: tuple[int, ...]  # l
    codes: NDArray[Any]  # objective * D, (T, m_1, ..., m_d); float64 if that is not integer
    divisor: int = 1  # D; dividing is correctly rounded, hence exact
    _flat_values: FloatArray = field(init=False, repr=False)  # (T, m_1 ... m_d)
    _views_of_tasks: tuple[memoryview, ...] = field(init=False, repr=False)  # of _flat_values
    _lowest_and_sizes: tuple[tuple[int, int], ...] = field(init=False, repr=False)  # l_j, m_j

    def __post_init__(self) -> None:
        """Check the table, and compute what lookups need: values by task and place in the grid."""
        if self.codes.ndim != len(self.lower) + 1:
            raise ValueError(
                f"codes of {len(self.lower)} hyperparameters must have {len(self.lower) + 1} "
                f"dimensions, tasks first, but got {self.codes.ndim}"
            )
        if self.divisor < 1:
            raise ValueError(f"the divisor must be at least 1, but got {self.divisor}")

        # Codes (T, m_1, ..., m_d) become values (T, m_1 ... m_d): the last one varies fastest.
        codes = np.array(self.codes, order="C")
        flat = codes.reshape(len(codes), -1) / float(self.divisor)
        codes.flags.writeable = False
        flat.flags.writeable = False
        self.codes = codes
        self._flat_values = flat
        # The values of each task as a memoryview: single numbers are read faster from these.
        self._views_of_tasks = tuple(values_of_task.data for values_of_task in flat)
        # Lowest value and number of values of each hyperparameter.
        self._lowest_and_sizes = tuple(zip(self.lower, codes.shape[1:], strict=True))

    @classmethod
    def from_values(cls, values: FloatArray, *, lower: Sequence[int]) -> Self:
        """Tabulate objective values (T, m_1, ..., m_d) as compactly as possible without loss."""
        exact = np.asarray(values, dtype=np.float64)
        if not np.isfinite(exact).all():
            raise ValueError("a table's values must be finite")
        lowest_values = tuple(int(bound) for bound in lower)
        # Values with few decimals are whole numbers times a power of ten: integers take less room.
        for divisor in _DIVISORS:
            codes = _code_as_integers(exact, divisor)
            if codes is not None:
                return cls(lowest_values, codes, divisor)
        return cls(lowest_values, exact)

    @property
    def dimension(self) -> int:
        """Number of hyperparameters, d."""
        return len(self.lower)

    @property
    def n_tasks(self) -> int:
        """Number of tasks, T."""
        return len(self.codes)

    def check_covers(self, space: "SearchSpace") -> None:
        """Raise a `ValueError` unless every configuration of a space is in the table."""
        # Lowest and highest value of each hyperparameter in the table.
        grid = [(low, low + size - 1) for low, size in zip(self.lower, self.shape, strict=True)]
        is_discrete = all(parameter.is_discrete for parameter in space.parameters)
        has_inactive = bool(space.conditions)  # inactive hyperparameters are on no grid
        is_covered = is_discrete and not has_inactive
        # A space of another dimension is refused later, with both dimensions in the message.
        for parameter, (lowest, highest) in zip(space.parameters, grid, strict=False):
            is_within = lowest <= parameter.lower <= parameter.upper <= highest
            is_covered = is_covered and is_within
        if not is_covered:
            raise ValueError(f"the search space must be within the table's grid {grid}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each hyperparameter, (m_1, ..., m_d)."""
        return self.codes.shape[1:]

    @property
    def values(self) -> FloatArray:
        """Objective of every task and configuration, shape (T, m_1, ..., m_d); read-only."""
        return self._flat_values.reshape(self.codes.shape)

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Look up many configurations, whole numbers, shape (n, d) to (n,)."""
        check_task(task, self.n_tasks)
        offsets = values - np.array(self.lower, dtype=np.float64)  # `lower`: the grid's corner
        with np.errstate(invalid="ignore"):  # infinities are refused below
            is_on_grid = (offsets >= 0) & (offsets < self.shape) & (offsets % 1 == 0)
        if not is_on_grid.all():
            first_wrong_row = np.argmin(is_on_grid.all(axis=1))
            self._refuse(values[first_wrong_row])  # raises an error

        # Places in the task's row of the flat table, where the last hyperparameter is fastest.
        places = np.ravel_multi_index(tuple(offsets.T.astype(np.int64)), self.shape)
        predictions: FloatArray = self._flat_values[task, places]
        return predictions

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Look up one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly."""
        check_task(task, self.n_tasks)
        place = 0.0  # of the configuration in the flat table: the last hyperparameter is fastest
        # `_lowest_and_sizes` has the lowest value and the number of values of each hyperparameter.
        for value, (lowest, size) in zip(row.tolist(), self._lowest_and_sizes, strict=True):
            offset = value - lowest
            is_on_grid = 0 <= offset < size and offset % 1 == 0
            if not is_on_grid:
                self._refuse(row)  # raises an error
            place = place * size + offset
        values_of_task = self._views_of_tasks[task]
        prediction: float = values_of_task[int(place)]
        return prediction

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the table as arrays, which `from_arrays` reads: objective = codes / divisor."""
        return {
            "lower": np.array(self.lower, dtype=np.int64),
            "codes": self.codes,
            "divisor": np.array(self.divisor, dtype=np.int64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Inverse of `to_arrays`."""
        lower = tuple(arrays["lower"].tolist())
        return cls(lower, arrays["codes"], int(arrays["divisor"]))

    def _refuse(self, row: FloatArray) -> NoReturn:
        """Raise an error for a configuration that is not on the grid."""
        upper = [low + size - 1 for low, size in zip(self.lower, self.shape, strict=True)]
        raise InvalidConfigError(
            f"{row.tolist()} is not on the grid of integers from {list(self.lower)} to {upper}"
        )


def _code_as_integers(values: FloatArray, divisor: int) -> NDArray[Any] | None:
    """Code values as integers of the smallest type, such that code / divisor is exactly the value.

    None if there are no such integers.
    """
    with np.errstate(over="ignore"):  # infinity is refused below like other large numbers
        integers = np.rint(values * divisor)
    for code_type in _CODE_TYPES:  # int8, int16, int32
        limits = np.iinfo(code_type)
        if integers.min() < limits.min or integers.max() > limits.max:
            continue
        codes: NDArray[Any] = integers.astype(code_type)
        # Bytes, since a negative zero equals zero but would not be restored.
        if (codes / float(divisor)).tobytes() == values.tobytes():
            return codes
    return None
