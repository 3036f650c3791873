"""Classes, functions and objects of other people as methods."""

import functools
import random

import numpy as np
import pytest
from bad_methods import Good
from optimisers import Sampling, pair

from hpobench_ordered import MethodSpec, Ordered, run
from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.errors import ExperimentError, MethodError
from hpobench_ordered.testing import check_method
from hpobench_ordered.testing.toy import (
    conditional_space,
    list_trials,
    numeric_space,
    random_history,
    run_method,
    toy_benchmark,
)
from hpobench_ordered.user_methods.factory import SETTING


def setting():
    """What a method is made with, for the last of two toy tasks."""
    before, task = toy_benchmark(conditional_space(), tasks=2).tasks
    values = (task.space, np.random.default_rng(0), random_history([before], seed=0), {"t": 1.0}, 9)
    return task, dict(zip(SETTING, values, strict=True))


def test_a_class_is_named_and_described_as_a_method_is():
    spec = as_method_spec(Sampling, min_history=2)
    assert spec.name == "optimisers.Sampling"
    assert spec.summary == "Draws at random, and nothing else."
    assert (spec.source, spec.min_history) == ("user", 2)
    named = as_method_spec(Sampling, name="mine", summary="One line.", changed_spaces=True)
    assert (named.name, named.summary, named.changed_spaces) == ("mine", "One line.", True)


def test_a_factory_gets_those_of_the_settings_that_it_names():
    _, arguments = setting()
    seen: dict[str, object] = {}

    def some(context, budget, seed, unused=3):
        seen.update(context=context, budget=budget, seed=seed, unused=unused)
        return Sampling(arguments["space"], arguments["rng"])

    def everything(**keywords):
        seen.clear()
        seen.update(keywords)
        return Sampling(arguments["space"], arguments["rng"])

    as_method_spec(some).method(**arguments)
    expected_seed = int(np.random.default_rng(0).integers(2**31))
    assert seen == {"context": {"t": 1.0}, "budget": 9, "seed": expected_seed, "unused": 3}
    as_method_spec(everything).method(**arguments)
    assert seen == arguments
    with pytest.raises(MethodError, match="but returned 3"):
        as_method_spec(lambda: 3, name="three").method(**arguments)


def test_a_subclass_of_method_is_taken_as_it_is():
    assert as_method_spec(Good, name="mine").method is Good

    def make(**keywords):
        return Good(**keywords)

    assert type(as_method_spec(make).method(**setting()[1])) is Good
    spec = MethodSpec("mine", Good, "", "")
    assert as_method_spec(spec) is spec
    names_the_history = as_method_spec(lambda space, rng, history: None, name="mine")
    assert names_the_history.uses_history


def test_mappings_are_taken_and_their_own_objects_are_told():
    task, arguments = setting()
    space = task.space.to_configspace()
    asked, told = [], []

    class OnConfigSpace:
        def __init__(self, seed: int) -> None:
            space.seed(seed)

        def ask(self):
            asked.append(space.sample_configuration())
            return asked[-1]

        def tell(self, config, loss):
            told.append(config)

    spec = as_method_spec(OnConfigSpace)
    outcome = run_method(spec, task, arguments["history"], np.random.default_rng(0), workers=3)
    assert [id(config) for config in told] == [id(config) for config in asked]
    assert [c for c, _ in list_trials(task.space, outcome)] == [dict(config) for config in asked]


@pytest.mark.parametrize("suggested", [None, [1, 2], "x=1"])
def test_numpy_values_are_configurations_and_nonsense_is_left_to_the_runner(suggested):
    def played(config):
        spec = as_method_spec(lambda: (lambda: config, lambda config, loss: None), name="constant")
        return run_method(spec, task, (), np.random.default_rng(0), budget=1)

    task, _ = setting()
    config = {"kind": np.str_("a"), "level": np.int64(10), "n": np.int32(3), "x": np.float32(0.5)}
    ((found, _),) = list_trials(task.space, played(config))
    assert found == {"kind": "a", "level": 10, "n": 3, "x": 0.5, "fixed": "always"}
    with pytest.raises(AssertionError, match="a configuration must be a dict"):
        played(suggested)


@pytest.mark.parametrize(
    ("optimiser", "message"),
    [
        (Sampling(numeric_space(), np.random.default_rng(0)), r"pass its class Sampling"),
        (random.Random, r"the class Random has no ask\(\) and tell"),
        (3, r"a method must be a name, a class .*got 3"),
        (lambda space: pair, r"give it one"),
        (functools.partial(pair, budget=3), r"give it one"),
        (lambda spaces: pair, r"needs 'spaces', .*did you mean 'space'"),
        (lambda x: pair, r"needs 'x', but only space, rng, history, "),
    ],
)
def test_what_cannot_be_wrapped_is_refused(optimiser, message):
    with pytest.raises(ExperimentError, match=message):
        as_method_spec(optimiser)


def test_wrapped_optimisers_hold_to_the_contract_and_run():
    for optimiser in (Sampling, pair):
        check_method(as_method_spec(optimiser))
    result = run(
        benchmarks=["newsvendor"],
        methods=[as_method_spec(pair, name="pair"), as_method_spec(Sampling, name="sampling")],
        seeds=range(3),
        protocol=Ordered(trials=12, tasks=2),
    )
    best = result.frame().groupby("method")["loss"].mean()
    assert len(result.frame()) == 2 * 3 * 2 * 12
    assert best["pair"] < best["sampling"]
