"""Methods as Optuna's samplers, on studies of one process."""

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import InMemoryStorage

from hpobench_ordered import Method
from hpobench_ordered._typing import Config
from hpobench_ordered.errors import ExperimentError, InvalidSpaceError
from hpobench_ordered.space.optuna_space import convert_distributions
from hpobench_ordered.testing.toy import (
    conditional_space,
    numeric_space,
    toy_benchmark,
)
from hpobench_ordered.tuning import OptunaSampler, optuna_objective

optuna.logging.set_verbosity(optuna.logging.WARNING)


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


def test_method_starts_anew_for_another_study(told_results):
    """The second study has the name and the id of the first one, but another storage."""
    objective = optuna_objective(make_toy_task(numeric_space()))
    sampler = OptunaSampler(RecordingMethod, space=numeric_space())
    same_name = {"study_name": "churn", "sampler": sampler}
    first = optuna.create_study(storage=InMemoryStorage(), **same_name)
    first.optimize(objective, n_trials=3)
    told_results.clear()

    second = optuna.create_study(storage=InMemoryStorage(), direction="maximize", **same_name)
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
    return convert_distributions({"x": distribution, "other": FloatDistribution(0, 1)})


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
        convert_distributions({"x": IntDistribution(3, 3)})
