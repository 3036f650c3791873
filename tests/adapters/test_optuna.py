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
from optuna.trial import TrialState

from hpobench_ordered import Method, SearchSpace
from hpobench_ordered._typing import Config
from hpobench_ordered.adapters import OptunaSampler, as_method_spec, optuna_method, optuna_objective
from hpobench_ordered.adapters._optuna_space import space_of
from hpobench_ordered.adapters.optuna import OptunaMethod
from hpobench_ordered.errors import ExperimentError, InvalidSpaceError, MethodError
from hpobench_ordered.testing import check_method
from hpobench_ordered.testing.toy import (
    conditional_space,
    numeric_space,
    random_history,
    toy_benchmark,
)
from hpobench_ordered.user_methods.identity import method_version

optuna.logging.set_verbosity(optuna.logging.WARNING)


def made(space: SearchSpace, *, sampler=RandomSampler, history=(), replay=False):
    rng = np.random.default_rng(0)
    method = optuna_method(sampler, history=replay).method(
        space=space, rng=rng, history=history, context={}, budget=9
    )
    assert isinstance(method, OptunaMethod)
    return method


class Told(Method):
    """Remembers what every one of its kind was told."""

    log: list[tuple[Config, float]] = []  # noqa: RUF012  emptied by those who look

    def ask(self) -> Config:
        return self.space.sample(self.rng)

    def tell(self, config: Config, loss: float) -> None:
        self.log.append((config, loss))


@pytest.fixture
def told():
    Told.log.clear()
    return Told.log


def task_of(space):
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
def test_samplers_hold_to_the_contract(spec):
    check_method(spec)


@pytest.mark.parametrize("loss", [math.nan, math.inf, 1e300, 0.0])
def test_tpe_survives_losses_that_tell_nothing(loss):
    method = made(conditional_space(), sampler=tpe_at_once)
    for turn in range(10):
        config = method.ask()
        method.space.validate(config)
        method.tell(config, 1.0 if turn % 4 == 3 else loss)


def test_a_history_is_learnt_from_if_asked_for():
    *before, task = toy_benchmark(conditional_space(), tasks=4).tasks
    history = random_history(before, seed=0)
    spaces = made(task.space, history=history, replay=True)._study.trials
    assert [t.value for t in spaces] == [x for e in history for x in e.losses.tolist()]
    configs = [c for e in history for c in task.space.configs(e.values)]
    for trial, config in zip(spaces, configs, strict=True):
        native = trial.params | {"level": (1, 10, 100)[trial.params["level"]]}
        assert native == {k: v for k, v in config.items() if k != "fixed"}
    assert made(task.space, history=history)._study.trials == []


def test_only_active_hyperparameters_are_suggested_on_their_scales():
    space = conditional_space()
    method = made(space)
    for _ in range(20):
        config = method.ask()
        assert config == space.configs(space.values([config]))[0]
        method.tell(config, 0.0)
    trials = method._study.trials
    assert all(("x" in t.params) == (t.params["kind"] != "c") for t in trials)
    assert max((t.distributions for t in trials), key=len) == {
        "kind": CategoricalDistribution(("a", "b", "c")),
        "level": IntDistribution(0, 2),  # of an ordinal, its place
        "n": IntDistribution(1, 50, log=True),
        "x": FloatDistribution(0, 1),
    }


def test_results_in_any_order_reach_their_trials():
    method = made(numeric_space())
    asked = [method.ask() for _ in range(3)]
    for i in (2, 0, 1):
        method.tell(dict(asked[i]), float(i))
    method.tell({"x": 1.0, "y": 0.1}, 7.0)  # nobody asked for it
    studied = [(t.params, t.value) for t in method._study.trials]
    assert studied == [*zip(asked, [0.0, 1.0, 2.0], strict=True), ({"x": 1.0, "y": 0.1}, 7.0)]
    for loss in (math.nan, math.inf, -math.inf):
        method.tell(method.ask(), loss)
    states = [trial.state for trial in method._study.trials]
    assert states == [TrialState.COMPLETE] * 4 + [TrialState.FAIL] * 3


def test_names_and_identity():
    spec = as_method_spec(TPESampler)
    assert spec == optuna_method(TPESampler)
    assert spec.name == "optuna.TPESampler"
    assert optuna_method(tpe_at_once).name == "optimisers.tpe_at_once"
    versions = {
        method_version(optuna_method(TPESampler)),
        method_version(replace(optuna_method(TPESampler, history=True), changed_spaces=True)),
        method_version(optuna_method(RandomSampler)),
    }
    assert len(versions) == 3
    assert method_version(optuna_method(TPESampler)) in versions
    assert pickle.loads(pickle.dumps(spec)) == spec
    assert not optuna_method(TPESampler, history=True).changed_spaces


