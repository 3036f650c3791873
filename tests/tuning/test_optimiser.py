"""Optimisers, which run a method on one's own task: asked and told, stopped and taken up again."""

import json
import math
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import optuna
import pandas as pd
import pytest
from bad_methods import Good, OutOfBounds
from optuna.storages import InMemoryStorage
from tuning_support import METHODS, make_task_and_history, make_tuner, tune

import hpobench_ordered as hbo
from hpobench_ordered.errors import (
    EvaluationsError,
    ExperimentError,
    HistoryWarning,
    InvalidConfigError,
    InvalidSuggestionError,
    StoreError,
    UnknownNameError,
)
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.space import Kind
from hpobench_ordered.testing.toy import (
    numeric_space,
    numeric_space_before,
)
from hpobench_ordered.tuning import optimiser as optimiser_module
from hpobench_ordered.tuning.optimiser import Trial

optuna.logging.set_verbosity(optuna.logging.ERROR)

# suggestions and results


@pytest.mark.parametrize("method", METHODS)
def test_suggestions_are_those_of_the_method(method):
    """An optimiser suggests what its method does if that is asked and told directly."""
    direction = hbo.Direction.MAXIMIZE
    seed, budget = 3, 12
    tuner, task = make_tuner(method, direction=direction, seed=seed, budget=budget)
    _, history = make_task_and_history(direction=direction)
    method_by_hand = method_spec(method).method(
        space=task.space,
        rng=np.random.default_rng(seed),
        history=history,
        context=task.context,
        budget=budget,
    )

    suggestions = tune(tuner, task, trials=budget)

    # Optimisers ask in one thread. With more threads, sums of floats would be rounded otherwise.
    with one_thread():
        for config in suggestions:
            assert config == method_by_hand.ask()
            loss = task.objective.loss(task.evaluate(config))
            method_by_hand.tell(config, loss)


@pytest.mark.parametrize(
    ("direction", "choose_best"), [(hbo.Direction.MINIMIZE, min), (hbo.Direction.MAXIMIZE, max)]
)
def test_best_trial_has_best_value(direction, choose_best):
    """The best trial has the lowest value if the objective is minimised, else the highest."""
    tuner, task = make_tuner(direction=direction)

    tune(tuner, task, trials=12)

    assert tuner.best.value == choose_best(trial.value for trial in tuner.trials)
    assert task.evaluate(tuner.best.config) == tuner.best.value
    assert f"12 trials, best {tuner.best.value})" in repr(tuner)


def test_suggestions_are_told_in_any_order():
    """Trials stay in the order of asking, whichever order their results come in.

    The second of four suggestions gets no result.
    """
    tuner, task = make_tuner("bo")
    first, second, third, fourth = [tuner.ask() for _ in range(4)]

    for config in (third, first, fourth):
        tuner.tell(config, task.evaluate(config))

    assert tuner.pending == [second]
    assert [trial.config for trial in tuner.trials] == [first, second, third, fourth]
    assert tuner.trials[2].value == task.evaluate(third)


def test_suggestions_in_flight_are_not_repeated():
    """No two of seven suggestions are equal, although only three of them have a result."""
    tuner, task = make_tuner("bo")
    configs = [tuner.ask() for _ in range(4)]
    for config in configs[1:]:
        tuner.tell(config, task.evaluate(config))

    configs += [tuner.ask() for _ in range(3)]

    different_configs = {json.dumps(config) for config in configs}
    assert len(different_configs) == 7


def test_threads_share_an_optimiser():
    """No trial is lost or mixed up when four threads run twenty trials with one optimiser."""
    tuner, task = make_tuner("bo")

    def run_trial() -> None:
        config = tuner.ask()
        tuner.tell(config, task.evaluate(config))

    with ThreadPoolExecutor(max_workers=4) as threads:
        runs = [threads.submit(run_trial) for _ in range(20)]
    for run in runs:
        run.result()  # raises an error that a thread met
    assert len(tuner.trials) == 20
    assert all(trial.value == task.evaluate(trial.config) for trial in tuner.trials)
    assert tuner.pending == []


