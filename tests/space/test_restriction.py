"""Parts of a search space: fixed hyperparameters, narrower ranges, and what becomes of conditions.

Columns of the whole space: 0 kernel, 1 degree, 2 cost, 3 coef0, 4 cache, 5 units, 6 shrinking.
"""

import math

import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from hpobench_ordered.data.embedded import EmbeddedSurrogate
from hpobench_ordered.errors import InvalidSpaceError
from hpobench_ordered.space import Compare, Comparison, Connective, Joined, Parameter, SearchSpace
from hpobench_ordered.space.restriction import Restriction, adapt_restrictions, restrict_space

LINEAR, POLYNOMIAL, RADIAL = 0.0, 1.0, 2.0  # codes of kernels
WHOLE = SearchSpace(
    [
        Parameter.choice("kernel", ("linear", "polynomial", "radial")),
        Parameter.number("degree", 1, 5, integer=True),
        Parameter.number("cost", 0.01, 100, log=True),
        Parameter.number("coef0", 0, 1),
        Parameter.number("cache", 0, 1),
        Parameter.choice("units", (16, 32, 64), ordered=True),
        Parameter.choice("shrinking", (False, True)),
    ],
    conditions={
        "degree": Compare(0, Comparison.EQUAL, (POLYNOMIAL,)),
        "coef0": Joined(
            Connective.AND,
            (
                Compare(1, Comparison.GREATER, (2.0,)),
                Compare(2, Comparison.LESS, (1.0,)),
            ),
        ),
        "cache": Joined(
            Connective.OR,
            (
                Compare(0, Comparison.NOT_EQUAL, (LINEAR,)),
                Compare(5, Comparison.LESS, (1.0,)),  # units below 32
            ),
        ),
        "shrinking": Compare(0, Comparison.IN, (LINEAR, RADIAL)),
    },
)


class Echo:
    """A surrogate whose values tell its configurations apart, inactive hyperparameters included."""

    def predict(self, values: np.ndarray, task: int) -> np.ndarray:
        return np.array([self.predict_one(row, task) for row in values])

    def predict_one(self, row: np.ndarray, task: int) -> float:
        weights = 3.0 ** np.arange(len(row))
        return math.fsum(weights * np.where(np.isnan(row), -7.0, row))


def describe_conditions(restrictions: dict[str, Restriction]) -> dict[str, str]:
    """Describe when hyperparameters of a part are active, those that are not always."""
    part = restrict_space(WHOLE, restrictions)
    return {name: part.describe_condition(name) for name in part.conditions}


@st.composite
def draw_restriction(draw: st.DrawFn, parameter: Parameter) -> Restriction:
    """Draw what is left of a hyperparameter: a value, choices, or a range."""
    value = st.floats(0, 1).map(lambda unit: parameter.decode(np.array(unit)).item())
    if draw(st.booleans()):
        return parameter.value(draw(value))
    if parameter.choices:
        return draw(st.lists(st.sampled_from(parameter.choices), min_size=1, unique=True))
    bounds = draw(st.lists(value, min_size=2, max_size=2, unique=True))
    lower, upper = sorted(bounds)
    return parameter.value(lower), parameter.value(upper)


@given(st.data(), st.sets(st.sampled_from(WHOLE.names), max_size=6), st.integers(0, 1000))
def test_configurations_are_those_of_the_whole(data, names, seed):
    """A configuration of a part has the same active hyperparameters as in the whole space."""
    restrictions = {name: data.draw(draw_restriction(WHOLE[name])) for name in sorted(names)}
    try:
        part = restrict_space(WHOLE, restrictions)
    except InvalidSpaceError:  # such as when nothing is left to tune
        reject()
    lacking = [name for name in WHOLE.names if name not in {*part.names, *part.constants}]
    placeholders = {name: WHOLE[name].default for name in lacking}
    embedded = EmbeddedSurrogate(Echo(), WHOLE, part, placeholders, tasks=(0,))
    values = part.decode(part.sample_unit(np.random.default_rng(seed), 20))

    in_whole = embedded.embed(values)

    assert WHOLE.allows(in_whole).all()
    for config, whole_config in zip(part.configs(values), WHOLE.configs(in_whole), strict=True):
        tuned = {name: whole_config[name] for name in whole_config if name in part.names}
        assert tuned == {name: config[name] for name in config if name in part.names}
    one_by_one = [embedded.predict_one(row, 0) for row in values]
    assert embedded.predict(values, 0).tolist() == one_by_one


