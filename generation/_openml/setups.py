"""OpenML's setups as configurations of a search space.

A setup has values as text, as formatted by the tool that uploaded them: R's ("TRUE", "radial",
"1e-04"), sometimes quoted or as JSON. The runs of the flows here were uploaded by mlr's interface
(github.com/openml/openml-r), which states a parameter only if it differs from the learner's
default, and leaves the flow's defaults empty. So missing values are taken from the flow, then from
the learner.
"""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Kind, Parameter

MLR_DEFAULTS: Mapping[int, Mapping[str, Value]] = {
    5891: {"kernel": "radial", "cost": 1.0, "degree": 3},
    6767: {
        "booster": "gbtree",
        "nrounds": 1,
        "eta": 0.3,
        "alpha": 0.0,
        "max_depth": 6,
        "min_child_weight": 1.0,
        "subsample": 1.0,
        "colsample_bytree": 1.0,
        "colsample_bylevel": 1.0,
    },
    6794: {"num.trees": 500, "replace": True, "respect.unordered.factors": False},
}
"""Defaults of mlr's learners by flow: `classif.svm`, `classif.xgboost`, `classif.ranger`.

Left out are those that mlr does not have (a kernel's gamma, a forest's mtry, sample.fraction and
min.node.size) or that its versions disagree about (lambda).
"""

BOUND_TOLERANCE = 0.5e-6 * (1 + 1e-9)
"""How far a recorded number may be beyond a bound of the search space.

The bounds were printed with six decimals, so that the unrounded one may be half of 1e-6 beyond. The
factor allows for the rounding of floating-point numbers.
"""

_MISSING_TEXTS = frozenset({"", "NA", "NULL", "null", "None"})
"""Texts that mean that there is no value."""


class Dropped(Enum):
    """Reasons why an evaluation is left out."""

    NOT_FINITE = "value not finite"
    MISSING_SETUP = "missing setup"
    MISSING_PARAMETER = "missing parameter"
    UNPARSABLE = "unparsable value"
    OUT_OF_BOUNDS = "out of bounds"


Converter = Callable[[float | None, int], float | None]
"""Converts a recorded number (None if missing), given the OpenML task."""


@dataclass(frozen=True)
class MlrSetups:
    """Reads setups of one of mlr's learners with parameters named like the hyperparameters.

    Attributes:
        space: The search space.
        defaults: The learner's own defaults, by parameter.
        converters: Converters of recorded numbers, by parameter.
    """

    space: SearchSpace
    defaults: Mapping[str, Value] = field(default_factory=dict)
    converters: Mapping[str, Converter] = field(default_factory=dict)

    def read_config(self, stated: Mapping[str, str], task: int) -> Config | Dropped:
        """Read the configuration of a setup, or return why the setup has none.

        Args:
            stated: Values as text that the setup or its flow state, by parameter; others have the
                learner's default. Those of inactive hyperparameters are ignored.
            task: OpenML's number of the task, on which some conversions of numbers depend.
        """
        values = np.full(self.space.dimension, np.nan)
        problem_of_column: dict[int, Dropped] = {}
        for column, parameter in enumerate(self.space.parameters):
            value = self._code_value(parameter, stated, task)
            if isinstance(value, Dropped):
                problem_of_column[column] = value
            else:
                values[column] = value

        # Only now: whether a hyperparameter is active depends on the values of others.
        only_row = values[np.newaxis]
        (is_active,) = self.space.active(only_row)
        for column, problem in problem_of_column.items():
            if is_active[column]:
                return problem
        values[~is_active] = np.nan  # in `only_row`, too, which is a view
        (config,) = self.space.configs(only_row)
        return config

    def _code_value(
        self, parameter: Parameter, stated: Mapping[str, str], task: int
    ) -> float | Dropped:
        """Return the code of a hyperparameter's value, or why it has no valid value.

        The value is the stated one, or else the learner's default. The code of a choice is its
        index, that of a number the number, perhaps converted.

        Args:
            parameter: The hyperparameter.
            stated: Values as text that the setup or its flow state, by parameter.
            task: OpenML's number of the task, on which some conversions depend.
        """
        name = parameter.name
        value = parse_value(stated[name]) if name in stated else self.defaults.get(name)
        if parameter.choices:
            return Dropped.MISSING_PARAMETER if value is None else _code_choice(parameter, value)

        try:
            number = None if value is None else float(value)
        except ValueError:
            return Dropped.UNPARSABLE
        if name in self.converters:
            number = self.converters[name](number, task)  # may fill in a missing number
        return Dropped.MISSING_PARAMETER if number is None else _clip_number(parameter, number)


def merge_stated_values(
    values_of_setup: Mapping[str, str | None], values_of_flow: Mapping[str, str | None]
) -> dict[str, str]:
    """Return the values as text that a setup or else its flow states, by parameter.

    Parameters without a value, that is None or a text such as NA, are left out.
    """
    stated_values = {}
    # The setup's values come last and replace the flow's.
    for name, text in [*values_of_flow.items(), *values_of_setup.items()]:
        if text is not None and text.strip() not in _MISSING_TEXTS:
            stated_values[name] = text
    return stated_values


def parse_value(text: str) -> Value:
    """Return the value that a recorded text stands for.

    Single quotes and JSON are undone: 'radial', "radial" and ["radial"] with their quotes and
    brackets are all the text radial, and 1e-04 is a number. Anything else remains as it is, such as
    R's TRUE.
    """
    text = text.strip()
    is_quoted = len(text) >= 2 and text.startswith("'") and text.endswith("'")
    if is_quoted:
        return text[1:-1]

    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, list) and len(value) == 1:
        (value,) = value  # R has no scalars, so that one value may be a list
    is_plain_value = isinstance(value, bool | int | float | str)  # otherwise null or a structure
    return value if is_plain_value else text


def _code_choice(parameter: Parameter, value: Value) -> float | Dropped:
    """Return the index of the choice that a value names, or that there is no such choice.

    Upper and lower case do not matter.
    """
    name = str(value).strip().casefold()
    for index, choice in enumerate(parameter.choices):
        if str(choice).casefold() == name:
            return float(index)
    return Dropped.OUT_OF_BOUNDS


def _clip_number(parameter: Parameter, number: float) -> float | Dropped:
    """Move a number that is slightly beyond a bound of its hyperparameter to the bound.

    The bounds of the search space are rounded, so a recorded number may be beyond one of them by
    `BOUND_TOLERANCE`.

    Returns:
        The number within the bounds, or why it cannot be a value of the hyperparameter.
    """
    if not math.isfinite(number):
        return Dropped.UNPARSABLE
    if parameter.kind is Kind.INTEGER and not number.is_integer():
        return Dropped.UNPARSABLE

    lowest_allowed = parameter.lower - BOUND_TOLERANCE
    highest_allowed = parameter.upper + BOUND_TOLERANCE
    if not lowest_allowed <= number <= highest_allowed:
        return Dropped.OUT_OF_BOUNDS
    return min(max(number, parameter.lower), parameter.upper)
