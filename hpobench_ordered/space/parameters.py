"""A hyperparameter: its range, coding and validation."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import BoolArray, FloatArray, Value
from hpobench_ordered._wording import suggest_nearest
from hpobench_ordered.errors import InvalidConfigError, InvalidSpaceError, MissingExtraError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

ROUNDING = 1e-9
"""A number that misses a bound by at most this share of the range is the bound."""
ROUNDING_OF_FLOAT32 = 1e-6
"""The same for a number that single precision can hold, which probably came from there."""
_BOOLEANS = (bool, np.bool_)
_NUMPY_NUMBERS = (np.integer, np.floating)


class NoDefault(Enum):
    """Stands for a default that is not given, as None may be one of the choices."""

    NO_DEFAULT = "no default"


NO_DEFAULT = NoDefault.NO_DEFAULT


class Kind(Enum):
    """Kinds of hyperparameters; member values are the names in ConfigSpace's JSON."""

    FLOAT = "uniform_float"
    INTEGER = "uniform_int"
    CATEGORICAL = "categorical"
    ORDINAL = "ordinal"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A tunable hyperparameter.

    Attributes:
        name: Its name in configurations.
        kind: Float, integer, categorical or ordinal.
        lower: Smallest value of a number; 0 for choices.
        upper: Largest value of a number, inclusive; number of choices - 1 for choices.
        log: Whether a number is on a log scale.
        choices: Values of a categorical or ordinal, in order; empty for numbers. They are text,
            numbers, booleans and None.
        default: Default value; if omitted, the first choice or the middle of the (log) range.
        span: Values on the (log) scale that are mapped to 0 and 1 in the unit cube; for discrete
            values, half a step below the smallest and above the largest.

    Raises:
        InvalidSpaceError: Empty or infinite range, non-positive bounds on a log scale, choices of
            another type or repeated, or a default outside the range.
    """

    name: str
    kind: Kind
    lower: float
    upper: float
    log: bool = False
    choices: tuple[Value, ...] = ()
    default: Value | NoDefault = NO_DEFAULT
    # Index of each choice, by (whether it is a boolean, choice), see `_set_codes`.
    _codes: Mapping[tuple[bool, Value], float] = field(init=False, repr=False, compare=False)
    span: tuple[float, float] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check the arguments, and set the attributes that are derived from them.

        The order of the steps matters, as each uses what the steps before it have set.
        """
        self._check_range()
        self._set_codes()
        self._set_span()
        self._set_default()

    def _check_range(self) -> None:
        """Raise an `InvalidSpaceError` unless the bounds are finite and in order."""
        if not (math.isfinite(self.lower) and math.isfinite(self.upper)):
            raise InvalidSpaceError(f"{self.name}: bounds must be finite")
        # A float with a single value is not tunable; integers and choices may have one value.
        is_single_float = self.kind is Kind.FLOAT and self.lower == self.upper
        if self.lower > self.upper or is_single_float:
            raise InvalidSpaceError(f"{self.name}: empty range [{self.lower}, {self.upper}]")
        if self.log and self.lower <= 0:
            raise InvalidSpaceError(f"{self.name}: a log scale needs a positive lower bound")

    def _set_codes(self) -> None:
        """Set `_codes`, the index of each choice, after checking the choices.

        Raises:
            InvalidSpaceError: A choice has a wrong type, or occurs twice.
        """
        for choice in self.choices:
            is_value = choice is None or isinstance(choice, str | bool | int | float | np.generic)
            if not is_value:
                raise InvalidSpaceError(
                    f"{self.name}: a choice must be text, a number, a boolean or None, but got "
                    f"{choice!r}: give it a name, as text"
                )
        codes = {}
        for index, choice in enumerate(self.choices):
            # The first part of the key tells True from 1 and False from 0, equal in Python.
            key = (isinstance(choice, _BOOLEANS), choice)
            codes[key] = float(index)
        if len(codes) != len(self.choices):
            raise InvalidSpaceError(f"{self.name}: repeated choices {self.choices}")
        object.__setattr__(self, "_codes", codes)  # as the class is frozen

    def _set_span(self) -> None:
        """Set `span`: the two numbers that are mapped to 0 and 1 of the unit interval.

        On a log scale they are logarithms.
        """
        # A whole number stands for all numbers that are rounded to it: half a step on each side.
        margin = 0.5 if self.is_discrete else 0.0
        bounds = np.array([self.lower - margin, self.upper + margin])
        scaled_bounds = log(bounds) if self.log else bounds
        object.__setattr__(self, "span", tuple(scaled_bounds.tolist()))  # as the class is frozen

    def _set_default(self) -> None:
        """Check the default; if there is none, set the first choice or the middle of the range.

        Raises:
            InvalidSpaceError: The default is not allowed.
        """
        # None means that there is no default, as in ConfigSpace's JSON, unless it is a choice.
        is_missing = self.default is NO_DEFAULT
        if self.default is None and None not in self.choices:
            is_missing = True
        if is_missing:
            first_choice = 0.0  # its index
            middle = float(self.decode(np.array(0.5)))
            coded_default = first_choice if self.choices else middle
            object.__setattr__(self, "default", self.value(coded_default))  # the class is frozen

        try:
            code = self.code(cast(Value, self.default))
        except InvalidConfigError as error:  # its message begins with the hyperparameter's name
            raise InvalidSpaceError(f"default of {error}") from None
        was_moved_to_bound = not self.choices and code != self.default
        if was_moved_to_bound:
            object.__setattr__(self, "default", self.value(code))

    @classmethod
    def number(
        cls,
        name: str,
        lower: float,
        upper: float,
        *,
        log: bool = False,
        integer: bool = False,
        default: float | NoDefault = NO_DEFAULT,
    ) -> "Parameter":
        """Make a float or integer hyperparameter in [lower, upper]."""
        kind = Kind.INTEGER if integer else Kind.FLOAT
        return cls(name, kind, float(lower), float(upper), log, default=default)

    @classmethod
    def choice(
        cls,
        name: str,
        choices: tuple[Value, ...],
        *,
        ordered: bool = False,
        default: Value | NoDefault = NO_DEFAULT,
    ) -> "Parameter":
        """Make a categorical hyperparameter, or an ordinal one if the choices are ordered."""
        if not choices:
            raise InvalidSpaceError(f"{name}: no choices")
        kind = Kind.ORDINAL if ordered else Kind.CATEGORICAL
        highest_code = float(len(choices) - 1)
        return cls(name, kind, 0.0, highest_code, choices=tuple(choices), default=default)

    @property
    def has_steps(self) -> bool:
        """Whether the choices are the numbers of a range with steps: ordered, and increasing."""
        if self.kind is not Kind.ORDINAL:
            return False
        numbers: list[float] = []
        for choice in self.choices:
            if choice is None or isinstance(choice, str | bool):
                return False
            numbers.append(choice)
        return all(low < high for low, high in pairwise(numbers))

    def find_nearest_step(self, number: float) -> float:
        """Find the code of the step that is nearest to a number, for choices that are steps.

        The result is NaN if the number is outside of the steps by a whole step or more. For
        example, the last of the steps 1, 11, ..., 91 is the nearest one to 100, but none is to 101.
        If there is only one step, it is the nearest one to all numbers.
        """
        steps = np.array(self.choices, dtype=np.float64)
        first_gap = steps[1] - steps[0] if len(steps) > 1 else math.inf
        last_gap = steps[-1] - steps[-2] if len(steps) > 1 else math.inf
        is_near = steps[0] - first_gap < number < steps[-1] + last_gap
        if not is_near:
            return math.nan
        return float(np.abs(steps - number).argmin())

    @property
    def is_discrete(self) -> bool:
        """Whether the hyperparameter has finitely many values."""
        return self.kind is not Kind.FLOAT

    @property
    def size(self) -> float:
        """Number of distinct values; inf for a float."""
        return math.inf if self.kind is Kind.FLOAT else self.upper - self.lower + 1

    def describe(self) -> str:
        """Describe the allowed values, as part of a sentence."""
        if self.choices:
            return "one of " + ", ".join(map(repr, self.choices))
        noun = "an integer" if self.kind is Kind.INTEGER else "a number"
        lower = self.value(self.lower)
        upper = self.value(self.upper)
        scale = " (log scale)" if self.log else ""
        return f"{noun} in [{lower!r}, {upper!r}]{scale}"

    def describe_coded(self) -> str:
        """Describe the allowed coded values, as part of a sentence."""
        if self.choices:
            return f"the index of a choice, 0 to {len(self.choices) - 1}"
        return self.describe()

    def to_json(self) -> dict[str, Any]:
        """Describe the hyperparameter in ConfigSpace's JSON, with all keys that it needs."""
        item: dict[str, Any] = {"type": self.kind.value, "name": self.name}
        if self.kind is Kind.ORDINAL:
            item |= {"sequence": list(self.choices), "default_value": self.default}
        elif self.kind is Kind.CATEGORICAL:
            item |= {
                "choices": list(self.choices),
                "weights": None,
                "default_value": self.default,
            }
        else:
            item |= {
                "lower": self.value(self.lower),
                "upper": self.value(self.upper),
                "default_value": self.default,
                "log": self.log,
            }
        return {**item, "meta": None}

    def to_optuna(self) -> "BaseDistribution":
        """Convert the hyperparameter to Optuna's distribution; an ordinal becomes categorical.

        Raises:
            MissingExtraError: Optuna is not installed.
        """
        try:
            from optuna.distributions import (
                CategoricalDistribution,
                FloatDistribution,
                IntDistribution,
            )
        except ImportError as error:
            raise MissingExtraError("optuna", extra="optuna", purpose="to_optuna") from error

        if self.choices:
            return CategoricalDistribution(self.choices)
        if self.kind is Kind.INTEGER:
            return IntDistribution(int(self.lower), int(self.upper), log=self.log)
        return FloatDistribution(self.lower, self.upper, log=self.log)

    def code(self, value: Value) -> float:
        """Check one native value and code it as a float: a number itself, or a choice's index.

        A number that misses a bound by rounding is moved onto it.

        Raises:
            InvalidConfigError: Wrong type, not finite, out of bounds, or not a choice.
        """
        if self.choices:
            return self._code_choice(value)
        value_type = type(value)
        is_python_number = value_type is float or value_type is int  # not a boolean
        if not is_python_number and not isinstance(value, _NUMPY_NUMBERS):
            raise InvalidConfigError(
                f"{self.name} must be {self.describe()}, but got {value!r} ({value_type.__name__})"
            )

        number = float(cast("float", value))
        is_whole_if_integer = self.kind is Kind.FLOAT or number.is_integer()
        is_in_range = self.lower <= number <= self.upper  # False for NaN
        if is_whole_if_integer and is_in_range:
            return number
        # If the number misses a bound by rounding only, it is moved onto it.
        (moved,) = self.move_to_bounds(np.array([number]))
        if moved in (self.lower, self.upper):
            return float(moved)
        raise InvalidConfigError(f"{self.name} must be {self.describe()}, but got {value!r}")

    def move_to_bounds(self, numbers: FloatArray) -> FloatArray:
        """Move numbers (n,) that miss a bound by rounding onto it; all others stay as they are."""
        if self.choices:
            return numbers
        is_wrong = (numbers < self.lower) | (numbers > self.upper)
        if self.kind is Kind.INTEGER:  # such as 8.999999999999998, if 9 is the upper bound
            is_wrong |= np.isfinite(numbers) & (numbers != np.floor(numbers))
        if not is_wrong.any():
            return numbers
        moved = numbers.copy()
        moved[is_wrong] = self._move_wrong_to_bounds(numbers[is_wrong])
        return moved

    def _move_wrong_to_bounds(self, wrong: FloatArray) -> FloatArray:
        """Move numbers that are outside the range by a rounding error onto the bound they exceed.

        A rounding error is, on the log scale if there is one, at most the share `ROUNDING` of the
        range, or `ROUNDING_OF_FLOAT32` for numbers in single precision. Other numbers stay as they
        are, and are refused later.

        Args:
            wrong: Numbers that are outside the range, (n,).
        """
        bounds = np.array([self.lower, self.upper])
        if self.log:
            scaled_bounds = log(bounds)
            # Numbers that are not positive have no logarithm; as NaN they are near no bound.
            scaled_numbers = log(np.where(wrong > 0, wrong, np.nan))
        else:
            scaled_bounds = bounds
            scaled_numbers = wrong

        with np.errstate(over="ignore"):  # very large numbers become infinite in single precision
            is_single_precision = wrong.astype(np.float32) == wrong
        largest_share = np.where(is_single_precision, ROUNDING_OF_FLOAT32, ROUNDING)
        largest_distance = largest_share * (scaled_bounds[1] - scaled_bounds[0])

        moved = wrong
        for bound, scaled_bound in zip(bounds, scaled_bounds, strict=True):
            is_near = np.abs(scaled_numbers - scaled_bound) <= largest_distance
            moved = np.where(is_near, bound, moved)
        return moved

    def _code_choice(self, value: Value) -> float:
        """Return the index of a choice; raise an `InvalidConfigError` if the value is no choice."""
        # Keys of `_codes` begin with whether the choice is a boolean, as True equals 1 in Python.
        key = (isinstance(value, _BOOLEANS), value)
        try:
            return self._codes[key]
        except (KeyError, TypeError):  # not a choice, or a list or dict, which cannot be a key
            hint = suggest_nearest(value, map(str, self.choices)) if isinstance(value, str) else ""
            raise InvalidConfigError(
                f"{self.name} must be {self.describe()}, but got {value!r}{hint}"
            ) from None

    def code_column(self, column: NDArray[Any], active: BoolArray) -> FloatArray:
        """Code a column of native values (n,); inactive and missing values become NaN.

        Numbers in arrays of a numeric type are not checked, since this would be slow one by one.
        The caller checks with `allows` that they are allowed, and that no active value is missing.

        Args:
            column: Native values, shape (n,).
            active: Whether the hyperparameter is active in each row, shape (n,).

        Raises:
            InvalidConfigError: As `code`; the message names the row.
        """
        is_numeric = column.dtype.kind in "fiu"  # floats, signed and unsigned integers
        if is_numeric and not self.choices:
            numbers = column.astype(np.float64)
            return np.where(active, self.move_to_bounds(numbers), np.nan)
        coded = np.full(len(column), np.nan)
        for row in np.flatnonzero(active):
            value = column[row]
            is_missing = value is None or (isinstance(value, float) and math.isnan(value))
            if is_missing:
                if None not in self.choices:
                    continue  # stays NaN
                value = None  # a missing cell stands for the choice None
            try:
                coded[row] = self.code(value)
            except InvalidConfigError as error:
                raise InvalidConfigError(f"configuration {row}: {error}") from None
        return coded

    def value(self, coded: float) -> Value:
        """Convert one coded value to the native one, the inverse of `code`."""
        if self.choices:
            return self.choices[int(coded)]
        return int(coded) if self.kind is Kind.INTEGER else coded

    def codes_as(self, other: "Parameter") -> bool:
        """Whether another hyperparameter has the same name, values and codes.

        Defaults may differ. Choices True and 1, which are equal in Python, count as different.
        """
        if self is other:  # saves the comparisons
            return True
        return (
            self.name == other.name
            and self.kind is other.kind
            and self.lower == other.lower
            and self.upper == other.upper
            and self.log == other.log
            and self._codes == other._codes
        )

    def allows(self, coded: FloatArray) -> BoolArray:
        """Find out which coded values are in range and, if discrete, whole numbers.

        The result has the shape of the input; NaN is not allowed.
        """
        is_allowed = (coded >= self.lower) & (coded <= self.upper)
        if self.is_discrete:
            is_allowed &= coded == np.floor(coded)
        return is_allowed

    def encode(self, coded: FloatArray) -> FloatArray:
        """Map coded values to [0, 1], same shape as the input; NaN stays NaN."""
        low, high = self.span  # what is mapped to 0 and to 1; logarithms on a log scale
        scaled = log(coded) if self.log else coded
        return (scaled - low) / (high - low)

    def decode(self, unit: FloatArray) -> FloatArray:
        """Map [0, 1] to coded values, same shape as the input; NaN stays NaN."""
        low, high = self.span  # what is mapped to 0 and to 1; logarithms on a log scale
        scaled = low + unit * (high - low)
        if not self.log:
            coded = scaled
        elif self.is_discrete:
            coded = np.exp(scaled)  # faster; rounding removes differences between processors
        else:
            coded = exp(scaled)  # this package's own: the same bits on every processor
        if self.is_discrete:
            coded = np.rint(coded)
        # Rounding may lead out of the range. These two calls are faster than `np.clip`.
        return np.minimum(np.maximum(coded, self.lower), self.upper)


