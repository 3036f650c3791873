import numpy as np
import pytest
from by_hand import make
from histories import minimised

from hpobench_ordered import Evaluations, SearchSpace
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

SPACES = [
    (toy.numeric_space_before(), toy.numeric_space()),
    (toy.conditional_space_before(), toy.conditional_space()),
    (toy.conditional_space(), toy.conditional_space_before()),
]


def evaluated(space: SearchSpace, n: int = 200, seed: int = 0) -> Evaluations:
    values = space.decode(space.sample_unit(np.random.default_rng(seed), n))
    return minimised("t", {"size": 1.0}, values, np.arange(n, dtype=float), space)


@pytest.mark.parametrize(("before", "after"), SPACES)
def test_what_both_spaces_tune_and_allow_keeps_its_value(before, after):
    old = evaluated(before)
    (new,) = convert_history([old], after, np.random.default_rng(1))
    assert (new.task, new.context, new.space) == (old.task, old.context, after)
    np.testing.assert_array_equal(new.losses, old.losses)
    carried = dict.fromkeys(set(before.names) & set(after.names), 0)
    for then, now in zip(before.configs(old.values), after.configs(new.values), strict=True):
        after.validate(now)
        for name in carried.keys() & then.keys() & now.keys():
            parameter = after[name]
            allowed = (
                then[name] in parameter.choices
                if parameter.choices
                else parameter.lower <= then[name] <= parameter.upper
            )
            assert not allowed or then[name] == now[name]
            carried[name] += allowed
    assert carried
    assert all(carried.values())


def test_what_is_new_or_no_choice_any_more_is_drawn_from_the_new_space():
    before = SearchSpace([Parameter.choice("kind", ("a", "b", "gone"))], constants={"k": 3})
    k, y = Parameter.number("k", 0, 9, integer=True), Parameter.number("y", 0, 1)
    after = SearchSpace([Parameter.choice("kind", ("b", "a")), y, k])
    old = evaluated(before, n=4000)
    (new,) = convert_history([old], after, np.random.default_rng(1))
    gone = old.values[:, 0] == 2
    for drawn in (new.values[gone, 0], new.values[:, 1]):
        assert np.histogram(drawn, bins=2, range=(0, 1))[0].min() > 0.4 * len(drawn)
    assert set(new.values[:, 2]) == set(range(10))  # what was a constant
    np.testing.assert_array_equal(new.values[~gone, 0], 1 - old.values[~gone, 0])


def test_a_number_that_is_not_allowed_any_more_becomes_the_nearest_that_is():
    before = SearchSpace([Parameter.number("x", -10, 2), Parameter.number("n", 0, 9.8)])
    after = SearchSpace([Parameter.number("n", 2, 5, integer=True), Parameter.number("x", -5, 5)])
    old = minimised("t", {}, np.array([[-9.0, 4.4], [-5.5, 9.8], [1.5, 0.1]]), np.arange(3), before)
    (new,) = convert_history([old], after, np.random.default_rng(1))
    assert new.values.tolist() == [[4, -5], [5, -5], [2, 1.5]]


def test_a_history_on_the_same_space_stays_as_it_is_and_nothing_is_drawn():
    space, rng = toy.numeric_space(), np.random.default_rng(0)
    history = [evaluated(space)]
    assert convert_history(history, space, rng) == history
    assert rng.random() == np.random.default_rng(0).random()


@pytest.mark.parametrize(
    "kind", [SimpleOrdered, SimpleOrderedShuffled, SimplePrevious, SimplePreviousNoBO, DREOrdered]
)
def test_methods_start_with_the_best_ones_carried_over(kind):
    before = SearchSpace([Parameter.number("x", 0, 1), Parameter.number("removed", 0, 1)])
    after = SearchSpace([Parameter.number("new", 0, 1), Parameter.number("x", 0, 1)])
    old = evaluated(before)  # the first is the best
    method = make(kind, [old], space=after, budget=8)
    asked = [method.ask() for _ in range(5)]
    assert [config["x"] for config in asked] == old.values[:5, 0].tolist()
    assert len({config["new"] for config in asked}) == 5
