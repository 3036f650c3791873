"""Optimisers, which run a method on one's own task: asked and told, stopped and taken up again."""

import errno
import json
import math
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock, call

import numpy as np
import pytest
from bad_methods import Good, OutOfBounds
from hypothesis import given
from hypothesis import strategies as st
from tuning_support import METHODS, make_task_and_history, make_tuner, tune

import hpobench_ordered as hbo
from hpobench_ordered.adapters import optimiser as optimiser_module
from hpobench_ordered.adapters.optimiser import Trial
from hpobench_ordered.errors import (
    EvaluationsError,
    ExperimentError,
    HistoryWarning,
    InvalidConfigError,
    InvalidSuggestionError,
    StoreError,
    UnknownNameError,
)
from hpobench_ordered.registry import method_spec
from hpobench_ordered.runtime.threads import one_thread
from hpobench_ordered.testing.toy import numeric_space, numeric_space_before


@pytest.mark.parametrize("direction", list(hbo.Direction))
@pytest.mark.parametrize("method", METHODS)
def test_suggestions_are_those_of_the_method(method, direction):
    """The same method, with the same settings, is asked and told by hand."""
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
    """The lowest value if the objective is minimised, the highest if it is maximised."""
    tuner, task = make_tuner(direction=direction)

    tune(tuner, task, trials=12)

    assert tuner.best.value == choose_best(trial.value for trial in tuner.trials)
    assert task.evaluate(tuner.best.config) == tuner.best.value
    assert f"12 trials, best {tuner.best.value})" in repr(tuner)


def test_changing_a_trial_changes_a_copy():
    """The caller gets copies of configurations; the suggestion stays in flight as it was."""
    tuner, _ = make_tuner("bo")
    config = tuner.ask()
    tuner.trials[0].config.clear()  # changes what the caller was given, not the optimiser's
    assert tuner.pending == [config]


def test_suggestions_are_told_in_any_order():
    """Of four suggestions the second is not told. Trials stay in the order of asking."""
    tuner, task = make_tuner("bo")
    first, second, third, fourth = [tuner.ask() for _ in range(4)]

    for config in (third, first, fourth):
        tuner.tell(config, task.evaluate(config))

    assert tuner.pending == [second]
    assert [trial.config for trial in tuner.trials] == [first, second, third, fourth]
    assert tuner.trials[2].value == task.evaluate(third)


def test_suggestions_in_flight_are_not_repeated():
    """Of four suggestions the second is not told, so that it stays in flight."""
    tuner, task = make_tuner("bo")
    first, second, third, fourth = [tuner.ask() for _ in range(4)]
    for config in (third, first, fourth):
        tuner.tell(config, task.evaluate(config))

    later = [tuner.ask() for _ in range(3)]

    all_configs = [first, second, third, fourth, *later]
    different_configs = {json.dumps(config) for config in all_configs}
    assert len(different_configs) == len(all_configs)


def test_threads_share_an_optimiser():
    """Four threads run twenty trials with one optimiser."""
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
    """It is a trial like others, and is not suggested again."""
    tuner, _ = make_tuner("bo", space=numeric_space())

    tuner.tell({"x": 1, "y": 0.5}, 0.25)

    assert tuner.trials == (Trial({"x": 1.0, "y": 0.5}, 0.25),)
    assert tuner.ask() != tuner.best.config


def test_equal_suggestions_are_told_in_order():
    """The space has one configuration, so that both suggestions are equal."""
    space_of_one_configuration = {"kind": ["a"]}
    tuner = hbo.optimiser("random-search", space=space_of_one_configuration, direction="minimize")
    first, second = tuner.ask(), tuner.ask()
    assert first == second

    tuner.tell(first, 0)
    tuner.tell(second, 1)

    assert [trial.value for trial in tuner.trials] == [0, 1]


def convert_floats_to_numpy(config: dict[str, object]) -> dict[str, object]:
    """Copy a configuration, with floats of NumPy in place of Python's."""
    converted = dict(config)
    for name, value in config.items():
        if isinstance(value, float):
            converted[name] = np.float64(value)
    return converted


