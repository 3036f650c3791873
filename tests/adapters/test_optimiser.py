"""Methods on a task of one's own: asked and told, stopped and taken up again."""

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
    """What the method suggests when it is asked and told by hand."""
    tuner, task = make_tuner(method, direction=direction, seed=3)
    settings = {
        "history": make_task_and_history(direction=direction)[1],
        "context": task.context,
        "budget": 12,
    }
    rng = np.random.default_rng(3)
    by_hand = method_spec(method).method(space=task.space, rng=rng, **settings)
    with one_thread():
        for config in tune(tuner, task):
            expected = by_hand.ask()
            assert config == expected
            by_hand.tell(expected, task.objective.loss(task.evaluate(expected)))
    choose = max if direction is hbo.Direction.MAXIMIZE else min
    assert tuner.best.value == choose(t.value for t in tuner.trials)
    assert task.evaluate(tuner.best.config) == tuner.best.value
    assert f"12 trials, best {tuner.best.value})" in repr(tuner)


def test_suggestions_are_told_in_any_order():
    tuner, task = make_tuner("bo")
    asked = [dict(tuner.ask()) for _ in range(4)]
    tuner.trials[0].config.clear()  # a copy, as all that is given out
    assert tuner.pending == asked
    for i in (2, 0, 3):
        tuner.tell(asked[i], task.evaluate(asked[i]))
    assert tuner.pending == [asked[1]]
    assert [t.config for t in tuner.trials] == asked
    assert tuner.trials[2].value == task.evaluate(asked[2])
    further = [tuner.ask() for _ in range(3)]
    assert len({json.dumps(c) for c in asked + further}) == 7  # what is in flight is not repeated


def test_threads_share_an_optimiser():
    tuner, task = make_tuner("bo")

    def trial(_: int) -> None:
        config = tuner.ask()
        tuner.tell(config, task.evaluate(config))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(trial, range(20)))
    assert len(tuner.trials) == 20
    assert all(t.value == task.evaluate(t.config) for t in tuner.trials)
    assert tuner.pending == []


def test_config_that_was_not_asked_for():
    tuner, _ = make_tuner("bo", space=numeric_space())
    tuner.tell({"x": 1, "y": 0.5}, 0.25)
    assert tuner.trials == (Trial({"x": 1.0, "y": 0.5}, 0.25),)
    assert tuner.ask() != tuner.best.config


def test_equal_suggestions_are_told_in_order():
    tuner = hbo.optimiser("random-search", space={"kind": ["a"]}, direction="minimize")
    for value, config in enumerate([tuner.ask(), tuner.ask()]):  # twice the same
        tuner.tell(config, value)
    assert [t.value for t in tuner.trials] == [0, 1]


def test_config_may_come_back_in_other_types():
    tuner, _ = make_tuner("random-search")
    config = tuner.ask()
    other = {k: np.float64(v) if isinstance(v, float) else v for k, v in config.items()}
    del other["fixed"]  # a constant
    other.setdefault("x", 0.5)  # of no effect where it is inactive
    tuner.tell(other, 1.0)
    assert tuner.pending == []
    assert [t.config for t in tuner.trials] == [config]


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, np.float32("nan")])
def test_failures_are_told_and_never_best(value):
    tuner, task = make_tuner("bo")
    config = tuner.ask()
    tuner.tell(config, value)
    assert math.isnan(tuner.trials[0].value)
    with pytest.raises(ExperimentError, match="no best trial yet"):
        tuner.best  # noqa: B018  it raises
    assert config not in tune(tuner, task)
    assert math.isfinite(tuner.best.value)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"x": 1.0, "Y": 0.5}, "did you mean 'y'"),
        ({"x": 1.0}, "'y' is missing: a number in"),
        ({"x": 1.0, "y": 2.0}, "y must be a number in .* got 2.0"),
        ([1.0, 0.5], "a configuration must be a dict"),
    ],
)
def test_invalid_config_is_not_told(config, words):
    tuner, _ = make_tuner("bo", space=numeric_space())
    with pytest.raises(InvalidConfigError, match=words):
        tuner.tell(config, 1.0)
    for value in ("0.5", [0.5, 1], 10**400):
        with pytest.raises(EvaluationsError, match="must be a number, or None for a failure"):
            tuner.tell({"x": 1.0, "y": 0.5}, value)
    assert tuner.trials == ()


