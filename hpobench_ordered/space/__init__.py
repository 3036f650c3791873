"""Search spaces: hyperparameters, conditions, codings, and comparison of two spaces."""

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
