"""Studies whose sampler is a method: suggestions as by an optimiser, also when resumed."""

import math
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from contextlib import nullcontext
from pathlib import Path

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from tuning_support import METHODS, make_task_and_history, make_tuner, options_of, tune

import hpobench_ordered as hbo
from hpobench_ordered.adapters import OptunaSampler
from hpobench_ordered.adapters._optuna_space import suggest_config
from hpobench_ordered.errors import (
    EvaluationsError,
    ExperimentError,
    HistoryWarning,
    UnknownNameError,
)
from hpobench_ordered.testing.toy import conditional_space, numeric_space

optuna.logging.set_verbosity(optuna.logging.ERROR)


def make_sampler_and_task(method="bo", *, space=None, direction=hbo.Direction.MINIMIZE, **options):
    """Build a sampler for the toy task, with its history where the method uses one."""
    task, history = make_task_and_history(space, direction)
    options = options_of(method, task, history, options)
    return OptunaSampler(method, space=task.space, **options), task


def make_sampler(method="bo", **options):
    sampler, _ = make_sampler_and_task(method, **options)
    return sampler


def make_study_and_task(method="bo", *, storage=None, direction=hbo.Direction.MINIMIZE, **options):
    """Open or create the study "tuning" of the toy task, by default a new one in memory."""
    sampler, task = make_sampler_and_task(method, direction=direction, **options)
    study = optuna.create_study(
        study_name="tuning",
        sampler=sampler,
        storage=storage,
        direction=direction.value,
        load_if_exists=True,
    )
    return study, task


def objective_of(task):
    """Build the objective that suggests a configuration in the task's space and evaluates it."""
    return lambda trial: task.evaluate(suggest_config(trial, task.space))


def configs_of(study, states=None):
    """Read the configurations of a study's trials, by default in all states."""
    constants = {"fixed": "always"}  # of the toy task's space, which studies do not store
    return [trial.params | constants for trial in study.get_trials(states=states)]


def suggest_configs(study, space, count):
    """Ask for trials that stay in flight, and return them and their configurations."""
    trials = [study.ask() for _ in range(count)]
    return trials, [suggest_config(trial, space) for trial in trials]


def count_distinct(configs):
    return len({tuple(sorted(config.items())) for config in configs})


def told_trials(sampler):
    """The trials, in their order, that a sampler told its method."""
    return sampler._replay.optimiser.trials


def continue_with(study, objective, sampler, trials=1):
    """Run further trials with another sampler; return all trials that it told its method."""
    study.sampler = sampler
    study.optimize(objective, n_trials=trials)
    return told_trials(sampler)


