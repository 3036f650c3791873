"""Surrogates from stored arrays of unknown origin, checked before compiled kernels see them.

Kernels read without looking at bounds, and building a surrogate of absurd arrays may take hours:
types, dimensions and sizes are therefore checked first, what is made of them after that.

Notation:
    d   number of hyperparameters
    T   number of tasks
"""

from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered.surrogates import Surrogate, SurrogateType

if TYPE_CHECKING:
    from hpobench_ordered.space import SearchSpace
    from hpobench_ordered.surrogates.coding import Coding
    from hpobench_ordered.surrogates.forest import ForestSurrogate
    from hpobench_ordered.surrogates.nearest import NearestSurrogate
    from hpobench_ordered.surrogates.per_task import PerTaskSurrogate
    from hpobench_ordered.surrogates.table import TableSurrogate

MAX_NODES = 2**22
"""Most nodes of all forests of a file together; those that come with the package have 700 000."""
MAX_TREE = 2**17
"""Most nodes of a tree, which bounds its depth."""
MAX_POINTS = 2**19
"""Most configurations of all nearest-neighbour surrogates of a file together."""

_WIDEST = 1e150  # features of which the squared distance is a float
_F8, _I8 = np.float64, np.int64
_TYPES: Mapping[SurrogateType, Mapping[str, Set[type[np.generic]]]] = {
    SurrogateType.TABLE: {
        "lower": {_I8},
        "codes": {np.int8, np.int16, np.int32, _F8},
        "divisor": {_I8},
    },
    SurrogateType.NEAREST: {"coding": {_F8}, "points": {_F8}, "targets": {_F8}},
    SurrogateType.FOREST: {
        "coding": {_F8},
        "nodes": {np.int32},
        "feature": {np.uint8},
        "threshold": {np.float32},
        "codes": {np.uint16},
        "offset": {_F8},
        "step": {_F8},
        "task_outputs": {np.int32},
        "task_weights": {_F8},
    },
}
_DIMENSIONS = {
    **dict.fromkeys(("coding", "points", "targets", "codes", "task_outputs"), 2),
    **dict.fromkeys(("nodes", "feature", "threshold", "offset", "step", "task_weights"), 1),
    "lower": 1,
    "divisor": 0,
}


def load_stored(
    kind: SurrogateType,
    arrays: Mapping[str, NDArray[Any]],
    *,
    space: "SearchSpace",
    n_tasks: int,
) -> Surrogate:
    """Build a surrogate from its arrays.

    Args:
        kind: Its kind.
        arrays: Its arrays by name, as `Surrogate.to_arrays` makes them.
        space: The search space it has to cover.
        n_tasks: Number of tasks it has to have, T.

    Raises:
        ArtifactError: The arrays are not such a surrogate's.
        ValueError: They are of another type, too many, or do not fit the space or the tasks.
    """
    single = kind
    if kind is SurrogateType.PER_TASK:
        single = SurrogateType[str(arrays["kind"])]
        if single is SurrogateType.PER_TASK:
            raise ValueError("a task's surrogate cannot itself be one a task")
    per_task = kind is SurrogateType.PER_TASK
    stored = {name: array for name, array in arrays.items() if not (per_task and name == "kind")}
    check_types(stored, _TYPES[single])
    for name, array in stored.items():
        _check_content(single, name.rpartition("/")[2], array)
    _check_sizes(stored)
    model = kind.from_arrays(arrays)
    models = cast("PerTaskSurrogate", model).models if per_task else (model,)
    for one in models:
        _check_fit(single, one, space, 1 if per_task else n_tasks)
    if per_task and len(models) != n_tasks:
        raise ValueError(f"there are surrogates of {len(models)} tasks, not of {n_tasks}")
    return model


def check_types(
    arrays: Mapping[str, NDArray[Any]], types: Mapping[str, Set[type[np.generic]]]
) -> None:
    """Check the type of every array.

    Args:
        arrays: Arrays by NAME or TASK/NAME.
        types: Types allowed by NAME.

    Raises:
        ValueError: An array is of another type, or not among them.
    """
    for name, array in arrays.items():
        allowed = types.get(name.rpartition("/")[2])
        if allowed is None:
            raise ValueError(f"nothing is known of an array {name!r}; there are {sorted(types)}")
        if array.dtype not in {np.dtype(kind) for kind in allowed}:
            names = sorted(np.dtype(kind).name for kind in allowed)
            raise ValueError(f"array {name!r} must be of type {' or '.join(names)}: {array.dtype}")


