"""Tasks as objectives of other packages: functions, ConfigSpace, Optuna and OptunaHub."""

import pickle
import runpy
import sys
from abc import ABC, abstractmethod
from types import SimpleNamespace

import numpy as np
import optuna
import pytest
from optuna.study import StudyDirection

from hpobench_ordered import Direction
from hpobench_ordered.testing.toy import conditional_space, toy_benchmark
from hpobench_ordered.tuning import (
    OptunaHubProblem,
    configspace_problem,
    objective_function,
    optuna_objective,
    optunahub_problem,
)


@pytest.fixture(params=Direction)
def task(request):
    """A toy task, minimised or maximised; its hyperparameter x is inactive for the kind c."""
    (task,) = toy_benchmark(conditional_space(), tasks=1, direction=request.param).tasks
    return task


def sample_configs(task, n=10):
    rng = np.random.default_rng(0)
    return [task.space.sample(rng) for _ in range(n)]


def test_objective_function_returns_losses(task):
    """The loss is the negative value of an objective that is maximised."""
    function = objective_function(task)
    is_maximised = task.objective.direction is Direction.MAXIMIZE
    for config in sample_configs(task):
        value = task.evaluate(config)
        loss = -value if is_maximised else value
        assert function(config) == loss


def test_objective_function_can_be_pickled(task):
    """The copy, as for another process, returns the same loss."""
    function = objective_function(task)
    (config,) = sample_configs(task, n=1)
    copy = pickle.loads(pickle.dumps(function))
    assert copy(config) == function(config)


def test_configspace_problem_returns_losses(task):
    """The target takes configurations of ConfigSpace, dicts, and a seed that has no effect."""
    space, target = configspace_problem(task)
    space.seed(0)
    for config in space.sample_configuration(10):
        loss = task.objective.loss(task.evaluate(config))
        assert target(config) == loss
        assert target(dict(config), seed=3) == loss


def random_trial(seed):
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed)).ask()


def test_optuna_objective_suggests_active_hyperparameters(task):
    """The hyperparameter x is inactive for the kind c."""
    objective = optuna_objective(task)
    for seed in range(10):
        trial = random_trial(seed)
        loss = objective(trial)
        is_x_active = trial.params["kind"] != "c"
        assert ("x" in trial.params) == is_x_active
        assert loss == task.objective.loss(task.evaluate(trial.params))


def optimise_randomly(task, direction):
    """A study of ten random trials of a task."""
    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(direction=direction, sampler=sampler)
    study.optimize(optuna_objective(task), n_trials=10)
    return study


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_study_of_either_direction_finds_best(task, direction):
    study = optimise_randomly(task, direction)
    losses = [task.objective.loss(task.evaluate(trial.params)) for trial in study.trials]
    assert study.best_trial.number == np.argmin(losses)


def test_study_in_task_direction_has_own_units(task):
    study = optimise_randomly(task, task.objective.direction.value)
    assert study.best_value == task.evaluate(study.best_params)


def test_optuna_objective_gives_fixed_trial_the_loss(task):
    """A fixed trial belongs to no study."""
    config = sample_configs(task, n=1)[0]
    loss = optuna_objective(task)(optuna.trial.FixedTrial(config))
    assert loss == task.objective.loss(task.evaluate(config))


def test_optunahub_problem_has_space_of_task(task):
    assert OptunaHubProblem(task).search_space == task.space.to_optuna()


def test_optunahub_problem_has_task_direction(task):
    """Optuna's directions are those of the task's objective."""
    is_minimised = task.objective.direction is Direction.MINIMIZE
    expected = StudyDirection.MINIMIZE if is_minimised else StudyDirection.MAXIMIZE
    assert OptunaHubProblem(task).directions == [expected]


def test_optunahub_problem_drives_a_study(task):
    """The problem is an objective of a study, which suggests from its search space."""
    problem = OptunaHubProblem(task)
    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(directions=problem.directions, sampler=sampler)

    study.optimize(problem, n_trials=15)

    for trial in study.trials:
        assert trial.value == problem.evaluate(trial.params) == task.evaluate(trial.params)
        for name, distribution in trial.distributions.items():
            assert distribution == problem.search_space[name]


def test_optunahub_problem_ignores_inactive_values(task):
    """Optuna's spaces have no conditions, so that trials have inactive hyperparameters, too."""
    problem = OptunaHubProblem(task)
    for seed in range(10):
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
        params = study.ask(problem.search_space).params
        assert set(params) == set(task.space.names)
        active_params = dict(params)
        if params["kind"] == "c":  # for which x is inactive
            del active_params["x"]
        assert problem.evaluate(params) == task.evaluate(active_params)


class BaseProblem(ABC):
    """The parts of OptunaHub's base class that a problem must override."""

    @property
    @abstractmethod
    def directions(self): ...


def test_optunahub_problem_is_one_of_optunahub(task, monkeypatch):
    """If OptunaHub can be imported, the class is derived from its base class."""
    optunahub = SimpleNamespace(BaseProblem=BaseProblem)
    monkeypatch.setitem(sys.modules, "optunahub", SimpleNamespace(benchmarks=optunahub))
    monkeypatch.setitem(sys.modules, "optunahub.benchmarks", optunahub)
    module = runpy.run_path(optunahub_problem.__file__)
    problem = module["OptunaHubProblem"](task)
    assert isinstance(problem, BaseProblem)


def test_optunahub_problem_has_no_constraints(task):
    (config,) = sample_configs(task, n=1)
    assert OptunaHubProblem(task).evaluate_constraints(config) == {}
