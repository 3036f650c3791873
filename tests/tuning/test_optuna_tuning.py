"""Studies whose sampler is a method: suggestions as by an optimiser, also when resumed."""

import math
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import optuna
import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from tuning_support import METHODS, make_task_and_history, make_tuner, options_of, tune

import hpobench_ordered as hbo
from hpobench_ordered.errors import (
    ExperimentError,
    HistoryWarning,
    UnknownNameError,
)
from hpobench_ordered.space.optuna_space import suggest_config
from hpobench_ordered.testing.toy import conditional_space, numeric_space
from hpobench_ordered.tuning import OptunaSampler

optuna.logging.set_verbosity(optuna.logging.ERROR)


def make_sampler_and_task(method="bo", *, space=None, direction=hbo.Direction.MINIMIZE, **options):
    """Build a sampler for the toy task, with its history where the method uses one."""
    task, history = make_task_and_history(space, direction)
    options_with_defaults = options_of(method, task, history, options)
    return OptunaSampler(method, space=task.space, **options_with_defaults), task


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


@pytest.mark.parametrize("method", METHODS)
def test_study_has_the_suggestions_of_the_optimiser(method):
    """A study whose sampler is the method, and an optimiser of the same method and seed."""
    direction = hbo.Direction.MAXIMIZE
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
    """A study and an optimiser suggest the same, though four trials at a time are in flight.

    Three times four trials are suggested; the results of each four come in another order, as they
    do where trials differ in length.
    """
    study, task = make_study_and_task()
    tuner, _ = make_tuner()
    for _ in range(3):
        trials, configs = suggest_configs(study, task.space, count=4)
        assert configs == [tuner.ask() for _ in range(4)]

        for number in (3, 0, 2, 1):
            value = task.evaluate(configs[number])
            study.tell(trials[number], value)
            tuner.tell(configs[number], value)


@pytest.fixture
def simultaneous_study_and_task():
    """A study of twelve trials, of which two are in flight at a time."""
    study, task = make_study_and_task()
    both_are_asked = threading.Barrier(2)  # each objective waits for another one

    def suggest_and_wait_for_other(trial: optuna.Trial) -> float:
        """Wait, after the suggestion, until another trial has its own: two are in flight."""
        config = suggest_config(trial, task.space)
        both_are_asked.wait(timeout=60)
        return task.evaluate(config)

    study.optimize(suggest_and_wait_for_other, n_trials=12, n_jobs=2)
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


class EventfulStudy:
    """A shared study of the toy task, in which a test lets events happen."""

    def __init__(self) -> None:
        self.study, self.task = make_study_and_task(shared=True)
        self.running_trials: list[optuna.Trial] = []

    def ask(self) -> None:
        """Begin a trial with a suggestion of the sampler; it stays in flight."""
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
        """Add a trial that was run elsewhere, and that no sampler of this study suggested."""
        params = {"kind": "a", "level": 1, "n": 3, "x": 0.5}
        # Optuna asks for distributions that contain the values; their ranges do not matter.
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
"""Methods of `EventfulStudy`: asking and finishing twice, so that they are more frequent."""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the objective does not suggest")  # where no trial was finished
@given(events=st.lists(st.sampled_from(EVENTS), max_size=15), data=st.data())
def test_new_sampler_replays_any_events(events, data):
    """After any events in a study, a new sampler is in the state of the old one.

    Its method was told the same trials, and draws the same random numbers. Events are methods of
    `EventfulStudy`, of which those in `NEW_TRIALS` begin trials, and the others end one.
    """
    eventful = EventfulStudy()
    for event in events:
        running_trials = eventful.running_trials
        if event in NEW_TRIALS:
            begin_trial = getattr(eventful, event)
            begin_trial()
        elif running_trials:
            end_trial = getattr(eventful, event)
            place = data.draw(st.integers(0, len(running_trials) - 1))
            end_trial(running_trials.pop(place))

    # A sampler tells its method what has happened since when it is asked for a suggestion.
    old_sampler = eventful.study.sampler
    eventful.ask()
    new_sampler = make_sampler(shared=True)
    eventful.study.sampler = new_sampler
    eventful.ask()
    # The old sampler was not asked again: it lacks the last suggestion, of the new one.
    old_sampler._replay.catch_up(eventful.study)

    # As text, for NaN is not equal to itself.
    assert repr(told_trials(old_sampler)) == repr(told_trials(new_sampler))
    rng_of_old = old_sampler._replay.optimiser._method.rng
    rng_of_new = new_sampler._replay.optimiser._method.rng
    assert rng_of_old.bit_generator.state == rng_of_new.bit_generator.state