def test_arguments_that_do_not_fit_are_refused():
    space, history = numeric_space(), make_task_and_history(numeric_space())[1]

    def refused(error, words, method="simple-ordered", **options) -> None:
        options = {"space": space, "direction": "minimize", "history": history} | options
        with pytest.raises(error, match=words):
            hbo.optimiser(method, **options)

    refused(UnknownNameError, "did you mean 'simple-ordered'", method="simple-orderd")
    refused(EvaluationsError, "did you mean 'maximize'", direction="maximise")
    refused(EvaluationsError, "objective is to minimize", direction="maximize")
    refused(EvaluationsError, "more than one history", history=history * 2)
    refused(ExperimentError, "needs a history of 1 earlier task, got 0", history=())
    refused(ExperimentError, "at least 1 trial", budget=0)
    refused(EvaluationsError, "got int", space=3)
    old = make_task_and_history(numeric_space_before())[1]
    refused(EvaluationsError, "another search space", method="cts", history=old)
    with pytest.warns(HistoryWarning, match="'0', '1': .* now from -5 to 5"):
        assert hbo.optimiser("simple-ordered", space=space, direction="minimize", history=old).ask()


def test_history_is_aligned_and_checked_once(monkeypatch):
    task, history = make_task_and_history(numeric_space())
    align = Mock(wraps=optimiser_module.align_history)
    check = Mock(wraps=optimiser_module.check_history)
    monkeypatch.setattr(optimiser_module, "align_history", align)
    monkeypatch.setattr(optimiser_module, "check_history", check)
    hbo.optimiser("simple-ordered", space=task.space, direction="minimize", history=history)
    assert (align.call_count, check.call_count) == (1, 1)


def test_integer_value_that_floats_round_is_refused():
    tuner, _ = make_tuner("random-search")
    with pytest.raises(EvaluationsError, match="an integer that floats round"):
        tuner.tell(tuner.ask(), 2**53 + 1)


def test_restoring_a_journal_reports_progress(tmp_path, monkeypatch):
    file = tmp_path / "tuning.jsonl"
    tuner, task = make_tuner("random-search", file=file)
    tune(tuner, task, trials=2)
    report = Mock()
    show_progress = Mock(return_value=nullcontext(report))
    monkeypatch.setattr(optimiser_module, "show_progress", show_progress)
    make_tuner("random-search", file=file)
    show_progress.assert_called_once_with(True, unit="trials restored")
    assert report.call_args_list == [call(1, 4), call(2, 4), call(3, 4), call(4, 4)]


def test_a_method_that_suggests_no_configuration_is_named():
    tuner, _ = make_tuner(OutOfBounds, space=numeric_space())
    with pytest.raises(InvalidSuggestionError, match=r"OutOfBounds suggested.*x must be a number"):
        tuner.ask()


def test_the_frame_is_history_for_the_next_task():
    first, task = make_tuner("bo")
    tune(first, task, trials=6)
    first.ask()  # it is not in the frame
    first.tell(tuned := first.ask(), None)
    frame = first.frame(objective="loss").assign(month="May")
    assert list(frame.columns) == [*task.space.names, "fixed", "loss", "month"]
    assert frame["loss"].isna().tolist() == [False] * 6 + [True]
    assert frame.iloc[-1]["kind"] == tuned["kind"]
    columns = {"objective": "loss", "direction": "minimize", "task": "month"}
    (history,) = hbo.history_from_frame(frame, task.space, **columns)
    assert history.objective[:6].tolist() == [t.value for t in first.trials[:6]]
    again = task.space.configs(history.values)
    assert again == [t.config for t in first.trials if t.value is not None]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("stop", [7, *(pytest.param(n, marks=pytest.mark.slow) for n in (0, 1))])
