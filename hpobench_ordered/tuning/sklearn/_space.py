"""Search spaces of estimators, from the descriptions that users of other packages know."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpobench_ordered._typing import ConfigLike, Value
from hpobench_ordered.errors import InvalidSpaceError
from hpobench_ordered.space import Parameter, SearchSpace
from hpobench_ordered.space.conversion import (
    CHOICES,
    LINEAR,
    LOG,
    SpaceLike,
    is_range,
    is_value,
    make_space,
    name_choice,
    read_description,
    to_search_space,
)
from hpobench_ordered.space.optuna_space import convert_distribution


@dataclass(frozen=True)
class EstimatorSpace:
    """A search space, and the objects that some of its choices stand for.

    Choices of a `SearchSpace` are text, booleans, numbers and None. Any other object, such as a
    tuple or an estimator, is represented there by its text.

    Attributes:
        space: The search space.
        objects: The objects by hyperparameter and text; none for choices that stand for
            themselves.
    """

    space: SearchSpace
    objects: Mapping[str, Mapping[Value, object]]

    def params(self, config: ConfigLike) -> dict[str, Any]:
        """Parameters of the estimator (`set_params`) for a configuration."""
        params: dict[str, Any] = {}
        for name, value in config.items():
            object_of_text = self.objects.get(name, {})
            params[name] = object_of_text.get(value, value)
        return params


def read_space(description: SpaceLike) -> EstimatorSpace:
    """Read the search space of an estimator.

    Args:
        description: A search space or ConfigSpace's; or a dict from names of parameters to what
            `to_search_space` and `read_parameter` read.

    Raises:
        EvaluationsError: It is of another type.
        InvalidSpaceError: A parameter cannot be read; the message says what is allowed.
    """
    is_of_configspace = hasattr(description, "to_serialized_dict")  # a mapping, too
    if is_of_configspace or not isinstance(description, Mapping):
        return EstimatorSpace(to_search_space(description), {})

    described: dict[str, Parameter | Value] = {}
    objects: dict[str, Mapping[Value, object]] = {}
    for name, values in description.items():
        described[name], objects[name] = read_parameter(name, values)
    return EstimatorSpace(make_space(described), objects)


def read_parameter(name: str, values: Any) -> tuple[Parameter | Value, Mapping[Value, object]]:
    """Read a hyperparameter or a constant, and the objects that its choices stand for.

    Args:
        name: Name of the estimator's parameter.
        values: What `read_description` reads; an array or range of choices; or a distribution of
            SciPy (uniform, loguniform or randint), scikit-optimize or Optuna. Choices may be any
            objects.
    """
    package = type(values).__module__.partition(".")[0]
    if package == "optuna":
        choices = getattr(values, "choices", ())  # of a categorical distribution
        return convert_distribution(name, values), _find_objects(name, choices)
    if package == "skopt":
        values = _convert_skopt(name, values)
    elif package == "scipy":
        values = _convert_scipy(name, values)
    elif isinstance(values, np.ndarray | range):
        values = {CHOICES: np.asarray(values).tolist()}

    objects: Mapping[Value, object] = {}
    if isinstance(values, Mapping) and list(values) == [CHOICES]:
        objects = _find_objects(name, values[CHOICES])
        values = {CHOICES: [name_choice(name, choice) for choice in values[CHOICES]]}
    elif isinstance(values, list) and not is_range(values):
        objects = _find_objects(name, values)
        values = [name_choice(name, choice) for choice in values]
    return read_description(name, values), objects


def _find_objects(name: str, choices: Sequence[object]) -> dict[Value, object]:
    """The objects among choices, by the text that stands for each."""
    return {name_choice(name, choice): choice for choice in choices if not is_value(choice)}


def _convert_scipy(name: str, distribution: Any) -> object:
    """Convert a frozen distribution of SciPy to a range."""
    # A distribution with fixed parameters has its family as `dist`; other objects have none.
    family = getattr(distribution, "dist", None)
    kind = getattr(family, "name", type(distribution).__name__)
    if kind == "uniform":
        return tuple(map(float, distribution.support()))
    if kind in ("loguniform", "reciprocal"):  # two names of one distribution
        return (*map(float, distribution.support()), LOG)
    if kind == "randint":
        return tuple(map(int, distribution.support()))  # both inclusive
    raise InvalidSpaceError(
        f"hyperparameter {name!r}: of SciPy's distributions only uniform, loguniform and randint "
        f"can be read, but got {kind}; give a range, such as (0.1, 10.0, {LOG!r})"
    )


def _convert_skopt(name: str, dimension: Any) -> object:
    """Convert a dimension of scikit-optimize to a range or choices."""
    kind = type(dimension).__name__
    if kind == "Categorical":
        return {CHOICES: list(dimension.categories)}
    if kind in ("Real", "Integer"):
        scale = LOG if dimension.prior == "log-uniform" else LINEAR
        return (dimension.low, dimension.high, scale)
    raise InvalidSpaceError(
        f"hyperparameter {name!r}: of scikit-optimize's dimensions only Real, Integer and "
        f"Categorical can be read, but got {kind}"
    )