FOLDERS = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "support")]
SCRIPT_KILLED_IN_FIFTH_TRIAL = f"""
import os, signal, sys
sys.path[:0] = {FOLDERS!r}
from test_optuna_tuning import *
study, task = make_study_and_task("simple-ordered", storage=sys.argv[1])
def objective(trial):
    value = objective_of(task)(trial)
    if trial.number == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    return value
study.optimize(objective, n_trials=9)
"""


@pytest.mark.slow
def test_study_of_killed_process_goes_on(tmp_path):
    """A study has the trials of an undisturbed one, though its first process was killed.

    The configuration of the interrupted trial is evaluated again, by a trial of another number.
    """
    undisturbed, task = make_study_and_task("simple-ordered")
    undisturbed.optimize(objective_of(task), n_trials=9)

    storage = f"sqlite:///{tmp_path}/tuning.db"
    command = [sys.executable, "-c", SCRIPT_KILLED_IN_FIFTH_TRIAL, storage]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL

    study, _ = make_study_and_task("simple-ordered", storage=storage)
    study.optimize(objective_of(task), n_trials=5)

    finished = study.get_trials(states=[TrialState.COMPLETE])
    assert configs_of(study, [TrialState.COMPLETE]) == configs_of(undisturbed)
    assert [trial.value for trial in finished] == [trial.value for trial in undisturbed.trials]
    n_interrupted = 1
    assert len(study.trials) == len(finished) + n_interrupted


def test_interrupted_trials_come_first():
    """A new sampler suggests again what was in flight, unless a result came for it after all.

    Of trials 0 to 3, trial 1 has a result before the sampler is replaced, and trial 3 gets one
    afterwards.
    """
    study, task = make_study_and_task()
    trials, configs = suggest_configs(study, task.space, count=4)
    study.tell(trials[1], 0.5)
    study.sampler = make_sampler()
    study.tell(trials[3], 0.25)

    _, configs_of_new_sampler = suggest_configs(study, task.space, count=3)

    first, second, third = configs_of_new_sampler
    assert [first, second] == [configs[0], configs[2]]  # those in flight
    assert third not in configs


@pytest.fixture
def configs_of_three_workers(tmp_path):
    """The twelve suggestions of three samplers, the workers, of one study.

    In each of four rounds all three suggest before any of them has a result. With `shared=True`, a
    worker takes the trials of others for running ones, not for interrupted ones.
    """
    storage = f"sqlite:///{tmp_path}/tuning.db"
    studies_of_workers = []
    for _ in range(3):
        study, task = make_study_and_task("simple-ordered", storage=storage, shared=True)
        studies_of_workers.append(study)

    configs = []
    for _ in range(4):
        trials = [study.ask() for study in studies_of_workers]
        configs += [suggest_config(trial, task.space) for trial in trials]
        for study, trial in zip(studies_of_workers, trials, strict=True):
            study.tell(trial, task.evaluate(trial.params))
    return configs


@pytest.mark.slow
def test_shared_study_is_tuned_together(configs_of_three_workers):
    """It begins with the best of each earlier task, the latest first, and repeats nothing."""
    _, history = make_task_and_history()
    bests = [evaluations.best for evaluations in reversed(history)]
    assert configs_of_three_workers[: len(bests)] == bests
    assert count_distinct(configs_of_three_workers) == len(configs_of_three_workers) == 12


