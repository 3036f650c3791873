"""BoundingBox: Bayesian optimisation in the smallest box around the previous tasks' optima.

Perrone et al. (2019), section 4.1; Hellan et al. (2023), section 5.1 and appendix C.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._candidates import Region
from hpobench_ordered.methods._model_based import remove_failed_evaluations
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind, Parameter

MARGIN_SHARE = 1e-9
"""Numbers that are moved into the box keep this distance from its bounds, as a share of the side's
width. At a bound, rounding could put a number outside: an integer's bounds are edges of bins."""


class Box(Region):
    """The smallest box around some configurations.

    Numbers and ordinals lie between the smallest and the largest value that occurs, categoricals
    take the values that occur. Hyperparameters that are active in no configuration are not
    restricted.

    Args:
        space: The search space.
        values: Configurations coded as values, shape (k, d), k >= 1.
    """

    def __init__(self, space: SearchSpace, values: FloatArray) -> None:
        """Make the smallest box around configurations.

        Args:
            space: The search space.
            values: The configurations as coded values, shape (k, d): numbers as they are, choices
                as their index, NaN where inactive.
        """
        super().__init__(space)
        # The range of each hyperparameter in the box.
        self._sides = []
        for parameter, column in zip(space.parameters, values.T, strict=True):
            active_values = column[~np.isnan(column)]
            self._sides.append(_Side.around(parameter, active_values))
        # Lower bounds and widths of the sides in the unit cube, (d,).
        self._lower = np.array([side.lower for side in self._sides])
        self._width = np.array([side.width for side in self._sides])

        # The attributes of `Region`, which are those of the whole space so far, become those of the
        # box: first the number of configurations.
        self.size = math.prod(side.size for side in self._sides)
        # A hyperparameter with a single value in the box is not searched.
        self.is_searched = np.array([side.size > 1 for side in self._sides])
        self.middle = np.array([side.middle for side in self._sides])
        # Numbers keep a distance from the bounds of the box, as rounding could decode a number at a
        # bound to one outside.
        margin = MARGIN_SHARE * self._width
        self.lowest = self._lower + margin
        self.highest = self._lower + self._width - margin

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw n configurations in the unit cube, (n, d), uniformly from the box.

        A number is drawn between the bounds of its side, and a choice among those in the box.
        """
        uniform = rng.random((n, self.space.dimension))
        unit: FloatArray = self._lower + uniform * self._width  # right for numbers
        for j, side in enumerate(self._sides):
            if side.choices is not None:  # categorical
                unit[:, j] = _draw_choices(side.choices, uniform[:, j])
        return unit

    def mask_choices_outside(self, unit: FloatArray) -> FloatArray:
        """Replace choices that are not in the box by NaN, so that others are drawn for them.

        Args:
            unit: Configurations in the unit cube, shape (n, d).

        Returns:
            A copy of them. Numbers stay as they are, also those outside the box.
        """
        masked = unit.copy()
        for j, side in enumerate(self._sides):
            if side.choices is not None:  # categorical: the unit values of the choices in the box
                is_outside = ~np.isin(unit[:, j], side.choices)
                masked[is_outside, j] = np.nan
        return masked

    def features(self, unit: FloatArray) -> FloatArray:
        """Compute features for a model, (n, p), of configurations in the unit cube, (n, d).

        Each side of the box is stretched to the unit interval before, so that features of
        configurations in the box use all of [0, 1].
        """
        has_no_width = self._width == 0.0  # the box has a single value of the hyperparameter
        nonzero_width = np.where(has_no_width, 1.0, self._width)  # nothing is divided by 0
        stretched = (unit - self._lower) / nonzero_width
        stretched = np.where(has_no_width, 0.5, stretched)  # a single value lies in the middle
        return super().features(stretched)

    def levels(self) -> Sequence[FloatArray]:
        """List the coded values that each hyperparameter has in the box.

        The box must be finite, that is without a range of a continuous hyperparameter. Coded values
        are integers as they are, and choices as their index.
        """
        return [side.values for side in self._sides]


@dataclass(frozen=True, slots=True)
class _Side:
    """One hyperparameter's range in a box.

    Attributes:
        lower: Lower bound in the unit interval; 0 for a categorical.
        width: Width in the unit interval; 1 for a categorical.
        choices: Unit values of a categorical's choices; None for other kinds.
        values: Coded values in the range; only the bounds if it is continuous.
        size: Number of values; inf if it is continuous.
    """

    lower: float
    width: float
    choices: FloatArray | None
    values: FloatArray
    size: float

    @property
    def middle(self) -> float:
        """The middle of the range as a unit value; of a categorical, the first choice in the range.

        It is only used where the range has a single value: there the first choice is the only one.
        """
        if self.choices is not None:
            return float(self.choices[0])
        return self.lower + 0.5 * self.width

    @classmethod
    def around(cls, parameter: Parameter, values: FloatArray) -> "_Side":
        """Make the smallest range of a hyperparameter that contains some of its values.

        Args:
            parameter: The hyperparameter.
            values: The coded values, shape (k,): numbers as they are, choices as their index. If
                there are none, the range is the whole one.
        """
        if parameter.kind is Kind.CATEGORICAL:
            return cls._around_choices(parameter, values)
        if not len(values):
            values = np.array([parameter.lower, parameter.upper])
        return cls._around_numbers(parameter, values)

    @classmethod
    def _around_choices(cls, parameter: Parameter, values: FloatArray) -> "_Side":
        """Make the range that has some of the choices of a categorical.

        Args:
            parameter: The categorical.
            values: Indices of the choices, shape (k,), possibly repeated. If there are none, the
                range has all choices.
        """
        all_indices = np.arange(parameter.size)
        indices = np.unique(values) if len(values) else all_indices
        # Choices have no bounds: the range is the whole unit interval.
        return cls(
            lower=0.0,
            width=1.0,
            choices=parameter.encode(indices),
            values=indices,
            size=float(len(indices)),
        )

    @classmethod
    def _around_numbers(cls, parameter: Parameter, values: FloatArray) -> "_Side":
        """Make the smallest range that contains numbers, or indices of an ordinal.

        The range lists all values of a discrete hyperparameter, but of a continuous one only its
        bounds, as the number of values is infinite there unless both bounds are equal.

        Args:
            parameter: The hyperparameter.
            values: The numbers, shape (k,), k >= 1.
        """
        smallest, largest = values.min(), values.max()
        if parameter.is_discrete:
            values_in_range = np.arange(smallest, largest + 1)
            size = float(len(values_in_range))
            # Each value is the middle of a bin of width 1; the range has whole bins.
            bounds = np.array([smallest - 0.5, largest + 0.5])
        else:
            values_in_range = np.unique([smallest, largest])
            size = math.inf if smallest < largest else 1.0
            bounds = np.array([smallest, largest])
        lower, upper = parameter.encode(bounds).tolist()  # in the unit interval
        return cls(
            lower=lower,
            width=upper - lower,
            choices=None,
            values=values_in_range,
            size=size,
        )


def _draw_choices(choices: FloatArray, uniform: FloatArray) -> FloatArray:
    """Draw choices with equal probabilities.

    Args:
        choices: Unit values of the k choices, shape (k,).
        uniform: Uniform random numbers in [0, 1), shape (n,).

    Returns:
        Unit values of the drawn choices, shape (n,).
    """
    # Each choice gets an equal part of the unit interval.
    indices = (uniform * len(choices)).astype(np.int64)
    return choices[indices]


class BoundingBox(BayesianOptimisation):
    """Bayesian optimisation in the box around the best configuration of every previous task.

    If all previous tasks have the same best configuration, the box would be a single point. The
    whole space is searched instead, as with fewer than two previous tasks (appendix C).
    """

    def choose_region(self) -> Region:
        """Choose the box around the best configurations of the previous tasks.

        It is the whole space if there are no two different ones, as the box would be a single point
        then, or could not be made at all.
        """
        tasks = remove_failed_evaluations(self.history)
        optima = []  # coded values (d,) of the best configuration of each task
        for task in tasks:
            best_row = np.argmin(task.losses)
            optima.append(task.values[best_row])

        # Compared by their bytes, as NaN, an inactive hyperparameter, is not equal to itself.
        distinct_optima = {optimum.tobytes() for optimum in optima}
        if len(distinct_optima) < 2:
            return super().choose_region()
        return Box(self.space, np.array(optima))


SPECS = (
    MethodSpec(
        name="bounding-box",
        method=BoundingBox,
        summary="bo in the smallest box around the best configurations of all previous tasks.",
        source=(
            "Perrone et al. (2019), section 4.1; Hellan et al. (2023), section 5.1 and appendix C: "
            "one configuration a task, two tasks with different optima"
        ),
        min_history=2,
        version=2,
    ),
)
