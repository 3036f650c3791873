"""What a benchmark measures, and whether less or more of it is better.

Methods and analysis see losses, which are minimised. An evaluation whose objective value is not
finite has failed: its loss is infinite, which is worse than that of any other. No loss is NaN.
"""

import math
from dataclasses import dataclass
from enum import Enum

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered._wording import suggest_allowed
from hpobench_ordered.errors import EvaluationsError


class Direction(Enum):
    """Whether an objective is minimised or maximised.

    Examples:
        >>> from hpobench_ordered import Direction
        >>> Direction("maximize").sign
        -1.0
    """

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"

    @property
    def sign(self) -> float:
        """Factor that turns objective values into losses and back: 1 or -1 (to maximise)."""
        return 1.0 if self is Direction.MINIMIZE else -1.0

    @classmethod
    def of(cls, choice: "Direction | str") -> "Direction":
        """Return a direction, which may be named by its value, "minimize" or "maximize".

        Raises:
            EvaluationsError: There is no such direction.
        """
        try:
            return cls(choice)
        except ValueError:
            hint = suggest_allowed(str(choice), [d.value for d in cls])
            raise EvaluationsError(f"unknown direction {choice!r}{hint}") from None

    def losses(self, values: FloatArray) -> FloatArray:
        """Turn objective values into losses, which are minimised; of the same shape.

        A value that is not finite, that of a failed evaluation, becomes infinity.
        """
        return np.where(np.isfinite(values), self.sign * values, np.inf)

    def loss(self, value: float) -> float:
        """Turn one objective value into a loss; infinity if it is not finite."""
        return self.sign * value if math.isfinite(value) else math.inf

    def values(self, losses: FloatArray) -> FloatArray:
        """Turn losses back into objective values, NaN where the evaluation failed."""
        return np.where(np.isfinite(losses), self.sign * losses, np.nan)


@dataclass(frozen=True, slots=True)
class Objective:
    """What a benchmark measures.

    Attributes:
        name: Name of the quantity, such as "auc".
        unit: Its unit, such as "misclassified images of 14000".
        direction: Whether it is minimised or maximised.

    Examples:
        >>> from hpobench_ordered import Direction, Objective
        >>> accuracy = Objective("accuracy", "%", Direction.MAXIMIZE)
        >>> accuracy.loss(91.5)
        -91.5
    """

    name: str
    unit: str
    direction: Direction

    def losses(self, values: FloatArray) -> FloatArray:
        """Turn objective values into losses, which are minimised; of the same shape.

        A value that is not finite, that of a failed evaluation, becomes infinity.
        """
        return self.direction.losses(values)

    def loss(self, value: float) -> float:
        """Turn one objective value into a loss; infinity if it is not finite."""
        return self.direction.loss(value)

    def values(self, losses: FloatArray) -> FloatArray:
        """Turn losses back into objective values, NaN where the evaluation failed."""
        return self.direction.values(losses)
