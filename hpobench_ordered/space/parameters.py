"""A hyperparameter: its range, coding and validation."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import BoolArray, FloatArray, Value
from hpobench_ordered._wording import suggest_nearest
from hpobench_ordered.errors import InvalidConfigError, InvalidSpaceError

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
        is_point = self.kind is Kind.FLOAT and self.lower == self.upper
        if self.lower > self.upper or is_point:
            raise InvalidSpaceError(f"{self.name}: empty range [{self.lower}, {self.upper}]")
        if self.log and self.lower <= 0:
            raise InvalidSpaceError(f"{self.name}: a log scale needs a positive lower bound")

    def _set_codes(self) -> None:
        """Set the codes of the choices: the index of each, by a key that tells True from 1."""
        for choice in self.choices:
            is_value = choice is None or isinstance(choice, str | bool | int | float | np.generic)
            if not is_value:
                raise InvalidSpaceError(
                    f"{self.name}: a choice must be text, a number, a boolean or None, but got "
                    f"{choice!r}: give it a name, as text"
                )
        # True equals 1 and False equals 0 in Python: the first part of the key tells them apart.
        codes = {(isinstance(c, _BOOLEANS), c): float(i) for i, c in enumerate(self.choices)}
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
        """Check the default; if there is none, set the first choice or the middle of the range."""
        # None usually means that there is no default, but here it may be one of the choices.
        means_none = self.default is None and None in self.choices
        if self.default in (NO_DEFAULT, None) and not means_none:
            middle = float(self.decode(np.array(0.5)))
            coded = self.lower if self.choices else middle
            object.__setattr__(self, "default", self.value(coded))  # as the class is frozen
        try:
            code = self.code(cast(Value, self.default))
        except InvalidConfigError as error:  # its message begins with the hyperparameter's name
            raise InvalidSpaceError(f"default of {error}") from None
        was_rounded = not self.choices and code != self.default
        if was_rounded:
            object.__setattr__(self, "default", self.value(code))

    @classmethod
    def number(
        cls, name: str, lower: float, upper: float, *, log: bool = False, integer: bool = False
    ) -> "Parameter":
        """Make a float or integer hyperparameter in [lower, upper]."""
        kind = Kind.INTEGER if integer else Kind.FLOAT
        return cls(name, kind, float(lower), float(upper), log)

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
        """Find the code of the step that is nearest to a number.

        The result is NaN if the number is outside of the steps by a whole step or more. For
        example, 100 is moved to the last of the steps 1, 11, ..., 91, but 101 is not.
        """
        steps = np.array(self.choices, dtype=np.float64)
        gaps = np.diff(steps, prepend=-math.inf, append=math.inf)
        if len(steps) > 1:  # the gap before the first step is as wide as the one after it
            gaps[[0, -1]] = gaps[1], gaps[-2]
        is_near = steps[0] - gaps[0] < number < steps[-1] + gaps[-1]
        return float(np.abs(steps - number).argmin()) if is_near else math.nan

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

    def code(self, value: Value) -> float:
        """Check one native value and code it as a float.

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
        if not (is_whole_if_integer and is_in_range):
            (bound,) = self.move_to_bounds(np.array([number]))
            if bound in (self.lower, self.upper):
                return float(bound)
            raise InvalidConfigError(f"{self.name} must be {self.describe()}, but got {value!r}")
        return number

    def move_to_bounds(self, numbers: FloatArray) -> FloatArray:
        """Move numbers (n,) that miss a bound by rounding onto it; all others stay as they are."""
        if self.choices:
            return numbers
        is_wrong = (numbers < self.lower) | (numbers > self.upper)
        if self.kind is Kind.INTEGER:  # such as 8.999999999999998, if 9 is the upper bound
            is_wrong |= np.isfinite(numbers) & (numbers != np.floor(numbers))
        if not is_wrong.any():
            return numbers

        bounds = np.array([self.lower, self.upper])
        scaled_bounds = log(bounds) if self.log else bounds
        wrong = numbers[is_wrong]
        # On a log scale, numbers that are not positive are far from any bound: they become NaN.
        scaled = log(np.where(wrong > 0, wrong, np.nan)) if self.log else wrong
        # Numbers that were stored in single precision miss a bound by more.
        with np.errstate(over="ignore"):  # very large numbers become infinite in single precision
            is_single = wrong.astype(np.float32) == wrong
        rounding = np.where(is_single, ROUNDING_OF_FLOAT32, ROUNDING)
        largest_miss = rounding * (scaled_bounds[1] - scaled_bounds[0])
        for bound, scaled_bound in zip(bounds, scaled_bounds, strict=True):
            wrong = np.where(np.abs(scaled - scaled_bound) <= largest_miss, bound, wrong)
        moved = numbers.copy()
        moved[is_wrong] = wrong
        return moved

    def _code_choice(self, value: Value) -> float:
        """Return the index of a choice; raise an `InvalidConfigError` if the value is no choice."""
        # True equals 1 and False equals 0 in Python: the first part of the key tells them apart.
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

        Numbers in arrays of numbers are not checked one by one, which would be slow: the caller
        checks them, and that no active value is missing, with `allows`.

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
            if is_missing and None not in self.choices:
                continue
            if is_missing:
                value = None  # a missing cell is the choice None where there is one
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
        """Whether another hyperparameter has the same values and codes; defaults may differ."""
        if self is other:  # faster
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
        """Whether each coded value is in range and, if discrete, whole; same shape as the input."""
        allowed = (coded >= self.lower) & (coded <= self.upper)
        if self.is_discrete:
            allowed &= coded == np.floor(coded)
        return allowed

    def encode(self, coded: FloatArray) -> FloatArray:
        """Map coded values to [0, 1], same shape as the input; NaN stays NaN."""
        low, high = self.span  # mapped to 0 and 1; on the log scale, if there is one
        scaled = log(coded) if self.log else coded
        return (scaled - low) / (high - low)

    def decode(self, unit: FloatArray) -> FloatArray:
        """Map [0, 1] to coded values, same shape as the input; NaN stays NaN."""
        low, high = self.span  # mapped to 0 and 1; on the log scale, if there is one
        scaled = low + unit * (high - low)
        if not self.log:
            coded = scaled
        elif self.is_discrete:
            coded = np.exp(scaled)  # faster; rounding removes differences between processors
        else:
            coded = exp(scaled)  # this package's own: the same bits on every processor
        if self.is_discrete:
            coded = np.rint(coded)
        # A rounded value may be outside of the range. These two calls are faster than `np.clip`.
        return np.minimum(np.maximum(coded, self.lower), self.upper)


