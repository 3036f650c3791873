"""Optuna's samplers as methods, and methods as Optuna's samplers."""

import logging
import math
import pickle
from dataclasses import replace

import numpy as np
import optuna
import pytest
from optimisers import tpe_at_once
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import GridSampler, RandomSampler, TPESampler
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState

from hpobench_ordered import Method, SearchSpace
from hpobench_ordered._typing import Config
from hpobench_ordered.errors import ExperimentError, InvalidSpaceError, MethodError
from hpobench_ordered.experiment.user_methods.identity import method_version
from hpobench_ordered.testing import check_method
from hpobench_ordered.testing.toy import (
    conditional_space,
    numeric_space,
    random_history,
    toy_benchmark,
)
from hpobench_ordered.tuning import OptunaSampler, as_method_spec, optuna_method, optuna_objective
from hpobench_ordered.tuning._optuna_space import space_of
from hpobench_ordered.tuning.optuna import OptunaMethod

optuna.logging.set_verbosity(optuna.logging.WARNING)


def make_optuna_method(space: SearchSpace, *, sampler=RandomSampler, history=(), replay=False):
    """Make a method of a sampler; with `replay`, its study begins with the trials of the history.

    The study is `method._study`.
    """
    rng = np.random.default_rng(0)
    method = optuna_method(sampler, history=replay).method(
        space=space, rng=rng, history=history, context={}, budget=9
    )
    assert isinstance(method, OptunaMethod)
    return method


class RecordingMethod(Method):
    """Draws at random, and records the configurations and losses that it is told."""

    # On the class, as a sampler creates its method out of reach; `told_results` empties it.
    log: list[tuple[Config, float]] = []  # noqa: RUF012

    def ask(self) -> Config:
        return self.space.sample(self.rng)

    def tell(self, config: Config, loss: float) -> None:
        self.log.append((config, loss))


@pytest.fixture
def told_results():
    """The list in which `RecordingMethod` records each configuration and loss; empty at first."""
    RecordingMethod.log.clear()
    return RecordingMethod.log


def make_toy_task(space):
    return toy_benchmark(space, tasks=1).tasks[0]


