"""What a benchmark measures, and whether less or more of it is better."""

from dataclasses import dataclass
from enum import Enum

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
        """Factor between objective values and losses: 1 or -1."""
        return 1.0 if self is Direction.MINIMIZE else -1.0

    @classmethod
    def of(cls, choice: "Direction | str") -> "Direction":
        """Read a direction from its name.

        Raises:
            EvaluationsError: There is no such direction.
        """
        try:
            return cls(choice)
        except ValueError:
            hint = suggest_allowed(str(choice), [d.value for d in cls])
            raise EvaluationsError(f"unknown direction {choice!r}{hint}") from None


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

        As the factor is 1 or -1, the same call turns losses back into objective values.
        """
        return self.direction.sign * values

    def loss(self, value: float) -> float:
        """Turn one objective value into a loss, or back: the factor is 1 or -1."""
        return self.direction.sign * value