def test_config_may_come_back_in_other_form():
    """What is told is recognised as the suggestion, though it is not written as the same dict."""
    tuner, _ = make_tuner("random-search")
    config = tuner.ask()
    same_config = convert_floats_to_numpy(config)
    del same_config["fixed"]  # a constant of the space, which need not be told
    same_config.setdefault("x", 0.5)  # the value of `x`, where it is inactive, is ignored

    tuner.tell(same_config, 1.0)

    assert tuner.pending == []
    assert [trial.config for trial in tuner.trials] == [config]


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, np.float32("nan")])
def test_failures_are_told_and_never_best(value):
    """The value of a failed evaluation is None or no finite number."""
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
        ({"x": 1.0}, "'y' is missing: a number in"),
        ({"x": 1.0, "y": 2.0}, "y must be a number in .* got 2.0"),
        ([1.0, 0.5], "a configuration must be a dict"),
    ],
)
def test_invalid_config_is_not_told(config, message):
    """The space has x from -5 to 5, and y from 1e-4 to 1."""
    tuner, _ = make_tuner("bo", space=numeric_space())
    with pytest.raises(InvalidConfigError, match=message):
        tuner.tell(config, 1.0)
    assert tuner.trials == ()


@pytest.mark.parametrize("value", ["0.5", [0.5, 1], 10**400], ids=["text", "list", "too large"])
def test_invalid_value_is_not_told(value):
    """The value is a text, a list, or an integer beyond all floats."""
    tuner, _ = make_tuner("bo", space=numeric_space())
    with pytest.raises(EvaluationsError, match="must be a number, or None for a failure"):
        tuner.tell({"x": 1.0, "y": 0.5}, value)
    assert tuner.trials == ()


_, HISTORY_TO_MINIMIZE = make_task_and_history(numeric_space())
_, HISTORY_ON_OTHER_SPACE = make_task_and_history(numeric_space_before())


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "simple-orderd"}, UnknownNameError, "did you mean 'simple-ordered'"),
        ({"direction": "maximise"}, EvaluationsError, "did you mean 'maximize'"),
        ({"direction": "maximize"}, EvaluationsError, "objective is to minimize"),
        ({"history": HISTORY_TO_MINIMIZE * 2}, EvaluationsError, "more than one history"),
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
    """The warning names the tasks, 0 and 1, and what has changed."""
    with pytest.warns(HistoryWarning, match="'0', '1': .* now from -5 to 5"):
        tuner = hbo.optimiser(
            "simple-ordered",
            space=numeric_space(),
            direction="minimize",
            history=HISTORY_ON_OTHER_SPACE,
        )
    assert tuner.ask()


def test_history_is_aligned_and_checked_once(monkeypatch):
    """Either takes long for a long history. Mocks count the calls, and pass them on."""
    task, history = make_task_and_history(numeric_space())
    counting_align = Mock(wraps=optimiser_module.align_history)
    counting_check = Mock(wraps=optimiser_module.check_history)
    monkeypatch.setattr(optimiser_module, "align_history", counting_align)
    monkeypatch.setattr(optimiser_module, "check_history", counting_check)

    hbo.optimiser("simple-ordered", space=task.space, direction="minimize", history=history)

    counting_align.assert_called_once()
    counting_check.assert_called_once()


def test_integer_value_that_floats_round_is_refused():
    """Values are stored as floats, and must not be changed by that."""
    smallest_integer_that_is_no_float = 2**53 + 1
    tuner, _ = make_tuner("random-search")
    config = tuner.ask()
    with pytest.raises(EvaluationsError, match="an integer that floats round"):
        tuner.tell(config, smallest_integer_that_is_no_float)


def test_restoring_a_journal_reports_progress(tmp_path, monkeypatch):
    """An optimiser that reads a journal shows how many of its lines it has read.

    The journal of two trials has four lines: of each trial a suggestion and a result.
    """
    file = tmp_path / "tuning.jsonl"
    tuner, task = make_tuner("random-search", file=file)
    tune(tuner, task, trials=2)
    # `show_progress`, whose first argument is whether to show anything, is a context. Its value is
    # called with the number of lines read, and with that of all lines.
    report_lines = Mock()
    show_progress = Mock(return_value=nullcontext(report_lines))
    monkeypatch.setattr(optimiser_module, "show_progress", show_progress)

    make_tuner("random-search", file=file)

    show_progress.assert_called_once_with(True, unit="trials restored")
    assert report_lines.call_args_list == [call(1, 4), call(2, 4), call(3, 4), call(4, 4)]