def suggest_first_and_second_config():
    """Return the first two suggestions of the method, from an optimiser of the same method."""
    tuner, _ = make_tuner()
    return tuner.ask(), tuner.ask()


def test_waiting_trials_keep_their_suggestions():
    """A trial that was asked for first gets the first suggestion, though it suggests later.

    With `shared=True`, trials may be those of several processes.
    """
    first, second = suggest_first_and_second_config()
    study, task = make_study_and_task(shared=True)
    waiting_trial = study.ask()  # as of a process that is slow to suggest
    other_trial = study.ask()
    assert suggest_config(other_trial, task.space) == second
    assert suggest_config(waiting_trial, task.space) == first


def test_unused_suggestion_comes_next():
    """The suggestion of a trial that failed before it suggested goes to the next trial."""
    first, second = suggest_first_and_second_config()
    study, task = make_study_and_task(shared=True)
    waiting_trial = study.ask()
    other_trial = study.ask()
    assert suggest_config(other_trial, task.space) == second
    study.tell(waiting_trial, state=TrialState.FAIL)
    next_trial = study.ask()
    assert suggest_config(next_trial, task.space) == first


def test_missing_values_are_told_as_defaults():
    """Some of twelve trials of another sampler have no x; the method is told its default, 0.5."""

    def suggest_conditionally(trial: optuna.Trial) -> float:
        """Suggest x only for the kind a."""
        kind = trial.suggest_categorical("kind", ["a", "b"])
        return 0.5 if kind == "b" else trial.suggest_float("x", 0, 1)

    space = {"kind": CategoricalDistribution(["a", "b"]), "x": FloatDistribution(0, 1)}
    other_sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(sampler=other_sampler)
    study.optimize(suggest_conditionally, n_trials=12)
    trials_of_other_sampler = study.trials

    sampler = OptunaSampler("bo", space=space)
    *told, _ = continue_with(study, suggest_conditionally, sampler)  # the last one is its own

    for told_trial, trial in zip(told, trials_of_other_sampler, strict=True):
        assert told_trial.value == trial.value
        assert told_trial.config == {"x": 0.5} | trial.params


def test_other_trials_cost_no_suggestion():
    """A new sampler, of another seed, is told all other trials, and draws nothing for them.

    These are three trials of the first sampler, and one whose values are given, enqueued. So the
    next two suggestions are those of an optimiser that was told the same.
    """
    study, task = make_study_and_task("bo", seed=1)
    study.optimize(objective_of(task), n_trials=3)
    study.enqueue_trial({"kind": "a", "level": 10, "n": 7, "x": 0.5})
    # The enqueued trial is run first, and then two that the new sampler suggests.
    continue_with(study, objective_of(task), make_sampler("bo", seed=2), trials=1 + 2)

    other_trials = study.trials[: 3 + 1]  # those of the first sampler, and the enqueued one
    suggestions = configs_of(study)[3 + 1 :]
    tuner, _ = make_tuner("bo", seed=2)
    for trial in other_trials:
        tuner.tell(trial.params, trial.value)
    assert suggestions == tune(tuner, task, trials=2)


def test_random_parameters_are_the_same_again():
    """The parameter `more` is not tuned, as its range changes, but drawn at random by the sampler.

    A study has the same values with one sampler, and with a new one after every second trial.
    """

    def suggest_from_changing_range(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0, 1)
        return x + trial.suggest_float("more", 0, trial.number + 1)

    undisturbed = optuna.create_study(sampler=OptunaSampler("random-search"))
    undisturbed.optimize(suggest_from_changing_range, n_trials=6)
    resumed = optuna.create_study(sampler=OptunaSampler("random-search"))
    for _ in range(3):
        resumed.optimize(suggest_from_changing_range, n_trials=2)
        resumed.sampler = OptunaSampler("random-search")

    assert configs_of(resumed) == configs_of(undisturbed)