def exp(x: FloatArray) -> FloatArray:
    """Compute the exponential of x, elementwise, with the same bits on every processor.

    In double precision the last bit depends on the processor's instructions. A result rounded from
    extended precision does not depend on them, and is almost always correctly rounded.
    """
    return np.exp(x, dtype=np.longdouble).astype(np.float64)


def log(x: FloatArray) -> FloatArray:
    """Compute the natural logarithm of x, elementwise, with the same bits on every processor.

    In double precision the last bit depends on the processor, see `exp`.
    """
    return np.log(x, dtype=np.longdouble).astype(np.float64)


_KEYS_OF_RANGE = ("lower", "upper", "log")

_KEYS_IN_JSON: Mapping[Kind, tuple[str, ...]] = {
    Kind.FLOAT: _KEYS_OF_RANGE,
    Kind.INTEGER: _KEYS_OF_RANGE,
    Kind.CATEGORICAL: ("choices",),
    Kind.ORDINAL: ("sequence",),
}
"""Keys that a hyperparameter needs in ConfigSpace's JSON, apart from its name and type."""


def check_keys(item: Mapping[str, Any], *needed_keys: str) -> None:
    """Raise an `InvalidSpaceError` if the JSON of a hyperparameter lacks one of the keys."""
    for key in needed_keys:
        if key not in item:
            raise InvalidSpaceError(
                f"hyperparameter {item.get('name')!r} has no {key!r} in its description {item}"
            )


