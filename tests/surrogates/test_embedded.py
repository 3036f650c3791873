import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hpobench_ordered as hbo
from hpobench_ordered._typing import Config, Value
from hpobench_ordered.errors import InvalidConfigError, InvalidSpaceError
from hpobench_ordered.surrogates.coding import space_coding
from hpobench_ordered.surrogates.embedded import EmbeddedSurrogate
from hpobench_ordered.surrogates.fitting import ForestRecipe, fit_forest

WHOLE = hbo.SearchSpace(
    # Children before their parents, so that the order of the columns is no order of evaluation.
    [
        hbo.Parameter.number("coef0", 0, 1),
        hbo.Parameter.number("degree", 2, 5, integer=True),
        hbo.Parameter.choice("kernel", ("linear", "polynomial", "radial", "sigmoid")),
        hbo.Parameter.number("cost", 2**-10, 2**10, log=True),
        hbo.Parameter.choice("units", (16, 32, 64), ordered=True),
    ],
    conditions={
        "coef0": hbo.Compare(1, hbo.Comparison.GREATER, (2.0,)),
        "degree": hbo.Compare(2, hbo.Comparison.IN, (1.0, 3.0)),
    },
)
TASKS = 3


@dataclass(frozen=True)
class Checksum:
    """A surrogate whose values differ where anything differs, NaN included."""

    def predict(self, values: np.ndarray, task: int) -> np.ndarray:
        return np.array([self.predict_one(row, task) for row in values])

    def predict_one(self, row: np.ndarray, task: int) -> float:
        numbers = np.where(np.isnan(row), -7.0, row)
        weights = 3.0 ** np.arange(len(row))
        return float(task + math.fsum(weights * numbers))


@pytest.fixture(scope="module")
def forest():
    """A forest of three tasks on the whole space."""
    values = WHOLE.decode(WHOLE.sample_unit(np.random.default_rng(0), 300))
    losses = np.log(values[:, 3]) ** 2 + np.nan_to_num(values[:, 1], nan=7.0) + values[:, 2]
    targets = np.stack([losses, losses + values[:, 4], -losses], axis=1)
    recipe = ForestRecipe(trees=30)
    return fit_forest(values, targets, coding=space_coding(WHOLE), recipe=recipe, seed=0)


@st.composite
def native(draw: st.DrawFn, parameter: hbo.Parameter) -> Value:
    """A value of a hyperparameter."""
    unit = np.array(draw(st.floats(0, 1)))
    coded = float(parameter.decode(unit))
    return parameter.value(coded)


@st.composite
def parts(draw: st.DrawFn) -> tuple[hbo.SearchSpace, Config]:
    """A part of the whole space in any order, and the values of fixed hyperparameters."""
    tunable: list[hbo.Parameter] = []
    constants: Config = {}
    fixed: Config = {}
    for parameter in draw(st.permutations(WHOLE.parameters)):
        is_last = len(fixed) + len(constants) == WHOLE.dimension - 1
        # A search space needs at least one hyperparameter that can be tuned.
        role = "tunable" if is_last else draw(st.sampled_from(["tunable", "constant", "fixed"]))
        if role == "constant":
            constants[parameter.name] = draw(native(parameter))
        elif role == "fixed":
            fixed[parameter.name] = draw(native(parameter))
        elif parameter.choices:
            choices = draw(st.permutations(parameter.choices))
            remaining = tuple(choices[: draw(st.integers(1, len(choices)))])
            tunable.append(hbo.Parameter.choice(parameter.name, remaining))
        else:
            tunable.append(parameter)
    return hbo.SearchSpace(tunable, constants=constants), fixed


@settings(deadline=None)
@given(parts(), st.integers(0, 2**32 - 1), st.permutations(range(TASKS)))
def test_values_are_of_completed_configurations(part_and_fixed, seed, tasks):
    part, fixed = part_and_fixed
    inner = Checksum()
    embedded = EmbeddedSurrogate(inner, WHOLE, part, fixed, tuple(tasks))
    values = part.decode(part.sample_unit(np.random.default_rng(seed), 20))

    # Constants of the part and fixed values complete a configuration of the whole space.
    completed = WHOLE.values([{**config, **fixed} for config in part.configs(values)])

    # Task k of the part is task tasks[k] of the whole.
    for task, index in enumerate(tasks):
        expected = inner.predict(completed, index)
        assert embedded.predict(values, task).tolist() == expected.tolist()
        assert [embedded.predict_one(row, task) for row in values] == expected.tolist()


REST: Config = {"coef0": 0.5, "degree": 3, "units": 32}


def part(*parameters: hbo.Parameter, **constants: Value) -> hbo.SearchSpace:
    return hbo.SearchSpace(parameters, constants=constants)


def test_numbers_beyond_the_whole_space_extrapolate(forest):
    # In the whole space the cost is from 2^-10 to 2^10.
    wider_cost = hbo.Parameter.number("cost", 2**-20, 2**20, log=True)
    space = part(wider_cost, kernel="polynomial")
    embedded = EmbeddedSurrogate(forest, WHOLE, space, {**REST, "degree": 1}, (0,))
    costs = np.array([[2.0**-20], [2.0**-10], [2.0**10], [2.0**20]])

    below, lower_bound, upper_bound, above = embedded.predict(costs, 0)

    # A forest is constant beyond the bounds that it was fitted on.
    assert below == lower_bound
    assert above == upper_bound
    assert lower_bound != upper_bound


NUMBER = hbo.Parameter.number("kernel", 0, 1)
OTHER = hbo.Parameter.choice("kernel", ("linear", "laplacian"))
LINEAR = part(WHOLE["cost"], kernel="linear")
CONDITIONAL = hbo.SearchSpace(
    [hbo.Parameter.choice("kernel", ("linear", "polynomial")), WHOLE["cost"]],
    conditions={"cost": hbo.Compare(0, hbo.Comparison.EQUAL, (0.0,))},
)


@pytest.mark.parametrize(
    ("space", "fixed", "error", "message"),
    [
        (LINEAR, {"coef0": 0.5, "degree": 3}, InvalidSpaceError, "see .'units'"),
        (LINEAR, {**REST, "cost": 1.0}, InvalidSpaceError, "see .'cost'"),
        (part(WHOLE["cost"], kernel="linear", gamma=1), REST, InvalidSpaceError, "see .'gamma'"),
        (part(WHOLE["cost"], NUMBER), REST, InvalidSpaceError, "a number"),
        (CONDITIONAL, REST, InvalidSpaceError, "must not have conditions"),
        (part(WHOLE["cost"], kernel="laplacian"), REST, InvalidConfigError, "laplacian"),
        (LINEAR, {**REST, "degree": "3"}, InvalidConfigError, "degree"),
        (LINEAR, {**REST, "units": 1}, InvalidConfigError, "units"),
        (part(WHOLE["cost"], OTHER), REST, InvalidConfigError, "laplacian"),
    ],
)
def test_spaces_that_do_not_fit_are_refused(space, fixed, error, message):
    """Hyperparameters of the whole space that are missing, named twice or unknown; other types and
    values.
    """
    with pytest.raises(error, match=message):
        EmbeddedSurrogate(Checksum(), WHOLE, space, fixed, (0,))
