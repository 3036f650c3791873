"""Search spaces: codings, sampling and validation.

A `SearchSpace` is described by ConfigSpace, read and written in ConfigSpace's own JSON, and holds
what the inner loops need as plain tuples and arrays.

Notation:
    n   number of configurations
    d   number of tunable hyperparameters (constants are apart)
    p   number of model features

Codings of a configuration:
    config  dict of the active hyperparameters in native values, constants included
    values  float64 (n, d): native numbers; categoricals and ordinals as the index of the choice;
            inactive hyperparameters NaN
    unit    float64 (n, d) in [0, 1]: log scales applied; integers, categoricals and ordinals in
            the middle of their bins; inactive hyperparameters NaN
"""

import math
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from hpobench_ordered._typing import BoolArray, Config, ConfigLike, FloatArray, Value
from hpobench_ordered.errors import InvalidConfigError, InvalidSpaceError, suggestion
from hpobench_ordered.space.conditions import (
    Condition,
    condition_from_json,
    condition_to_json,
    describe,
    parents,
)
from hpobench_ordered.space.parameters import Kind, Parameter, parameter_from_json

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace
    from pandas import DataFrame

INACTIVE_FEATURE = 0.5
"""Model feature of an inactive numeric hyperparameter: the middle of its range."""


class SearchSpace:
    """Hyperparameters, their ranges and the conditions under which they are active.

    Args:
        parameters: Tunable hyperparameters; their order is the order of columns everywhere.
        conditions: At most one per hyperparameter, keyed by its name: it is active only where its
            condition holds.
        constants: Hyperparameters with one fixed value; part of every configuration.

    Raises:
        InvalidSpaceError: Duplicate names, conditions of what is unknown or a constant, or
            conditions in a circle.

    Examples:
        >>> import numpy as np
        >>> from ConfigSpace import ConfigurationSpace, Float
        >>> from hpobench_ordered import SearchSpace
        >>> rate = Float("rate", (1e-4, 1.0), log=True)
        >>> space = SearchSpace.from_configspace(
        ...     ConfigurationSpace({"depth": (1, 9), "kernel": ["linear", "radial"], "rate": rate})
        ... )
        >>> space
        SearchSpace(
          depth: an integer in [1, 9]
          kernel: one of 'linear', 'radial'
          rate: a number in [0.0001, 1.0] (log scale)
        )
        >>> values = space.values([{"depth": 5, "kernel": "radial", "rate": 0.01}])
        >>> values
        array([[5.  , 1.  , 0.01]])
        >>> space.encode(values)
        array([[0.5 , 0.75, 0.5 ]])
        >>> space.configs(values)
        [{'depth': 5, 'kernel': 'radial', 'rate': 0.01}]
        >>> space.sample_unit(np.random.default_rng(0), 4).shape
        (4, 3)
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        *,
        conditions: Mapping[str, Condition] | None = None,
        constants: ConfigLike | None = None,
    ) -> None:
        self.parameters = tuple(parameters)
        self.names = tuple(p.name for p in self.parameters)
        self.constants: Config = dict(constants or {})
        self._conditions = dict(conditions or {})
        self._index = {name: j for j, name in enumerate(self.names)}
        duplicates = {n for n in self.names if self.names.count(n) > 1 or n in self.constants}
        if duplicates:
            raise InvalidSpaceError(f"hyperparameters defined twice: {sorted(duplicates)}")
        if not self.parameters:
            raise InvalidSpaceError("a search space needs at least one tunable hyperparameter")
        self._order = self._topological_order()

    # -- description ---------------------------------------------------------------------------

    @property
    def dimension(self) -> int:
        """Number of tunable hyperparameters, d."""
        return len(self.parameters)

    @property
    def conditions(self) -> Mapping[str, Condition]:
        """Condition of each conditional hyperparameter."""
        return dict(self._conditions)

    def describe_condition(self, name: str) -> str:
        """Say when a hyperparameter is active, such as "kernel = radial"; "" if it always is."""
        condition = self._conditions.get(name)
        return "" if condition is None else describe(condition, self.parameters)

    def __len__(self) -> int:
        return self.dimension

    def __getitem__(self, name: str) -> Parameter:
        self._check_name(name)
        return self.parameters[self._index[name]]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SearchSpace):
            return NotImplemented
        return (
            self.parameters == other.parameters
            and self._conditions == other._conditions
            and self.constants == other.constants
        )

    def __hash__(self) -> int:
        return hash((self.parameters, tuple(sorted(self.constants))))

    def __repr__(self) -> str:
        lines = [f"  {p.name}: {p.describe()}" for p in self.parameters]
        lines += [f"  {name}: always {value!r}" for name, value in self.constants.items()]
        return "SearchSpace(\n" + "\n".join(lines) + "\n)"

    @cached_property
    def size(self) -> float:
        """Number of distinct configurations, an upper bound under conditions; inf if continuous."""
        return float(math.prod(p.size for p in self.parameters))

    # -- from and to ConfigSpace ---------------------------------------------------------------

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> Self:
        """Read ConfigSpace's JSON (any format since 0.4).

        Raises:
            InvalidSpaceError: The space uses what is not supported, such as forbidden clauses,
                weights of choices or conditions on constants.
        """
        if description.get("forbiddens"):
            raise InvalidSpaceError("forbidden clauses are not supported; use conditions")
        constants: Config = {}
        parameters: list[Parameter] = []
        for item in description["hyperparameters"]:
            if item["type"] == "constant":
                constants[item["name"]] = item["value"]
            else:
                parameters.append(parameter_from_json(item))
        by_name = {p.name: p for p in parameters}
        conditions: dict[str, Condition] = {}
        for item in description.get("conditions", ()):
            if item["child"] in conditions:
                raise InvalidSpaceError(f"two conditions on {item['child']!r}; join them by AND")
            conditions[item["child"]] = condition_from_json(item, by_name, constants)
        return cls(parameters, conditions=conditions, constants=constants)

    def to_json(self) -> dict[str, Any]:
        """Describe the space in ConfigSpace's JSON, readable by `ConfigurationSpace.from_json`."""
        constants = [
            {"type": "constant", "name": name, "value": value, "meta": None}
            for name, value in self.constants.items()
        ]
        by_name = {p.name: p for p in self.parameters}
        conditions = [
            condition_to_json(condition, child, by_name)
            for child, condition in self._conditions.items()
        ]
        return {
            "name": None,
            "hyperparameters": [p.to_json() for p in self.parameters] + constants,
            "conditions": conditions,
            "forbiddens": [],
            "format_version": 0.4,
        }

    @classmethod
    def from_configspace(cls, space: "ConfigurationSpace") -> Self:
        """Take over a ConfigSpace space."""
        return cls.from_json(space.to_serialized_dict())

    def to_configspace(self) -> "ConfigurationSpace":
        """Build the equivalent ConfigSpace space (its hyperparameters are sorted by name)."""
        from ConfigSpace import ConfigurationSpace

        return ConfigurationSpace.from_serialized_dict(self.to_json())

    # -- sampling ------------------------------------------------------------------------------

    def sample_unit(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw n configurations uniformly from the unit cube, canonical, shape (n, d)."""
        return self.canonical(rng.random((n, self.dimension)))

    def sample(self, rng: np.random.Generator) -> Config:
        """Draw one configuration uniformly (log-uniformly on log scales)."""
        return self.configs(self.decode(self.sample_unit(rng, 1)))[0]

    # -- unit cube -----------------------------------------------------------------------------

    def canonical(self, unit: FloatArray) -> FloatArray:
        """Snap discrete hyperparameters to the middle of their bins, set inactive ones to NaN."""
        unit = np.array(unit, dtype=np.float64)
        for j, parameter in enumerate(self.parameters):
            if parameter.is_discrete:
                unit[:, j] = parameter.encode(parameter.decode(unit[:, j]))
        if self._conditions:
            values = np.zeros_like(unit)
            for j in self._all_parents:
                values[:, j] = self.parameters[j].decode(unit[:, j])
            unit[~self.active(values)] = np.nan
        return unit

    def encode(self, values: FloatArray) -> FloatArray:
        """Map values to the unit cube, shape (n, d) to (n, d)."""
        values = np.asarray(values, dtype=np.float64)
        columns = [p.encode(values[:, j]) for j, p in enumerate(self.parameters)]
        return np.stack(columns, axis=1)

    def decode(self, unit: FloatArray) -> FloatArray:
        """Map unit vectors to values, shape (n, d) to (n, d); inactive hyperparameters NaN."""
        values = self._decode_columns(np.asarray(unit, dtype=np.float64))
        if self._conditions:
            values[~self.active(values)] = np.nan
        return values

    def active(self, values: FloatArray) -> BoolArray:
        """Tell which hyperparameters of each configuration are active, shape (n, d)."""
        active = np.ones(values.shape, dtype=np.bool_)
        for j in self._order:
            condition = self._conditions.get(self.names[j])
            if condition is not None:
                active[:, j] = condition.holds(values, active)
        return active

    def features(self, unit: FloatArray) -> FloatArray:
        """Features for a model: numbers in [0, 1], one column of 0 and 1 a categorical choice.

        An inactive number is put in the middle of its range, an inactive categorical has zeros
        only; the parent's own features tell that it is inactive.

        Args:
            unit: Canonical unit vectors, shape (n, d).

        Returns:
            Features, shape (n, p).
        """
        if not self._has_categoricals:
            return np.where(np.isnan(unit), INACTIVE_FEATURE, unit) if self._conditions else unit
        columns: list[FloatArray] = []
        for j, parameter in enumerate(self.parameters):
            column = unit[:, j]
            if parameter.kind is Kind.CATEGORICAL:
                with np.errstate(invalid="ignore"):
                    index = np.floor(column * len(parameter.choices))
                columns += [(index == k).astype(np.float64) for k in range(len(parameter.choices))]
            else:
                columns.append(np.where(np.isnan(column), INACTIVE_FEATURE, column))
        return np.stack(columns, axis=1)

    # -- configurations ------------------------------------------------------------------------

    def validate(self, config: ConfigLike) -> None:
        """Raise `InvalidConfigError` unless the configuration fits this space."""
        self.row(config)

    def row(self, config: ConfigLike) -> FloatArray:
        """Code one configuration as values, shape (d,).

        Inactive hyperparameters and constants may be given or left out; what is given for an
        inactive hyperparameter is ignored.

        Raises:
            InvalidConfigError: Unknown or missing hyperparameter, wrong type, out of bounds, or a
                constant with another value.
        """
        if type(config) is not dict and not isinstance(config, Mapping):  # the former is faster
            raise InvalidConfigError(f"a configuration is a dict, got {config!r}")
        coded = [math.nan] * len(self.parameters)
        given = 0
        for j in self._order:
            parameter = self.parameters[j]
            name = parameter.name
            present = name in config
            given += present
            condition = self._conditions.get(name)
            if condition is not None and not condition.holds_for(coded):
                continue
            if not present:
                self._check_others(config)  # it may be there, misspelt
                active = "" if condition is None else ", active here"
                raise InvalidConfigError(
                    f"hyperparameter {name!r} is missing: {parameter.describe()}{active}"
                )
            coded[j] = parameter.code(config[name])
        if given != len(config):
            self._check_others(config)
        return np.array(coded)

    def values(self, configs: "FloatArray | DataFrame | Iterable[ConfigLike]") -> FloatArray:
        """Validate configurations and code them as values, shape (n, d).

        Args:
            configs: Configurations as dicts; or a DataFrame with a column a hyperparameter,
                anything where inactive; or an array already coded as values.

        Raises:
            InvalidConfigError: As `row`; the message names the offending row. Or these are no
                configurations, such as a single dict.
        """
        if isinstance(configs, np.ndarray):
            return self._checked_values(configs)
        if hasattr(configs, "columns"):  # a DataFrame, told apart without importing pandas
            return self._frame_values(cast("DataFrame", configs))
        given = list(cast("Iterable[ConfigLike]", configs))
        if isinstance(configs, Mapping) or not all(isinstance(c, Mapping) for c in given):
            raise InvalidConfigError(
                f"a list of configurations is expected, each a dict; got {reprlib.repr(configs)}"
            )
        rows = []
        for i, config in enumerate(given):
            try:
                rows.append(self.row(config))
            except InvalidConfigError as error:
                raise InvalidConfigError(f"configuration {i}: {error}") from None
        return np.array(rows).reshape(len(rows), self.dimension)

    def configs(self, values: FloatArray) -> list[Config]:
        """Turn coded values into configurations: active hyperparameters, then constants."""
        configs = []
        for row in values.tolist():
            config = {
                p.name: p.value(coded)
                for p, coded in zip(self.parameters, row, strict=True)
                if coded == coded  # noqa: PLR0124  NaN marks what is inactive
            }
            configs.append(config | self.constants)
        return configs

    # -- internals -----------------------------------------------------------------------------

    @cached_property
    def _has_categoricals(self) -> bool:
        return any(p.kind is Kind.CATEGORICAL for p in self.parameters)

    def _decode_columns(self, unit: FloatArray) -> FloatArray:
        return np.stack([p.decode(unit[:, j]) for j, p in enumerate(self.parameters)], axis=1)

    def _topological_order(self) -> tuple[int, ...]:
        """Indices of the parameters, every parent before its children."""
        for child in self._conditions.keys() - self._index.keys():
            what = "constant" if child in self.constants else "unknown hyperparameter"
            raise InvalidSpaceError(f"unsupported condition of {what} {child!r}")
        order: list[int] = []
        remaining = list(range(len(self.parameters)))
        while remaining:
            ready = [j for j in remaining if self._parents(j) <= set(order)]
            if not ready:
                names = [self.names[j] for j in remaining]
                raise InvalidSpaceError(f"the conditions of {names} depend on each other")
            order += ready
            remaining = [j for j in remaining if j not in ready]
        return tuple(order)

    def _parents(self, j: int) -> set[int]:
        condition = self._conditions.get(self.names[j])
        return set() if condition is None else parents(condition)

    @cached_property
    def _all_parents(self) -> frozenset[int]:
        """Indices of the parameters that conditions depend on."""
        return frozenset().union(*map(parents, self._conditions.values()))

    def _check_name(self, name: str) -> None:
        if name not in self._index:
            hint = suggestion(str(name), [*self.names, *self.constants])
            raise InvalidConfigError(f"unknown hyperparameter {name!r}{hint}")

    def _check_others(self, config: ConfigLike) -> None:
        """Check what a configuration holds beside tunable hyperparameters."""
        for name, value in config.items():
            if name in self.constants:
                self._check_constant(name, value)
            else:
                self._check_name(name)

    def _check_constant(self, name: str, value: Value) -> None:
        if value != self.constants[name]:
            raise InvalidConfigError(
                f"hyperparameter {name!r} is always {self.constants[name]!r}, got {value!r}"
            )

    def _checked_values(self, values: FloatArray) -> FloatArray:
        if values.ndim != 2 or values.shape[1] != self.dimension:
            raise InvalidConfigError(
                f"an array of configurations has shape (n, {self.dimension}), one column for each "
                f"of {list(self.names)}; got {values.shape}"
            )
        if values.dtype.kind not in "fiu":
            raise InvalidConfigError(f"an array of configurations is numeric, got {values.dtype}")
        values = np.array(values, dtype=np.float64)
        active = self.active(values) if self._conditions else None
        for j, parameter in enumerate(self.parameters):
            column = values[:, j]
            bad = ~parameter.allows(column)
            if active is not None:
                bad &= active[:, j]
            if bad.any():
                i = int(np.argmax(bad))
                raise InvalidConfigError(
                    f"configuration {i}: {parameter.name} must be {parameter.describe_coded()}, "
                    f"got {column[i]!r}"
                )
        if active is not None:
            values[~active] = np.nan
        return values

    def _frame_values(self, frame: "DataFrame") -> FloatArray:
        for name in frame.columns:
            if name not in self.constants:
                self._check_name(name)
        coded = np.full((len(frame), self.dimension), np.nan)
        active = np.ones(coded.shape, dtype=np.bool_)
        for j in self._order:
            parameter = self.parameters[j]
            condition = self._conditions.get(parameter.name)
            if condition is not None:
                active[:, j] = condition.holds(coded, active)
            if parameter.name in frame.columns:
                column = frame[parameter.name].to_numpy()
                coded[:, j] = parameter.code_column(column, active[:, j])
            elif active[:, j].any():
                raise InvalidConfigError(
                    f"column {parameter.name!r} is missing: {parameter.describe()}"
                )
        for name in self.constants.keys() & set(frame.columns):
            for value in frame[name].unique():
                self._check_constant(name, value)
        return self._checked_values(coded)
