"""Conditions under which a hyperparameter is active."""

import operator
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.errors import InvalidSpaceError
from hpobench_ordered.space.parameters import Parameter


class Comparison(Enum):
    """Comparison of a parent's value; member values are the names in ConfigSpace's JSON."""

    EQUAL = "EQ"
    NOT_EQUAL = "NEQ"
    IN = "IN"
    LESS = "LT"
    GREATER = "GT"


_OPERATORS: Mapping[Comparison, Callable[[Any, Any], Any]] = {
    Comparison.EQUAL: operator.eq,
    Comparison.NOT_EQUAL: operator.ne,
    Comparison.LESS: operator.lt,
    Comparison.GREATER: operator.gt,
}


class Connective(Enum):
    """Logical connective of conditions; member values are the names in ConfigSpace's JSON."""

    AND = "AND"
    OR = "OR"


@dataclass(frozen=True, slots=True)
class Compare:
    """Condition that the parent is active and its coded value compares as the condition says.

    Where the parent is inactive, NOT_EQUAL holds and no other comparison does, as in ConfigSpace.

    Attributes:
        parent: Column of the parent in coded values.
        comparison: The comparison.
        coded: Coded values to compare with: one, or several for IN.
    """

    parent: int
    comparison: Comparison
    coded: tuple[float, ...]

    def holds(self, values: FloatArray, active: BoolArray) -> BoolArray:
        """Find out for which of n configurations the condition holds, shape (n,).

        Args:
            values: Coded values, shape (n, d).
            active: Whether each hyperparameter is active, shape (n, d). Only the column of the
                parent is read.
        """
        parent_values = values[:, self.parent]
        if self.comparison is Comparison.IN:
            holds_if_active = np.isin(parent_values, self.coded)
        else:
            holds_if_active = _OPERATORS[self.comparison](parent_values, self.coded[0])
        holds_if_inactive = self.comparison is Comparison.NOT_EQUAL  # as in ConfigSpace
        return np.where(active[:, self.parent], holds_if_active, holds_if_inactive)

    def holds_for(self, coded: Sequence[float]) -> bool:
        """Whether the condition holds for one configuration.

        Args:
            coded: The d coded values of the configuration, NaN where the parent is inactive.
        """
        parent_value = coded[self.parent]
        is_inactive = parent_value != parent_value  # noqa: PLR0124  true for NaN only
        if is_inactive:
            return self.comparison is Comparison.NOT_EQUAL  # as in ConfigSpace
        if self.comparison is Comparison.IN:
            return parent_value in self.coded
        return bool(_OPERATORS[self.comparison](parent_value, self.coded[0]))


@dataclass(frozen=True, slots=True)
class Joined:
    """Condition that all (AND) or any (OR) of several conditions hold."""

    connective: Connective
    parts: tuple["Condition", ...]

    def holds(self, values: FloatArray, active: BoolArray) -> BoolArray:
        """Find out for which of n configurations the condition holds, shape (n,).

        Args:
            values: Coded values, shape (n, d).
            active: Whether each hyperparameter is active, shape (n, d). Only the columns of the
                parents are read.
        """
        holds_of_parts = [part.holds(values, active) for part in self.parts]
        join = np.logical_and if self.connective is Connective.AND else np.logical_or
        holds: BoolArray = join.reduce(holds_of_parts, axis=0)
        return holds

    def holds_for(self, coded: Sequence[float]) -> bool:
        """Whether the condition holds for one configuration.

        Args:
            coded: The d coded values of the configuration, NaN where a parent is inactive.
        """
        holds_of_parts = (part.holds_for(coded) for part in self.parts)
        if self.connective is Connective.AND:
            return all(holds_of_parts)
        return any(holds_of_parts)


Condition = Compare | Joined


def parents(condition: Condition) -> set[int]:
    """Return the columns of all hyperparameters that a condition depends on."""
    if isinstance(condition, Compare):
        return {condition.parent}
    columns: set[int] = set()
    for part in condition.parts:
        columns |= parents(part)
    return columns


_SYMBOLS: Mapping[Comparison, str] = {
    Comparison.EQUAL: "=",
    Comparison.NOT_EQUAL: "is not",
    Comparison.IN: "in",
    Comparison.LESS: "<",
    Comparison.GREATER: ">",
}


def describe_condition(condition: Condition, parameters: Sequence[Parameter]) -> str:
    """Describe a condition in words, such as "kernel = radial"."""
    if isinstance(condition, Joined):
        descriptions = [describe_condition(part, parameters) for part in condition.parts]
        connective = condition.connective.value.lower()  # "and" or "or"
        return f" {connective} ".join(descriptions)
    parent = parameters[condition.parent]
    values = ", ".join(str(parent.value(coded)) for coded in condition.coded)
    return f"{parent.name} {_SYMBOLS[condition.comparison]} {values}"


def condition_from_json(
    item: Mapping[str, Any], by_name: Mapping[str, Parameter], constants: Container[str]
) -> Condition:
    """Read a condition from ConfigSpace's JSON.

    Args:
        item: The JSON of the condition, of which the value of "type" names a connective, such as
            "AND", or a comparison, such as "EQ".
        by_name: Tunable hyperparameters by name, in the order of the columns.
        constants: Names of the constants.

    Raises:
        InvalidSpaceError: The condition is of an unsupported type, or not on a hyperparameter.
    """
    type_name = item["type"]
    if type_name in {connective.value for connective in Connective}:
        parts = [condition_from_json(part, by_name, constants) for part in item["conditions"]]
        return Joined(Connective(type_name), tuple(parts))
    if type_name not in {comparison.value for comparison in Comparison}:
        raise InvalidSpaceError(f"condition {type_name!r} on {item['child']!r} is not supported")

    comparison = Comparison(type_name)
    name = item["parent"]
    if name not in by_name:
        noun = "constant" if name in constants else "unknown hyperparameter"
        raise InvalidSpaceError(
            f"a condition of {item['child']!r} on {noun} {name!r} is not supported"
        )
    parent = by_name[name]
    # Only IN compares with several values, under another key.
    native_values = item["values"] if comparison is Comparison.IN else [item["value"]]
    coded_values = tuple(parent.code(value) for value in native_values)
    parent_column = list(by_name).index(name)
    return Compare(parent_column, comparison, coded_values)


def condition_to_json(
    condition: Condition, child: str, by_name: Mapping[str, Parameter]
) -> dict[str, Any]:
    """Describe a condition in ConfigSpace's JSON.

    Args:
        condition: The condition.
        child: Name of the hyperparameter that it is a condition of.
        by_name: Tunable hyperparameters by name, in the order of the columns.
    """
    if isinstance(condition, Joined):
        parts = [condition_to_json(part, child, by_name) for part in condition.parts]
        return {"type": condition.connective.value, "child": child, "conditions": parts}

    parameters = list(by_name.values())
    parent = parameters[condition.parent]  # the condition has the parent's column
    item = {"type": condition.comparison.value, "child": child, "parent": parent.name}
    native_values = [parent.value(coded) for coded in condition.coded]
    if condition.comparison is Comparison.IN:
        return {**item, "values": native_values}
    return {**item, "value": native_values[0]}  # all other comparisons are with one value