def test_method_of_invalid_suggestion_is_named():
    """The method `OutOfBounds` suggests a value of x beyond its range."""
    tuner, _ = make_tuner(OutOfBounds, space=numeric_space())
    with pytest.raises(InvalidSuggestionError, match=r"OutOfBounds suggested.*x must be a number"):
        tuner.ask()


@pytest.fixture
def tuner_and_task_with_failure():
    """An optimiser after six trials, one in flight and one that failed; and its task."""
    tuner, task = make_tuner("bo")
    tune(tuner, task, trials=6)
    tuner.ask()  # stays in flight
    failed_config = tuner.ask()
    tuner.tell(failed_config, None)
    return tuner, task


def test_frame_has_all_told_trials(tuner_and_task_with_failure):
    """Six trials with a value and one that failed, but not the one that is in flight."""
    tuner, task = tuner_and_task_with_failure
    frame = tuner.frame(objective="loss")
    constant_of_space = "fixed"
    assert list(frame.columns) == [*task.space.names, constant_of_space, "loss"]
    has_failed = frame["loss"].isna().tolist()
    assert has_failed == [False] * 6 + [True]
    last_row, failed_trial = frame.iloc[-1], tuner.trials[-1]
    assert last_row["kind"] == failed_trial.config["kind"]


def test_frame_is_history_for_the_next_task(tuner_and_task_with_failure):
    """All trials with a result are read back from the table, also the one that failed."""
    tuner, task = tuner_and_task_with_failure
    frame = tuner.frame(objective="loss").assign(month="May")

    (history,) = hbo.read_history(
        frame, task.space, objective="loss", direction="minimize", task="month"
    )

    # A trial in flight has the value None, one that failed NaN.
    told_trials = [trial for trial in tuner.trials if trial.value is not None]
    assert task.space.configs(history.values) == [trial.config for trial in told_trials]
    values = [trial.value for trial in told_trials]
    np.testing.assert_array_equal(history.objective, values)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "trials_before_stop", [7, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 1))]
)
def test_journal_resumes_with_same_suggestions(tmp_path, method, trials_before_stop):
    """An optimiser stops after some of ten trials; another one with its journal goes on."""
    undisturbed, task = make_tuner(method)
    expected_configs = tune(undisturbed, task, trials=10)
    file = tmp_path / "tuning.jsonl"
    stopped, _ = make_tuner(method, file=file)
    configs_before_stop = tune(stopped, task, trials=trials_before_stop)

    resumed, _ = make_tuner(method, file=file)
    assert resumed.trials == undisturbed.trials[:trials_before_stop]
    configs_after_stop = tune(resumed, task, trials=10 - trials_before_stop)

    assert configs_before_stop + configs_after_stop == expected_configs
    assert resumed.trials == undisturbed.trials


@pytest.mark.parametrize("method", METHODS)
def test_journal_of_finished_tuning_is_restored(tmp_path, method):
    """An optimiser with the journal of another one has its ten trials."""
    file = tmp_path / "tuning.jsonl"
    tuner, task = make_tuner(method, file=file)
    tune(tuner, task, trials=10)
    restored, _ = make_tuner(method, file=file)
    assert restored.trials == tuner.trials


ASK, TELL_OLDEST, TELL_SECOND, TELL_THIRD, TELL_FAILURE = range(-1, 4)
"""Events of an optimiser; all but ASK are the place of what they tell among what is in flight,
counted around where there is less."""


def let_event_happen(tuner: hbo.Optimiser, task: hbo.Task, event: int) -> None:
    """Ask the optimiser for a suggestion, or tell it the result of one that is in flight.

    An event other than ASK is the place of the suggestion among those in flight, the oldest first;
    where there are fewer, places are counted around.
    """
    if event == ASK or not tuner.pending:
        tuner.ask()
        return
    place = event % len(tuner.pending)
    config = tuner.pending[place]
    value = None if event == TELL_FAILURE else task.evaluate(config)
    tuner.tell(config, value)