def test_what_is_no_sampler_is_refused():
    unseeded = type("Unseeded", (GridSampler,), {"__init__": lambda self: None})
    for make, given, said in (
        (as_method_spec, TPESampler(seed=0), "one object .*; pass its class TPESampler, .*seed:"),
        (optuna_method, TPESampler(seed=0), "a sampler class or a function of a seed, but got"),
        (as_method_spec, unseeded, "Unseeded takes no seed"),
        (optuna_method, 3, "got 3"),
    ):
        with pytest.raises(ExperimentError, match=said):
            make(given)

    def no_sampler(seed: int) -> int:
        return 3

    with pytest.raises(MethodError, match="but returned 3"):
        made(numeric_space(), sampler=no_sampler)


def test_optuna_reports_nothing_and_keeps_its_verbosity(caplog):
    optuna.logging.set_verbosity(optuna.logging.DEBUG)
    optuna.logging.enable_propagation()
    try:
        with caplog.at_level(logging.DEBUG):
            method = made(conditional_space(), sampler=tpe_at_once)
            for _ in range(6):
                method.tell(method.ask(), 1.0)
        assert optuna.logging.get_verbosity() == optuna.logging.DEBUG
    finally:
        optuna.logging.disable_propagation()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
    assert caplog.records == []


@pytest.mark.parametrize("form", ["ours", "configspace", "distributions"])
def test_a_space_is_given_in_any_form(form, told):
    distributions = {"x": FloatDistribution(-5, 5), "y": FloatDistribution(1e-4, 1, log=True)}
    ours = numeric_space()
    space = {"ours": ours, "configspace": ours.to_configspace(), "distributions": distributions}
    study = optuna.create_study(sampler=OptunaSampler(Told, space=space[form]))
    study.optimize(optuna_objective(task_of(ours)), n_trials=5)
    assert [(t.params, t.value) for t in study.trials] == told


def test_conditional_spaces_go_out_and_come_back(told):
    task = task_of(conditional_space())
    study = optuna.create_study(sampler=OptunaSampler(Told, space=task.space))
    study.optimize(optuna_objective(task), n_trials=20)
    assert len({frozenset(t.params) for t in study.trials}) > 1  # conditions came into play
    for trial, (config, loss) in zip(study.trials, told, strict=True):
        assert config == trial.params | task.space.constants
        assert loss == trial.value == task.objective.loss(task.evaluate(trial.params))


def test_without_a_space_it_is_that_of_the_first_complete_trial(told):
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        trial.suggest_categorical("kind", ["a", "b"])
        trial.suggest_int("always", 3, 3)
        if trial.number == 0:
            raise ValueError
        return x

    study = optuna.create_study(sampler=OptunaSampler(Told))
    study.optimize(objective, n_trials=5, catch=(ValueError,))
    assert [set(config) for config, _ in told] == [{"x", "kind"}] * 5
    losses = [math.nan if t.value is None else t.value for t in study.trials]
    np.testing.assert_array_equal([loss for _, loss in told], losses)


def test_failed_and_pruned_trials_are_told(told):
    def objective(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0, 1)
        if trial.number == 1:
            trial.report(5.0, step=0)
            raise optuna.TrialPruned
        return math.nan if trial.number == 0 else 1.0

    sampler = OptunaSampler(Told, space={"x": FloatDistribution(0, 1)})
    study = optuna.create_study(sampler=sampler, direction="maximize")
    study.optimize(objective, n_trials=3)
    np.testing.assert_array_equal([loss for _, loss in told], [math.nan, -5.0, -1.0])


def test_a_sampler_refuses_what_it_cannot_do():
    space = numeric_space()
    objective = optuna_objective(task_of(space))
    sampler = OptunaSampler(Told, space=space)
    optuna.create_study(sampler=sampler).optimize(objective, n_trials=1)
    with pytest.raises(ExperimentError, match="one study"):
        optuna.create_study(sampler=sampler).optimize(objective, n_trials=1)
    two = optuna.create_study(directions=["minimize"] * 2, sampler=OptunaSampler(Told, space=space))
    with pytest.raises(ExperimentError, match="one objective"):
        two.ask().suggest_float("x", -5, 5)


def test_distributions_make_a_space():
    space = space_of(
        {
            "step": FloatDistribution(0.0, 1.0, step=0.25),
            "even": IntDistribution(2, 8, step=2),
            "n": IntDistribution(1, 64, log=True),
            "one": IntDistribution(3, 3),
            "kind": CategoricalDistribution(["a", True, 1]),
        }
    )
    assert space["step"].choices == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert space["even"].choices == (2, 4, 6, 8)
    assert (space["n"].lower, space["n"].upper, space["n"].log) == (1, 64, True)
    assert space.constants == {"one": 3}
    assert space["kind"].choices == ("a", True, 1)
    with pytest.raises(InvalidSpaceError, match="at least one tunable"):
        space_of({"one": IntDistribution(3, 3)})
