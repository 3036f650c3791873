"""Search spaces: hyperparameters, the conditions under which they are active, and their coding."""

from hpobench_ordered.space.conditions import (
    Compare,
    Comparison,
    Condition,
    Connective,
    Joined,
    parents,
)
from hpobench_ordered.space.parameters import Kind, Parameter
from hpobench_ordered.space.space import SearchSpace

__all__ = [
    "Compare",
    "Comparison",
    "Condition",
    "Connective",
    "Joined",
    "Kind",
    "Parameter",
    "SearchSpace",
    "parents",
]