@given(
    events=st.lists(
        # ASK twice, so that more is asked than told.
        st.sampled_from([ASK, ASK, TELL_OLDEST, TELL_SECOND, TELL_THIRD, TELL_FAILURE]),
        max_size=14,
    ),
    data=st.data(),
)
def test_cut_off_journal_restores_earlier_trials(tmp_path_factory, events, data):
    """The journal is cut off at any byte, as if the process had been killed.

    The trials restored are those after the last event that the journal still has whole.
    """
    file = tmp_path_factory.mktemp("journal") / "tuning.jsonl"
    tuner, task = make_tuner("bo", space=numeric_space(), file=file)
    size_and_trials = [(0, ()), (file.stat().st_size, tuner.trials)]
    for event in events:
        let_event_happen(tuner, task, event)
        # Trials as they are after each event, and the size of the journal that has them.
        size_and_trials.append((file.stat().st_size, tuner.trials))

    size_after_all_events = file.stat().st_size
    size_after_cut = data.draw(st.integers(0, size_after_all_events))
    os.truncate(file, size_after_cut)
    restored, _ = make_tuner("bo", space=numeric_space(), file=file)

    trials_after_whole_events = [
        trials for size, trials in size_and_trials if size <= size_after_cut
    ]
    expected = trials_after_whole_events[-1]
    # As text, for NaN is not equal to itself.
    assert repr(restored.trials) == repr(expected)
    assert restored.pending == [trial.config for trial in expected if trial.value is None]
    restored.ask()
    # The line of the new suggestion is whole, and not the rest of a line that was cut off.
    assert file.read_bytes().endswith(b"}\n")


SUPPORT = str(Path(__file__).parents[1] / "support")
SCRIPT_UNTIL_NINE_TRIALS = """
import os, signal, sys
sys.path.insert(0, {folder!r})
from tuning_support import make_tuner
tuner, task = make_tuner("simple-ordered", file={file!r})
for config in tuner.pending:
    tuner.tell(config, task.evaluate(config))
while len(tuner.trials) < 9:
    config = tuner.ask()
    if len(tuner.trials) == {killed_in_trial}:
        os.kill(os.getpid(), signal.SIGKILL)
    tuner.tell(config, task.evaluate(config))
"""
NEVER = 0  # the trials are counted from 1


def tune_until_nine_trials(file: Path, killed_in_trial: int) -> int:
    """Go on with a journal in a process, which may kill itself; return the exit code."""
    script = SCRIPT_UNTIL_NINE_TRIALS.format(
        folder=SUPPORT, file=str(file), killed_in_trial=killed_in_trial
    )
    return subprocess.run([sys.executable, "-c", script], check=False).returncode


@pytest.mark.slow
def test_killed_processes_lose_nothing(tmp_path):
    """Processes are killed in trials 1, 4 and 8 of nine, before their results are told."""
    undisturbed, task = make_tuner("simple-ordered")
    tune(undisturbed, task, trials=9)

    file = tmp_path / "tuning.jsonl"
    for killed_in_trial in (1, 4, 8):
        assert tune_until_nine_trials(file, killed_in_trial) == -signal.SIGKILL
    assert tune_until_nine_trials(file, killed_in_trial=NEVER) == 0

    restored, _ = make_tuner("simple-ordered", file=file)
    assert restored.trials == undisturbed.trials


SPACE_OF_WIDER_X = hbo.SearchSpace(
    [hbo.Parameter.number("x", -9, 5), numeric_space()["y"]],
)
FIRST_OF_HISTORY, SECOND_OF_HISTORY = HISTORY_TO_MINIMIZE
CHANGED_SECOND = replace(SECOND_OF_HISTORY, objective=SECOND_OF_HISTORY.objective + 1)
HISTORY_TO_MAXIMIZE = [
    replace(evaluations, direction=hbo.Direction.MAXIMIZE) for evaluations in HISTORY_TO_MINIMIZE
]