@pytest.mark.parametrize(
    "spec",
    [
        as_method_spec(lambda seed: RandomSampler(seed=seed), name="random"),
        pytest.param(optuna_method(TPESampler), marks=pytest.mark.slow),
        pytest.param(optuna_method(tpe_at_once, history=True), marks=pytest.mark.slow),
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


def test_history_is_added_to_the_study():
    """The study has a trial for each evaluation of the three earlier tasks."""
    *earlier_tasks, task = toy_benchmark(conditional_space(), tasks=4).tasks
    history = random_history(earlier_tasks, seed=0)
    configs, losses = [], []
    for evaluations in history:
        configs += task.space.configs(evaluations.values)
        losses += evaluations.losses.tolist()

    trials = make_optuna_method(task.space, history=history, replay=True)._study.trials

    assert [trial.value for trial in trials] == losses
    # Trials have no constants, and of an ordinal, the level, its place among the choices.
    levels = (1, 10, 100)
    for trial, config in zip(trials, configs, strict=True):
        level = levels[trial.params["level"]]
        assert trial.params | {"level": level, "fixed": "always"} == config


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
    assert optuna_method(sampler).name == name


def test_sampler_class_is_recognised_as_method():
    assert as_method_spec(TPESampler) == optuna_method(TPESampler)


def test_method_version_depends_on_settings():
    """Replaying the history, allowing changed spaces, and the sampler: each changes the version."""
    plain = optuna_method(TPESampler)
    with_history = optuna_method(TPESampler, history=True)
    for_changed_spaces = replace(with_history, changed_spaces=True)
    of_other_sampler = optuna_method(RandomSampler)

    specs = [plain, with_history, for_changed_spaces, of_other_sampler]
    different_versions = {method_version(spec) for spec in specs}

    assert len(different_versions) == len(specs)


def test_same_settings_have_same_method_version():
    first, second = optuna_method(TPESampler), optuna_method(TPESampler)
    assert method_version(first) == method_version(second)


def test_specs_of_samplers_can_be_pickled():
    spec = optuna_method(TPESampler)
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_samplers_need_an_unchanged_space():
    assert not optuna_method(TPESampler, history=True).changed_spaces


class Unseeded(GridSampler):
    """A sampler without a seed."""

    def __init__(self) -> None:
        pass


@pytest.mark.parametrize(
    ("make", "sampler", "message"),
    [
        (as_method_spec, TPESampler(seed=0), "one object .*; pass its class TPESampler, .*seed:"),
        (optuna_method, TPESampler(seed=0), "a sampler class or a function of a seed, but got"),
        (as_method_spec, Unseeded, "Unseeded takes no seed"),
        (optuna_method, 3, "got 3"),
    ],
)
def test_other_objects_than_samplers_are_refused(make, sampler, message):
    with pytest.raises(ExperimentError, match=message):
        make(sampler)


def test_function_must_return_a_sampler():
    """A sampler may be a function of a seed; this one returns a number."""

    def return_number(seed: int) -> int:
        return 3

    with pytest.raises(MethodError, match="but returned 3"):
        make_optuna_method(numeric_space(), sampler=return_number)


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


@pytest.mark.parametrize("form", ["ours", "configspace", "distributions"])
def test_a_space_is_given_in_any_form(form, told_results):
    """The space is one of this package, one of ConfigSpace, or distributions of Optuna.

    The method is told the parameters of all trials, so that it can be on the same space.
    """
    space = numeric_space()
    space_of_form = {
        "ours": space,
        "configspace": space.to_configspace(),
        "distributions": {
            "x": FloatDistribution(-5, 5),
            "y": FloatDistribution(1e-4, 1, log=True),
        },
    }
    study = optuna.create_study(sampler=OptunaSampler(RecordingMethod, space=space_of_form[form]))

    study.optimize(optuna_objective(make_toy_task(space)), n_trials=5)

    assert told_results == [(trial.params, trial.value) for trial in study.trials]


def test_method_is_told_conditional_trials(told_results):
    """The method is told what trials suggested, with the constants, and their losses."""
    task = make_toy_task(conditional_space())
    study = optuna.create_study(sampler=OptunaSampler(RecordingMethod, space=task.space))

    study.optimize(optuna_objective(task), n_trials=20)

    sets_of_active = {frozenset(trial.params) for trial in study.trials}
    assert len(sets_of_active) > 1  # so that the conditions of the space had an effect
    expected = [(trial.params | task.space.constants, trial.value) for trial in study.trials]
    assert told_results == expected
    for trial in study.trials:
        assert trial.value == task.objective.loss(task.evaluate(trial.params))


def test_space_defaults_to_first_trial(told_results):
    """The space is what the first trial suggests, though that trial fails.

    The hyperparameter `always` is not tuned, as it has a single value.
    """

    def suggest_and_fail_in_first_trial(trial: optuna.Trial) -> float:
        """Suggest two hyperparameters and one with a single value, 3; the first trial fails."""
        x = trial.suggest_float("x", 0, 1)
        trial.suggest_categorical("kind", ["a", "b"])
        trial.suggest_int("always", 3, 3)
        if trial.number == 0:
            raise ValueError
        return x

    study = optuna.create_study(sampler=OptunaSampler(RecordingMethod))
    study.optimize(suggest_and_fail_in_first_trial, n_trials=5, catch=(ValueError,))

    tuned_names = [set(config) for config, _ in told_results]
    assert tuned_names == [{"x", "kind"}] * 5
    losses_told = [loss for _, loss in told_results]
    _, *finished_trials = study.trials
    expected_losses = [math.inf, *(trial.value for trial in finished_trials)]
    np.testing.assert_array_equal(losses_told, expected_losses)


def test_failed_and_pruned_trials_are_told(told_results):
    """A failed trial has the loss NaN, a pruned one that of its last report.

    The study is maximised, so that losses are negative values.
    """

    def fail_then_prune_then_finish(trial: optuna.Trial) -> float:
        """Trial 0 fails, trial 1 is pruned after it reported the value 5, and others finish."""
        trial.suggest_float("x", 0, 1)
        if trial.number == 0:
            return math.nan  # which Optuna takes for a failure
        if trial.number == 1:
            trial.report(5.0, step=0)
            raise optuna.TrialPruned
        return 1.0

    sampler = OptunaSampler(RecordingMethod, space={"x": FloatDistribution(0, 1)})
    study = optuna.create_study(sampler=sampler, direction="maximize")
    study.optimize(fail_then_prune_then_finish, n_trials=3)

    losses = [loss for _, loss in told_results]
    np.testing.assert_array_equal(losses, [math.inf, -5.0, -1.0])


@pytest.fixture(params=[InMemoryStorage, "sqlite:///:memory:".format], ids=["memory", "sqlite"])
def make_storage(request):
    """A function that makes an empty storage."""
    return request.param


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_method_starts_anew_for_another_study(direction, make_storage, told_results):
    """The second study has the name and the id of the first one, but another storage."""
    objective = optuna_objective(make_toy_task(numeric_space()))
    sampler = OptunaSampler(RecordingMethod, space=numeric_space())
    same_name = {"study_name": "churn", "sampler": sampler}
    first = optuna.create_study(storage=make_storage(), **same_name)
    first.optimize(objective, n_trials=3)
    told_results.clear()

    second = optuna.create_study(storage=make_storage(), direction=direction, **same_name)
    second.optimize(objective, n_trials=3)

    assert [config for config, _ in told_results] == [trial.params for trial in second.trials]
    assert [trial.params for trial in second.trials] == [trial.params for trial in first.trials]


def test_space_is_inferred_for_each_study(told_results):
    """The second study tunes another hyperparameter than the first one."""
    sampler = OptunaSampler(RecordingMethod)
    optuna.create_study(sampler=sampler).optimize(lambda t: t.suggest_float("x", 0, 1), n_trials=3)

    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda t: t.suggest_float("y", 5, 6), n_trials=3)

    last_config, _ = told_results[-1]
    assert last_config == study.trials[-1].params


def test_sampler_refuses_several_objectives():
    """The study has two objectives, a method one loss."""
    sampler = OptunaSampler(RecordingMethod, space=numeric_space())
    study = optuna.create_study(directions=["minimize"] * 2, sampler=sampler)
    with pytest.raises(ExperimentError, match="one objective"):
        study.ask().suggest_float("x", -5, 5)


def space_with_x(distribution):
    """Make a space of this distribution, `x`, and of another one."""
    return space_of({"x": distribution, "other": FloatDistribution(0, 1)})


@pytest.mark.parametrize(
    ("distribution", "choices"),
    [
        (FloatDistribution(0.0, 1.0, step=0.25), (0.0, 0.25, 0.5, 0.75, 1.0)),
        (IntDistribution(2, 8, step=2), (2, 4, 6, 8)),
        (CategoricalDistribution(["a", True, 1]), ("a", True, 1)),
    ],
)
def test_steps_and_categories_become_choices(distribution, choices):
    assert space_with_x(distribution)["x"].choices == choices


def test_range_of_integers_keeps_log_scale():
    parameter = space_with_x(IntDistribution(1, 64, log=True))["x"]
    assert (parameter.lower, parameter.upper, parameter.log) == (1, 64, True)


def test_single_value_becomes_a_constant():
    assert space_with_x(IntDistribution(3, 3)).constants == {"x": 3}


def test_space_of_constants_is_refused():
    with pytest.raises(InvalidSpaceError, match="at least one tunable"):
        space_of({"x": IntDistribution(3, 3)})
