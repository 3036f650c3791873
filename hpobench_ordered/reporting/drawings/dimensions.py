"""Hyperparameters as axes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray, Value
from hpobench_ordered.reporting.drawings.scales import Scale, Spacing, linear, log_scale

if TYPE_CHECKING:
    import pandas as pd

WIDE = 300.0
"""Positive numbers so many times apart are taken for a logarithmic range."""

MOST_TICKS = 4

SPREAD = 0.7
"""Share of the width of a choice over which its points are laid out."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A hyperparameter as an axis.

    Attributes:
        name: Its name.
        scale: The axis, over its whole range.
        choices: Its values where it is no number, in order.
    """

    name: str
    scale: Scale
    choices: tuple[Value, ...] = ()

    @classmethod
    def of_column(cls, name: str, column: "pd.Series") -> "Dimension":
        """The axis that fits the evaluated values of a hyperparameter, some of which are known."""
        from pandas.api.types import is_bool_dtype, is_numeric_dtype

        known = column.dropna()
        if is_bool_dtype(known) or not is_numeric_dtype(known):
            return cls.of_choices(name, tuple(sorted(known.unique().tolist(), key=str)))
        low, high = float(known.min()), float(known.max())
        return cls(name, _range(low, high, low > 0 and high >= WIDE * low))

    @classmethod
    def of_choices(cls, name: str, choices: Sequence[Value]) -> "Dimension":
        """The axis of a hyperparameter that is no number: each choice is 1 wide."""
        ticks = tuple(place + 0.5 for place in range(len(choices)))
        labels = tuple(map(str, choices))
        return cls(
            name, Scale(0.0, float(len(choices)), Spacing.LINEAR, ticks, labels), tuple(choices)
        )

    def cells(self, most: int) -> int:
        """Number of cells along the axis: one a choice, else as many as given."""
        return len(self.choices) or most

    def places(self, column: "pd.Series") -> FloatArray:
        """Where values lie, from 0 to 1, shape (n,); NaN where it is inactive."""
        if not self.choices:
            return self.scale(column.to_numpy(dtype=np.float64, na_value=np.nan))
        codes = {str(choice): index + 0.5 for index, choice in enumerate(self.choices)}
        numbers = [codes.get(str(value), math.nan) for value in column]
        return self.scale(np.array(numbers, dtype=np.float64))

    def spread(self, places: FloatArray, times: FloatArray) -> FloatArray:
        """Places where points of the same choice do not cover each other.

        Args:
            places: Where values lie, from 0 to 1, shape (n,).
            times: What tells points apart, from 0 to 1, shape (n,).
        """
        if not self.choices:
            return places
        return np.asarray(places + SPREAD * (times - 0.5) / len(self.choices))


def _range(low: float, high: float, is_log: bool) -> Scale:
    if is_log:
        return log_scale(low, high, most=MOST_TICKS)
    return linear(low, high, most=MOST_TICKS)