@pytest.mark.filterwarnings("ignore:earlier tasks are on another search space")
@pytest.mark.parametrize(
    ("changed_options", "message"),
    [
        ({"method": "cts"}, "method was 'simple-ordered', now 'cts'"),
        ({"seed": 1, "budget": 9}, "seed was 0, now 1; budget was 100, now 9"),
        ({"context": {"index": 2}}, "context was {}, now {'index': 2}"),
        (
            {"history": [FIRST_OF_HISTORY]},
            r"history was of \['0', '1'\], now of \['0'\]",
        ),
        (
            {"history": [SECOND_OF_HISTORY, FIRST_OF_HISTORY]},
            r"history was of \['0', '1'\], now of \['1', '0'\]",
        ),
        (
            {"history": [FIRST_OF_HISTORY, CHANGED_SECOND]},
            "the evaluations of '1' in the history differ",
        ),
        (
            {"direction": "maximize", "history": HISTORY_TO_MAXIMIZE},
            "direction was 'minimize'",
        ),
        (
            {"space": SPACE_OF_WIDER_X},
            "search space differs.*x: from -5 to 5, now from -9 to 5",
        ),
    ],
    ids=["method", "numbers", "context", "fewer", "order", "evaluations", "direction", "space"],
)
def test_journal_of_another_optimiser_is_refused(tmp_path, changed_options, message):
    """One of the options differs from those of the optimiser that wrote the file."""
    file = tmp_path / "tuning.jsonl"
    options = {
        "method": "simple-ordered",
        "space": numeric_space(),
        "direction": "minimize",
        "history": HISTORY_TO_MINIMIZE,
        "file": file,
    }
    hbo.optimiser(**options).ask()
    content_before = file.read_bytes()

    with pytest.raises(StoreError, match=message):
        hbo.optimiser(**(options | changed_options))

    assert file.read_bytes() == content_before


def test_journal_allows_other_defaults(tmp_path):
    """A journal is taken up on a space that differs only in the default value of x."""
    file = tmp_path / "tuning.jsonl"
    for default in (0.5, 0.25):
        x = hbo.Parameter("x", hbo.Kind.FLOAT, 0.0, 1.0, default=default)
        space = hbo.SearchSpace([x])
        tuner = hbo.optimiser("bo", space=space, direction="minimize", file=file)
        tuner.tell(tuner.ask(), 1.0)
    # The second optimiser has the trial of the first one, and its own.
    assert len(tuner.trials) == 2


def test_changed_method_is_noticed(tmp_path, monkeypatch):
    """A method of the same version suggests something else, as a library that it uses changed.

    The version, which follows from the method's source text, is fixed here.
    """
    file = tmp_path / "tuning.jsonl"
    spec = hbo.MethodSpec("drawing", Good, "", "")  # `Good` draws at random
    monkeypatch.setattr("hpobench_ordered.adapters.optimiser.method_version", lambda spec: "1")
    tuner, _ = make_tuner(spec, file=file)
    tuner.ask()

    rng_of_changed_method = np.random.default_rng(1)
    monkeypatch.setattr(Good, "ask", lambda self: self.space.sample(rng_of_changed_method))

    # Line 2 is the suggestion, after the settings.
    with pytest.raises(StoreError, match=r"line 2 of .*tuning.jsonl: the method suggested"):
        make_tuner(spec, file=file)


@pytest.mark.parametrize("line", ["{", "[]", '{"tell": {"x": 9, "y": 0.5}, "value": 1}', "{}"])
def test_damaged_journal_is_refused(tmp_path, line):
    """A line is added that is no JSON, or no record of a journal."""
    file = tmp_path / "tuning.jsonl"
    tuner, _ = make_tuner("bo", space=numeric_space(), file=file)
    tuner.ask()  # lines 1 and 2: the settings, and the suggestion
    with file.open("a") as journal:
        journal.write(f"{line}\n")
    with pytest.raises(StoreError, match="line 3 of"):
        make_tuner("bo", space=numeric_space(), file=file)


@pytest.mark.parametrize(
    "content",
    ["my notes\nof today\n", '{"a": 1}\n', "my notes without an end"],
    ids=["text", "JSON", "unfinished line"],
)
def test_other_files_are_left_alone(tmp_path, content):
    """A file of other content is named as the journal by mistake."""
    file = tmp_path / "notes.txt"
    file.write_text(content)
    with pytest.raises(StoreError, match=r"line 1 of .*notes.txt"):
        make_tuner("bo", file=file)
    assert file.read_text() == content


