"""A surrogate on a part of the search space it was made for.

Notation:
    n   number of configurations
    d   number of hyperparameters of the part
    D   number of hyperparameters of the whole search space
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self, cast

import numpy as np

from hpobench_ordered._typing import Config, FloatArray, Value
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.errors import InvalidConfigError, InvalidSpaceError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conditions import Condition
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.surrogates.base import check_task


@dataclass(eq=False)
class EmbeddedSurrogate:
    """A surrogate where some hyperparameters are fixed and others have other ranges.

    A configuration of the part is mapped to the whole space: hyperparameters are matched by name,
    fixed values (and the constants of `part`, which has no conditions) are added, and the
    conditions of the whole space apply. Numbers may lie outside of its bounds, where `inner`
    extrapolates.
    """

    inner: Surrogate  # on the whole space
    whole: SearchSpace
    part: SearchSpace
    fixed: Mapping[str, Value]  # in the whole space's terms
    tasks: tuple[int, ...]  # index in `inner` of each task
    _template: list[float] = field(init=False, repr=False)  # fixed values, coded, (D,)
    # Column of the whole space, column of the part, and codes of choices, see `_find_codes`.
    _columns_of_part: tuple[tuple[int, int, list[float] | None], ...] = field(
        init=False, repr=False
    )
    _conditions: tuple[tuple[int, Condition], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Plan how a configuration of the part becomes one of the whole space, column by column.

        `fixed` are the values of the hyperparameters that the part does not tune.
        """
        fixed: Config = {**self.part.constants, **self.fixed}
        _check_names(self.whole, self.part, fixed)

        self._template = []  # coded fixed values, and 0 for what the part tunes
        # Of what the part tunes: columns in both spaces, and codes of choices or None.
        columns_of_part = []
        for column, parameter in enumerate(self.whole.parameters):
            name = parameter.name
            self._template.append(_code(parameter, fixed[name]) if name in fixed else 0.0)
            if name in self.part.names:
                column_in_part = self.part.names.index(name)
                code_of_choice = _find_codes(parameter, self.part[name])
                columns_of_part.append((column, column_in_part, code_of_choice))
        self._columns_of_part = tuple(columns_of_part)

        # Parents come before children, as a condition needs to know whether its parent is active.
        conditions = []
        for column, condition in self.whole.ordered_conditions.items():
            if condition is not None:
                conditions.append((column, condition))
        self._conditions = tuple(conditions)

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        """Pickle the arguments: everything else is computed from them again."""
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
        return self.inner.predict(self.embed(values), self._inner_task(task))

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Predict one configuration, shape (d,); equals `predict(row[None], task)[0]` exactly.

        The configuration of the part becomes one of the whole space, (D,), as in `embed` but with
        plain numbers, which is faster for a single one.
        """
        values = row.tolist()
        coded = self._template.copy()  # the fixed values; those of the part follow
        # For each column that the part tunes: the part's column, and codes of choices or None.
        for column, column_in_part, code_of_choice in self._columns_of_part:
            value = values[column_in_part]
            if code_of_choice is None:  # a number, or a choice with the same code in both spaces
                coded[column] = value
            else:
                coded[column] = code_of_choice[int(value)]
        for column, condition in self._conditions:  # parents before children
            if not condition.holds_for(coded):
                coded[column] = math.nan  # inactive
        return self.inner.predict_one(np.array(coded), self._inner_task(task))

    def embed(self, values: FloatArray) -> FloatArray:
        """Map coded values of the part, (n, d), to coded values of the whole space, (n, D)."""
        # The fixed values; those of the part follow.
        coded = np.tile(self._template, (len(values), 1))
        for column, column_in_part, code_of_choice in self._columns_of_part:
            of_part = values[:, column_in_part]
            if code_of_choice is None:  # a number, or a choice with the same code in both spaces
                coded[:, column] = of_part
            else:  # the whole space may list more choices, or in another order
                coded[:, column] = np.array(code_of_choice)[of_part.astype(np.int64)]
        if self._conditions:
            is_active = self.whole.active(coded)
            coded[~is_active] = np.nan
        return coded

    def _inner_task(self, task: int) -> int:
        """Return the index of a task in the surrogate on the whole space, after checking it."""
        check_task(task, len(self.tasks))
        # `tasks` has the index in `inner` of each task.
        return self.tasks[task]


def _check_names(whole: SearchSpace, part: SearchSpace, fixed: Config) -> None:
    """Check that each hyperparameter of the whole space is either in the part or fixed.

    Raises:
        InvalidSpaceError: One is in neither or in both, or the part has conditions.
    """
    if part.conditions:
        raise InvalidSpaceError(f"a part must not have conditions, but got {list(part.conditions)}")
    names = [*part.names, *fixed]
    if sorted(names) == sorted(whole.names):
        return
    wrong = set(names) ^ set(whole.names)  # in only one of them
    if not wrong:  # a name occurs twice
        wrong = {name for name in names if names.count(name) > 1}
    raise InvalidSpaceError(
        f"each of {list(whole.names)} must be either tunable or fixed: see {sorted(wrong)}"
    )


def _code(parameter: Parameter, value: Value) -> float:
    """Code a value as a number: a choice by its index, a number as it is.

    Numbers may be out of bounds: the surrogate extrapolates.
    """
    if parameter.choices:
        return parameter.code(value)
    if isinstance(value, (bool, str)):
        raise InvalidConfigError(
            f"{parameter.name} must be {parameter.describe()}, but got {value!r}"
        )
    return float(cast("float", value))


def _find_codes(whole: Parameter, part: Parameter) -> list[float] | None:
    """Find the code, in the whole space, of each choice of a hyperparameter of the part.

    None for a number, and if all choices have the same codes in both spaces.
    """
    if not part.choices:
        if whole.choices:
            raise InvalidSpaceError(f"{whole.name} must be {whole.describe()}, but got a number")
        return None
    codes = [_code(whole, choice) for choice in part.choices]
    is_unchanged = codes == list(range(len(codes)))
    return None if is_unchanged else codes
