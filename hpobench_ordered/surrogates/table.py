"""Exact lookup in a table of all configurations of an integer grid.

Notation:
    T           number of tasks
    d           dimension of the grid
    l_j, m_j    lowest value and number of values of hyperparameter j
    D           divisor: objective = code / D, with integer codes
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.arrays import StoredArray
from hpobench_ordered.data.surrogate import check_task
from hpobench_ordered.errors import InvalidConfigError
from hpobench_ordered.surrogates.base import StoredSurrogate, SurrogateType

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
    # Objective of each task and place in the grid, (T, m_1 * ... * m_d). Places count through the
    # grid with the last hyperparameter fastest.
    _flat_values: FloatArray = field(init=False, repr=False)
    # The rows of `_flat_values`; single numbers are read faster from memoryviews than from arrays.
    _views_of_tasks: tuple[memoryview, ...] = field(init=False, repr=False)
    # Lowest value and number of values of each hyperparameter.
    _lowest_and_sizes: tuple[tuple[int, int], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the table, and compute what lookups need: values by task and place in the grid."""
        if self.codes.ndim != len(self.lower) + 1:
            raise ValueError(
                f"codes of {len(self.lower)} hyperparameters must have {len(self.lower) + 1} "
                f"dimensions, tasks first, but got {self.codes.ndim}"
            )
        if self.divisor < 1:
            raise ValueError(f"the divisor must be at least 1, but got {self.divisor}")

        codes = np.array(self.codes, order="C")
        flat_codes = codes.reshape(len(codes), -1)  # a row for each task
        flat_values = flat_codes / float(self.divisor)
        codes.flags.writeable = False
        flat_values.flags.writeable = False

        self.codes = codes
        self._flat_values = flat_values
        self._views_of_tasks = tuple(values_of_task.data for values_of_task in flat_values)
        self._lowest_and_sizes = tuple(zip(self.lower, codes.shape[1:], strict=True))

    @classmethod
    def from_values(cls, values: FloatArray, *, lower: Sequence[int]) -> Self:
        """Tabulate objective values as compactly as possible without loss.

        Values with few decimals are stored as integers, which take less room, with a power of ten
        as their divisor. Other values are stored as they are.

        Args:
            values: Value of each task and configuration of the grid, (T, m_1, ..., m_d).
            lower: Lowest value of each of the d hyperparameters.
        """
        exact = np.asarray(values, dtype=np.float64)
        if not np.isfinite(exact).all():
            raise ValueError("a table's values must be finite")
        corner = tuple(int(lowest) for lowest in lower)
        for divisor in _DIVISORS:  # 1, 10, ..., 10 000
            codes = _code_as_integers(exact, divisor)
            if codes is not None:
                return cls(corner, codes, divisor)
        return cls(corner, exact)

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
        grid = list(zip(self.lower, self.upper, strict=True))  # bounds of each hyperparameter
        is_discrete = all(parameter.is_discrete for parameter in space.parameters)
        has_conditions = bool(space.conditions)  # inactive hyperparameters are on no grid
        # A space of another dimension is refused later, with both dimensions in the message.
        is_within_bounds = all(
            lowest <= parameter.lower and parameter.upper <= highest
            for parameter, (lowest, highest) in zip(space.parameters, grid, strict=False)
        )
        if has_conditions or not (is_discrete and is_within_bounds):
            raise ValueError(f"the search space must be within the table's grid {grid}")

    @property
    def upper(self) -> tuple[int, ...]:
        """Highest value of each hyperparameter."""
        highest_values = []
        for lowest, size in zip(self.lower, self.shape, strict=True):
            highest_values.append(lowest + size - 1)
        return tuple(highest_values)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each hyperparameter, (m_1, ..., m_d)."""
        return self.codes.shape[1:]

    @property
    def values(self) -> FloatArray:
        """Objective of every task and configuration, shape (T, m_1, ..., m_d); read-only."""
        return self._flat_values.reshape(self.codes.shape)

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Look up many configurations, shape (n, d) to (n,).

        Raises:
            InvalidConfigError: A configuration is not on the grid of integers.
        """
        check_task(task, self.n_tasks)
        # Positions on the grid, from 0 on, of each configuration and hyperparameter.
        positions = values - np.array(self.lower, dtype=np.float64)
        with np.errstate(invalid="ignore"):  # infinity % 1 is NaN, which is not on the grid
            is_within = (positions >= 0) & (positions < self.shape)
            is_on_grid = is_within & (positions % 1 == 0)
        if not is_on_grid.all():
            first_wrong_row = np.argmin(is_on_grid.all(axis=1))
            raise self._make_off_grid_error(values[first_wrong_row])

        # Places in the task's row of the flat table, where the last hyperparameter is fastest.
        positions_of_parameters = tuple(positions.T.astype(np.int64))
        places = np.ravel_multi_index(positions_of_parameters, self.shape)
        predictions: FloatArray = self._flat_values[task, places]
        return predictions

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Look up one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly.

        Raises:
            InvalidConfigError: The configuration is not on the grid of integers.
        """
        check_task(task, self.n_tasks)
        # Place in the task's row of the flat table, where the last hyperparameter is fastest.
        place = 0.0
        for value, (lowest, size) in zip(row.tolist(), self._lowest_and_sizes, strict=True):
            position = value - lowest  # on the grid, from 0 on
            is_on_grid = 0 <= position < size and position % 1 == 0
            if not is_on_grid:
                raise self._make_off_grid_error(row)
            place = place * size + position
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
        """Build the table from the arrays that `to_arrays` returns."""
        lower = tuple(arrays["lower"].tolist())
        return cls(lower, arrays["codes"], int(arrays["divisor"]))

    def _make_off_grid_error(self, row: FloatArray) -> InvalidConfigError:
        """Make the error for a configuration, shape (d,), that is not on the grid."""
        return InvalidConfigError(
            f"{row.tolist()} is not on the grid of integers from {list(self.lower)} to "
            f"{list(self.upper)}"
        )


def _code_as_integers(values: FloatArray, divisor: int) -> NDArray[Any] | None:
    """Code values as integers such that code / divisor is exactly the value.

    Returns:
        The integers, of the smallest type that they fit; None if there are no such integers.
    """
    with np.errstate(over="ignore"):  # a product may be infinite, which fits no type
        integers = np.rint(values * divisor)
    for code_type in _CODE_TYPES:  # int8, int16, int32
        limits = np.iinfo(code_type)
        fits_type = limits.min <= integers.min() and integers.max() <= limits.max
        if not fits_type:
            continue
        codes: NDArray[Any] = integers.astype(code_type)
        restored = codes / float(divisor)
        # Bytes are compared, since -0.0 equals 0.0 but an integer restores only the latter.
        if restored.tobytes() == values.tobytes():
            return codes
    return None
