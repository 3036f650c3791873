"""Search spaces: hyperparameters, when they are active, their coding, and comparison of two."""

from hpobench_ordered.space.change import SpaceChange
from hpobench_ordered.space.conditions import (
    Compare,
    Comparison,
    Condition,
    Connective,
    Joined,
    parents,
)
from hpobench_ordered.space.differences import Change
from hpobench_ordered.space.parameters import Kind, Parameter
from hpobench_ordered.space.space import SearchSpace

__all__ = [
    "Change",
    "Compare",
    "Comparison",
    "Condition",
    "Connective",
    "Joined",
    "Kind",
    "Parameter",
    "SearchSpace",
    "SpaceChange",
    "parents",
]