def test_config_that_was_not_suggested_is_told():
    """A configuration that the user chose is told as a trial, and is not suggested afterwards."""
    tuner, _ = make_tuner("bo", space=numeric_space())

    tuner.tell({"x": 1, "y": 0.5}, 0.25)

    assert tuner.trials == (Trial({"x": 1.0, "y": 0.5}, 0.25),)
    assert tuner.ask() != tuner.best.config


@pytest.mark.filterwarnings("ignore:random-search suggests configurations again")
def test_equal_suggestions_are_told_in_order():
    """The first value that is told of two equal suggestions belongs to the first of them.

    They are equal because the space has a single configuration.
    """
    space = hbo.SearchSpace([hbo.Parameter.choice("kind", ("a",))])
    tuner, _ = make_tuner("random-search", space=space)
    first, second = tuner.ask(), tuner.ask()
    assert first == second

    tuner.tell(first, 0)
    tuner.tell(second, 1)

    assert [trial.value for trial in tuner.trials] == [0, 1]


def test_config_may_come_back_in_other_form():
    """A told configuration is recognised as the suggestion if it is written differently.

    It has NumPy's number, lacks the constant, and has a value of the inactive x.
    """
    tuner, _ = make_tuner("random-search")
    config = tuner.ask()
    same_config = config | {"n": np.int64(config["n"])}
    del same_config["fixed"]  # a constant of the space, which need not be told
    same_config.setdefault("x", 0.5)  # the value of `x`, where it is inactive, is ignored

    tuner.tell(same_config, 1.0)

    assert tuner.pending == []
    assert [trial.config for trial in tuner.trials] == [config]


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_failures_are_told_and_never_best(value):
    """A failed evaluation is a trial with the value NaN, which is never the best.

    A user tells a failure as None or as a number that is not finite.
    """
    tuner, task = make_tuner("bo")
    failed_config = tuner.ask()

    tuner.tell(failed_config, value)

    (failed_trial,) = tuner.trials
    assert math.isnan(failed_trial.value)
    with pytest.raises(ExperimentError, match="no best trial yet"):
        tuner.best  # noqa: B018  it raises
    later_configs = tune(tuner, task)
    assert failed_config not in later_configs
    assert math.isfinite(tuner.best.value)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"x": 1.0, "Y": 0.5}, "did you mean 'y'"),
        ({"x": 1.0, "y": 2.0}, "y must be a number in .* got 2.0"),
        ([1.0, 0.5], "a configuration must be a dict"),
    ],
)
def test_invalid_config_is_not_told(config, message):
    """A configuration outside the space is refused, and is no trial.

    The space has x from -5 to 5, and y from 1e-4 to 1.
    """
    tuner, _ = make_tuner("bo", space=numeric_space())
    with pytest.raises(InvalidConfigError, match=message):
        tuner.tell(config, 1.0)
    assert tuner.trials == ()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("0.5", "must be a number, or None for a failure"),
        ([0.5, 1], "must be a number, or None for a failure"),
        (np.array([0.5]), "must be a number, or None for a failure"),
    ],
    ids=["text", "list", "array"],
)
def test_invalid_value_is_not_told(value, message):
    tuner, _ = make_tuner("bo", space=numeric_space())
    with pytest.raises(EvaluationsError, match=message):
        tuner.tell({"x": 1.0, "y": 0.5}, value)
    assert tuner.trials == ()


def test_method_of_invalid_suggestion_is_named():
    """The error about a suggestion outside the space names the method, here `OutOfBounds`."""
    tuner, _ = make_tuner(OutOfBounds, space=numeric_space())
    with pytest.raises(InvalidSuggestionError, match=r"OutOfBounds suggested.*x must be a number"):
        tuner.ask()