@pytest.mark.parametrize(
    "direction",
    [hbo.Direction.MAXIMIZE, pytest.param(hbo.Direction.MINIMIZE, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("method", METHODS)
def test_study_has_the_suggestions_of_the_optimiser(method, direction):
    """A study whose sampler is the method, and an optimiser of the same method and seed."""
    study, task = make_study_and_task(method, direction=direction, seed=5)
    tuner, _ = make_tuner(method, direction=direction, seed=5)

    study.optimize(objective_of(task), n_trials=12)

    assert configs_of(study) == tune(tuner, task, trials=12)
    assert study.best_value == tuner.best.value


def test_default_method_uses_the_history():
    """The optimiser and the sampler, without the name of a method, choose ordered-gp."""
    task, history = make_task_and_history()
    settings = {"space": task.space, "history": history}
    assert hbo.optimiser(direction="minimize", **settings).settings["method"] == "ordered-gp"
    assert OptunaSampler(**settings)._spec.name == "ordered-gp"


def test_suggestions_in_flight_equal_the_optimisers():
    """Three times four trials are in flight; their results come in another order."""
    study, task = make_study_and_task()
    tuner, _ = make_tuner()
    for batch in range(3):
        trials, configs = suggest_configs(study, task.space, count=4)
        assert configs == [tuner.ask() for _ in range(4)], batch

        for number in (3, 0, 2, 1):
            value = task.evaluate(configs[number])
            study.tell(trials[number], value)
            tuner.tell(configs[number], value)


@pytest.fixture
def simultaneous_study_and_task():
    """A study of twelve trials, of which two are in flight at a time."""
    study, task = make_study_and_task()
    both_are_asked = threading.Barrier(2)  # each objective waits for another one

    def objective(trial: optuna.Trial) -> float:
        config = suggest_config(trial, task.space)
        both_are_asked.wait(timeout=60)
        return task.evaluate(config)

    study.optimize(objective, n_trials=12, n_jobs=2)
    return study, task


def test_simultaneous_trials_differ(simultaneous_study_and_task):
    """Of twelve trials two are in flight at a time."""
    study, task = simultaneous_study_and_task
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 12
    assert count_distinct(configs_of(study)) == 12
    assert all(trial.value == task.evaluate(trial.params) for trial in study.trials)


def test_simultaneous_trials_are_resumed(simultaneous_study_and_task):
    """A new sampler goes on with the suggestions that the study's own one would make."""
    study, task = simultaneous_study_and_task
    suggestions_of_new_sampler = suggest_from_copy(study, task, make_sampler())
    assert suggestions_of_new_sampler == suggest_from_copy(study, task, study.sampler)


def suggest_from_copy(study, task, sampler):
    """Return the next three suggestions of a sampler in a copy of a study."""
    copy = optuna.create_study(
        direction=study.direction, study_name=study.study_name, sampler=sampler
    )
    copy.add_trials(study.get_trials(deepcopy=True))
    _, configs = suggest_configs(copy, task.space, count=3)
    return configs


@pytest.mark.parametrize("method", METHODS)
def test_new_sampler_resumes_a_study(method):
    """Nine trials with one sampler, or with four of them one after another."""
    undisturbed, task = make_study_and_task(method)
    undisturbed.optimize(objective_of(task), n_trials=9)

    study, _ = make_study_and_task(method)
    for trials in (1, 4, 2, 2):
        continue_with(study, objective_of(task), make_sampler(method), trials)

    assert configs_of(study) == configs_of(undisturbed)


def test_pickled_study_goes_on():
    """The copy suggests the same as the original, with the state of its sampler."""
    study, task = make_study_and_task()
    study.optimize(objective_of(task), n_trials=5)
    copy = pickle.loads(pickle.dumps(study))

    study.optimize(objective_of(task), n_trials=3)
    copy.optimize(objective_of(task), n_trials=3)

    assert configs_of(copy) == configs_of(study)


class EventfulStudy:
    """A shared study of the toy task, in which a test lets events happen."""

    def __init__(self) -> None:
        self.study, self.task = make_study_and_task(shared=True)
        self.running_trials: list[optuna.Trial] = []

    def ask(self) -> None:
        trial = self.study.ask()
        suggest_config(trial, self.task.space)
        self.running_trials.append(trial)

    def enqueue_all_values(self) -> None:
        self.study.enqueue_trial({"kind": "c", "level": 10, "n": 7})  # "c" has no "x"
        self.ask()

    def enqueue_some_values(self) -> None:
        self.study.enqueue_trial({"kind": "c"})
        self.ask()

    def add_finished_trial(self) -> None:
        params = {"kind": "a", "level": 1, "n": 3, "x": 0.5}
        distributions = {name: CategoricalDistribution([value]) for name, value in params.items()}
        self.study.add_trial(
            optuna.trial.create_trial(params=params, distributions=distributions, value=0.1)
        )

    def finish(self, trial: optuna.Trial) -> None:
        self.study.tell(trial, self.task.evaluate(trial.params))

    def fail(self, trial: optuna.Trial) -> None:
        self.study.tell(trial, state=TrialState.FAIL)

    def prune(self, trial: optuna.Trial) -> None:
        trial.report(0.3, step=1)
        self.study.tell(trial, state=TrialState.PRUNED)


NEW_TRIALS = ["ask", "enqueue_all_values", "enqueue_some_values", "add_finished_trial"]
ENDS_OF_TRIALS = ["finish", "fail", "prune"]
EVENTS = ["ask", "finish", *NEW_TRIALS, *ENDS_OF_TRIALS]
"""Asking and finishing twice, so that they are more frequent than the others."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the objective does not suggest")  # where no trial was finished
@given(events=st.lists(st.sampled_from(EVENTS), max_size=15), data=st.data())
def test_new_sampler_replays_any_events(events, data):
    """After any events in a study, a new sampler is in the state of the old one.

    Its method was told the same trials, and draws the same random numbers.
    """
    eventful = EventfulStudy()
    for event in events:
        running = eventful.running_trials
        if event in NEW_TRIALS:
            getattr(eventful, event)()
        elif running:
            position = data.draw(st.integers(0, len(running) - 1))
            getattr(eventful, event)(running.pop(position))

    old = eventful.study.sampler
    eventful.ask()  # now the old sampler tells its method the added trials, too
    new = make_sampler(shared=True)
    eventful.study.sampler = new
    eventful.ask()
    old._replay.catch_up(eventful.study)  # with what the new sampler asked for

    assert repr(told_trials(old)) == repr(told_trials(new))  # as text: NaN is not equal to itself
    rng_of_old = old._replay.optimiser._method.rng
    rng_of_new = new._replay.optimiser._method.rng
    assert rng_of_old.bit_generator.state == rng_of_new.bit_generator.state


FOLDERS = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]
SCRIPT_UNTIL_NINE_ARE_FINISHED = """
import os, signal, sys
sys.path[:0] = {folders!r}
from test_optuna_tuning import *
study, task = make_study_and_task("simple-ordered", storage={storage!r})
def objective(trial):
    value = objective_of(task)(trial)
    if trial.number == {killed_in_trial}:
        os.kill(os.getpid(), signal.SIGKILL)
    return value
finished = len(study.get_trials(states=[TrialState.COMPLETE]))
study.optimize(objective, n_trials=9 - finished)
"""


def run_script(script: str) -> int:
    """Run a script in a process of its own and return its exit code."""
    return subprocess.run([sys.executable, "-c", script], check=False).returncode


@pytest.mark.slow
def test_killed_processes_go_on(tmp_path):
    undisturbed, task = make_study_and_task("simple-ordered")
    undisturbed.optimize(objective_of(task), n_trials=9)
    storage = f"sqlite:///{tmp_path}/tuning.db"

    # The configuration of a killed trial is evaluated again, by a trial of another number.
    for trial in (0, 4, 9):
        script = SCRIPT_UNTIL_NINE_ARE_FINISHED.format(
            folders=FOLDERS, storage=storage, killed_in_trial=trial
        )
        assert run_script(script) == -signal.SIGKILL
    never = -1
    script = SCRIPT_UNTIL_NINE_ARE_FINISHED.format(
        folders=FOLDERS, storage=storage, killed_in_trial=never
    )
    assert run_script(script) == 0

    study = optuna.load_study(study_name="tuning", storage=storage)
    finished = study.get_trials(states=[TrialState.COMPLETE])
    assert configs_of(study, [TrialState.COMPLETE]) == configs_of(undisturbed)
    assert [trial.value for trial in finished] == [trial.value for trial in undisturbed.trials]
    # Nine trials are finished, three were interrupted.
    assert len(study.trials) == 9 + 3


def test_interrupted_trials_come_first():
    """A new sampler suggests again what was in flight, unless a result came for it after all.

    Of trials 0 to 3 number 1 has a result, and number 3 gets one.
    """
    study, task = make_study_and_task()
    trials, configs = suggest_configs(study, task.space, count=4)
    study.tell(trials[1], 0.5)
    study.sampler = make_sampler()
    study.tell(trials[3], 0.25)

    _, (first, second, third) = suggest_configs(study, task.space, count=3)

    assert [first, second] == [configs[0], configs[2]]
    assert third not in configs


@pytest.fixture
def configs_of_three_workers(tmp_path):
    """The twelve suggestions of three samplers of a shared study.

    In each of four rounds all three suggest before any of them has a result.
    """
    storage = f"sqlite:///{tmp_path}/tuning.db"
    workers = [
        make_study_and_task("simple-ordered", storage=storage, shared=True)[0] for _ in range(3)
    ]
    task, _ = make_task_and_history()
    configs = []
    for _ in range(4):
        trials = [study.ask() for study in workers]
        for trial in trials:
            configs.append(suggest_config(trial, task.space))
        for study, trial in zip(workers, trials, strict=True):
            study.tell(trial, task.evaluate(trial.params))
    return configs


@pytest.mark.slow
def test_shared_study_has_no_duplicates(configs_of_three_workers):
    assert count_distinct(configs_of_three_workers) == len(configs_of_three_workers) == 12


@pytest.mark.slow
def test_shared_study_begins_with_bests(configs_of_three_workers):
    """The method simple-ordered begins with the best of each earlier task, the latest first."""
    _, history = make_task_and_history()
    bests = []
    for evaluations in reversed(history):
        best_row = evaluations.losses.argmin()
        bests += evaluations.space.configs(evaluations.values[[best_row]])
    assert configs_of_three_workers[: len(bests)] == bests


def test_waiting_trials_keep_their_suggestions():
    """A trial that was asked for first gets the first suggestion, though it suggests later."""
    study, task = make_study_and_task(shared=True)
    waiting = study.ask()  # as by a process that has not yet asked for the suggestion
    tuner, _ = make_tuner()
    first, second = tuner.ask(), tuner.ask()
    assert suggest_config(study.ask(), task.space) == second
    assert suggest_config(waiting, task.space) == first


def test_unused_suggestion_comes_next():
    """The suggestion of a trial that failed before it suggested goes to the next trial."""
    study, task = make_study_and_task(shared=True)
    waiting = study.ask()
    tuner, _ = make_tuner()
    first, second = tuner.ask(), tuner.ask()
    assert suggest_config(study.ask(), task.space) == second
    study.tell(waiting, state=TrialState.FAIL)
    assert suggest_config(study.ask(), task.space) == first


SCRIPT_OF_TEN_SLOW_TRIALS = """
import sys, time
sys.path[:0] = {folders!r}
from test_optuna_tuning import *
study, task = make_study_and_task("simple-ordered", storage={storage!r}, shared=True)
def slow(trial):
    value = objective_of(task)(trial)
    time.sleep(0.3)
    return value
study.optimize(slow, n_trials=10)
"""


@pytest.mark.slow
def test_simultaneous_processes_seldom_suggest_duplicates(tmp_path):
    """Two processes that ask at the same moment may not see each other's trial yet.

    Without running trials as pending ones, a quarter of all suggestions were duplicates.
    """
    storage = f"sqlite:///{tmp_path}/tuning.db"
    make_study_and_task("simple-ordered", storage=storage, shared=True)
    script = SCRIPT_OF_TEN_SLOW_TRIALS.format(folders=FOLDERS, storage=storage)
    workers = [subprocess.Popen([sys.executable, "-c", script]) for _ in range(3)]
    assert [worker.wait() for worker in workers] == [0, 0, 0]
    study = optuna.load_study(study_name="tuning", storage=storage)
    suggestions = 3 * 10  # of three processes, ten each
    assert count_distinct(configs_of(study)) >= suggestions - 2


def suggest_conditionally(trial: optuna.Trial) -> float:
    """An objective that has `x` only for the kind a."""
    kind = trial.suggest_categorical("kind", ["a", "b"])
    if kind == "b":
        return 0.5
    return trial.suggest_float("x", 0, 1)


UNCONDITIONAL = {"kind": CategoricalDistribution(["a", "b"]), "x": FloatDistribution(0, 1)}
"""The distributions of `suggest_conditionally`, which Optuna keeps without the condition."""


def test_conditional_trials_are_told_again():
    """A new sampler tells its method the same of trials that have x only for some kinds."""
    study = optuna.create_study(sampler=OptunaSampler("bo", space=UNCONDITIONAL))
    study.optimize(suggest_conditionally, n_trials=12)
    assert {len(trial.params) for trial in study.trials} == {1, 2}  # without x and with it
    told_first = told_trials(study.sampler)

    new_sampler = OptunaSampler("bo", space=UNCONDITIONAL)
    told_again = continue_with(study, suggest_conditionally, new_sampler)

    assert told_again[:12] == told_first


def test_missing_values_are_told_as_defaults():
    """In trials of another sampler, which did not ask for what the objective did not need."""
    other_sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(sampler=other_sampler)
    study.optimize(suggest_conditionally, n_trials=12)

    sampler = OptunaSampler("bo", space=UNCONDITIONAL)
    told = continue_with(study, suggest_conditionally, sampler)[:12]

    default = {"x": 0.5}
    assert [trial.value for trial in told] == [trial.value for trial in study.trials[:12]]
    assert [trial.config for trial in told] == [default | t.params for t in study.trials[:12]]


def test_other_trials_cost_no_suggestion():
    """A new sampler, of another seed, is told all earlier trials, and draws nothing for them.

    These are three trials with the first sampler, and one whose values are given, enqueued.
    """
    study, task = make_study_and_task("bo", seed=1)
    study.optimize(objective_of(task), n_trials=3)
    study.enqueue_trial({"kind": "a", "level": 10, "n": 7, "x": 0.5})
    enqueued, suggested = 1, 2
    new_sampler = make_sampler("bo", seed=2)
    continue_with(study, objective_of(task), new_sampler, trials=enqueued + suggested)

    tuner, _ = make_tuner("bo", seed=2)
    for trial in study.trials[: 3 + enqueued]:
        tuner.tell(trial.params, trial.value)
    assert configs_of(study)[3 + enqueued :] == tune(tuner, task, trials=suggested)


def test_random_parameters_are_the_same_again():
    """Those that the method does not tune, as their range changes, are drawn at random.

    They are the same in six trials with one sampler, and with a new one after every second trial.
    """

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        return x + trial.suggest_float("more", 0, trial.number + 1)

    undisturbed = optuna.create_study(sampler=OptunaSampler("random-search"))
    undisturbed.optimize(objective, n_trials=6)
    resumed = optuna.create_study(sampler=OptunaSampler("random-search"))
    for _ in range(3):
        resumed.optimize(objective, n_trials=2)
        resumed.sampler = OptunaSampler("random-search")

    assert configs_of(resumed) == configs_of(undisturbed)


def monthly_objective(month: int):
    """Build the objective of a month: a rate, whose best value moves, and others that stay."""

    def loss(trial: optuna.Trial) -> float:
        rate = trial.suggest_float("rate", 1e-4, 1, log=True)
        depth = trial.suggest_int("depth", 1, 9, step=2)
        kind = trial.suggest_categorical("kind", ["tree", "line"])
        slope = trial.suggest_float("slope", 0, 1) if kind == "line" else 0.5
        return (math.log10(rate) + 2 + month / 9) ** 2 + (depth - 5) ** 2 / 9 + slope

    return loss


def run_studies_of_three_months():
    """Run random studies of months 0 to 2, 15 trials each."""
    studies = []
    for month in range(3):
        sampler = optuna.samplers.RandomSampler(seed=month)
        study = optuna.create_study(study_name=f"month {month}", sampler=sampler)
        study.optimize(monthly_objective(month), n_trials=15)
        studies.append(study)
    return studies


@pytest.mark.parametrize("method", METHODS)
def test_sampler_from_studies_equals_the_optimiser(method):
    """Methods that do not use a history warn of it; the optimiser then gets none."""
    studies = run_studies_of_three_months()
    history = hbo.history_from_studies(studies)
    uses_history = hbo.adapters.as_method_spec(method).uses_history
    warning = pytest.warns(HistoryWarning, match="does not use the history")
    with nullcontext() if uses_history else warning:
        sampler = OptunaSampler.from_studies(method, studies, seed=2)
    tuner = hbo.optimiser(
        method,
        space=history[-1].space,
        direction="minimize",
        seed=2,
        history=history if uses_history else (),
    )

    study = optuna.create_study(sampler=sampler)
    study.optimize(monthly_objective(3), n_trials=8)

    for trial in study.trials:
        assert trial.params == tuner.ask()
        tuner.tell(trial.params, trial.value)


def test_from_studies_passes_settings_on():
    studies = run_studies_of_three_months()
    options = {
        "space": {"rate": (1e-6, 1, "log"), "more": (0.0, 1)},  # wider, and something new
        "context": {"size": 3.0},
        "contexts": {f"month {month}": {"size": float(month)} for month in range(3)},
        "budget": 7,
    }
    with pytest.warns(HistoryWarning, match="another search space"):
        sampler = OptunaSampler.from_studies("simple-ordered", studies, **options)

    study = optuna.create_study(sampler=sampler)
    study.optimize(suggest_rate_and_more, n_trials=1)

    settings = sampler._replay.optimiser.settings
    (first_trial,) = study.trials
    assert settings["context"] == {"size": 3.0}
    assert settings["budget"] == 7
    assert set(first_trial.params) == {"rate", "more"}


def suggest_rate_and_more(trial: optuna.Trial) -> float:
    return trial.suggest_float("rate", 1e-6, 1) + trial.suggest_float("more", 0, 1)


def test_from_studies_can_drop_invalid_trials():
    """Three studies of 15 trials each, to one of which a trial with an infinite value is added."""
    studies = run_studies_of_three_months()
    distributions = studies[0].trials[0].distributions  # the same in all trials
    invalid_trial = studies[0].ask(distributions)
    studies[0].tell(invalid_trial, math.inf)
    with pytest.warns(HistoryWarning, match="1 of 46 evaluations are left out"):
        OptunaSampler.from_studies("simple-ordered", studies, drop_invalid=True)


def run_two_trials_after_studies(objective) -> list[str]:
    """Optimise with a sampler from studies, and return the warnings about the history."""
    sampler = OptunaSampler.from_studies("simple-ordered", run_studies_of_three_months())
    study = optuna.create_study(sampler=sampler)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        study.optimize(objective, n_trials=2)
    return [str(warning.message) for warning in caught if warning.category is HistoryWarning]


def test_same_ranges_are_not_warned_of():
    assert run_two_trials_after_studies(monthly_objective(3)) == []


def test_other_range_is_warned_of_once():
    def objective(trial: optuna.Trial) -> float:
        trial.suggest_int("depth", 1, 99, step=2)  # up to 9 in the studies
        return monthly_objective(3)(trial)

    (warning,) = run_two_trials_after_studies(objective)
    for part in ("'depth'", "high=99", "space="):
        assert part in warning


@pytest.fixture
def study_after_misspelt_objectives():
    """A study of two trials on the toy task, and of two more that objectives in error ended."""
    study, task = make_study_and_task("simple-ordered")
    study.optimize(objective_of(task), n_trials=2)

    def suggest_unknown_name(trial: optuna.Trial) -> float:
        suggest_config(trial, task.space)
        return trial.suggest_float("xs", 0, 1)

    def suggest_outside_range(trial: optuna.Trial) -> float:
        trial.suggest_categorical("level", [1, 10, 100])
        # In the space `n` is at most 50.
        return trial.suggest_int("n", 60, 70)

    with pytest.raises(UnknownNameError):
        study.optimize(suggest_unknown_name, n_trials=1)
    with pytest.raises(ExperimentError):
        study.optimize(suggest_outside_range, n_trials=1)
    return study, task


@pytest.mark.parametrize("has_new_sampler", [False, True])
def test_misspelt_objective_loses_no_suggestion(study_after_misspelt_objectives, has_new_sampler):
    """The best configuration of the history, which is suggested first, is not lost by a slip."""
    study, task = study_after_misspelt_objectives
    undisturbed, _ = make_study_and_task("simple-ordered")
    undisturbed.optimize(objective_of(task), n_trials=6)

    if has_new_sampler:
        study.sampler = make_sampler("simple-ordered")
    study.optimize(objective_of(task), n_trials=4)

    assert configs_of(study, [TrialState.COMPLETE]) == configs_of(undisturbed)


@pytest.mark.parametrize("has_new_sampler", [False, True])
def test_study_with_errors_is_resumed(study_after_misspelt_objectives, has_new_sampler):
    """A new sampler goes on with the suggestions that the study's own one would make."""
    study, task = study_after_misspelt_objectives
    if has_new_sampler:
        study.sampler = make_sampler("simple-ordered")
    study.optimize(objective_of(task), n_trials=4)

    suggestions = suggest_from_copy(study, task, make_sampler("simple-ordered"))

    assert suggestions == suggest_from_copy(study, task, study.sampler)


@pytest.mark.parametrize(
    ("suggest", "error", "message"),
    [
        (
            lambda trial: trial.suggest_float("rat", 0, 1),
            UnknownNameError,
            "'rat'; did you mean 'rate'",
        ),
        (
            lambda trial: trial.suggest_float("rate", 2, 3),
            ExperimentError,
            r"from Float.*high=3.0, lo",
        ),
        (
            lambda trial: trial.suggest_categorical("n", "ab"),
            ExperimentError,
            "suggests 'n' from Categ",
        ),
    ],
    ids=["name", "range", "type"],
)
def test_objective_outside_the_space_is_an_error(suggest, error, message):
    """It suggests an unknown name, from another range, or of another type."""
    space = {"rate": FloatDistribution(0, 1), "n": IntDistribution(1, 9)}
    study = optuna.create_study(sampler=OptunaSampler("random-search", space=space))
    with pytest.raises(error, match=message):
        study.optimize(suggest, n_trials=1)


def test_study_of_another_direction_is_an_error():
    sampler, task = make_sampler_and_task("simple-ordered", direction=hbo.Direction.MINIMIZE)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    with pytest.raises(EvaluationsError, match="objective is to minimize"):
        study.optimize(objective_of(task), n_trials=1)


def test_infinite_value_is_told_as_failure():
    """Optuna accepts an infinite value; the method is told NaN."""
    study, _ = make_study_and_task(space=numeric_space())

    def objective(trial: optuna.Trial) -> float:
        suggest_config(trial, numeric_space())
        return math.inf

    study.optimize(objective, n_trials=1)
    (trial,) = told_trials(study.sampler)
    assert math.isnan(trial.value)


def test_trial_outside_the_space_is_not_told():
    """The study has two trials from a wider range, one of them within the space's x, -5 to 5."""
    study, task = make_study_and_task(space=numeric_space())
    wider = {"x": FloatDistribution(-90, 90), "y": FloatDistribution(1e-4, 1)}
    for x in (9.0, 1.0):
        trial = optuna.trial.create_trial(params={"x": x, "y": 0.5}, distributions=wider, value=1.0)
        study.add_trial(trial)

    with pytest.warns(HistoryWarning, match="trial 0 is left out: x must be .* got 9.0"):
        study.optimize(objective_of(task), n_trials=1)

    added, _ = told_trials(study.sampler)  # the second one is that of this call
    assert added.config["x"] == 1.0


def test_inactive_or_constant_values_may_be_suggested():
    task, _ = make_task_and_history(conditional_space())

    def suggest_everything(trial: optuna.Trial) -> float:
        config = {
            "kind": trial.suggest_categorical("kind", ["a", "b", "c"]),
            "level": trial.suggest_categorical("level", [1, 10, 100]),
            "n": trial.suggest_int("n", 1, 50, log=True),
            "x": trial.suggest_float("x", 0, 1),  # also where the kind makes it inactive
            "fixed": trial.suggest_categorical("fixed", ["always", "never"]),
        }
        assert config["fixed"] == "always"
        return task.evaluate(config)

    study, _ = make_study_and_task()
    study.optimize(suggest_everything, n_trials=12)

    tuner, _ = make_tuner()
    configs = tune(tuner, task, trials=12)
    assert any("x" not in config for config in configs)
    for trial, config in zip(study.trials, configs, strict=True):
        assert config.items() <= trial.params.items()


SPACE_WITH_STEPS = {
    "step": FloatDistribution(0.0, 1.0, step=0.1),
    "even": IntDistribution(2, 8, step=2),
    "rate": FloatDistribution(1e-3, 1.0, log=True),
}


def run_trials_with_steps(sampler) -> optuna.Study:
    """Run twenty trials with steps, and check that integers have that type."""
    study = optuna.create_study(sampler=sampler)
    for _ in range(20):
        trial = study.ask(SPACE_WITH_STEPS)
        assert isinstance(trial.params["even"], int)
        study.tell(trial, sum(trial.params.values()))
    return study


def test_steps_and_types_are_the_objectives():
    """What a method suggests is on the steps of the objective, or trials would not be told."""
    study = run_trials_with_steps(OptunaSampler("random-search", space=SPACE_WITH_STEPS))
    assert len(told_trials(study.sampler)) == 20


def test_steps_of_another_sampler_are_told():
    """Values on steps, as another sampler drew them, are in the space of this one."""
    study = run_trials_with_steps(optuna.samplers.RandomSampler(seed=0))
    study.sampler = OptunaSampler("random-search", space=SPACE_WITH_STEPS)
    study.ask(SPACE_WITH_STEPS)
    # The earlier trials, and the one in flight.
    assert len(told_trials(study.sampler)) == 20 + 1