def exp(x: FloatArray) -> FloatArray:
    """The exponential of x, elementwise, with the same bits on every processor.

    In double precision the last bit depends on the processor's instructions. A result rounded from
    extended precision does not depend on them, and is almost always correctly rounded.
    """
    return np.exp(x, dtype=np.longdouble).astype(np.float64)


def log(x: FloatArray) -> FloatArray:
    """The logarithm of x, elementwise, with the same bits on every processor, as in `exp`."""
    return np.log(x, dtype=np.longdouble).astype(np.float64)


_KEYS_OF_RANGE = ("lower", "upper", "log")

_KEYS_IN_JSON: Mapping[Kind, tuple[str, ...]] = {
    Kind.FLOAT: _KEYS_OF_RANGE,
    Kind.INTEGER: _KEYS_OF_RANGE,
    Kind.CATEGORICAL: ("choices",),
    Kind.ORDINAL: ("sequence",),
}
"""Keys that a hyperparameter needs in ConfigSpace's JSON, apart from its name and type."""


def check_keys(item: Mapping[str, Any], *needed: str) -> None:
    """Raise an `InvalidSpaceError` if the JSON of a hyperparameter lacks one of the keys."""
    for key in needed:
        if key not in item:
            raise InvalidSpaceError(
                f"hyperparameter {item.get('name')!r} has no {key!r} in its description {item}"
            )


def parameter_from_json(item: Mapping[str, Any]) -> Parameter:
    """Read a hyperparameter from ConfigSpace's JSON, old (0.4) or new.

    Constants, which the JSON may have too, are no hyperparameters: the caller reads them.
    """
    check_keys(item, "name", "type")
    try:
        kind = Kind(item["type"])  # raises a ValueError for other types
    except ValueError:
        supported = [k.value for k in Kind] + ["constant"]
        raise InvalidSpaceError(
            f"{item['name']}: unsupported hyperparameter type {item['type']!r}; "
            f"supported: {supported}"
        ) from None
    check_keys(item, *_KEYS_IN_JSON[kind])
    _check_is_supported(item, kind)

    name = item["name"]
    default = item.get("default_value", item.get("default"))  # the new key, or the old one
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
    """Check that the choices of a hyperparameter are equally likely, and that its steps are 1.

    ConfigSpace allows other weights of choices and, in its old format, other steps ("q").
    """
    weights = item.get("weights", item.get("probabilities"))  # the new key, or the old one
    if weights is not None and len(set(weights)) > 1:
        raise InvalidSpaceError(f"{item['name']}: weights of choices are not supported: {weights}")
    step = item.get("q")
    if step is not None and not (kind is Kind.INTEGER and step == 1):
        raise InvalidSpaceError(f"{item['name']}: quantisation is not supported: q = {step}")