def test_fixed_hyperparameter_is_a_constant():
    part = restrict_space(WHOLE, {"kernel": "polynomial"})

    assert part.constants == {"kernel": "polynomial"}
    assert part.names == ("degree", "cost", "coef0", "cache", "units")  # shrinking is never active
    assert part.describe_condition("coef0") == "degree > 2 and cost < 1.0"


def test_condition_that_always_holds_is_left_out():
    assert "cache" not in describe_conditions({"kernel": ["polynomial", "radial"]})


def test_condition_compares_with_the_choices_left():
    conditions = describe_conditions({"kernel": ["linear", "polynomial"], "units": [32, 64]})
    assert conditions["shrinking"] == "kernel = linear"
    assert conditions["cache"] == "kernel is not linear"


def test_child_of_fixed_parent_has_its_condition():
    """With a degree of 3, coef0 depends on the kernel, as the degree does."""
    conditions = describe_conditions({"degree": 3, "cost": (0.01, 0.1)})
    assert conditions["coef0"] == "kernel = polynomial"


def test_narrower_range_keeps_scale_and_type():
    part = restrict_space(WHOLE, {"cost": (0.1, 10), "degree": (2, 4)})

    assert part["cost"].describe() == "a number in [0.1, 10.0] (log scale)"
    assert part["degree"].describe() == "an integer in [2, 4]"


@pytest.mark.parametrize(
    ("restrictions", "message"),
    [
        ({"kernal": "radial"}, "unknown hyperparameter 'kernal'; did you mean 'kernel'"),
        ({"kernel": "radail"}, "must be one of .* but got 'radail'; did you mean 'radial'"),
        ({"cost": 1000.0}, "cost must be a number in .* but got 1000"),
        ({"degree": (2, 9)}, "degree must be an integer in .* but got 9"),
        ({"degree": (2, 3.5)}, "degree must be an integer in .* but got 3.5"),
        ({"cost": (10, 0.1)}, r"the range \(10, 0.1\) is empty"),
        ({"cost": (1, 2, 3)}, r"a range is \(lower, upper\)"),
        ({"cost": [1, 2]}, "give a range"),
        ({"kernel": ("linear", "radial")}, "give a list of choices"),
        ({"kernel": []}, "no choice is left"),
        ({name: WHOLE[name].default for name in WHOLE.names}, "nothing is left to tune"),
    ],
)
def test_wrong_restriction_is_explained(restrictions, message):
    with pytest.raises(InvalidSpaceError, match=message):
        restrict_space(WHOLE, restrictions)


@pytest.mark.parametrize(
    ("restriction", "adapted"),
    [
        ({"rate": (0.5, 20.0)}, {"rate": (0.5, 10.0)}),
        ({"rate": 2.0}, {"rate": 2.0}),
        ({"kernel": ["radial", "linear"]}, {"kernel": ["linear"]}),
        ({"kernel": "linear"}, {"kernel": "linear"}),
        ({"rate": (20.0, 30.0)}, {}),
        ({"rate": 20.0}, {}),
        ({"kernel": ["radial"]}, {}),
        ({"kernel": (1, 2)}, {}),
        ({"rate": [2.0, 3.0]}, {}),
        ({"degree": 2}, {}),
    ],
)
def test_restrictions_are_adapted_to_another_space(restriction, adapted):
    """What the other space allows is left: it has neither radial kernels nor degrees."""
    rate = Parameter.number("rate", 0.1, 10.0)
    kernel = Parameter.choice("kernel", ("linear", "polynomial"))
    assert adapt_restrictions(restriction, SearchSpace([rate, kernel])) == adapted