# arguments


_, HISTORY_TO_MINIMIZE = make_task_and_history(numeric_space())
_, HISTORY_ON_OTHER_SPACE = make_task_and_history(numeric_space_before())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "simple-orderd"}, UnknownNameError, "did you mean 'simple-ordered'"),
        ({"direction": "maximise"}, EvaluationsError, "did you mean 'maximize'"),
        ({"direction": "maximize"}, EvaluationsError, "objective is to minimize"),
        ({"history": ()}, ExperimentError, "needs a history of 1 earlier task, got 0"),
        ({"budget": 0}, ExperimentError, "at least 1 trial"),
        ({"space": 3}, EvaluationsError, "got int"),
        (
            {"method": "cts", "history": HISTORY_ON_OTHER_SPACE},
            EvaluationsError,
            "another search space",
        ),
    ],
    ids=lambda value: repr(list(value)) if isinstance(value, dict) else None,
)
def test_arguments_that_do_not_fit_are_refused(options, error, message):
    """One of the options is wrong; the others are valid."""
    valid_options = {
        "method": "simple-ordered",
        "space": numeric_space(),
        "direction": "minimize",
        "history": HISTORY_TO_MINIMIZE,
    }
    with pytest.raises(error, match=message):
        hbo.optimiser(**(valid_options | options))


def test_history_on_other_space_is_warned_of():
    """The warning names the tasks on another search space, "0" and "1", and what has changed."""
    with pytest.warns(HistoryWarning, match="'0', '1': .* now from -5 to 5"):
        tuner = hbo.optimiser(
            "simple-ordered",
            space=numeric_space(),
            direction="minimize",
            history=HISTORY_ON_OTHER_SPACE,
        )
    assert tuner.ask()


# tables


def test_frame_has_all_told_trials():
    """The table has two trials with a value and one that failed, but not the pending one."""
    tuner, task = make_tuner("random-search")
    tune(tuner, task, trials=2)
    tuner.ask()  # stays in flight
    tuner.tell(tuner.ask(), None)

    frame = tuner.frame(objective="loss")

    constant_of_space = "fixed"
    assert list(frame.columns) == [*task.space.names, constant_of_space, "loss"]
    assert frame["loss"].isna().tolist() == [False, False, True]
    assert frame["kind"].tolist() == [tuner.trials[i].config["kind"] for i in (0, 1, 3)]


# the record


def make_storage(method="simple-ordered", space=None):
    """A storage, with the earlier toy tasks "0" and "1" if the method uses a history."""
    storage = InMemoryStorage()
    if hbo.tuning.as_method_spec(method).uses_history:
        _, history = make_task_and_history(space)
        hbo.record_history(history, storage)
    return storage


def make_recorded(storage, method="simple-ordered", *, space=None, task="July", **options):
    """An optimiser that is recorded in a storage, and the toy task that it tunes."""
    toy_task, _ = make_task_and_history(space)
    tuner = hbo.optimiser(
        method,
        space=toy_task.space,
        direction="minimize",
        history=storage,
        task=task,
        **({"budget": 12} | options),
    )
    return tuner, toy_task


def tune_until(n_trials, tuner, task):
    """Tell the results of pending suggestions, then run trials until there are `n_trials`."""
    for config in tuner.pending:
        tuner.tell(config, task.evaluate(config))
    tune(tuner, task, trials=n_trials - len(tuner.trials))


WRITES = ["create_new_trial", "set_trial_user_attr", "set_trial_state_values"]
"""What is written for a trial: one thing when it is asked for, and two when it is told."""


