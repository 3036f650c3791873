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
from typing import Literal, cast

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
        """Build the space of the shared hyperparameters, with only the values that both allow.

        It is X_both of Stoll et al. (2020). Order, scales, types and conditions are those of the
        new space. A condition is left out, and its hyperparameter always active, if its parent is
        not shared or the values that it compares with are not allowed. There are no constants.

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
            is_always_active = name not in new_conditions
            if is_always_active:
                continue
            shared_condition = _translate_condition(new_conditions[name], self.new, parameters)
            if shared_condition is not None:
                shared_conditions[name] = shared_condition
        return SearchSpace(parameters, conditions=shared_conditions)

    def to_new(self, values: FloatArray) -> FloatArray:
        """Convert configurations from the coding of the shared space to that of the new space.

        Conditions of the new space are not applied, since their parents may not be shared.

        Args:
            values: Values as `shared_space` codes them, one column for each of the k shared
                hyperparameters, (n, k).

        Returns:
            Values as the new space codes them, NaN for hyperparameters that are inactive or not
            shared, (n, d).
        """
        converted = np.full((len(values), self.new.dimension), np.nan)
        for shared_column, shared in enumerate(self._shared_parameters.values()):
            new_column = self.new.names.index(shared.name)
            new = self.new.parameters[new_column]
            converted[:, new_column] = recode(values[:, shared_column], shared, new)
        return converted

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
            n_choices_only_new = len(new.choices) - len(shared.choices)
            return n_choices_only_new / len(new.choices)

        # The prior is uniform on the unit interval of the new range, so lengths are probabilities.
        begin_of_shared, end_of_shared = _map_to_unit_interval(shared, new)
        share_below = begin_of_shared
        share_above = 1 - end_of_shared
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
            is_only_new = [not allows(shared, choice) for choice in new.choices]
            return float(rng.choice(codes[is_only_new]))

        # Values that are only new are below or above the shared range.
        begin_of_shared, end_of_shared = _map_to_unit_interval(shared, new)
        share_below = begin_of_shared
        is_below = rng.random() < share_below / new_share
        unit = rng.uniform(0, begin_of_shared) if is_below else rng.uniform(end_of_shared, 1)
        coded = float(new.decode(np.array(unit)))
        # Rounding may give a value of the shared range. The value next to that range is returned
        # instead.
        if is_below:
            highest_below = _find_next_value(shared.lower, new, direction=-1)
            return min(coded, highest_below)
        lowest_above = _find_next_value(shared.upper, new, direction=1)
        return max(coded, lowest_above)

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
        """Return a shared hyperparameter, with only the values that both spaces allow.

        Raises:
            UnknownNameError: No hyperparameter of this name is shared.
        """
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
        if not choices:
            return None
        return Parameter.choice(new.name, choices, ordered=new.kind is Kind.ORDINAL)
    if old.choices and not old.has_steps:  # choices that are not steps of a range became a range
        return None

    old_lower, old_upper = _find_range(old)
    lower = max(old_lower, new.lower)
    upper = min(old_upper, new.upper)
    is_empty = lower > upper
    # A float needs more than one value; an integer may have a single one.
    is_single_float = lower == upper and new.kind is Kind.FLOAT
    # Earlier values of a float are hardly ever whole numbers, so none could be used.
    became_integer = old.kind is Kind.FLOAT and new.kind is Kind.INTEGER
    if is_empty or is_single_float or became_integer:
        return None
    return replace(new, lower=lower, upper=upper, default=NO_DEFAULT)


def _intersect_choices(old: Parameter, new: Parameter) -> tuple[Value, ...]:
    """List the choices of the new hyperparameter that the old one allows, too.

    If both are ranges of numbers and the new one has other steps, these are all steps within the
    old range, since old numbers are moved to the nearest step.
    """
    if has_other_steps(old, new):
        lowest, highest = _find_range(old)
        return tuple(step for step in new.choices if lowest <= cast("float", step) <= highest)
    if not old.choices:  # a range became choices, which have no common values
        return ()
    return tuple(choice for choice in new.choices if allows(old, choice))


def _find_range(parameter: Parameter) -> tuple[float, float]:
    """Find the smallest and the largest number of a range, with or without steps."""
    if not parameter.has_steps:
        return parameter.lower, parameter.upper
    # With steps the numbers are choices; `lower` and `upper` are the indices of choices.
    lowest = cast("float", parameter.choices[0])
    highest = cast("float", parameter.choices[-1])
    return float(lowest), float(highest)


def _translate_condition(
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
        parent, or lacks all values that the parent is compared with. Joined conditions are None if
        one of them is.
    """
    if isinstance(condition, Joined):
        parts = []
        for part in condition.parts:
            shared_part = _translate_condition(part, new, shared)
            if shared_part is None:
                return None
            parts.append(shared_part)
        return Joined(condition.connective, tuple(parts))

    parent = new.parameters[condition.parent]
    shared_names = [parameter.name for parameter in shared]
    if parent.name not in shared_names:
        return None
    shared_column = shared_names.index(parent.name)
    new_codes = np.array(condition.coded)
    shared_codes = recode(new_codes, parent, shared[shared_column])
    is_missing = np.isnan(shared_codes)  # values that the shared space lacks
    if is_missing.all():
        return None
    remaining_codes = tuple(shared_codes[~is_missing].tolist())
    return replace(condition, parent=shared_column, coded=remaining_codes)


def _map_to_unit_interval(shared: Parameter, new: Parameter) -> tuple[float, float]:
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


def _find_next_value(number: float, parameter: Parameter, *, direction: Literal[1, -1]) -> float:
    """Return the number next to a given one among the values of a hyperparameter.

    It is the next whole number if the hyperparameter is discrete, else the next float. The
    direction is 1 for the next larger number, -1 for the next smaller one.
    """
    if parameter.is_discrete:
        return number + direction
    towards = direction * math.inf
    return math.nextafter(number, towards)
