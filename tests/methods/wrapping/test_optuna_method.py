"""Optuna's samplers as methods."""

import logging
import math
import pickle

import numpy as np
import optuna
import pytest
from optimisers import tpe_at_once
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import GridSampler, RandomSampler, TPESampler
from optuna.trial import TrialState

from hpobench_ordered import SearchSpace
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.user_methods.identity import method_version
from hpobench_ordered.methods.wrapping.factory import as_method_spec
from hpobench_ordered.methods.wrapping.optuna_method import OptunaMethod
from hpobench_ordered.testing import check_method
from hpobench_ordered.testing.toy import (
    conditional_space,
    numeric_space,
    random_history,
    toy_benchmark,
)

optuna.logging.set_verbosity(optuna.logging.WARNING)


def make_optuna_method(space: SearchSpace, *, sampler=RandomSampler, history=()) -> OptunaMethod:
    """Make a method of a sampler; its study is `method._study`."""
    method = as_method_spec(sampler).method(
        space=space, rng=np.random.default_rng(0), history=history, context={}, budget=9
    )
    assert isinstance(method, OptunaMethod)
    return method


@pytest.mark.parametrize(
    "spec",
    [
        as_method_spec(lambda seed: RandomSampler(seed=seed), name="random"),
        pytest.param(as_method_spec(TPESampler), marks=pytest.mark.slow),
        pytest.param(as_method_spec(tpe_at_once), marks=pytest.mark.slow),
    ],
    ids=["random", "tpe", "tpe at once"],
)
def test_samplers_pass_method_checks(spec):
    check_method(spec)


@pytest.mark.parametrize("loss", [math.nan, math.inf, 1e300, 0.0])
def test_tpe_survives_uninformative_losses(loss):
    """TPE suggests valid configurations, though three of four losses are alike, or failures."""
    method = make_optuna_method(conditional_space(), sampler=tpe_at_once)
    for trial in range(1, 11):
        config = method.ask()
        method.space.validate(config)
        is_fourth = trial % 4 == 0
        method.tell(config, 1.0 if is_fourth else loss)


def test_history_is_ignored_by_default():
    """Samplers of Optuna do not expect trials of other tasks."""
    *earlier_tasks, task = toy_benchmark(conditional_space(), tasks=4).tasks
    history = random_history(earlier_tasks, seed=0)
    method = make_optuna_method(task.space, history=history)
    assert method._study.trials == []


@pytest.fixture
def trials_on_conditional_space():
    """Twenty trials in the study of a method, some with x and some without."""
    method = make_optuna_method(conditional_space())
    for _ in range(20):
        method.tell(method.ask(), 0.0)
    return method._study.trials


def test_trials_have_active_hyperparameters(trials_on_conditional_space):
    """The hyperparameter x is active unless the kind is c."""
    for trial in trials_on_conditional_space:
        is_x_active = trial.params["kind"] != "c"
        assert ("x" in trial.params) == is_x_active


def test_distributions_keep_scales_of_space(trials_on_conditional_space):
    """In the study, as in the space, n is on a logarithmic scale."""
    trial_with_x = next(trial for trial in trials_on_conditional_space if "x" in trial.params)
    assert trial_with_x.distributions == {
        "kind": CategoricalDistribution(("a", "b", "c")),
        "level": IntDistribution(0, 2),  # of an ordinal, its place
        "n": IntDistribution(1, 50, log=True),
        "x": FloatDistribution(0, 1),
    }


def test_suggestions_are_configurations_of_the_space():
    """Reading a suggestion as one of the space, and back, changes nothing."""
    space = conditional_space()
    method = make_optuna_method(space)
    for _ in range(20):
        config = method.ask()
        assert [config] == space.configs(space.values([config]))
        method.tell(config, 0.0)


def test_results_in_any_order_reach_their_trials():
    """Three configurations are suggested, and told by number in the order 2, 0, 1."""
    method = make_optuna_method(numeric_space())
    configs = [method.ask() for _ in range(3)]

    for number in (2, 0, 1):
        method.tell(dict(configs[number]), loss=float(number))

    trials = [(trial.params, trial.value) for trial in method._study.trials]
    assert trials == [(configs[0], 0.0), (configs[1], 1.0), (configs[2], 2.0)]


def test_result_without_a_trial_adds_one():
    """A configuration is told that the method did not suggest."""
    method = make_optuna_method(numeric_space())
    config = {"x": 1.0, "y": 0.1}
    method.tell(config, 7.0)
    (trial,) = method._study.trials
    assert (trial.params, trial.value) == (config, 7.0)


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf])
def test_loss_that_is_not_finite_fails_trial(loss):
    """Optuna has the state FAIL for trials without a usable value."""
    method = make_optuna_method(numeric_space())
    method.tell(method.ask(), loss)
    (trial,) = method._study.trials
    assert trial.state is TrialState.FAIL


@pytest.mark.parametrize(
    ("sampler", "name"),
    [(TPESampler, "optuna.TPESampler"), (tpe_at_once, "optimisers.tpe_at_once")],
)
def test_method_is_named_after_sampler(sampler, name):
    assert as_method_spec(sampler).name == name


def test_same_settings_have_same_method_version():
    first, second = as_method_spec(TPESampler), as_method_spec(TPESampler)
    assert method_version(first) == method_version(second)


def test_specs_of_samplers_can_be_pickled():
    spec = as_method_spec(TPESampler)
    assert pickle.loads(pickle.dumps(spec)) == spec


class Unseeded(GridSampler):
    """A sampler without a seed."""

    def __init__(self) -> None:
        pass


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (TPESampler(seed=0), r"one object .*; pass its class TPESampler, .*partial\(TPESampler"),
        (Unseeded, "Unseeded takes no seed"),
    ],
)
def test_sampler_without_own_seed_is_refused(sampler, message):
    with pytest.raises(ExperimentError, match=message):
        as_method_spec(sampler)


@pytest.fixture
def verbose_optuna(caplog):
    """Let Optuna write everything, and `caplog` get it; and restore the levels of these tests."""
    optuna.logging.set_verbosity(optuna.logging.DEBUG)
    optuna.logging.enable_propagation()
    with caplog.at_level(logging.DEBUG):
        yield
    optuna.logging.disable_propagation()
    optuna.logging.set_verbosity(optuna.logging.WARNING)


def test_method_keeps_optuna_quiet(verbose_optuna, caplog):
    """Optuna writes nothing to the log for a method, and keeps the user's level."""
    method = make_optuna_method(conditional_space(), sampler=tpe_at_once)
    for _ in range(6):
        method.tell(method.ask(), 1.0)

    assert caplog.records == []
    assert optuna.logging.get_verbosity() == optuna.logging.DEBUG
