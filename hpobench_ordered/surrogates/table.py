"""Exact lookup: every configuration of an integer grid, evaluated beforehand on every task.

Notation:
    T           number of tasks
    d           dimension of the grid
    l_j, m_j    lowest value and number of values of hyperparameter j
    D           divisor: objective = code / D, codes being whole numbers
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.errors import InvalidConfigError
from hpobench_ordered.surrogates.base import StoredArray, StoredSurrogate, SurrogateType

if TYPE_CHECKING:
    from hpobench_ordered.space import SearchSpace

_DIVISORS = (1, 10, 100, 1000, 10_000)
_CODE_TYPES = (np.int8, np.int16, np.int32)


@dataclass(frozen=True, eq=False)
class TableSurrogate(StoredSurrogate):
    """The objective itself, tabulated over an integer grid.

    Attributes:
        lower: Lowest value of each hyperparameter, l, d of them.
        codes: Objective values times `divisor`, shape (T, m_1, ..., m_d): small integers where
            the objective is a multiple of 1 / `divisor`, else float64.
        divisor: D. Dividing is correctly rounded, so the objective comes back bit by bit.

    Raises:
        ValueError: The shapes of `lower` and `codes` do not fit, or the divisor is not positive.
    """

    STORED_AS = SurrogateType.TABLE
    ARRAYS = {  # noqa: RUF012  # declared a ClassVar by the base class
        "lower": StoredArray(1, (np.int64,)),
        "codes": StoredArray(None, (np.int8, np.int16, np.int32, np.float64)),
        "divisor": StoredArray(0, (np.int64,)),
    }

    lower: tuple[int, ...]
    codes: NDArray[Any]
    divisor: int = 1
    _flat: FloatArray = field(init=False, repr=False)  # (T, m_1 ... m_d)
    _rows: tuple[memoryview, ...] = field(init=False, repr=False)  # of _flat
    _axes: tuple[tuple[int, int], ...] = field(init=False, repr=False)  # l_j, m_j

    def __post_init__(self) -> None:
        if self.codes.ndim != len(self.lower) + 1:
            raise ValueError(
                f"a table of {len(self.lower)} hyperparameters has {len(self.lower) + 1} "
                f"dimensions, tasks first, not {self.codes.ndim}"
            )
        if self.divisor < 1:
            raise ValueError(f"the divisor must be at least 1, got {self.divisor}")
        codes = np.array(self.codes, order="C")
        flat = codes.reshape(len(codes), -1) / float(self.divisor)
        codes.flags.writeable = flat.flags.writeable = False
        object.__setattr__(self, "codes", codes)
        object.__setattr__(self, "_flat", flat)
        object.__setattr__(self, "_rows", tuple(row.data for row in flat))
        object.__setattr__(self, "_axes", tuple(zip(self.lower, codes.shape[1:], strict=True)))

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[int, ...], NDArray[Any], int]]:
        return type(self), (self.lower, self.codes, self.divisor)

    @classmethod
    def from_values(cls, values: FloatArray, *, lower: Sequence[int]) -> Self:
        """Tabulate objective values as compactly as is possible without loss.

        Args:
            values: Objective of every task and configuration, shape (T, m_1, ..., m_d).
            lower: Lowest value of each hyperparameter, d of them.
        """
        exact = np.asarray(values, dtype=np.float64)
        if not np.isfinite(exact).all():
            raise ValueError("a table's values must be finite")
        low = tuple(int(bound) for bound in lower)
        for divisor in _DIVISORS:
            with np.errstate(over="ignore"):  # infinity does not fit, as any other large number
                whole = np.rint(exact * divisor)
            for code_type in _CODE_TYPES:
                limits = np.iinfo(code_type)
                if limits.min <= whole.min() and whole.max() <= limits.max:
                    codes: NDArray[Any] = whole.astype(code_type)
                    if (codes / float(divisor)).tobytes() == exact.tobytes():
                        return cls(low, codes, divisor)
        return cls(low, exact)

    @property
    def dimension(self) -> int:
        """Number of hyperparameters, d."""
        return len(self.lower)

    @property
    def n_tasks(self) -> int:
        """Number of tasks, T."""
        return len(self.codes)

    def check_covers(self, space: "SearchSpace") -> None:
        """Check that the space is no larger than the grid."""
        grid = [(low, low + size - 1) for low, size in zip(self.lower, self.shape, strict=True)]
        bounds = [(p.lower, p.upper) for p in space.parameters]
        covers = all(a <= b and c <= d for (a, d), (b, c) in zip(grid, bounds, strict=False))
        if not covers or space.conditions or not all(p.is_discrete for p in space.parameters):
            raise ValueError(f"the table has a grid of {grid}, but the search space is larger")

    def known_values(self, task: int, space: "SearchSpace") -> FloatArray | None:
        """The whole table of a task; None if the space is smaller than the grid."""
        if self.shape != tuple(p.size for p in space.parameters):
            return None
        values: FloatArray = self._flat[task]
        return values

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of values of each hyperparameter, m."""
        return self.codes.shape[1:]

    @property
    def values(self) -> FloatArray:
        """Objective of every task and configuration, shape (T, m_1, ..., m_d); read-only."""
        return self._flat.reshape(self.codes.shape)

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Look up many configurations.

        Args:
            values: Whole numbers, shape (n, d).
            task: Index of the task.

        Returns:
            Objective values in the objective's own units, shape (n,).
        """
        if not 0 <= task < len(self._rows):
            self._refuse_task(task)
        offsets = values - np.array(self.lower, dtype=np.float64)
        with np.errstate(invalid="ignore"):  # infinities are refused below
            on_grid = (offsets >= 0) & (offsets < self.shape) & (offsets % 1 == 0)
        if not on_grid.all():
            self._refuse(values[np.argmin(on_grid.all(axis=1))])
        index = np.ravel_multi_index(tuple(offsets.T.astype(np.int64)), self.shape)
        predictions: FloatArray = self._flat[task, index]
        return predictions

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Look up one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly."""
        if not 0 <= task < len(self._rows):
            self._refuse_task(task)
        index = 0.0
        for value, (low, size) in zip(row.tolist(), self._axes, strict=True):
            offset = value - low
            if not 0 <= offset < size or offset % 1:
                self._refuse(row)
            index = index * size + offset
        prediction: float = self._rows[task][int(index)]
        return prediction

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return bounds, codes and divisor as arrays for an npz file without pickle."""
        return {
            "lower": np.array(self.lower, dtype=np.int64),
            "codes": self.codes,
            "divisor": np.array(self.divisor, dtype=np.int64),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """Build the surrogate from `to_arrays`' result."""
        lower = tuple(arrays["lower"].tolist())
        return cls(lower, arrays["codes"], int(arrays["divisor"]))

    def _refuse_task(self, task: int) -> NoReturn:
        raise IndexError(f"task {task} is not one of 0..{len(self._rows) - 1}")

    def _refuse(self, row: FloatArray) -> NoReturn:
        upper = [low + size - 1 for low, size in zip(self.lower, self.shape, strict=True)]
        raise InvalidConfigError(
            f"{row.tolist()} is not on the grid of whole numbers from {list(self.lower)} to {upper}"
        )
