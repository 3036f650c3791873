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
        return float(task + sum(3.0**j * (-7 if math.isnan(v) else v) for j, v in enumerate(row)))


@pytest.fixture(scope="module")
def forest():
    values = WHOLE.decode(WHOLE.sample_unit(np.random.default_rng(0), 300))
    losses = np.log(values[:, 3]) ** 2 + np.nan_to_num(values[:, 1], nan=7.0) + values[:, 2]
    targets = np.stack([losses, losses + values[:, 4], -losses], axis=1)
    recipe = ForestRecipe(trees=30)
    return fit_forest(values, targets, coding=space_coding(WHOLE), recipe=recipe, seed=0)


@st.composite
def native(draw: st.DrawFn, parameter: hbo.Parameter) -> Value:
    return parameter.value(float(parameter.decode(np.array(draw(st.floats(0, 1))))))


@st.composite
def parts(draw: st.DrawFn) -> tuple[hbo.SearchSpace, Config]:
    """A part of the whole space in any order, and what is fixed."""
    tunable: list[hbo.Parameter] = []
    constants: Config = {}
    fixed: Config = {}
    for parameter in draw(st.permutations(WHOLE.parameters)):
        is_last = len(fixed) + len(constants) == WHOLE.dimension - 1
        into = "tunable" if is_last else draw(st.sampled_from(["tunable", "constants", "fixed"]))
        if into != "tunable":
            where = constants if into == "constants" else fixed
            where[parameter.name] = draw(native(parameter))
        elif parameter.choices:
            choices = draw(st.permutations(parameter.choices))
            remaining = tuple(choices[: draw(st.integers(1, len(choices)))])
            tunable.append(hbo.Parameter.choice(parameter.name, remaining))
        else:
            tunable.append(parameter)
    return hbo.SearchSpace(tunable, constants=constants), fixed


@settings(deadline=None)
@given(parts(), st.integers(0, 2**32 - 1), st.permutations(range(TASKS)))
def test_has_the_values_of_the_completed_configuration(chosen, seed, tasks):
    part, fixed = chosen
    inner = Checksum()
    embedded = EmbeddedSurrogate(inner, WHOLE, part, fixed, tuple(tasks))
    values = part.decode(part.sample_unit(np.random.default_rng(seed), 20))
    completed = WHOLE.values([{**config, **fixed} for config in part.configs(values)])
    for task, index in enumerate(tasks):
        expected = inner.predict(completed, index)
        assert embedded.predict(values, task).tolist() == expected.tolist()
        assert [embedded.predict_one(row, task) for row in values] == expected.tolist()


REST: Config = {"coef0": 0.5, "degree": 3, "units": 32}


def part(*parameters: hbo.Parameter, **constants: Value) -> hbo.SearchSpace:
    return hbo.SearchSpace(parameters, constants=constants)


def test_numbers_may_go_beyond_the_whole_space(forest):
    cost = hbo.Parameter.number("cost", 2**-20, 2**20, log=True)
    fixed = {**REST, "degree": 1}
    embedded = EmbeddedSurrogate(forest, WHOLE, part(cost, kernel="polynomial"), fixed, (0,))
    values = embedded.predict(np.array([[2.0**-20], [2.0**-10], [2.0**10], [2.0**20]]), 0)
    assert values[0] == values[1]
    assert values[2] == values[3]
    assert values[0] != values[2] or values[1] != values[2]


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
    with pytest.raises(error, match=message):
        EmbeddedSurrogate(Checksum(), WHOLE, space, fixed, (0,))