def test_journal_resumes_with_same_suggestions(tmp_path, method, stop):
    undisturbed, task = make_tuner(method)
    expected = tune(undisturbed, task, trials=10)
    file = tmp_path / "tuning.jsonl"
    first = tune(make_tuner(method, file=file)[0], task, trials=stop)
    second, _ = make_tuner(method, file=file)
    assert second.trials == undisturbed.trials[:stop]
    assert first + tune(second, task, trials=10 - stop) == expected
    assert second.trials == undisturbed.trials
    assert make_tuner(method, file=file)[0].trials == undisturbed.trials


@given(events=st.lists(st.integers(-2, 3), max_size=14), data=st.data())
def test_any_order_of_events_comes_back(tmp_path_factory, events, data):
    """Asks (below 0), and tells of the oldest, or another, that is in flight; cut off anywhere."""
    file = tmp_path_factory.mktemp("journal") / "tuning.jsonl"
    tuner, task = make_tuner("bo", space=numeric_space(), file=file)
    states = [(len(file.read_bytes()), tuner.trials)]
    for event in events:
        if event < 0 or not tuner.pending:
            tuner.ask()
        else:
            config = tuner.pending[event % len(tuner.pending)]
            tuner.tell(config, None if event == 3 else task.evaluate(config))
        states.append((len(file.read_bytes()), tuner.trials))
    size = data.draw(st.integers(0, states[-1][0]))
    os.truncate(file, size)  # as if the process had been killed while it wrote
    expected = next((trials for end, trials in reversed(states) if end <= size), ())
    again, _ = make_tuner("bo", space=numeric_space(), file=file)
    assert repr(again.trials) == repr(expected)  # NaN is not equal to itself
    assert again.pending == [t.config for t in expected if t.value is None]
    again.ask()
    assert file.read_bytes().endswith(b"}\n")


SUPPORT = str(Path(__file__).parents[1] / "support")
SCRIPT = """
import os, signal, sys
sys.path.insert(0, {folder!r})
from tuning_support import make_tuner
tuner, task = make_tuner("simple-ordered", file={file!r})
for config in tuner.pending:
    tuner.tell(config, task.evaluate(config))
while len(tuner.trials) < 9:
    config = tuner.ask()
    print(len(tuner.trials), flush=True)
    if len(tuner.trials) == {kill}:
        os.kill(os.getpid(), signal.SIGKILL)
    tuner.tell(config, task.evaluate(config))
"""


@pytest.mark.slow
def test_killed_processes_lose_nothing(tmp_path):
    undisturbed, task = make_tuner("simple-ordered")
    tune(undisturbed, task, trials=9)
    file = tmp_path / "tuning.jsonl"
    for kill in (1, 4, 8, 0):
        script = SCRIPT.format(folder=SUPPORT, file=str(file), kill=kill)
        done = subprocess.run([sys.executable, "-c", script], check=False, capture_output=True)
        assert done.returncode == (-signal.SIGKILL if kill else 0), done.stderr
    assert make_tuner("simple-ordered", file=file)[0].trials == undisturbed.trials


def test_a_journal_of_another_optimiser_is_refused(tmp_path):
    file = tmp_path / "tuning.jsonl"
    space, history = numeric_space(), make_task_and_history(numeric_space())[1]
    options = {"space": space, "direction": "minimize", "history": history, "file": file}
    hbo.optimiser("simple-ordered", **options).ask()
    content = file.read_bytes()

    def refused(words, method="simple-ordered", **others) -> None:
        with pytest.raises(StoreError, match=words):
            hbo.optimiser(method, **options | others)
        assert file.read_bytes() == content

    refused("method was 'simple-ordered', now 'cts'", method="cts")
    refused("seed was 0, now 1; budget was 100, now 9", seed=1, budget=9)
    refused("context was {}, now {'index': 2}", context={"index": 2})
    refused(r"history was of \['0', '1'\], now of \['0'\]", history=history[:1])
    refused(r"history was of \['0', '1'\], now of \['1', '0'\]", history=history[::-1])
    flipped = [replace(e, direction=hbo.Direction.MAXIMIZE) for e in history]
    changed = replace(history[1], objective=history[1].objective + 1)
    refused("the evaluations of '1' in the history differ", history=(history[0], changed))
    refused("direction was 'minimize'", direction="maximize", history=flipped)
    wider = hbo.SearchSpace([hbo.Parameter.number("x", -9, 5), space["y"]])
    with pytest.warns(HistoryWarning, match="earlier tasks are on another search space"):
        refused("search space differs.*x: from -5 to 5, now from -9 to 5", space=wider)


