"""Embedded surrogates: a surrogate of a whole search space, used on a part of that space."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config, Value
from hpobench_ordered.data.embedded import EmbeddedSurrogate
from hpobench_ordered.errors import InvalidConfigError, InvalidSpaceError
from hpobench_ordered.space import Compare, Comparison
from hpobench_ordered.surrogates.coding import space_coding
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest

WHOLE_SPACE = hbo.SearchSpace(
    # Children before their parents, so that the order of the columns is no order of evaluation.
    [
        hbo.Parameter.number("coef0", 0, 1),
        hbo.Parameter.number("degree", 2, 5, integer=True),
        hbo.Parameter.choice("kernel", ("linear", "polynomial", "radial", "sigmoid")),
        hbo.Parameter.number("cost", 2**-10, 2**10, log=True),
        hbo.Parameter.choice("units", (16, 32, 64), ordered=True),
    ],
    # Columns 1 and 2 are `degree` and `kernel`; the choices 1 and 3 are polynomial and sigmoid.
    conditions={
        "coef0": Compare(1, Comparison.GREATER, (2.0,)),
        "degree": Compare(2, Comparison.IN, (1.0, 3.0)),
    },
)
TASKS = 3


@dataclass(frozen=True)
class Checksum:
    """A surrogate whose values differ where anything differs: task, column, number, or NaN.

    So it shows which configuration it was asked for.
    """

    def predict(self, values: np.ndarray, task: int) -> np.ndarray:
        return np.array([self.predict_one(row, task) for row in values])

    def predict_one(self, row: np.ndarray, task: int) -> float:
        """The task plus a sum of the row, with a weight of its own for each column."""
        # NaN, of an inactive hyperparameter, counts as a number that no other has.
        numbers = np.where(np.isnan(row), -7.0, row)
        weights_of_columns = 3.0 ** np.arange(len(row))
        return float(task + math.fsum(weights_of_columns * numbers))


@pytest.fixture(scope="module")
def forest():
    """A forest of three tasks on the whole space, fitted to made-up losses.

    They depend on the cost, so that the forest splits at costs.
    """
    values = WHOLE_SPACE.decode(WHOLE_SPACE.sample_unit(np.random.default_rng(0), 300))
    _, degree, kernel, cost, units = values.T
    inactive_degree = 7.0
    losses = np.log(cost) ** 2 + np.nan_to_num(degree, nan=inactive_degree) + kernel
    losses_of_tasks = np.stack([losses, losses + units, -losses], axis=1)
    coding = space_coding(WHOLE_SPACE)
    recipe = ForestRecipe(trees=30)
    return fit_forest(values, losses_of_tasks, coding=coding, recipe=recipe, seed=0)


@st.composite
def draw_value(draw: st.DrawFn, parameter: hbo.Parameter) -> Value:
    """Draw a value of a hyperparameter: a number, or one of its choices, as users write it."""
    unit = np.array(draw(st.floats(0, 1)))
    coded = float(parameter.decode(unit))
    return parameter.value(coded)


@st.composite
def draw_part(draw: st.DrawFn) -> tuple[hbo.SearchSpace, Config]:
    """Draw a part of the whole space, and values of the hyperparameters that are not in it.

    Each hyperparameter of the whole space has one of three roles. It is tunable in the part, maybe
    with fewer choices; a constant of the part; or fixed to a value outside it.
    """
    tunable: list[hbo.Parameter] = []
    constants: Config = {}
    fixed: Config = {}
    for parameter in draw(st.permutations(WHOLE_SPACE.parameters)):
        # A search space needs at least one hyperparameter that can be tuned: if need be, the last.
        are_others_set = len(fixed) + len(constants) == WHOLE_SPACE.dimension - 1
        roles = ["tunable"] if are_others_set else ["tunable", "constant", "fixed"]
        role = draw(st.sampled_from(roles))
        if role == "constant":
            constants[parameter.name] = draw(draw_value(parameter))
        elif role == "fixed":
            fixed[parameter.name] = draw(draw_value(parameter))
        elif parameter.choices:
            choices = draw(st.permutations(parameter.choices))
            number_kept = draw(st.integers(1, len(choices)))
            tunable.append(hbo.Parameter.choice(parameter.name, tuple(choices[:number_kept])))
        else:
            tunable.append(parameter)
    return hbo.SearchSpace(tunable, constants=constants), fixed


@settings(deadline=None)
@given(draw_part(), st.integers(0, 2**32 - 1), st.permutations(range(TASKS)))
def test_values_are_of_completed_configurations(part_and_fixed, seed, tasks):
    """Constants of the part and fixed values complete a configuration of the whole space.

    The surrogate of the whole space has other values where anything differs. Its tasks have another
    order than those of the part.
    """
    part, fixed = part_and_fixed
    inner = Checksum()
    values = part.decode(part.sample_unit(np.random.default_rng(seed), 20))

    embedded = EmbeddedSurrogate(inner, WHOLE_SPACE, part, fixed, tuple(tasks))

    configs_of_part = part.configs(values)  # constants of the part included
    completed = WHOLE_SPACE.values([config | fixed for config in configs_of_part])
    for task, task_of_whole in enumerate(tasks):
        expected = inner.predict(completed, task_of_whole).tolist()
        assert embedded.predict(values, task).tolist() == expected
        assert [embedded.predict_one(row, task) for row in values] == expected


OTHERS_FIXED: Config = {"coef0": 0.5, "degree": 3, "units": 32}
"""Fixed values of all hyperparameters but cost and kernel."""


def make_space(*parameters: hbo.Parameter, **constants: Value) -> hbo.SearchSpace:
    """A search space of these hyperparameters and constants."""
    return hbo.SearchSpace(parameters, constants=constants)


def test_numbers_beyond_the_whole_space_extrapolate(forest):
    """The cost is from 2^-20 to 2^20 in the part, but from 2^-10 to 2^10 in the whole space.

    A forest is constant beyond the bounds that it was fitted on. All other hyperparameters are
    fixed, the degree at 1, below its range from 2 to 5.
    """
    wider_cost = hbo.Parameter.number("cost", 2**-20, 2**20, log=True)
    part = make_space(wider_cost, kernel="polynomial")
    fixed = OTHERS_FIXED | {"degree": 1}
    embedded = EmbeddedSurrogate(forest, WHOLE_SPACE, part, fixed, tasks=(0,))
    costs = np.array([[2.0**-20], [2.0**-10], [2.0**10], [2.0**20]])

    below, at_lower_bound, at_upper_bound, above = embedded.predict(costs, 0)

    assert below == at_lower_bound
    assert above == at_upper_bound
    assert at_lower_bound != at_upper_bound


COST = WHOLE_SPACE["cost"]
KERNEL_AS_NUMBER = hbo.Parameter.number("kernel", 0, 1)
KERNEL_WITH_UNKNOWN_CHOICE = hbo.Parameter.choice("kernel", ("linear", "laplacian"))
LINEAR = make_space(COST, kernel="linear")


@pytest.mark.parametrize(
    ("part", "fixed", "error", "message"),
    [
        # Hyperparameters of the whole space that are missing, named twice or unknown
        (LINEAR, {"coef0": 0.5, "degree": 3}, InvalidSpaceError, "see .'units'"),
        (LINEAR, {**OTHERS_FIXED, "cost": 1.0}, InvalidSpaceError, "see .'cost'"),
        (
            make_space(COST, kernel="linear", gamma=1),
            OTHERS_FIXED,
            InvalidSpaceError,
            "see .'gamma'",
        ),
        # Another type
        (make_space(COST, KERNEL_AS_NUMBER), OTHERS_FIXED, InvalidSpaceError, "a number"),
        # Values that the whole space does not have
        (make_space(COST, kernel="laplacian"), OTHERS_FIXED, InvalidConfigError, "laplacian"),
        (LINEAR, {**OTHERS_FIXED, "degree": "3"}, InvalidConfigError, "degree"),
        (LINEAR, {**OTHERS_FIXED, "units": 1}, InvalidConfigError, "units"),
        (
            make_space(COST, KERNEL_WITH_UNKNOWN_CHOICE),
            OTHERS_FIXED,
            InvalidConfigError,
            "laplacian",
        ),
    ],
)
def test_spaces_that_do_not_fit_are_refused(part, fixed, error, message):
    """Tunable values, constants and fixed values do not make a configuration of the whole space."""
    with pytest.raises(error, match=message):
        EmbeddedSurrogate(Checksum(), WHOLE_SPACE, part, fixed, tasks=(0,))