def _check_content(kind: SurrogateType, name: str, array: NDArray[Any]) -> None:
    expected = _DIMENSIONS[name]
    if kind is SurrogateType.TABLE and name == "codes":
        expected = array.ndim  # as many as there are hyperparameters
    if array.ndim != expected:
        raise ValueError(f"array {name!r} must have {expected} dimensions, not {array.ndim}")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"array {name!r} holds what is not finite")


def _check_sizes(arrays: Mapping[str, NDArray[Any]]) -> None:
    def total(name: str) -> int:
        return sum(len(a) for key, a in arrays.items() if key.rpartition("/")[2] == name)

    trees = [a for key, a in arrays.items() if key.rpartition("/")[2] == "nodes"]
    if total("feature") > MAX_NODES or any(a.max(initial=0) > MAX_TREE for a in trees):
        raise ValueError(f"a forest has at most {MAX_NODES} nodes, each of its trees {MAX_TREE}")
    if total("points") > MAX_POINTS:
        raise ValueError(f"there are more than {MAX_POINTS} points")


def _check_fit(kind: SurrogateType, model: Surrogate, space: "SearchSpace", n_tasks: int) -> None:
    """Check that a surrogate has that many tasks and covers the space.

    Raises:
        ValueError: It does not.
    """
    if kind is SurrogateType.TABLE:
        table = cast("TableSurrogate", model)
        found, dimension = len(table.codes), table.dimension
        grid = [(low, low + size - 1) for low, size in zip(table.lower, table.shape, strict=True)]
        bounds = [(p.lower, p.upper) for p in space.parameters]
        covers = all(a <= b and c <= d for (a, d), (b, c) in zip(grid, bounds, strict=False))
        if not covers or space.conditions or not all(p.is_discrete for p in space.parameters):
            raise ValueError(f"the table is one of {grid}, the search space is larger")
    elif kind is SurrogateType.NEAREST:
        nearest = cast("NearestSurrogate", model)
        _check_coding(nearest.coding, space)
        found, dimension = nearest.targets.shape[1], nearest.dimension
    else:
        forest = cast("ForestSurrogate", model)
        found, dimension = len(forest.tasks), forest.dimension
        if not all(0 <= mix.weight <= 1 for mix in forest.tasks):
            raise ValueError("the weight of an output is not between 0 and 1")
        highest = forest.offset + forest.step * np.iinfo(np.uint16).max
        if not np.isfinite(highest).all():
            raise ValueError("a forest's values are beyond all floats")
    if found != n_tasks or dimension != space.dimension:
        raise ValueError(
            f"it has {found} tasks and {dimension} hyperparameters, not {n_tasks} and "
            f"{space.dimension}"
        )


def _check_coding(coding: "Coding", space: "SearchSpace") -> None:
    """Check that no configuration of a space has a feature that is not a number.

    Raises:
        ValueError: One may, and would have no nearest neighbour.
    """
    from hpobench_ordered.surrogates.coding import FeatureKind

    if coding.width != space.dimension:
        return  # refused where the dimensions are compared
    for feature in coding.features:
        pair = feature.kind in (FeatureKind.LOG_PRODUCT, FeatureKind.LOG_RATIO)
        columns = (feature.column, feature.operand) if pair else (feature.column,)
        parameters = [space.parameters[column] for column in columns]
        logarithm = pair or feature.kind is FeatureKind.LOG
        if logarithm and any(parameter.lower <= 0 for parameter in parameters):
            raise ValueError(f"{feature} is the logarithm of what may be 0")
        widest = max(max(abs(p.lower), abs(p.upper), 1e3) for p in parameters)
        if (widest + abs(feature.inactive) + abs(feature.mean)) / feature.scale > _WIDEST:
            raise ValueError(f"{feature} is beyond all floats")
