"""A surrogate on a part of the search space it was made for.

Notation:
    n   number of configurations
    d   number of hyperparameters of the part
    D   number of hyperparameters of the whole search space
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self, cast

import numpy as np

from hpobench_ordered._typing import Config, FloatArray, Value
from hpobench_ordered.data.surrogate import Surrogate, check_task
from hpobench_ordered.errors import InvalidConfigError, InvalidSpaceError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conditions import Condition
from hpobench_ordered.space.parameters import Parameter


class _ColumnMap(NamedTuple):
    """Where a hyperparameter of the whole space gets its value from, if the part tunes it.

    Attributes:
        whole: Column in the whole space.
        part: Column in the part.
        codes: Code in the whole space of each choice in the part; None if the number in the part is
            that in the whole space.
    """

    whole: int
    part: int
    codes: list[float] | None


@dataclass(eq=False)
class EmbeddedSurrogate:
    """A surrogate where some hyperparameters are fixed and others have other ranges.

    A configuration of the part is mapped to the whole space: hyperparameters are matched by name,
    fixed values (and the constants of `part`) are added, and the conditions of the whole space
    apply. The part may have conditions that follow from these. Numbers may lie outside of the
    bounds of the whole space, where `inner` extrapolates.
    """

    inner: Surrogate  # on the whole space
    whole: SearchSpace
    part: SearchSpace
    fixed: Mapping[str, Value]  # in the whole space's terms
    tasks: tuple[int, ...]  # index in `inner` of each task
    # A configuration of the whole space, coded, (D,): the fixed values, and 0 for tuned ones.
    _template: list[float] = field(init=False, repr=False)
    _column_maps: tuple[_ColumnMap, ...] = field(init=False, repr=False)  # of tuned ones
    # Conditions with the column of the hyperparameter that they make inactive, parents first.
    _conditions: tuple[tuple[int, Condition], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Plan how a configuration of the part becomes one of the whole space, column by column.

        In the whole space a column is either fixed, then `_template` has its code, or tuned by the
        part, then `_column_maps` says from which column of the part its code comes. `_conditions`
        say which hyperparameters are active.

        Raises:
            InvalidSpaceError: A hyperparameter of the whole space is neither tuned nor fixed, or
                both.
        """
        fixed: Config = dict(self.fixed)
        for name, value in self.part.constants.items():
            if name not in self.whole.constants:  # else it is no hyperparameter there, either
                fixed[name] = value
        _check_names(self.whole, self.part, fixed)

        self._template = []
        column_maps = []
        for column, parameter in enumerate(self.whole.parameters):
            name = parameter.name
            if name in fixed:
                self._template.append(_code_value(parameter, fixed[name]))
            else:
                self._template.append(0.0)  # replaced by the value in the part
                column_in_part = self.part.names.index(name)
                codes = _translate_codes(parameter, self.part[name])
                column_maps.append(_ColumnMap(column, column_in_part, codes))
        self._column_maps = tuple(column_maps)

        # Parents come before children, as a condition needs to know whether its parent is active.
        conditions = []
        for column, condition in self.whole.ordered_conditions.items():
            if condition is not None:
                conditions.append((column, condition))
        self._conditions = tuple(conditions)

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        """Pickle the arguments alone: unpickling computes everything else from them."""
        return type(self), (self.inner, self.whole, self.part, self.fixed, self.tasks)

    @property
    def dimension(self) -> int:
        """Number of hyperparameters, d."""
        return self.part.dimension

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return len(self.tasks)

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Predict the objective of many configurations, shape (n, d) to (n,).

        They are mapped to the whole space, on which the surrogate `inner` predicts.
        """
        check_task(task, len(self.tasks))
        return self.inner.predict(self.embed(values), self.tasks[task])

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Predict one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly.

        This is `predict` with plain numbers, which are faster for a single configuration.
        """
        check_task(task, len(self.tasks))
        numbers_in_part = row.tolist()
        numbers_in_whole = self._template.copy()  # has the fixed values already
        for whole, part, codes in self._column_maps:
            number = numbers_in_part[part]
            if codes is None or math.isnan(number):  # NaN where inactive
                numbers_in_whole[whole] = number
            else:  # the number is the index of a choice in the part
                numbers_in_whole[whole] = codes[int(number)]
        # Parents come before children, so a parent that is inactive is already NaN.
        for column, condition in self._conditions:
            if not condition.holds_for(numbers_in_whole):
                numbers_in_whole[column] = math.nan  # marks it as inactive
        return self.inner.predict_one(np.array(numbers_in_whole), self.tasks[task])

    def embed(self, values: FloatArray) -> FloatArray:
        """Map coded values of the part, (n, d), to coded values of the whole space, (n, D)."""
        embedded = np.tile(self._template, (len(values), 1))  # has the fixed values already
        for whole, part, codes in self._column_maps:
            numbers = values[:, part]
            embedded[:, whole] = numbers
            if codes is not None:  # the numbers are indices of choices in the part
                is_active = ~np.isnan(numbers)
                indices_of_choices = numbers[is_active].astype(np.int64)
                embedded[is_active, whole] = np.array(codes)[indices_of_choices]
        if self._conditions:
            is_active = self.whole.active(embedded)
            embedded[~is_active] = np.nan
        return embedded


def _check_names(whole: SearchSpace, part: SearchSpace, fixed: Config) -> None:
    """Check that each hyperparameter of the whole space is either in the part or fixed.

    Raises:
        InvalidSpaceError: One is in neither or in both.
    """
    names = [*part.names, *fixed]
    missing_or_unknown = set(names) ^ set(whole.names)
    tuned_and_fixed = {name for name in names if names.count(name) > 1}
    wrong_names = missing_or_unknown or tuned_and_fixed
    if wrong_names:
        raise InvalidSpaceError(
            f"each of {list(whole.names)} must be either tunable or fixed: see "
            f"{sorted(wrong_names)}"
        )


def _code_value(parameter: Parameter, value: Value) -> float:
    """Code a fixed value as a number: a choice by its index, a number as it is.

    A number may be out of bounds, where the surrogate extrapolates.

    Raises:
        InvalidConfigError: The value is no choice of a categorical, or not a number.
    """
    if parameter.choices:
        return parameter.code(value)
    if isinstance(value, (bool, str)):
        raise InvalidConfigError(
            f"{parameter.name} must be {parameter.describe()}, but got {value!r}"
        )
    return float(cast("float", value))


def _translate_codes(whole: Parameter, part: Parameter) -> list[float] | None:
    """Translate the codes of a hyperparameter's choices in the part to those in the whole space.

    A code is the index of a choice; the whole space may list more choices, or in another order.

    Args:
        whole: The hyperparameter in the whole space.
        part: The same hyperparameter in the part.

    Returns:
        The code in the whole space of each choice in the part. None for a number, and if the codes
        of all choices are the same in both spaces: then nothing must be translated.
    """
    if not part.choices:
        if whole.choices:
            raise InvalidSpaceError(f"{whole.name} must be {whole.describe()}, but got a number")
        return None
    codes_in_part = list(range(len(part.choices)))
    codes_in_whole = [_code_value(whole, choice) for choice in part.choices]
    is_unchanged = codes_in_whole == codes_in_part
    return None if is_unchanged else codes_in_whole
