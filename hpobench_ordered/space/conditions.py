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
    """Condition that the parent is active and the comparison of its coded value holds.

    As in ConfigSpace, only NOT_EQUAL holds where the parent is inactive.

    Attributes:
        parent: Column of the parent in coded values.
        comparison: The comparison.
        coded: Coded values to compare with: one, or several for IN.
    """

    parent: int
    comparison: Comparison
    coded: tuple[float, ...]

    def holds(self, values: FloatArray, active: BoolArray) -> BoolArray:
        """Whether the condition holds for each of n configurations, shape (n,).

        Args:
            values: Coded values, shape (n, d).
            active: Whether each hyperparameter is active, shape (n, d); that of the parents counts.
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
            coded: Its d coded values, NaN where a parent is inactive.
        """
        value = coded[self.parent]
        if value != value:  # noqa: PLR0124  NaN marks an inactive parent
            return self.comparison is Comparison.NOT_EQUAL  # as in ConfigSpace
        if self.comparison is Comparison.IN:
            return value in self.coded
        return bool(_OPERATORS[self.comparison](value, self.coded[0]))


@dataclass(frozen=True, slots=True)
class Joined:
    """All (AND) or any (OR) of several conditions."""

    connective: Connective
    parts: tuple["Condition", ...]

    def holds(self, values: FloatArray, active: BoolArray) -> BoolArray:
        """Whether the condition holds for each of n configurations, shape (n,).

        Args:
            values: Coded values, shape (n, d).
            active: Whether each hyperparameter is active, shape (n, d); that of the parents counts.
        """
        part_holds = [part.holds(values, active) for part in self.parts]
        join = np.logical_and if self.connective is Connective.AND else np.logical_or
        holds: BoolArray = join.reduce(part_holds, axis=0)
        return holds

    def holds_for(self, coded: Sequence[float]) -> bool:
        """Whether the condition holds for one configuration.

        Args:
            coded: Its d coded values, NaN where a parent is inactive.
        """
        part_holds = (part.holds_for(coded) for part in self.parts)
        return all(part_holds) if self.connective is Connective.AND else any(part_holds)


Condition = Compare | Joined


def parents(condition: Condition) -> set[int]:
    """Columns of all hyperparameters that a condition depends on."""
    if isinstance(condition, Compare):
        return {condition.parent}
    return set().union(*(parents(part) for part in condition.parts))


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
        parts = [describe_condition(part, parameters) for part in condition.parts]
        return f" {condition.connective.value.lower()} ".join(parts)
    parent = parameters[condition.parent]
    values = ", ".join(str(parent.value(coded)) for coded in condition.coded)
    return f"{parent.name} {_SYMBOLS[condition.comparison]} {values}"


def condition_from_json(
    item: Mapping[str, Any], by_name: Mapping[str, Parameter], constants: Container[str]
) -> Condition:
    """Read a condition from ConfigSpace's JSON.

    Args:
        item: The JSON of the condition.
        by_name: Tunable hyperparameters by name, in the order of the columns.
        constants: Names of the constants.

    Raises:
        InvalidSpaceError: The condition is of an unsupported type, or not on a hyperparameter.
    """
    kind = item["type"]  # the value of a `Connective` or a `Comparison`
    if kind in {connective.value for connective in Connective}:
        parts = [condition_from_json(part, by_name, constants) for part in item["conditions"]]
        return Joined(Connective(kind), tuple(parts))
    if kind not in {comparison.value for comparison in Comparison}:
        raise InvalidSpaceError(f"condition {kind!r} on {item['child']!r} is not supported")

    name = item["parent"]
    if name not in by_name:
        noun = "constant" if name in constants else "unknown hyperparameter"
        raise InvalidSpaceError(
            f"a condition of {item['child']!r} on {noun} {name!r} is not supported"
        )
    parent = by_name[name]
    native_values = item["values"] if kind == Comparison.IN.value else [item["value"]]
    coded_values = tuple(parent.code(value) for value in native_values)
    column = list(by_name).index(name)
    return Compare(column, Comparison(kind), coded_values)


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

    parent = list(by_name.values())[condition.parent]  # the condition holds its column
    item = {"type": condition.comparison.value, "child": child, "parent": parent.name}
    native_values = [parent.value(coded) for coded in condition.coded]
    if condition.comparison is Comparison.IN:
        return {**item, "values": native_values}
    return {**item, "value": native_values[0]}  # all other comparisons are with one value
