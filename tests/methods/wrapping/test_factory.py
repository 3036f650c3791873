"""Classes, functions and objects of other people as methods."""

import functools
import random

import numpy as np
import pytest
from bad_methods import Good
from optimisers import Sampling, pair

from hpobench_ordered import MethodSpec, Ordered, run
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
from hpobench_ordered.tuning import as_method_spec


@pytest.fixture
def tasks():
    """An earlier task, and the current task."""
    return toy_benchmark(conditional_space(), tasks=2).tasks


@pytest.fixture
def arguments(tasks):
    """The arguments that a method is made with, by name."""
    earlier_task, task = tasks
    return {
        "space": task.space,
        "rng": np.random.default_rng(0),
        "history": random_history([earlier_task], seed=0),
        "context": {"t": 1.0},
        "budget": 9,
    }


def test_class_gives_name_and_summary():
    """The name has that of the module; the summary is the first line of the docstring."""
    spec = as_method_spec(Sampling, min_history=2)
    assert spec.name == "optimisers.Sampling"
    assert spec.summary == "Draws at random, and nothing else."
    assert spec.source == "user"
    assert spec.min_history == 2


def test_options_replace_name_and_summary():
    """A name and a summary that are passed replace those that follow from the class."""
    spec = as_method_spec(Sampling, name="mine", summary="One line.", changed_spaces=True)
    assert spec.name == "mine"
    assert spec.summary == "One line."
    assert spec.changed_spaces


def test_factory_gets_arguments_it_names(arguments):
    """An argument of its own, here `other`, keeps its default."""
    received: dict[str, object] = {}

    def make(context, budget, other=3):
        received.update(context=context, budget=budget, other=other)
        return Sampling(arguments["space"], arguments["rng"])

    as_method_spec(make).method(**arguments)

    assert received == {
        "context": arguments["context"],
        "budget": arguments["budget"],
        "other": 3,
    }


def test_factory_gets_seed_from_generator(arguments):
    """A factory that names `seed` gets an integer, which is drawn from the method's generator."""
    received: dict[str, object] = {}

    def make(seed):
        received.update(seed=seed)
        return Sampling(arguments["space"], arguments["rng"])

    as_method_spec(make).method(**arguments)

    same_generator = np.random.default_rng(0)
    assert received == {"seed": same_generator.integers(2**31)}


def test_factory_of_any_keyword_gets_all(arguments):
    """A factory that takes any keyword gets all arguments that a method is made with."""
    received: dict[str, object] = {}

    def make(**keywords):
        received.update(keywords)
        return Sampling(arguments["space"], arguments["rng"])

    as_method_spec(make).method(**arguments)

    assert received == arguments


def test_factory_that_makes_no_optimiser_fails(arguments):
    """A factory that returns something that suggests nothing, here the number 3, is refused."""
    spec = as_method_spec(lambda: 3, name="three")

    with pytest.raises(MethodError, match="but returned 3"):
        spec.method(**arguments)


def test_method_from_factory_is_not_wrapped(arguments):
    """The factory makes a `Good`, which is a subclass of `Method` and needs no wrapper."""

    def make(**keywords):
        return Good(**keywords)

    method = as_method_spec(make).method(**arguments)

    assert type(method) is Good


def test_method_spec_is_returned_unchanged():
    """What is a spec already needs no conversion."""
    spec = MethodSpec("mine", Good, summary="", source="")

    assert as_method_spec(spec) is spec


def test_factory_that_names_history_uses_it():
    """The method counts as one that learns from earlier tasks, by the name of an argument."""
    spec = as_method_spec(lambda space, rng, history: None, name="mine")

    assert spec.uses_history
    assert not spec.changed_spaces


def test_factory_without_history_allows_any():
    """What does not use the history can be given one on another search space."""
    spec = as_method_spec(lambda space, rng: None, name="mine")

    assert not spec.uses_history
    assert spec.changed_spaces


def test_other_version_is_another_method():
    """The version says what files do not, such as which release of a tool is installed."""
    first, second = (as_method_spec(Sampling, version=version) for version in ("1", "2"))

    assert first.source == "1"
    assert first != second