def test_journal_has_one_writer(tmp_path):
    """Where two optimisers write to a journal, the second to do so is refused."""
    first, _ = make_tuner("bo", file=tmp_path / "tuning.jsonl")
    second, _ = make_tuner("bo", file=tmp_path / "tuning.jsonl")
    first.ask()
    with pytest.raises(StoreError, match="another optimiser writes to"):
        second.ask()


@pytest.fixture
def journal_of_five_trials(tmp_path):
    """The file of an optimiser after five trials of random search."""
    file = tmp_path / "tuning.jsonl"
    tuner, task = make_tuner("random-search", file=file)
    tune(tuner, task, trials=5)
    return file


def flip_bit(content: bytes, bit: int) -> bytes:
    """Copy bytes with one bit changed; bits are counted from 0."""
    byte, place_in_byte = divmod(bit, 8)
    changed = bytearray(content)
    changed[byte] ^= 1 << place_in_byte
    return bytes(changed)


def test_changed_bits_of_a_journal_are_noticed(journal_of_five_trials):
    """Changed are 250 random bits, and those of the last byte, which ends a line: one at a time."""
    content = journal_of_five_trials.read_bytes()
    n_bits = 8 * len(content)
    random_bits = np.random.default_rng(0).permutation(n_bits)[:250]
    bits_of_last_byte = range(n_bits - 8, n_bits)
    for bit in [*random_bits, *bits_of_last_byte]:
        changed = flip_bit(content, bit)
        journal_of_five_trials.write_bytes(changed)
        with pytest.raises(StoreError, match=r"line \d+ of .*tuning.jsonl is not one of an"):
            make_tuner("random-search", file=journal_of_five_trials)
        assert journal_of_five_trials.read_bytes() == changed


@pytest.mark.parametrize("change", ["line missing", "lines exchanged", "line repeated"])
def test_changed_lines_of_a_journal_are_noticed(journal_of_five_trials, change):
    """Lines are missing, exchanged or repeated, though each of them is valid by itself.

    The first line has the settings; each of five trials has one of its suggestion and one of its
    result.
    """
    lines = journal_of_five_trials.read_bytes().splitlines(keepends=True)
    if change == "line missing":
        del lines[3]
    elif change == "lines exchanged":
        lines = [*lines[:3], lines[4], lines[3]]
    elif change == "line repeated":
        lines.append(lines[-1])
    journal_of_five_trials.write_bytes(b"".join(lines))
    with pytest.raises(StoreError, match="is not one of an optimiser's journal"):
        make_tuner("random-search", file=journal_of_five_trials)


@pytest.fixture
def tuner_with_full_disk(tmp_path, monkeypatch):
    """An optimiser that found the disk full when it was told a result; and its suggestion."""

    def fail_with_line_cut_off(file: int) -> None:
        """Act as `fsync` where a full disk has left no room for the end of a line."""
        some_bytes = 9  # fewer than a line has
        os.truncate(file, os.fstat(file).st_size - some_bytes)
        raise OSError(errno.ENOSPC, "No space left on device")

    tuner, _ = make_tuner("bo", file=tmp_path / "tuning.jsonl")
    config = tuner.ask()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail_with_line_cut_off)
        with pytest.raises(StoreError, match=r"cannot be written: .*No space left"):
            tuner.tell(config, 1.0)
    return tuner, config


def test_optimiser_stops_after_failed_write(tuner_with_full_disk):
    """Further lines would follow one that is cut off; a new optimiser removes that one."""
    tuner, _ = tuner_with_full_disk
    with pytest.raises(StoreError, match="create the optimiser again"):
        tuner.ask()


def test_failed_write_loses_no_suggestion(tuner_with_full_disk, tmp_path):
    """The result was not stored, so that the suggestion is in flight and can be told again."""
    _, config = tuner_with_full_disk
    restored, _ = make_tuner("bo", file=tmp_path / "tuning.jsonl")
    assert restored.pending == [config]
    restored.tell(config, 1.0)


def test_journal_in_missing_folder_is_refused(tmp_path):
    with pytest.raises(StoreError, match="cannot be written"):
        make_tuner("bo", file=tmp_path / "no" / "where")
