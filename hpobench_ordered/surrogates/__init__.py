"""Surrogates: regression models standing in for the real blackbox."""

from collections.abc import Mapping
from enum import Enum
from importlib import import_module
from typing import Any

from numpy.typing import NDArray

from hpobench_ordered.surrogates.base import Surrogate


class SurrogateType(Enum):
    """Kinds of surrogates that are stored as arrays, with where their classes are.

    The classes are imported when they are used: their compiled kernels take a moment.

    Examples:
        >>> from hpobench_ordered import SurrogateType
        >>> [kind.name for kind in SurrogateType]
        ['TABLE', 'NEAREST', 'FOREST', 'PER_TASK']
    """

    TABLE = "hpobench_ordered.surrogates.table:TableSurrogate"
    NEAREST = "hpobench_ordered.surrogates.nearest:NearestSurrogate"
    FOREST = "hpobench_ordered.surrogates.forest:ForestSurrogate"
    PER_TASK = "hpobench_ordered.surrogates.per_task:PerTaskSurrogate"

    def from_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> Surrogate:
        """Build a surrogate of this kind from its arrays."""
        module, name = self.value.split(":")
        surrogate: Surrogate = getattr(import_module(module), name).from_arrays(arrays)
        return surrogate


__all__ = ["Surrogate", "SurrogateType"]
