"""Search spaces: codings, sampling and validation.

A `SearchSpace` is read and written in ConfigSpace's JSON format, and holds its content as plain
tuples and arrays for fast access.

Notation:
    n   number of configurations
    d   number of tunable hyperparameters (without constants)
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
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from hpobench_ordered._html import table
from hpobench_ordered._typing import BoolArray, Config, ConfigLike, FloatArray, Value
from hpobench_ordered._wording import MAX_LISTED, suggest_allowed
from hpobench_ordered.errors import InvalidConfigError, InvalidSpaceError
from hpobench_ordered.space.coded import check_allowed, check_coded, code_frame, sort_by_activation
from hpobench_ordered.space.conditions import Condition, describe_condition
from hpobench_ordered.space.configspace_json import space_from_json, space_to_json
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.space.unit_cube import UnitCube

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace
    from optuna.distributions import BaseDistribution
    from pandas import DataFrame


class SearchSpace:
    """Hyperparameters, their ranges and the conditions under which they are active.

    Args:
        parameters: Tunable hyperparameters, in the order of all arrays' columns.
        conditions: Condition under which a hyperparameter is active, by its name; at most one each.
        constants: Hyperparameters with one fixed value; part of every configuration.

    Raises:
        InvalidSpaceError: Duplicate names, a condition on an unknown hyperparameter or a constant,
            or cyclic conditions.

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
        """Check the parts of a search space, and sort its conditions; see the class."""
        self.parameters = tuple(parameters)
        self.names = tuple(parameter.name for parameter in self.parameters)
        self.constants: Config = dict(constants or {})
        self._conditions = dict(conditions or {})  # by the name of the hyperparameter
        self._column_of_name = {name: column for column, name in enumerate(self.names)}

        counts = Counter([*self.names, *self.constants])
        duplicates = sorted(name for name, count in counts.items() if count > 1)
        if duplicates:
            raise InvalidSpaceError(f"hyperparameters defined twice: {duplicates}")
        if not self.parameters:
            raise InvalidSpaceError("a search space needs at least one tunable hyperparameter")
        # Every parent comes before its children. This raises an error for invalid conditions.
        self._columns_in_order = sort_by_activation(self.names, self._conditions, self.constants)

    @property
    def dimension(self) -> int:
        """Number of tunable hyperparameters, d."""
        return len(self.parameters)

    @property
    def default(self) -> Config:
        """The configuration in which every active hyperparameter has its default."""
        codes = [parameter.code(cast(Value, parameter.default)) for parameter in self.parameters]
        values = np.array([codes])
        (config,) = self.configs(np.where(self.active(values), values, np.nan))
        return config

    @property
    def conditions(self) -> Mapping[str, Condition]:
        """Condition of each hyperparameter that is not always active, by its name."""
        return dict(self._conditions)

    @cached_property
    def ordered_conditions(self) -> Mapping[int, Condition | None]:
        """Condition of each hyperparameter by its column, parents before their children.

        It is None for a hyperparameter that is always active.
        """
        conditions = {}
        for column in self._columns_in_order:
            conditions[column] = self._conditions.get(self.names[column])
        return conditions

    def describe_condition(self, name: str) -> str:
        """Describe when a hyperparameter is active, such as "kernel = radial"; "" if always."""
        condition = self._conditions.get(name)
        return "" if condition is None else describe_condition(condition, self.parameters)

    def __len__(self) -> int:
        """Return the number of tunable hyperparameters."""
        return self.dimension

    def __getitem__(self, name: str) -> Parameter:
        """Return a tunable hyperparameter by its name.

        Raises:
            InvalidConfigError: The name is that of a constant, or unknown.
        """
        if name in self._column_of_name:
            return self.parameters[self._column_of_name[name]]
        self._check_name(name)  # raises an error for an unknown name, so it is a constant's
        raise InvalidConfigError(f"hyperparameter {name!r} is a constant")

    def __eq__(self, other: object) -> bool:
        """Whether both have the same hyperparameters (with defaults), conditions and constants."""
        if not isinstance(other, SearchSpace):
            return NotImplemented
        return (
            self.parameters == other.parameters
            and self._conditions == other._conditions
            and self.constants == other.constants
        )

    def __hash__(self) -> int:
        """Return a hash that is equal for equal spaces.

        Conditions and the values of constants are left out: a hash need not tell all spaces apart.
        """
        names_of_constants = tuple(sorted(self.constants))
        return hash((self.parameters, names_of_constants))

    def __repr__(self) -> str:
        """Describe the space in text, one hyperparameter a line."""
        lines = ["SearchSpace("]
        for name, values, condition in self.described():
            line = f"  {name}: {values}"
            lines.append(f"{line}, if {condition}" if condition else line)
        return "\n".join([*lines, ")"])

    def _repr_html_(self) -> str:
        """Describe the space as an HTML table, which notebooks show."""
        columns = ("hyperparameter", "values", "active if")
        return table(f"SearchSpace, {self.dimension} dimensions", columns, self.described())

    def described(self) -> list[tuple[str, str, str]]:
        """Describe every hyperparameter by its name, values and condition; constants come last.

        The condition is "" for a hyperparameter that is always active.
        """
        rows = []
        for parameter in self.parameters:
            condition = self.describe_condition(parameter.name)
            rows.append((parameter.name, parameter.describe(), condition))
        for name, value in self.constants.items():
            rows.append((name, f"always {value!r}", ""))
        return rows

    @cached_property
    def size(self) -> float:
        """Number of distinct configurations; inf if a hyperparameter is a float.

        In a space with conditions it is an upper bound, as values of inactive hyperparameters are
        counted.
        """
        return float(math.prod(parameter.size for parameter in self.parameters))

    @classmethod
    def from_json(cls, description: Mapping[str, Any]) -> Self:
        """Read ConfigSpace's JSON (any format since 0.4).

        Raises:
            InvalidSpaceError: The space uses an unsupported feature, such as forbidden clauses,
                weights of choices or conditions on constants.
        """
        parameters, conditions, constants = space_from_json(description)
        return cls(parameters, conditions=conditions, constants=constants)

    def to_json(self) -> dict[str, Any]:
        """Describe the space in ConfigSpace's JSON, readable by `ConfigurationSpace.from_json`."""
        return space_to_json(self.parameters, self._conditions, self.constants)

    @classmethod
    def from_configspace(cls, space: "ConfigurationSpace") -> Self:
        """Convert a ConfigSpace space."""
        return cls.from_json(space.to_serialized_dict())

    def to_configspace(self) -> "ConfigurationSpace":
        """Build the equivalent ConfigSpace space (its hyperparameters are sorted by name)."""
        from ConfigSpace import ConfigurationSpace

        return ConfigurationSpace.from_serialized_dict(self.to_json())

    def to_optuna(self) -> "dict[str, BaseDistribution]":
        """Convert every tunable hyperparameter to Optuna's distribution, by its name.

        Constants are left out, and ordinals become categorical. Distributions have no conditions,
        so trials also have values of inactive hyperparameters, which tasks ignore. A study that
        shall suggest only the active ones must choose one after the other, in the objective
        (define-by-run): `hpobench_ordered.tuning.suggest_config(trial, space)` does so.

        Raises:
            MissingExtraError: Optuna is not installed.

        Examples:
            >>> import optuna
            >>> import hpobench_ordered as hbo
            >>> task = hbo.load("quadratic").tasks[0]
            >>> study = optuna.create_study()
            >>> trial = study.ask(task.space.to_optuna())
            >>> finished_trial = study.tell(trial, task.evaluate(trial.params))
        """
        return {parameter.name: parameter.to_optuna() for parameter in self.parameters}

    def sample_unit(self, rng: np.random.Generator, n: int) -> FloatArray:
        """Draw n canonical unit vectors uniformly from the unit cube, shape (n, d)."""
        return self.canonical(rng.random((n, self.dimension)))

    def sample(self, rng: np.random.Generator) -> Config:
        """Draw one configuration uniformly (log-uniformly on log scales)."""
        values = self.decode(self.sample_unit(rng, 1))
        return self.configs(values)[0]

    def codes_as(self, other: "SearchSpace") -> bool:
        """Whether both spaces have the same configurations and codes; defaults may differ."""
        if self is other:  # saves the comparisons
            return True
        if self.dimension != other.dimension:
            return False
        pairs = zip(self.parameters, other.parameters, strict=True)
        return (
            all(parameter.codes_as(other_parameter) for parameter, other_parameter in pairs)
            and self._conditions == other._conditions
            and self.constants == other.constants
        )

    def allows(self, values: FloatArray) -> BoolArray:
        """Find out which coded values (n, d) are valid in this space, shape (n, d).

        The value of an active hyperparameter is valid if it is in range and, if discrete, a whole
        number. The value of an inactive one must be NaN.
        """
        cube = self._cube  # has the bounds of all hyperparameters as arrays, (d,)
        is_in_range = (values >= cube.lower) & (values <= cube.upper)
        is_whole_if_discrete = ~cube.is_discrete | (values == np.floor(values))
        is_valid_if_active: BoolArray = is_in_range & is_whole_if_discrete
        if not self._conditions:
            return is_valid_if_active
        return np.where(self.active(values), is_valid_if_active, np.isnan(values))

    def move_to_bounds(self, values: FloatArray) -> FloatArray:
        """Copy coded values (n, d); numbers that miss a bound by rounding are moved onto it."""
        moved = np.array(values, dtype=np.float64)
        for column, parameter in enumerate(self.parameters):
            moved[:, column] = parameter.move_to_bounds(moved[:, column])
        return moved

    def describe_invalid(self, values: FloatArray) -> str:
        """Describe the first few coded values (n, d) that are not valid, as `allows` finds them."""
        is_invalid = ~self.allows(values)
        active = self.active(values)
        problems = []
        for row, column in np.argwhere(is_invalid)[:MAX_LISTED]:
            parameter = self.parameters[column]
            if active[row, column]:
                expected = parameter.describe_coded()
            else:
                expected = "NaN, as it is inactive"
            value = float(values[row, column])
            problems.append(f"row {row}: {parameter.name} must be {expected}, but got {value!r}")

        n_unlisted = int(is_invalid.sum()) - len(problems)
        if n_unlisted:
            problems.append(f"and {n_unlisted} more")
        return "; ".join(problems)

    def canonical(self, unit: FloatArray) -> FloatArray:
        """Snap discrete hyperparameters to the middle of their bins, set inactive ones to NaN.

        Equal configurations thus have equal unit vectors.

        NaN stays NaN: after a change of unit vectors that may activate hyperparameters, call
        `completed`.

        Args:
            unit: Any unit vectors, shape (n, d).

        Returns:
            Canonical unit vectors, shape (n, d).
        """
        return self._cube.canonical(unit)

    def completed(self, unit: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Draw the missing values (NaN) of active hyperparameters in unit vectors (n, d).

        Returns:
            Canonical unit vectors, shape (n, d).
        """
        unit = np.array(unit, dtype=np.float64)
        # Which hyperparameters are active is known only when their parents have values. So all
        # missing values are drawn, and `canonical` sets the inactive ones back to NaN.
        missing = np.isnan(unit)
        unit[missing] = rng.random(int(missing.sum()))
        return self.canonical(unit)

    def encode(self, values: FloatArray) -> FloatArray:
        """Map coded values to the unit cube, shape (n, d) to (n, d); NaN stays NaN."""
        return self._cube.encode(np.asarray(values, dtype=np.float64))

    def decode(self, unit: FloatArray) -> FloatArray:
        """Map unit vectors to coded values, shape (n, d) to (n, d), with NaN where inactive."""
        return self._cube.decode(np.asarray(unit, dtype=np.float64))

    def active(self, values: FloatArray) -> BoolArray:
        """Find out which hyperparameters of configurations, coded values (n, d), are active.

        The result has shape (n, d).
        """
        return self._cube.active(values)

    def features(self, unit: FloatArray) -> FloatArray:
        """Compute features of canonical unit vectors for a model, shape (n, d) to (n, p).

        Numbers are in [0, 1]; categoricals are one-hot coded. Inactive numbers get the middle of
        their range, inactive categoricals zeros; the parent's features show that they are inactive.
        """
        return self._cube.features(unit)

    def validate(self, config: ConfigLike) -> None:
        """Raise `InvalidConfigError` unless the configuration is valid in this space."""
        self.row(config)

    def row(self, config: ConfigLike) -> FloatArray:
        """Check one configuration and code it as values, shape (d,).

        Inactive hyperparameters and constants may be left out. Values of inactive hyperparameters
        are ignored.

        Raises:
            InvalidConfigError: Unknown or missing hyperparameter, wrong type, out of bounds, or a
                constant with another value.
        """
        is_mapping = type(config) is dict or isinstance(config, Mapping)  # the former is faster
        if not is_mapping:
            is_row_of_table = hasattr(config, "to_dict")
            hint = "; a row of a table is one by `dict(row)`" if is_row_of_table else ""
            raise InvalidConfigError(f"a configuration must be a dict, but got {config!r}{hint}")
        coded = [math.nan] * len(self.parameters)
        n_present = 0  # number of tunable hyperparameters in `config`, active or not
        # Parents come before their children, whose conditions need the parents' codes.
        for column, condition in self.ordered_conditions.items():
            parameter = self.parameters[column]
            is_present = parameter.name in config
            n_present += is_present
            is_active = condition is None or condition.holds_for(coded)
            if not is_active:
                continue
            if not is_present:
                self._check_other_names(config)  # the missing one may be misspelt
                note = "" if condition is None else ", active here"
                raise InvalidConfigError(
                    f"hyperparameter {parameter.name!r} is missing: {parameter.describe()}{note}"
                )
            coded[column] = parameter.code(config[parameter.name])

        has_other_names = n_present != len(config)
        if has_other_names:  # they must be constants with their values
            self._check_other_names(config)
        return np.array(coded)  # NaN where inactive

    def values(self, configs: "FloatArray | DataFrame | Iterable[ConfigLike]") -> FloatArray:
        """Validate configurations and code them as values, shape (n, d), NaN where inactive.

        Args:
            configs: Configurations as dicts; or a DataFrame, or a table of Arrow, with a column per
                hyperparameter, any values where inactive; or an array already coded as values.

        Raises:
            InvalidConfigError: A configuration is invalid as in `row` (the message names it), or
                the argument is not a list of configurations, such as a single dict.
        """
        if isinstance(configs, np.ndarray):
            return self._check_values(configs)
        if hasattr(configs, "to_pandas"):  # a table of Arrow
            configs = configs.to_pandas()
        if hasattr(configs, "columns"):  # a DataFrame, recognised without importing pandas
            return self._code_frame(cast("DataFrame", configs))

        dicts = list(cast("Iterable[ConfigLike]", configs))
        is_single_dict = isinstance(configs, Mapping)
        if is_single_dict or not all(isinstance(config, Mapping) for config in dicts):
            raise InvalidConfigError(
                f"configurations must be a list of dicts, but got {reprlib.repr(configs)}"
            )
        rows = []
        for i, config in enumerate(dicts):
            try:
                rows.append(self.row(config))
            except InvalidConfigError as error:
                raise InvalidConfigError(f"configuration {i}: {error}") from None
        return np.array(rows).reshape(len(rows), self.dimension)  # the right shape if n = 0, too

    def _code_frame(self, frame: "DataFrame") -> FloatArray:
        """Validate and code the configurations in the rows of a table, shape (n, d)."""
        for name in frame.columns:
            self._check_name(name)
            if name in self.constants:
                for value in frame[name].unique():
                    self._check_constant(name, value)

        coded = code_frame(frame, self.parameters, self.ordered_conditions)
        return self._check_values(coded)  # `code_frame` does not check bounds

    def configs(self, values: FloatArray) -> list[Config]:
        """Convert coded values (n, d) to configurations in native values.

        Each has the active hyperparameters first, and then the constants.
        """
        configs = []
        for row in values.tolist():
            config = {}
            for parameter, coded in zip(self.parameters, row, strict=True):
                is_active = coded == coded  # noqa: PLR0124  false for NaN; faster than math.isnan
                if is_active:
                    config[parameter.name] = parameter.value(coded)
            configs.append(config | self.constants)
        return configs

    @cached_property
    def _cube(self) -> UnitCube:
        """Converts whole arrays between coded values, unit vectors and model features."""
        conditions = {}
        for column, condition in self.ordered_conditions.items():
            if condition is not None:
                conditions[column] = condition
        return UnitCube(self.parameters, conditions)

    def _check_name(self, name: str) -> None:
        """Raise an `InvalidConfigError` unless a hyperparameter or constant has that name."""
        if name not in self._column_of_name and name not in self.constants:
            hint = suggest_allowed(str(name), [*self.names, *self.constants])
            raise InvalidConfigError(f"unknown hyperparameter {name!r}{hint}")

    def _check_other_names(self, config: ConfigLike) -> None:
        """Check a configuration for unknown names and wrong values of constants."""
        for name, value in config.items():
            self._check_name(name)
            if name in self.constants:
                self._check_constant(name, value)

    def _check_constant(self, name: str, value: object) -> None:
        """Raise an `InvalidConfigError` unless `value` is the value of the constant."""
        if value != self.constants[name]:
            raise InvalidConfigError(
                f"hyperparameter {name!r} is always {self.constants[name]!r}, but got {value!r}"
            )

    def _check_values(self, values: FloatArray) -> FloatArray:
        """Validate coded values (n, d), and return a copy with NaN where inactive.

        Numbers that miss a bound by rounding are moved onto it.

        Raises:
            InvalidConfigError: The array has another shape or type, or an active value is wrong.
        """
        check_coded(values, self.parameters)  # shape and type
        values = self.move_to_bounds(values)  # a copy
        if not self._conditions:
            check_allowed(values, None, self.parameters)  # None: all are active
            return values
        active = self.active(values)
        check_allowed(values, active, self.parameters)
        values[~active] = np.nan
        return values