def parameter_from_json(item: Mapping[str, Any]) -> Parameter:
    """Read a tunable hyperparameter from ConfigSpace's JSON, in its format 0.4 or a later one.

    Raises:
        InvalidSpaceError: A key is missing, or the hyperparameter is of a type or has a feature
            that is not supported. Constants are not tunable: the caller reads them.
    """
    check_keys(item, "name", "type")
    try:
        kind = Kind(item["type"])
    except ValueError:
        supported = [k.value for k in Kind] + ["constant"]
        raise InvalidSpaceError(
            f"{item['name']}: unsupported hyperparameter type {item['type']!r}; "
            f"supported: {supported}"
        ) from None
    check_keys(item, *_KEYS_IN_JSON[kind])
    _check_is_supported(item, kind)

    name = item["name"]
    default_in_old_format = item.get("default")
    default = item.get("default_value", default_in_old_format)
    if kind is Kind.CATEGORICAL:
        return Parameter.choice(name, tuple(item["choices"]), default=default)
    if kind is Kind.ORDINAL:
        return Parameter.choice(name, tuple(item["sequence"]), ordered=True, default=default)
    return Parameter(
        name,
        kind,
        lower=float(item["lower"]),
        upper=float(item["upper"]),
        log=bool(item["log"]),
        default=default,
    )


def _check_is_supported(item: Mapping[str, Any], kind: Kind) -> None:
    """Check that a hyperparameter in ConfigSpace's JSON has no weights and no quantisation.

    ConfigSpace allows choices that are not equally likely and, in its old format, numbers that are
    multiples of a step, "q".

    Raises:
        InvalidSpaceError: The hyperparameter has one of these features.
    """
    weights_in_old_format = item.get("probabilities")
    weights = item.get("weights", weights_in_old_format)
    if weights is not None and len(set(weights)) > 1:
        raise InvalidSpaceError(f"{item['name']}: weights of choices are not supported: {weights}")
    step = item.get("q")
    is_every_integer = kind is Kind.INTEGER and step == 1
    if step is not None and not is_every_integer:
        raise InvalidSpaceError(f"{item['name']}: quantisation is not supported: q = {step}")
