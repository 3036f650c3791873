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
        """Find the range of each hyperparameter's values, the sides of the box.

        `values` (k, d) are coded: numbers as they are, choices as their index, NaN where inactive.
        A side has a lower bound and a width in the unit interval.
        """
        super().__init__(space)
        self._sides = []
        for parameter, column in zip(space.parameters, values.T, strict=True):
            active_values = column[~np.isnan(column)]
            self._sides.append(_Side.around(parameter, active_values))
        self._lower = np.array([side.lower for side in self._sides])
        self._width = np.array([side.width for side in self._sides])

        # Attributes of `Region`: the number of configurations, and of each hyperparameter whether
        # it varies, the middle, and the bounds. Numbers stay off the edges of the box by a margin,
        # as rounding could decode a number at an edge to one outside.
        margin = MARGIN_SHARE * self._width
        self.size = math.prod(side.size for side in self._sides)
        self.is_searched = np.array([side.size > 1 for side in self._sides])
        self.middle = np.array([side.middle for side in self._sides])
        self.lowest = self._lower + margin
        self.highest = self._lower + self._width - margin

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw n configurations in the unit cube, (n, d), uniformly from the box.

        Numbers are drawn between the edges of their sides, choices among those in the box.
        """
        uniform = rng.random((n, self.space.dimension))
        unit: FloatArray = self._lower + uniform * self._width  # numbers within their sides
        for j, side in enumerate(self._sides):
            if side.choices is not None:  # a categorical, with the unit values of its choices
                # Its side is the whole unit interval, of which each choice gets an equal part.
                choice = (unit[:, j] * len(side.choices)).astype(np.int64)
                unit[:, j] = side.choices[choice]
        return unit

    def mask_choices_outside(self, unit: FloatArray) -> FloatArray:
        """Set configurations in the unit cube, (n, d), to NaN where a choice is not in the box.

        `_sides` has the range of each hyperparameter in the box.
        """
        masked = unit.copy()
        for j, side in enumerate(self._sides):
            if side.choices is not None:  # a categorical, with the unit values of its choices
                is_outside = ~np.isin(unit[:, j], side.choices)
                masked[is_outside, j] = np.nan
        return masked

    def features(self, unit: FloatArray) -> FloatArray:
        """Compute features (n, p) of configurations in the unit cube, (n, d).

        Numbers are scaled so that the box, from `_lower` on and `_width` wide, becomes [0, 1].
        """
        is_flat = self._width == 0.0  # numbers fixed by the box get the middle, 0.5
        width = np.where(is_flat, 1.0, self._width)
        scaled = np.where(is_flat, 0.5, (unit - self._lower) / width)
        return super().features(scaled)

    def levels(self) -> Sequence[FloatArray]:
        """List the coded values of each hyperparameter in the box, which must be finite.

        `_sides` has the range of each hyperparameter. Coded values are whole numbers then:
        integers, or indices of ordinals and choices.
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
        """Unit value of the middle of the range; choices have none, so that the first is used."""
        if self.choices is not None:
            return float(self.choices[0])
        return self.lower + 0.5 * self.width

    @classmethod
    def around(cls, parameter: Parameter, values: FloatArray) -> "_Side":
        """Make the smallest range around coded values (k,); with k = 0 the whole range.

        Coded values are numbers as they are, and choices as their index.
        """
        if parameter.kind is Kind.CATEGORICAL:
            return cls._around_choices(parameter, values)
        if not len(values):
            values = np.array([parameter.lower, parameter.upper])
        return cls._around_numbers(parameter, values)

    @classmethod
    def _around_choices(cls, parameter: Parameter, values: FloatArray) -> "_Side":
        """Make the range of the choices with these indices (k,); with k = 0 of all choices.

        Its `choices` are their unit values and its `values` the indices themselves.
        """
        occurring = np.unique(values) if len(values) else np.arange(parameter.size)
        # The side is the whole unit interval, of which each choice gets an equal part.
        return cls(
            lower=0.0,
            width=1.0,
            choices=parameter.encode(occurring),
            values=occurring,
            size=float(len(occurring)),
        )

    @classmethod
    def _around_numbers(cls, parameter: Parameter, values: FloatArray) -> "_Side":
        """Make the smallest range around numbers (k,), k >= 1.

        Its `values` are all that an integer can take; of a continuous range they are the two ends,
        and its `size`, the number of values, is infinite.
        """
        smallest, largest = values.min(), values.max()
        if parameter.is_discrete:
            levels = np.arange(smallest, largest + 1)
            size = float(len(levels))
            half_bin = 0.5  # the range has whole bins of the unit interval
        else:
            levels = np.unique([smallest, largest])
            size = math.inf if len(levels) > 1 else 1.0
            half_bin = 0.0
        ends = np.array([smallest - half_bin, largest + half_bin])
        lower, upper = parameter.encode(ends).tolist()  # in the unit interval
        return cls(lower=lower, width=upper - lower, choices=None, values=levels, size=size)


class BoundingBox(BayesianOptimisation):
    """Bayesian optimisation in the box around the best configuration of every previous task.

    If all previous tasks have the same best configuration, the box would be a single point. The
    whole space is searched instead, as with fewer than two previous tasks (appendix C).
    """

    def choose_region(self) -> Region:
        """Choose the box around the tasks' best configurations, or else the whole space.

        Without two different ones the box would be a single point, or none.
        """
        tasks = remove_failed_evaluations(self.history)
        # Coded values (d,) of the best configuration of each task.
        optima = [task.values[np.argmin(task.losses)] for task in tasks]
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
