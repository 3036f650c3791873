"""The command `advise`: files of earlier tasks in, advice out."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_results import MISUSE, assert_fails
from exact_csv import read_exactly

import hpobench_ordered as hbo

SPACE = hbo.SearchSpace(
    [
        hbo.Parameter.number("rate", 1e-4, 1.0, log=True),
        hbo.Parameter.number("depth", 2, 9, integer=True),
        hbo.Parameter.choice("booster", ("tree", "linear")),
    ]
)
DEFAULT_OPTIONS = {
    "history": "old.csv",
    "space": "space.json",
    "objective": "auc",
    "direction": "maximize",
    "task": "month",
    "trials": "4",
    "seeds": "2",
    "workers": "1",
}


def advise_words(
    methods: Sequence[str] = ("random-search", "simple-previous"), **options: str | None
) -> list[str]:
    """Build the words of the command, with defaults for other options; None leaves one out."""
    words = ["advise"]
    for name, value in (DEFAULT_OPTIONS | options).items():
        if value is not None:
            words += [f"--{name}", value]
    for method in methods:
        words += ["--method", method]
    return words


def make_table_with_fixed_optimum(tasks: int = 4, evaluations: int = 40) -> pd.DataFrame:
    """Build a table of tasks m0, m1, ... that all have their best AUC at the same configuration.

    It is 0.9 at a rate of 10 ** -0.5, a depth of 5 and the first booster.
    """
    frames = []
    for task in range(tasks):
        rng = np.random.default_rng(task)
        values = SPACE.decode(SPACE.sample_unit(rng, evaluations))
        rate, depth, index_of_booster = values.T
        distance = (np.log10(rate) + 0.5) ** 2 / 4 + ((depth - 5) / 7) ** 2 + index_of_booster
        auc = 0.9 - 0.1 * distance

        task_name = f"m{task}"
        of_task = hbo.Evaluations(task_name, {}, values, auc, space=SPACE, direction="maximize")
        frames.append(of_task.frame(task="month", objective="auc"))
    return pd.concat(frames, ignore_index=True)


@pytest.fixture
def files(folder):
    """The files of the default options: the search space, and evaluations of four tasks."""
    (folder / "space.json").write_text(json.dumps(SPACE.to_json()))
    make_table_with_fixed_optimum().to_csv(folder / "old.csv", index=False)
    return folder


@pytest.fixture
def advice_result(cli, files):
    """The result of advice, kept in `out`, on tasks that all have the same optimum.

    It prints four parts with an empty line between them: surrogates, methods, sentences, and the
    next command.
    """
    result = cli(*advise_words(output="out"))
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.slow
def test_advice_keeps_report(advice_result):
    report = Path("out", "report", "report.html")

    assert f"report: {report}" in advice_result.stderr
    assert report.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("advice_result")
def test_advice_keeps_runs(cli):
    """The folder `out` is a store of results."""
    assert cli("status", "out").returncode == 0


@pytest.mark.slow
def test_advice_shows_evaluations_of_tasks(advice_result):
    quality, _methods, _sentences, _next_command = advice_result.stdout.split("\n\n")

    _title, _header, *lines = quality.splitlines()
    tasks_and_evaluations = [line.split()[:2] for line in lines]  # the first two columns
    assert tasks_and_evaluations == [["m0", "40"], ["m1", "40"], ["m2", "40"], ["m3", "40"]]


@pytest.mark.slow
def test_advice_calls_good_surrogates_not_poor(advice_result):
    assert "poor" not in advice_result.stdout + advice_result.stderr


@pytest.mark.slow
def test_advice_shows_best_method_first(advice_result):
    """Copying wins on tasks that all have the same optimum."""
    _quality, methods, _sentences, _next_command = advice_result.stdout.split("\n\n")

    _title, _header, best, other = methods.splitlines()
    name, _, share_left_of_best, *_, needs_history = best.split()
    _, _, share_left_of_other, *_ = other.split()
    assert name == "simple-previous"
    assert needs_history == "yes"
    assert float(share_left_of_best) <= float(share_left_of_other)


@pytest.mark.slow
def test_advice_says_that_copying_wins(advice_result):
    _quality, _methods, sentences, _next_command = advice_result.stdout.split("\n\n")

    assert "After 4 trials simple-previous leaves least" in sentences
    assert "Copying wins: 4 trials of random-search, without any history," in sentences


@pytest.mark.slow
def test_advice_is_that_of_python(advice_result):
    """The options are those of the command."""
    history = hbo.history_from_frame(
        read_exactly("old.csv"), SPACE, objective="auc", direction="maximize", task="month"
    )
    advice = hbo.advise(
        history,
        space=SPACE,
        direction="maximize",
        methods=["random-search", "simple-previous"],
        trials=4,
        seeds=range(2),
    )

    _quality, _methods, sentences, _next_command = advice_result.stdout.split("\n\n")
    assert sentences.splitlines() == list(advice.sentences)


@pytest.mark.slow
def test_next_command_works(cli, advice_result):
    _quality, _methods, _sentences, next_command = advice_result.stdout.split("\n\n")
    label, program, *arguments = shlex.split(next_command)
    assert (label, program) == ("Next:", "hpobench-ordered")

    result = cli(*arguments)

    assert result.returncode == 0, result.stderr
    # As many configurations as trials were replayed.
    assert len(pd.read_csv("next.csv")) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"history": "older.csv"}, "unknown file 'older.csv'; did you mean 'old.csv'?"),
        ({"history": None}, "give earlier tasks: --history FILE, or --storage URL"),
        ({"methods": ["simple-orderd"]}, "did you mean 'simple-ordered'"),
    ],
    ids=["unknown file", "no history", "unknown method"],
)
def test_wrong_option_is_named(cli, files, options, message):
    assert_fails(cli(*advise_words(**options)), MISUSE, message)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ({"tasks": 2}, "at least 3 tasks, but got 2: 'm0', 'm1'"),
        ({"evaluations": 9}, "at least 10 different configurations"),
    ],
    ids=["tasks", "evaluations"],
)
def test_too_small_history_is_named(cli, files, size, message):
    make_table_with_fixed_optimum(**size).to_csv(files / "old.csv", index=False)
    assert_fails(cli(*advise_words()), MISUSE, message)


@pytest.mark.slow
def test_example_of_help_works(cli, files):
    help_text = cli("advise", "--help").stdout
    _, _, example = help_text.partition("Example")
    _title, first_line, second_line, *_ = example.splitlines()
    command = first_line.removesuffix("\\") + second_line
    program, *words = command.split()
    assert program == "hpobench-ordered"

    few_runs = ["--method", "random-search", "--seeds", "1", "--workers", "1"]
    result = cli(*words, *few_runs)

    assert result.returncode == 0, result.stderr
    default_trials = 15
    assert f"After {default_trials} trials random-search leaves least" in result.stdout