def make_objective_of_month(month: int):
    """Build the objective of a month; from month to month the best rate moves."""

    def suggest_and_compute_loss(trial: optuna.Trial) -> float:
        """Suggest a configuration, and return its loss; the best rate depends on `month`."""
        rate = trial.suggest_float("rate", 1e-4, 1, log=True)
        depth = trial.suggest_int("depth", 1, 9, step=2)
        kind = trial.suggest_categorical("kind", ["tree", "line"])
        slope = trial.suggest_float("slope", 0, 1) if kind == "line" else 0.5
        best_log_rate, best_depth = -2 - month / 9, 5
        loss_of_rate = (math.log10(rate) - best_log_rate) ** 2
        loss_of_depth = (depth - best_depth) ** 2 / 9
        return loss_of_rate + loss_of_depth + slope

    return suggest_and_compute_loss


def run_studies_of_three_months():
    """Run random studies of months 0 to 2, 15 trials each."""
    studies = []
    for month in range(3):
        sampler = optuna.samplers.RandomSampler(seed=month)
        study = optuna.create_study(study_name=f"month {month}", sampler=sampler)
        study.optimize(make_objective_of_month(month), n_trials=15)
        studies.append(study)
    return studies


def test_sampler_from_studies_equals_the_optimiser():
    """The optimiser has the studies as history, and the search space of the last one."""
    studies = run_studies_of_three_months()
    history = hbo.read_history(studies)
    space = history[-1].space
    sampler = OptunaSampler.from_studies("simple-ordered", studies, seed=2)
    tuner = hbo.optimiser(
        "simple-ordered", history=history, space=space, direction="minimize", seed=2
    )

    study = optuna.create_study(sampler=sampler)
    study.optimize(make_objective_of_month(3), n_trials=8)

    for trial in study.trials:
        assert trial.params == tuner.ask()
        tuner.tell(trial.params, trial.value)


def test_first_study_has_no_earlier_ones():
    """The code that tunes every month then also runs in the first one."""
    history = hbo.read_history(run_studies_of_three_months())
    space = history[-1].space
    sampler = OptunaSampler.from_studies("ordered-gp", [], space=space)
    study = optuna.create_study(sampler=sampler)
    study.optimize(make_objective_of_month(0), n_trials=2)

    tuner = hbo.optimiser("ordered-gp", space=space, history=None, direction="minimize")
    assert study.trials[0].params == tuner.ask()


def test_from_studies_passes_settings_on():
    """The sampler's optimiser, which is made for the first trial, has the settings.

    Without the contexts of the studies it would warn that they lack the size.
    """
    context_of_month = {f"month {month}": {"size": float(month)} for month in range(3)}
    sampler = OptunaSampler.from_studies(
        "simple-ordered",
        run_studies_of_three_months(),
        context={"size": 3.0},
        contexts=context_of_month,
        budget=7,
    )

    study = optuna.create_study(sampler=sampler)
    study.optimize(make_objective_of_month(3), n_trials=1)

    settings = sampler._replay.optimiser.settings
    assert settings["context"] == {"size": 3.0}
    assert settings["budget"] == 7


def run_two_trials_after_studies(objective) -> list[str]:
    """Optimise with a sampler from studies, and return the warnings about the history."""
    sampler = OptunaSampler.from_studies("simple-ordered", run_studies_of_three_months())
    study = optuna.create_study(sampler=sampler)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        study.optimize(objective, n_trials=2)
    return [str(warning.message) for warning in caught if warning.category is HistoryWarning]


def test_same_ranges_are_not_warned_of():
    assert run_two_trials_after_studies(make_objective_of_month(3)) == []


