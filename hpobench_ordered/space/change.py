"""Comparison of two search spaces: before and after a developer adjusted one (Stoll et al. 2020).

Notation, with the names of algorithm 1 in appendix A:
    n                       number of configurations
    d                       number of hyperparameters of the new space
    k                       number of shared hyperparameters
    shared                  X_both: tuned in both spaces, with overlapping ranges or choices
    only_new                X_only-new: all others that the new space tunes
    range that is only new  X_both,range-only-new: values of a shared hyperparameter that the old
                            space did not allow

The share of a range (line 11) is its probability under the prior, which is uniform: on the range of
a number, or of its logarithm on a log scale, and on the choices.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from hpobench_ordered._typing import FloatArray, Value
from hpobench_ordered.errors import InvalidSpaceError, UnknownNameError
from hpobench_ordered.space.conditions import Condition, Joined
from hpobench_ordered.space.conversion import SpaceLike, to_search_space
from hpobench_ordered.space.differences import (
    Change,
    allows,
    describe_changes,
    find_changes,
    has_other_steps,
    recode,
)
from hpobench_ordered.space.parameters import NO_DEFAULT, Kind, Parameter
from hpobench_ordered.space.space import SearchSpace


@dataclass(frozen=True)
class SpaceChange:
    """How the hyperparameters of a search space changed.

    A hyperparameter is shared if both spaces tune it and its ranges, or its choices, overlap; float
    ranges must overlap in more than a point. It counts as new if it was a constant, changed from a
    number to choices or from choices to a number, or changed from a float to an integer, because
    old values are hardly ever whole numbers. An integer that became a float is shared, and so are
    unordered choices that became ordered. Ordered choices that are increasing numbers, such as 5,
    10, ..., 50, are a range with steps: it is shared with a range without steps and with one that
    has others, and its ends are the lowest and the highest choice. Old values are then moved to the
    nearest step.

    Attributes:
        old: The search space before.
        new: The search space after.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> from hpobench_ordered.space import SpaceChange
        >>> bench = hbo.load("svm-b")
        >>> change = SpaceChange.between(bench.previous.space, bench.space)
        >>> change.describe()
        ['cost: from 0.03125 to 32, now from 0.000976562 to 1024']
        >>> change.shared, change.only_new, change.new_share("cost")
        (('kernel', 'cost'), (), 0.5)
    """

    old: SearchSpace
    new: SearchSpace

    @classmethod
    def between(cls, old: SpaceLike, new: SpaceLike) -> "SpaceChange":
        """Compare a search space with its successor; `to_search_space` converts both."""
        return cls(to_search_space(old), to_search_space(new))

    @cached_property
    def shared(self) -> tuple[str, ...]:
        """Names of the shared hyperparameters, in the order of the new space."""
        return tuple(self._shared_parameters)

    @cached_property
    def only_new(self) -> tuple[str, ...]:
        """Names of the hyperparameters that the new space tunes and that are not shared."""
        return tuple(name for name in self.new.names if name not in self._shared_parameters)

    @cached_property
    def changes(self) -> Mapping[str, tuple[Change, ...]]:
        """The changes of every hyperparameter and constant, by name.

        Those of the new space come first. An empty tuple means that nothing changed.
        """
        names_now = [*self.new.names, *self.new.constants]
        names_before = [*self.old.names, *self.old.constants]
        unique_names = dict.fromkeys([*names_now, *names_before])  # keeps the order
        return {name: tuple(find_changes(self.old, self.new, name)) for name in unique_names}

    def describe(self) -> list[str]:
        """Describe each change in words; "nothing changed" if there is none."""
        lines = []
        for name, changes in self.changes.items():
            # Both spaces may tune a hyperparameter, and yet have no values in common.
            is_replaced = name in self.only_new and name in self.old.names
            note = " (counted as new)" if is_replaced else ""
            for sentence in describe_changes(self.old, self.new, name, changes):
                lines.append(f"{name}: {sentence}{note}")
        return lines or ["nothing changed"]

    def shared_space(self) -> SearchSpace:
        """The shared hyperparameters on the intersections of their ranges or choices, X_both.

        The order of hyperparameters and choices, scales, types and conditions are those of the new
        space. A condition is left out, and its hyperparameter always active, if its parent is not
        shared or the values it compares with are not in the intersection. There are no constants.

        Raises:
            InvalidSpaceError: Nothing is shared.
        """
        if not self._shared_parameters:
            raise InvalidSpaceError(
                f"the search spaces share no hyperparameter: {list(self.old.names)} before, "
                f"{list(self.new.names)} now"
            )
        parameters = list(self._shared_parameters.values())
        new_conditions = self.new.conditions
        shared_conditions = {}
        for name in self._shared_parameters:
            if name not in new_conditions:  # always active
                continue
            shared_condition = _restrict_condition(new_conditions[name], self.new, parameters)
            if shared_condition is not None:
                shared_conditions[name] = shared_condition
        return SearchSpace(parameters, conditions=shared_conditions)

    def to_new(self, values: FloatArray) -> FloatArray:
        """Convert values (n, k) coded by the shared space to the coding of the new space, (n, d).

        Hyperparameters that are not shared, or inactive, are NaN. Conditions of the new space are
        not applied: their parents may be among those that are not shared.
        """
        coded = np.full((len(values), self.new.dimension), np.nan)
        for codes, (name, shared) in zip(values.T, self._shared_parameters.items(), strict=True):
            column = self.new.names.index(name)
            coded[:, column] = recode(codes, shared, self.new[name])
        return coded

    def new_share(self, name: str) -> float:
        """Compute the share of a shared hyperparameter's range that the old space did not allow.

        It is the probability of these values under the prior of the new space: p in line 11 of
        algorithm 1 in appendix A of Stoll et al. (2020). It is 0 if the range did not grow.

        Raises:
            UnknownNameError: The hyperparameter is not shared.
        """
        shared = self._get_shared(name)
        new = self.new[name]
        if new.choices:
            return (len(new.choices) - len(shared.choices)) / len(new.choices)

        # The prior is uniform on the unit interval of the new range, so lengths are probabilities.
        begin, end = _unit_bounds(shared, new)
        share_below = begin
        share_above = 1 - end
        return share_below + share_above

    def draw_only_new(self, name: str, rng: np.random.Generator) -> float:
        """Draw a value of a shared hyperparameter that the old space did not allow, from the prior.

        This is line 12 of algorithm 1 in appendix A of Stoll et al. (2020).

        Returns:
            The value, coded by the new space.

        Raises:
            UnknownNameError: The hyperparameter is not shared.
            InvalidSpaceError: No part of its range is new.
        """
        shared = self._get_shared(name)
        new = self.new[name]
        new_share = self.new_share(name)
        if new_share == 0:
            raise InvalidSpaceError(f"no part of the range of {name!r} is new: {new.describe()}")
        if new.choices:
            codes = np.arange(new.size)
            is_new = [not allows(shared, choice) for choice in new.choices]
            return float(rng.choice(codes[is_new]))

        # In the unit interval of the new space, new values are below `begin` and above `end`.
        begin, end = _unit_bounds(shared, new)
        share_below = begin
        is_below = rng.random() < share_below / new_share
        unit = rng.uniform(0, begin) if is_below else rng.uniform(end, 1)
        coded = float(new.decode(np.array(unit)))
        # Rounding may give a value of the shared range, which is not new. The value next to that
        # range is taken instead.
        if is_below:
            return min(coded, _next_value(shared.lower, -1, new))
        return max(coded, _next_value(shared.upper, 1, new))

    @cached_property
    def _shared_parameters(self) -> Mapping[str, Parameter]:
        """The shared hyperparameters by name, with only the values that both spaces allow."""
        intersections = {}
        for new in self.new.parameters:
            if new.name not in self.old.names:
                continue
            intersection = _intersect(self.old[new.name], new)
            if intersection is not None:
                intersections[new.name] = intersection
        return intersections

    def _get_shared(self, name: str) -> Parameter:
        """Get a shared hyperparameter, with only the values that both spaces allow, by its name."""
        if name not in self._shared_parameters:
            raise UnknownNameError("shared hyperparameter", name, self.shared)
        return self._shared_parameters[name]


def _intersect(old: Parameter, new: Parameter) -> Parameter | None:
    """Restrict a hyperparameter of the new space to the values that the old one allows, too.

    The result is None if there are no such values, or if the hyperparameter counts as new (see
    `SpaceChange`).
    """
    if new.choices:
        choices = _intersect_choices(old, new)
        is_ordered = new.kind is Kind.ORDINAL
        return Parameter.choice(new.name, choices, ordered=is_ordered) if choices else None
    if old.choices and not old.has_steps:
        return None

    old_lower, old_upper = _find_range(old)
    lower = max(old_lower, new.lower)
    upper = min(old_upper, new.upper)
    is_empty = lower > upper
    is_point = lower == upper and new.kind is Kind.FLOAT  # a float needs more than one value
    # Earlier values of a float are hardly ever whole numbers, so none could be used.
    became_integer = old.kind is Kind.FLOAT and new.kind is Kind.INTEGER
    if is_empty or is_point or became_integer:
        return None
    return replace(new, lower=lower, upper=upper, default=NO_DEFAULT)


def _intersect_choices(old: Parameter, new: Parameter) -> tuple[Value, ...]:
    """List the choices of the new hyperparameter that the old one allows, too.

    If both are ranges of numbers, and steps were added or changed, these are the new steps within
    the old range: old numbers are moved to them.
    """
    if has_other_steps(old, new):
        lowest, highest = _find_range(old)
        return tuple(step for step in new.choices if lowest <= cast("float", step) <= highest)
    if not old.choices:  # a range became choices
        return ()
    return tuple(choice for choice in new.choices if allows(old, choice))


def _find_range(parameter: Parameter) -> tuple[float, float]:
    """Find the smallest and the largest number of a range, with or without steps."""
    if not parameter.has_steps:
        return parameter.lower, parameter.upper
    lowest, highest = parameter.choices[0], parameter.choices[-1]
    return float(cast("float", lowest)), float(cast("float", highest))


def _restrict_condition(
    condition: Condition, new: SearchSpace, shared: Sequence[Parameter]
) -> Condition | None:
    """Translate a condition of the new space to the space of the shared hyperparameters.

    A condition compares a hyperparameter, its parent, with some values. It stores the column of the
    parent in its space and the codes of the values, such as the index of a choice. Both differ
    between the two spaces.

    Args:
        condition: A condition of the new space, perhaps several ones joined by "and" or "or".
        new: The new space.
        shared: The hyperparameters of the other space, in its order of columns.

    Returns:
        The condition for the space of the shared hyperparameters. None if that space lacks the
        parent, or lacks all values that the parent is compared with; of joined conditions, if this
        is so for any.
    """
    if isinstance(condition, Joined):
        parts = []
        for part in condition.parts:
            shared_part = _restrict_condition(part, new, shared)
            if shared_part is None:
                return None
            parts.append(shared_part)
        return Joined(condition.connective, tuple(parts))

    parent = new.parameters[condition.parent]
    shared_names = [p.name for p in shared]
    if parent.name not in shared_names:
        return None
    shared_column = shared_names.index(parent.name)
    # Codes of the same values in the shared space, NaN for a value that it lacks.
    new_codes = np.array(condition.coded)
    codes_or_nan = recode(new_codes, parent, shared[shared_column])
    shared_codes = codes_or_nan[~np.isnan(codes_or_nan)]
    if not len(shared_codes):
        return None
    return replace(condition, parent=shared_column, coded=tuple(shared_codes.tolist()))


def _unit_bounds(shared: Parameter, new: Parameter) -> tuple[float, float]:
    """Map the shared range of a number to the unit interval of its new range.

    Args:
        shared: The hyperparameter with only the values that both spaces allow.
        new: The hyperparameter in the new space.

    Returns:
        Where the shared range begins and ends: 0 and 1 if it is the whole new range.
    """
    # A whole number stands for all numbers that are rounded to it: half a step on each side.
    margin = 0.5 if new.is_discrete else 0.0
    bounds = np.array([shared.lower - margin, shared.upper + margin])
    begin, end = new.encode(bounds).tolist()
    return begin, end


def _next_value(coded: float, sign: int, parameter: Parameter) -> float:
    """Return the next larger value of a hyperparameter (sign 1), or the next smaller (sign -1).

    It is the next whole number if the hyperparameter is discrete, else the next float.
    """
    if parameter.is_discrete:
        return coded + sign
    return math.nextafter(coded, sign * math.inf)