@pytest.fixture
def configspace_optimiser(tasks):
    """A class that suggests objects of ConfigSpace; it lists those it suggested and was told."""
    _, task = tasks
    space = task.space.to_configspace()

    class OnConfigSpace:
        suggested: list[object] = []  # noqa: RUF012
        told: list[object] = []  # noqa: RUF012

        def __init__(self, seed: int) -> None:
            space.seed(seed)

        def ask(self):
            config = space.sample_configuration()
            self.suggested.append(config)
            return config

        def tell(self, config, loss):
            self.told.append(config)

    return OnConfigSpace


def test_optimiser_is_told_its_own_objects(tasks, configspace_optimiser):
    """An optimiser may tell its suggestions apart by identity, here three at a time."""
    _, task = tasks
    spec = as_method_spec(configspace_optimiser)

    run_method(spec, task, (), np.random.default_rng(0), budget=9, workers=3)

    assert len(configspace_optimiser.told) == 9
    pairs = zip(configspace_optimiser.told, configspace_optimiser.suggested, strict=True)
    assert all(told is suggested for told, suggested in pairs)


def test_any_mapping_is_a_configuration(tasks, configspace_optimiser):
    """Objects of ConfigSpace are mappings, but no dicts."""
    _, task = tasks
    spec = as_method_spec(configspace_optimiser)

    outcome = run_method(spec, task, (), np.random.default_rng(0), budget=9)

    configs = [config for config, _ in list_trials(task.space, outcome)]
    assert configs == [dict(config) for config in configspace_optimiser.suggested]


def run_one_trial(task, suggestion: object):
    """Run one trial of an optimiser that always suggests the same."""

    def ask():
        return suggestion

    def tell(config, loss):
        pass

    spec = as_method_spec(lambda: (ask, tell), name="constant")
    return run_method(spec, task, (), np.random.default_rng(0), budget=1)


def test_numpy_values_are_configurations(tasks):
    """The constant of the space, fixed = "always", is added."""
    _, task = tasks
    config = {"kind": np.str_("a"), "level": np.int64(10), "n": np.int32(3), "x": np.float32(0.5)}

    outcome = run_one_trial(task, config)

    ((evaluated, _),) = list_trials(task.space, outcome)
    assert evaluated == {"kind": "a", "level": 10, "n": 3, "x": 0.5, "fixed": "always"}


@pytest.mark.parametrize("suggestion", [None, [1, 2], "x=1"])
def test_suggestion_must_be_a_mapping(tasks, suggestion):
    """A user's method that suggests something else is refused, with what it suggested."""
    _, task = tasks

    with pytest.raises(AssertionError, match="a configuration must be a dict"):
        run_one_trial(task, suggestion)


REFUSED_OBJECTS = {
    "an object": (
        Sampling(numeric_space(), np.random.default_rng(0)),
        r"pass its class Sampling",
    ),
    "class without ask": (random.Random, r"the class Random has no ask\(\) and tell"),
    "number": (3, r"a method must be a name, a class .*got 3"),
    "lambda without name": (lambda space: pair, r"give it one"),
    "partial without name": (functools.partial(pair, budget=3), r"give it one"),
    "misspelt argument": (lambda spaces: pair, r"needs 'spaces', .*did you mean 'space'"),
    "unknown argument": (lambda x: pair, r"needs 'x', but only space, rng, history, "),
}


@pytest.mark.parametrize(("optimiser", "message"), REFUSED_OBJECTS.values(), ids=REFUSED_OBJECTS)
def test_other_things_are_refused(optimiser, message):
    with pytest.raises(ExperimentError, match=message):
        as_method_spec(optimiser)


@pytest.mark.parametrize("optimiser", [Sampling, pair])
def test_wrapped_optimiser_passes_method_checks(optimiser):
    check_method(as_method_spec(optimiser))


def test_wrapped_optimisers_run():
    """A pair of functions that refines its best trial, and a class that draws at random."""
    result = run(
        benchmarks=["newsvendor"],
        methods=[as_method_spec(pair, name="pair"), as_method_spec(Sampling, name="sampling")],
        seeds=range(3),
        protocol=Ordered(trials=12, tasks=2),
    )

    trials = result.frame()
    assert len(trials) == 2 * 3 * 2 * 12  # methods, seeds, tasks, trials
    mean_loss = trials.groupby("method")["loss"].mean()
    assert mean_loss["pair"] < mean_loss["sampling"]
