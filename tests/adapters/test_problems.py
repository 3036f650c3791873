"""Tasks as objectives of other packages."""

import inspect
import pickle

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import StudyDirection

from hpobench_ordered import Direction
from hpobench_ordered.adapters import (
    OptunaHubProblem,
    configspace_problem,
    objective_function,
    optuna_objective,
)
from hpobench_ordered.errors import InvalidConfigError
from hpobench_ordered.testing.toy import conditional_space, toy_benchmark


@pytest.fixture(params=Direction)
def task(request):
    return toy_benchmark(conditional_space(), tasks=1, direction=request.param).tasks[0]


def test_plain_functions_and_configspace_problems_give_losses(task):
    loss = objective_function(task)
    for config in (task.space.sample(np.random.default_rng(seed)) for seed in range(5)):
        assert loss(config) == task.objective.direction.sign * task.evaluate(config)
    assert pickle.loads(pickle.dumps(loss))(config) == loss(config)
    space, target = configspace_problem(task)
    space.seed(0)
    for config in space.sample_configuration(10):
        assert target(config) == target(dict(config), seed=3) == objective_function(task)(config)
    assert list(inspect.signature(target).parameters) == ["config", "seed"]


def test_an_optuna_objective_suggests_what_is_active(task):
    seen = set()
    for seed in range(10):
        trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed)).ask()
        assert optuna_objective(task)(trial) == task.objective.loss(task.evaluate(trial.params))
        assert ("x" in trial.params) == (trial.params["kind"] != "c")
        seen.add(trial.params["level"])
    assert seen == {1, 10, 100}
    assert OptunaHubProblem(task).search_space == {
        "kind": CategoricalDistribution(("a", "b", "c")),
        "level": CategoricalDistribution((1, 10, 100)),
        "n": IntDistribution(1, 50, log=True),
        "x": FloatDistribution(0, 1),
    }


def test_the_problem_has_the_attributes_of_optunahub(task):
    problem = OptunaHubProblem(task)
    is_minimised = task.objective.direction is Direction.MINIMIZE
    expected = StudyDirection.MINIMIZE if is_minimised else StudyDirection.MAXIMIZE
    assert problem.directions == [expected]
    assert list(problem.search_space) == list(task.space.names)
    study = optuna.create_study(
        directions=problem.directions, sampler=optuna.samplers.RandomSampler(seed=0)
    )
    study.optimize(problem, n_trials=15)
    for trial in study.trials:
        assert trial.value == problem.evaluate(trial.params) == task.evaluate(trial.params)
        for name, distribution in trial.distributions.items():
            assert distribution == problem.search_space[name]
    every = study.ask(problem.search_space).params  # as for a space without conditions
    assert set(every) == set(task.space.names)
    active = task.space.configs(task.space.values([every]))[0]
    assert problem.evaluate(every) == task.evaluate(active)
    with pytest.raises(InvalidConfigError):
        problem.evaluate({})