def test_journal_allows_other_defaults(tmp_path):
    file = tmp_path / "tuning.jsonl"
    for default in (0.5, 0.25):
        space = hbo.SearchSpace([hbo.Parameter("x", hbo.Kind.FLOAT, 0.0, 1.0, default=default)])
        tuner = hbo.optimiser("bo", space=space, direction="minimize", file=file)
        tuner.tell(tuner.ask(), 1.0)
    assert len(tuner.trials) == 2


def test_changed_method_is_noticed(tmp_path, monkeypatch):
    file = tmp_path / "tuning.jsonl"
    spec = hbo.MethodSpec("drawing", Good, "", "")
    monkeypatch.setattr("hpobench_ordered.adapters.optimiser.method_version", lambda spec: "1")
    make_tuner(spec, file=file)[0].ask()
    monkeypatch.setattr(Good, "ask", lambda self: self.space.sample(np.random.default_rng(1)))
    with pytest.raises(StoreError, match=r"line 2 of .*tuning.jsonl: the method suggested"):
        make_tuner(spec, file=file)


@pytest.mark.parametrize("line", ["{", "[]", '{"tell": {"x": 9, "y": 0.5}, "value": 1}', "{}"])
def test_a_damaged_journal_is_refused(tmp_path, line):
    file = tmp_path / "tuning.jsonl"
    make_tuner("bo", space=numeric_space(), file=file)[0].ask()
    with file.open("a") as journal:
        journal.write(f"{line}\n")
    with pytest.raises(StoreError, match="line 3 of"):
        make_tuner("bo", space=numeric_space(), file=file)


def test_other_files_are_left_alone(tmp_path):
    file = tmp_path / "notes.txt"
    for content in ("my notes\nof today\n", '{"a": 1}\n', "my notes without an end"):
        file.write_text(content)
        with pytest.raises(StoreError, match=r"line 1 of .*notes.txt"):
            make_tuner("bo", file=file)
        assert file.read_text() == content
    first, second = (make_tuner("bo", file=tmp_path / "tuning.jsonl")[0] for _ in range(2))
    first.ask()
    with pytest.raises(StoreError, match="another optimiser writes to"):
        second.ask()


def test_changed_bits_of_a_journal_are_noticed(tmp_path):
    file = tmp_path / "tuning.jsonl"
    tuner, task = make_tuner("random-search", file=file)
    tune(tuner, task, trials=5)
    content = file.read_bytes()
    bits = np.random.default_rng(0).permutation(8 * len(content))[:250]
    for bit in [*bits, *range(8 * len(content) - 8, 8 * len(content))]:
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        file.write_bytes(changed)
        with pytest.raises(StoreError, match=r"line \d+ of .*tuning.jsonl is not one"):
            make_tuner("random-search", file=file)
        assert file.read_bytes() == changed
    lines = content.splitlines(keepends=True)
    for other in (lines[:3] + lines[4:], [*lines[:3], lines[4], lines[3]], [*lines, lines[-1]]):
        file.write_bytes(b"".join(other))
        with pytest.raises(StoreError, match="is not one"):
            make_tuner("random-search", file=file)


def test_a_journal_that_cannot_be_written_loses_nothing(tmp_path):
    def full(file: int) -> None:
        os.truncate(file, os.fstat(file).st_size - 9)
        raise OSError(errno.ENOSPC, "No space left on device")

    file = tmp_path / "tuning.jsonl"
    tuner, _ = make_tuner("bo", file=file)
    config = tuner.ask()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match=r"cannot be written: .*No space left"):
            tuner.tell(config, 1.0)
    with pytest.raises(StoreError, match="create the optimiser again"):
        tuner.ask()
    again, _ = make_tuner("bo", file=file)
    assert again.pending == [config]
    again.tell(config, 1.0)
    with pytest.raises(StoreError, match="cannot be written"):
        make_tuner("bo", file=tmp_path / "no" / "where")
