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

WITHIN = 1e-9
"""Margin, as a share of a side, of numbers moved into the box: decoding rounds, and the bounds of
an integer are the edges of bins."""


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
        super().__init__(space)
        sides = [
            _Side.around(parameter, column[~np.isnan(column)])
            for parameter, column in zip(space.parameters, values.T, strict=True)
        ]
        self._sides = sides
        self._lower = np.array([side.lower for side in sides])
        self._width = np.array([side.width for side in sides])
        self.size = math.prod(side.size for side in sides)
        self.free = np.array([side.size > 1 for side in sides])
        self.middle = np.array([side.middle for side in sides])
        inside = WITHIN * self._width
        self.lowest, self.highest = self._lower + inside, self._lower + self._width - inside

    def draw(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw n unit vectors uniformly from the box, (n, d)."""
        unit: FloatArray = self._lower + rng.random((n, self.space.dimension)) * self._width
        for j, side in enumerate(self._sides):
            if side.choices is not None:
                unit[:, j] = side.choices[(unit[:, j] * len(side.choices)).astype(np.int64)]
        return unit

    def mask_choices_outside(self, unit: FloatArray) -> FloatArray:
        """Unit vectors (n, d), NaN where a categorical's choice is not in the box."""
        unit = unit.copy()
        for j, side in enumerate(self._sides):
            if side.choices is not None:
                unit[~np.isin(unit[:, j], side.choices), j] = np.nan
        return unit

    def features(self, unit: FloatArray) -> FloatArray:
        """Features, numbers in [0, 1] within the box, shape (n, p)."""
        flat = self._width == 0.0
        scaled = np.where(flat, 0.5, (unit - self._lower) / np.where(flat, 1.0, self._width))
        return super().features(scaled)

    def levels(self) -> Sequence[FloatArray]:
        """Coded values of each hyperparameter in the box, which must be finite."""
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
        """The middle of the range, or the first choice."""
        return self.lower + 0.5 * self.width if self.choices is None else float(self.choices[0])

    @classmethod
    def around(cls, parameter: Parameter, values: FloatArray) -> "_Side":
        """The smallest range around coded values (k,); with k = 0 the whole range."""
        if not len(values):
            values = np.array([parameter.lower, parameter.upper])
            if parameter.kind is Kind.CATEGORICAL:
                values = np.arange(parameter.size)
        if parameter.kind is Kind.CATEGORICAL:
            values = np.unique(values)
            return cls(0.0, 1.0, parameter.encode(values), values, float(len(values)))
        ends = np.array([values.min(), values.max()])
        levels, size, margin = np.unique(ends), float(len(np.unique(ends))), 0.0
        if parameter.is_discrete:  # whole bins of the unit interval
            levels, margin = np.arange(ends[0], ends[1] + 1), 0.5
            size = float(len(levels))
        elif size > 1:
            size = math.inf
        lower, upper = parameter.encode(ends + np.array([-margin, margin])).tolist()
        return cls(lower, upper - lower, None, levels, size)


class BoundingBox(BayesianOptimisation):
    """Bayesian optimisation in the box around the best configuration of every previous task.

    If all previous tasks have the same best configuration, the box would be a single point. The
    whole space is searched instead, as with fewer than two previous tasks (appendix C).
    """

    def choose_region(self) -> Region:
        """The box, or the whole space."""
        tasks = remove_failed_evaluations(self.history)
        optima = [task.values[np.argmin(task.losses)] for task in tasks]
        if len({optimum.tobytes() for optimum in optima}) < 2:
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
