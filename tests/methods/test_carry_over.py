"""Conversion of a history to a changed search space, and the methods that use it."""

from collections.abc import Iterator

import numpy as np
import pytest
from by_hand import make_method
from histories import minimised

from hpobench_ordered import Evaluations, SearchSpace
from hpobench_ordered._typing import Config, FloatArray, Value
from hpobench_ordered.methods._carry_over import convert_history
from hpobench_ordered.methods.dre_ordered import DREOrdered
from hpobench_ordered.methods.simple_ordered import (
    SimpleOrdered,
    SimpleOrderedShuffled,
    SimplePrevious,
    SimplePreviousNoBO,
)
from hpobench_ordered.space.parameters import Parameter
from hpobench_ordered.testing import toy

each_change = pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(toy.numeric_space_before(), toy.numeric_space(), id="numeric"),
        pytest.param(toy.conditional_space_before(), toy.conditional_space(), id="conditional"),
        pytest.param(toy.conditional_space(), toy.conditional_space_before(), id="and back"),
    ],
)


def make_task(space: SearchSpace, n: int = 200) -> Evaluations:
    """Random evaluations with the losses 0, 1, 2, ..., so that the best comes first."""
    values = space.decode(space.sample_unit(np.random.default_rng(0), n))
    losses = np.arange(n, dtype=float)
    any_context = {"size": 1.0}
    return minimised("before the change", any_context, values, losses, space)


def convert(task: Evaluations, space: SearchSpace) -> Evaluations:
    """A task converted to another search space."""
    (converted,) = convert_history([task], space, np.random.default_rng(1))
    return converted


# -- conversion ------------------------------------------------------------------------------------


@each_change
def test_converted_configurations_are_valid(before, after):
    """They are valid on the space after a change, to which the task is converted."""
    new = convert(make_task(before), after)
    for config in after.configs(new.values):
        after.validate(config)


def is_allowed(parameter: Parameter, value: Value) -> bool:
    """Whether a value is among the choices, or within the bounds."""
    if parameter.choices:
        return value in parameter.choices
    return parameter.lower <= float(value) <= parameter.upper


def iter_shared_values(
    old_configs: list[Config], new_configs: list[Config], tuned_in_both: list[Parameter]
) -> Iterator[tuple[str, Value, Value]]:
    """Yield name, old value and new value of each hyperparameter that could keep its value.

    It is active in both configurations, and the new space allows the old value.
    """
    for old, new in zip(old_configs, new_configs, strict=True):
        for parameter in tuned_in_both:
            name = parameter.name
            if name in old and name in new and is_allowed(parameter, old[name]):
                yield name, old[name], new[name]


@each_change
def test_allowed_values_of_shared_hyperparameters_stay(before, after):
    """A converted configuration keeps every value that the new space allows."""
    old = make_task(before)
    new = convert(old, after)
    tuned_in_both = [parameter for parameter in after.parameters if parameter.name in before.names]
    compared = set()
    for name, old_value, new_value in iter_shared_values(
        before.configs(old.values), after.configs(new.values), tuned_in_both
    ):
        assert new_value == old_value
        compared.add(name)
    # No hyperparameter went untested.
    assert compared == {parameter.name for parameter in tuned_in_both}


def test_history_on_same_space_is_unchanged():
    """Nothing is converted, and so no random number is drawn."""
    rng = np.random.default_rng(0)
    history = [make_task(toy.numeric_space())]
    assert convert_history(history, toy.numeric_space(), rng) == history
    next_if_nothing_was_drawn = np.random.default_rng(0).random()
    assert rng.random() == next_if_nothing_was_drawn


def test_number_outside_becomes_nearest_allowed():
    """x is now allowed from -5 on, and n became an integer from 2 to 5."""
    before = SearchSpace([Parameter.number("x", -10, 2), Parameter.number("n", 0, 9.8)])
    after = SearchSpace([Parameter.number("n", 2, 5, integer=True), Parameter.number("x", -5, 5)])
    old_values = np.array([[-9.0, 4.4], [-5.5, 9.8], [1.5, 0.1]])  # x, n
    old = minimised("before the change", {}, old_values, np.arange(3), before)
    new_values = convert(old, after).values.tolist()  # n, x
    assert new_values == [[4, -5], [5, -5], [2, 1.5]]


# -- what is drawn from the new space --------------------------------------------------------------

SPACE_BEFORE = SearchSpace([Parameter.choice("kind", ("a", "b", "gone"))], constants={"k": 3})
SPACE_AFTER = SearchSpace(
    [
        Parameter.choice("kind", ("b", "a")),
        Parameter.number("y", 0, 1),
        Parameter.number("k", 0, 9, integer=True),
    ]
)
"""One choice of the kind was removed, y is new, and k was a constant before."""


def assert_covers_unit_interval(values: FloatArray) -> None:
    """Check that more than 40 % of the values lie in each half of [0, 1]."""
    counts_in_halves, _ = np.histogram(values, bins=2, range=(0, 1))
    assert counts_in_halves.min() > 0.4 * len(values)


def test_new_hyperparameter_is_drawn():
    """y, from 0 to 1, did not exist before."""
    new = convert(make_task(SPACE_BEFORE, n=4000), SPACE_AFTER)
    column_of_y = SPACE_AFTER.names.index("y")
    assert_covers_unit_interval(new.values[:, column_of_y])


def convert_kinds() -> list[tuple[Value, Value]]:
    """The kind in each of 4000 configurations, before and after it is converted."""
    old = make_task(SPACE_BEFORE, n=4000)
    new = convert(old, SPACE_AFTER)
    old_configs = SPACE_BEFORE.configs(old.values)
    new_configs = SPACE_AFTER.configs(new.values)
    return [(o["kind"], n["kind"]) for o, n in zip(old_configs, new_configs, strict=True)]


def test_removed_choice_is_drawn_anew():
    """The choice "gone" becomes one of the other two, about equally often."""
    replacements = [new for old, new in convert_kinds() if old == "gone"]
    share_of_a = np.mean([new == "a" for new in replacements])
    assert set(replacements) == {"a", "b"}
    assert share_of_a == pytest.approx(0.5, abs=0.1)


# -- methods ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [SimpleOrdered, SimpleOrderedShuffled, SimplePrevious, SimplePreviousNoBO, DREOrdered]
)
def test_methods_start_with_converted_best(kind):
    """The first suggestions have x, which both spaces have, of the best five configurations.

    The hyperparameter that is new is drawn at random.
    """
    before = SearchSpace([Parameter.number("x", 0, 1), Parameter.number("removed", 0, 1)])
    after = SearchSpace([Parameter.number("new", 0, 1), Parameter.number("x", 0, 1)])
    old = make_task(before)
    method = make_method(kind, [old], space=after, budget=8)
    configs = [method.ask() for _ in range(5)]
    # The old configurations are sorted by loss, so these are the five best.
    assert [config["x"] for config in configs] == old.values[:5, 0].tolist()
    assert len({config["new"] for config in configs}) == 5