def test_other_range_is_warned_of_once():
    """The warning names the hyperparameter, its range, and the option that could mend it."""

    def suggest_larger_depth(trial: optuna.Trial) -> float:
        trial.suggest_int("depth", 1, 99, step=2)  # up to 9 in the studies
        return make_objective_of_month(3)(trial)

    (warning,) = run_two_trials_after_studies(suggest_larger_depth)
    assert "'depth'" in warning
    assert "high=99" in warning
    assert "space=" in warning


@pytest.fixture
def study_after_misspelt_objectives():
    """A study of two trials on the toy task, and of two more that objectives in error ended."""
    study, task = make_study_and_task("simple-ordered")
    study.optimize(objective_of(task), n_trials=2)

    def suggest_unknown_name(trial: optuna.Trial) -> float:
        suggest_config(trial, task.space)
        return trial.suggest_float("xs", 0, 1)

    def suggest_outside_range(trial: optuna.Trial) -> float:
        trial.suggest_categorical("level", [1, 10, 100])  # as in the space
        return trial.suggest_int("n", 60, 70)  # at most 50 in the space

    with pytest.raises(UnknownNameError):
        study.optimize(suggest_unknown_name, n_trials=1)
    with pytest.raises(ExperimentError):
        study.optimize(suggest_outside_range, n_trials=1)
    return study, task


@pytest.mark.parametrize("has_new_sampler", [False, True])
def test_misspelt_objective_loses_no_suggestion(study_after_misspelt_objectives, has_new_sampler):
    """Trials that errors ended leave their suggestions to later trials.

    So the six finished trials are those of a study without errors.
    """
    study, task = study_after_misspelt_objectives
    undisturbed, _ = make_study_and_task("simple-ordered")
    undisturbed.optimize(objective_of(task), n_trials=6)

    if has_new_sampler:
        study.sampler = make_sampler("simple-ordered")
    study.optimize(objective_of(task), n_trials=4)

    assert configs_of(study, [TrialState.COMPLETE]) == configs_of(undisturbed)


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
    """The study goes on as an optimiser, which suggests only what is active and not constant."""
    task, _ = make_task_and_history(conditional_space())

    def suggest_all_hyperparameters(trial: optuna.Trial) -> float:
        """Suggest x even if it is inactive, and the constant of the task's space."""
        config = {
            "kind": trial.suggest_categorical("kind", ["a", "b", "c"]),
            "level": trial.suggest_categorical("level", [1, 10, 100]),
            "n": trial.suggest_int("n", 1, 50, log=True),
            "x": trial.suggest_float("x", 0, 1),  # also where the kind makes it inactive
            "fixed": trial.suggest_categorical("fixed", ["always", "never"]),
        }
        assert config["fixed"] == "always"  # the constant of the space
        return task.evaluate(config)

    study, _ = make_study_and_task()
    study.optimize(suggest_all_hyperparameters, n_trials=12)

    tuner, _ = make_tuner()
    configs = tune(tuner, task, trials=12)
    assert any("x" not in config for config in configs)
    for trial, config in zip(study.trials, configs, strict=True):
        params_of_config = {name: trial.params[name] for name in config}
        assert params_of_config == config


SPACE_WITH_STEPS = {
    "step": FloatDistribution(0.0, 1.0, step=0.1),
    "even": IntDistribution(2, 8, step=2),
    "rate": FloatDistribution(1e-3, 1.0, log=True),
}


def run_trials_on_steps(sampler) -> optuna.Study:
    """Run twenty trials whose values are on steps; integers must have that type."""
    study = optuna.create_study(sampler=sampler)
    for _ in range(20):
        trial = study.ask(SPACE_WITH_STEPS)
        assert isinstance(trial.params["even"], int)
        study.tell(trial, sum(trial.params.values()))
    return study


def test_steps_and_types_are_the_objectives():
    """Suggestions are on the steps of the objective's distributions, and integers have that type.

    A value off the steps would be outside the space, and its trial would not be told.
    """
    study = run_trials_on_steps(OptunaSampler("random-search", space=SPACE_WITH_STEPS))
    assert len(told_trials(study.sampler)) == 20