@pytest.mark.parametrize("write", WRITES)
def test_killed_in_any_write_continues(monkeypatch, write):
    """A tuning that is killed in its fourth trial is continued as if it had not been killed.

    A `KeyboardInterrupt` in place of one of the writes stands for the end of the process. Six
    trials are compared.
    """
    undisturbed, task = make_recorded(make_storage())
    tune(undisturbed, task, trials=6)
    storage = make_storage()
    killed, _ = make_recorded(storage)
    tune(killed, task, trials=3)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(storage, write, Mock(side_effect=KeyboardInterrupt))
        tune(killed, task, trials=1)

    continued, _ = make_recorded(storage)
    tune_until(6, continued, task)

    assert continued.trials == undisturbed.trials


SUPPORT = str(Path(__file__).parents[1] / "support")
SCRIPT_KILLED_IN_EIGHTH_TRIAL = f"""
import os, signal, sys
sys.path.insert(0, {SUPPORT!r})
from tuning_support import make_tuner, tune
tuner, task = make_tuner("bo", history=sys.argv[1], task="July")
tune(tuner, task, trials=7)
tuner.ask()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_killed_process_loses_nothing(tmp_path):
    """Nine trials are the same whether or not the process is killed in the eighth of them.

    It is killed after the trial was suggested and before its result is told.
    """
    undisturbed, task = make_tuner("bo")
    tune(undisturbed, task, trials=9)

    storage = tmp_path / "tuning.db"
    command = [sys.executable, "-c", SCRIPT_KILLED_IN_EIGHTH_TRIAL, str(storage)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL

    continued, _ = make_tuner("bo", history=storage, task="July")
    tune_until(9, continued, task)
    assert continued.trials == undisturbed.trials


@pytest.mark.parametrize(
    "open_storage",
    [
        lambda folder: folder / "tuning.db",
        lambda folder: str(folder / "tuning.log"),
        lambda folder: f"sqlite:///{folder}/tuning.db",
    ],
    ids=["SQLite", "journal", "URL"],
)
def test_storages_of_all_kinds_give_the_same(tmp_path, open_storage):
    """A tuning that is stopped and continued has the same trials in a file as in memory.

    The tuning of June learns from that of May. Its first trial fails, it is stopped during its
    fourth trial, and a new optimiser continues it to six trials.
    """
    trials = []
    for storage in (InMemoryStorage(), open_storage(tmp_path)):
        may, task = make_recorded(storage, "random-search", task="May")
        tune(may, task, trials=4)
        stopped, _ = make_recorded(storage, task="June")
        stopped.tell(stopped.ask(), None)
        tune(stopped, task, trials=2)
        stopped.ask()

        june, _ = make_recorded(storage, task="June")
        tune_until(6, june, task)
        trials.append(june.trials)

    assert repr(trials[0]) == repr(trials[1])  # as text, for NaN is not equal to itself


# earlier tasks


def test_next_task_starts_from_the_best():
    """The first suggestion for June, by the default method, is the best configuration of May."""
    storage = InMemoryStorage()
    may, task = make_recorded(storage, "random-search", task="May")
    tune(may, task)

    june, _ = make_recorded(storage, "ordered-gp", task="June")

    assert june.ask() == may.best.config


def write_history(folder, kind, history):
    """Write evaluations to a table or a storage; returns the table or the file."""
    if kind == "table":
        return pd.concat(evaluations.frame() for evaluations in history)
    file = folder / f"old.{kind}"
    hbo.record_history(history, file)
    return file


@pytest.mark.parametrize("kind", ["table", "db"])
def test_history_is_only_read_without_a_task(tmp_path, kind):
    """A table or storage as history gives the suggestions that its evaluations give.

    Its files are not changed.
    """
    task, history = make_task_and_history(numeric_space())
    options = {"space": task.space, "direction": "minimize"}
    expected = hbo.optimiser("simple-ordered", history=history, **options)
    source = write_history(tmp_path, kind, history)
    content_before = {file: file.read_bytes() for file in tmp_path.iterdir()}

    tuner = hbo.optimiser("simple-ordered", history=source, **options)

    assert tune(tuner, task, trials=4) == tune(expected, task, trials=4)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == content_before


# what is refused


SPACE_OF_WIDER_X = hbo.SearchSpace([hbo.Parameter.number("x", -9, 5), numeric_space()["y"]])


@pytest.mark.filterwarnings(
    "ignore:earlier tasks are on another search space", "ignore:the context of the task at hand"
)
@pytest.mark.parametrize(
    ("changed_options", "message"),
    [
        ({"method": "simple-previous"}, "method was 'simple-ordered', now 'simple-previous'"),
        ({"seed": 1, "budget": 9}, "seed was 0, now 1; budget was 100, now 9"),
        ({"context": {"index": 2}}, r"context was \{\}, now \{'index': 2\}"),
        ({"direction": "maximize"}, "begun to minimize, now to maximize"),
        ({"space": SPACE_OF_WIDER_X}, "search space differs.*x: from -5 to 5, now from -9 to 5"),
    ],
    ids=["method", "numbers", "context", "direction", "space"],
)
def test_other_settings_are_refused(changed_options, message):
    """A task is not continued with other options than those with which it was begun."""
    storage = make_storage(space=numeric_space())
    options = {
        "method": "simple-ordered",
        "space": numeric_space(),
        "direction": "minimize",
        "history": storage,
        "task": "July",
    }
    suggestion = hbo.optimiser(**options).ask()

    with pytest.raises(StoreError, match=message):
        hbo.optimiser(**(options | changed_options))

    assert hbo.optimiser(**options).pending == [suggestion]


def test_refused_call_does_not_begin_the_task():
    """A slip in an argument leaves no study behind that would refuse the corrected call."""
    storage = make_storage(space=numeric_space())
    options = {"space": numeric_space(), "history": storage, "task": "July"}
    with pytest.raises(EvaluationsError):
        hbo.optimiser(direction="minimize", context={"index": "two"}, **options)
    assert "July" not in optuna.get_all_study_names(storage)

    # A study without trials is not begun either, whatever its direction.
    optuna.create_study(study_name="July", storage=storage, direction="maximize")
    tuner = hbo.optimiser(direction="minimize", **options)
    tuner.ask()
    study = optuna.load_study(study_name="July", storage=storage)
    assert study.direction.name == "MINIMIZE"


def test_studies_of_another_direction_are_no_earlier_tasks():
    storage = make_storage(space=numeric_space())
    other = optuna.create_study(study_name="accuracy", storage=storage, direction="maximize")
    trial = optuna.trial.create_trial(value=1.0)
    other.add_trial(trial)
    with pytest.warns(HistoryWarning, match="another direction are no earlier tasks: 'accuracy'"):
        tuner, _ = make_recorded(storage, space=numeric_space())
    assert len(tuner.settings["history"]) == 2  # the toy tasks "0" and "1"


def test_missing_earlier_task_is_noticed():
    """A task cannot be continued after an earlier task, "0", was deleted from its storage."""
    storage = make_storage(space=numeric_space())
    make_recorded(storage, space=numeric_space())[0].ask()
    optuna.delete_study(study_name="0", storage=storage)
    with pytest.raises(StoreError, match=r"history was of \['0', '1'\], now of \['1'\]"):
        make_recorded(storage, space=numeric_space())


def test_other_defaults_are_allowed():
    """A task can be continued on a space that differs only in the default value of x."""
    storage = InMemoryStorage()
    for default in (0.5, 0.25):
        x = hbo.Parameter("x", Kind.FLOAT, 0.0, 1.0, default=default)
        space = hbo.SearchSpace([x])
        tuner, _ = make_recorded(storage, "bo", space=space)
        tuner.tell(tuner.ask(), 1.0)
    # The second optimiser has the trial of the first one, and its own.
    assert len(tuner.trials) == 2


def test_changed_method_is_noticed(monkeypatch):
    """A task is not continued if a method of the same version suggests something else than before.

    This happens if a library changes that the method uses. The version, a hash of the method's
    source text, is fixed here, so that only the suggestion differs.
    """
    storage = InMemoryStorage()
    spec = hbo.MethodSpec("drawing", Good, "", "")  # `Good` draws at random
    monkeypatch.setattr(optimiser_module, "method_version", lambda spec: "1")
    make_recorded(storage, spec)[0].ask()

    rng_of_changed_method = np.random.default_rng(1)
    monkeypatch.setattr(Good, "ask", lambda self: self.space.sample(rng_of_changed_method))

    with pytest.raises(StoreError, match=r"trial 0 of task 'July' .*: the method suggested"):
        make_recorded(storage, spec)


@pytest.mark.parametrize("event", ["ask", "tell"])
def test_another_writer_is_noticed(event):
    """If two optimisers write to one record, the one that writes last raises an error.

    Both begin with the same two pending suggestions; then each one asks, or each one tells a
    result.
    """
    storage = InMemoryStorage()
    first, _ = make_recorded(storage, "random-search")
    suggestions = [first.ask(), first.ask()]
    second, _ = make_recorded(storage, "random-search")

    if event == "ask":
        first.ask()
    else:
        first.tell(suggestions[0], 1.0)
    with pytest.raises(StoreError, match="another optimiser writes to"):
        second.ask() if event == "ask" else second.tell(suggestions[1], 1.0)


@pytest.mark.parametrize("begins_with_optimiser", [True, False])
def test_trials_of_optuna_are_not_continued(begins_with_optimiser):
    """An optimiser does not continue a study with trials that Optuna itself made.

    Optuna made all trials, or all but the first one, which an optimiser made.
    """
    storage = InMemoryStorage()
    if begins_with_optimiser:
        make_recorded(storage, "random-search")[0].ask()
    study = optuna.create_study(study_name="July", storage=storage, load_if_exists=True)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    with pytest.raises(StoreError, match="was tuned by another program"):
        make_recorded(storage, "random-search")


def test_nothing_is_recorded_after_a_failed_write(monkeypatch):
    """After a write failed, for want of space on the disk, an optimiser refuses all further calls.

    A new optimiser on the same record can tell the result that was not written.
    """
    storage = make_storage()
    tuner, _ = make_recorded(storage)
    config = tuner.ask()
    full_disk = Mock(side_effect=OSError("No space left on device"))
    with monkeypatch.context() as patch:
        patch.setattr(storage, "set_trial_state_values", full_disk)
        with pytest.raises(StoreError, match="cannot be recorded: No space left"):
            tuner.tell(config, 1.0)

    with pytest.raises(StoreError, match="cannot be recorded: No space left"):
        tuner.ask()  # there is space now
    continued, _ = make_recorded(storage)
    assert continued.pending == [config]
    continued.tell(config, 1.0)
    assert continued.trials == (Trial(config, 1.0),)


def test_storage_in_missing_folder_is_refused(tmp_path):
    with pytest.raises(StoreError, match="cannot be recorded"):
        make_recorded(tmp_path / "missing" / "tuning.db", "bo")


def test_other_file_is_left_alone(tmp_path):
    """A text file that is passed as the storage by mistake is refused, and not changed."""
    file = tmp_path / "notes.db"
    file.write_text("my notes\nof today\n")
    with pytest.raises(ExperimentError, match="recorded in an Optuna storage"):
        make_recorded(file, "bo")
    assert file.read_text() == "my notes\nof today\n"


@pytest.mark.parametrize("history", [HISTORY_TO_MINIMIZE, HISTORY_TO_MINIMIZE[0].frame()])
def test_task_needs_a_storage(history):
    """A task cannot be recorded in evaluations or a table, which are only read."""
    with pytest.raises(ExperimentError, match=r"`record_history` puts what .* into a storage"):
        make_recorded(history)
