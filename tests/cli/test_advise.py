"""The command `advise`: files of earlier tasks in, advice out."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

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

    The best AUC is 0.9, at a rate of 10 ** -0.5, a depth of 5 and the first booster.
    """
    frames = []
    for task in range(tasks):
        rng = np.random.default_rng(task)
        values = SPACE.decode(SPACE.sample_unit(rng, evaluations))
        rate, depth, index_of_booster = values.T
        # Far from the optimum, each hyperparameter lowers the AUC by up to about 0.1.
        penalty_of_rate = ((np.log10(rate) + 0.5) / 2) ** 2
        penalty_of_depth = ((depth - 5) / 7) ** 2
        penalty_of_booster = index_of_booster  # 0 for the first one
        auc = 0.9 - 0.1 * (penalty_of_rate + penalty_of_depth + penalty_of_booster)

        evaluations_of_task = hbo.Evaluations(
            f"m{task}", {}, values, auc, space=SPACE, direction="maximize"
        )
        frames.append(evaluations_of_task.frame(task="month", objective="auc"))
    return pd.concat(frames, ignore_index=True)


@pytest.fixture
def folder_with_files(folder):
    """The working folder, with the two files that the command reads by default.

    They are the search space, and 40 evaluations of each of four tasks with the same optimum.
    """
    (folder / "space.json").write_text(json.dumps(SPACE.to_json()))
    make_table_with_fixed_optimum().to_csv(folder / "old.csv", index=False)
    return folder


@pytest.fixture
def advice_result(cli, folder_with_files):
    """The result of advice on tasks that all have the same optimum.

    It compares random-search and simple-previous in 4 trials; the folder `out` keeps its runs.
    """
    result = cli(*advise_words(output="out"))
    assert result.returncode == 0, result.stderr
    return result


class AdviceText(NamedTuple):
    """The parts of the text that `advise` prints, in their order."""

    surrogates: str
    methods: str
    sentences: str
    next_command: str


@pytest.fixture
def advice_text(advice_result):
    """What `advise` prints on tasks that all have the same optimum; see `advice_result`."""
    return AdviceText(*advice_result.stdout.split("\n\n"))


@pytest.mark.slow
def test_advice_keeps_report(advice_result):
    """With --output, the folder also gets a report, whose path is printed."""
    report = Path("out", "report", "report.html")

    assert f"report: {report}" in advice_result.stderr
    assert report.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("advice_result")
def test_advice_keeps_runs(cli):
    """With --output, the folder `out` keeps the runs, as a store of results."""
    assert cli("status", "out").returncode == 0


@pytest.mark.slow
def test_advice_shows_evaluations_of_tasks(advice_text):
    """The table of surrogates has a line for each task: its name, its evaluations, and more."""
    _title, _header, *lines = advice_text.surrogates.splitlines()

    tasks_and_evaluations = [line.split()[:2] for line in lines]
    assert tasks_and_evaluations == [["m0", "40"], ["m1", "40"], ["m2", "40"], ["m3", "40"]]


@pytest.mark.slow
def test_advice_calls_good_surrogates_not_poor(advice_result):
    assert "poor" not in advice_result.stdout + advice_result.stderr


@pytest.mark.slow
def test_advice_shows_best_method_first(advice_text):
    """The best method is simple-previous, which copies the optimum of the task before.

    The third column of a line is the share of the distance to the best value that a method leaves
    after all trials. The last column says whether the method may be the best one, within the error.
    """
    _title, _header, line_of_best, line_of_other = advice_text.methods.splitlines()

    name, _, share_left_by_best, *_, is_within_error = line_of_best.split()
    _, _, share_left_by_other, *_ = line_of_other.split()
    assert name == "simple-previous"
    assert is_within_error == "yes"
    assert float(share_left_by_best) <= float(share_left_by_other)


@pytest.mark.slow
def test_advice_says_that_copying_wins(advice_text):
    """The method simple-previous copies the optimum of the task before, which all tasks share."""
    assert "After 4 trials simple-previous leaves least" in advice_text.sentences
    # A longer sentence begins with it.
    copying_wins = "Copying wins: 4 trials of random-search, without any history,"
    assert copying_wins in advice_text.sentences


@pytest.mark.slow
def test_advice_is_that_of_python(advice_text):
    """`hbo.advise` with the same options as the command writes the same sentences."""
    history = hbo.read_history(
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

    assert advice_text.sentences.splitlines() == list(advice.sentences)


@pytest.mark.slow
def test_next_command_works(cli, advice_text):
    """Advice ends with a command that suggests configurations of the next task."""
    label, program, *words = shlex.split(advice_text.next_command)
    assert (label, program) == ("Next:", "hpobench-ordered")

    result = cli(*words)

    assert result.returncode == 0, result.stderr
    # It suggests as many configurations as there were trials in the comparison.
    assert len(pd.read_csv("next.csv")) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"history": "older.csv"}, "unknown file 'older.csv'; did you mean 'old.csv'?"),
        ({"history": None}, "give earlier tasks: --history SOURCE"),
        ({"methods": ["simple-orderd"]}, "did you mean 'simple-ordered'"),
    ],
    ids=["unknown file", "no history", "unknown method"],
)
def test_wrong_option_is_named(cli, folder_with_files, options, message):
    assert_fails(cli(*advise_words(**options)), MISUSE, message)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ({"tasks": 2}, "at least 3 tasks, but got 2: 'm0', 'm1'"),
        ({"evaluations": 9}, "at least 10 different configurations"),
    ],
    ids=["tasks", "evaluations"],
)
def test_too_small_history_is_named(cli, folder_with_files, size, message):
    make_table_with_fixed_optimum(**size).to_csv(folder_with_files / "old.csv", index=False)
    assert_fails(cli(*advise_words()), MISUSE, message)


@pytest.mark.slow
def test_example_of_help_works(cli, folder_with_files):
    """The example is a command of two lines for 15 trials; the files it reads are in the folder."""
    help_text = cli("advise", "--help").stdout
    _, _, example = help_text.partition("Example")
    _title, first_line, second_line, *_ = example.splitlines()
    command = first_line.removesuffix("\\") + second_line
    program, *words = command.split()
    assert program == "hpobench-ordered"

    # With its defaults it would compare many methods, which takes long.
    few_runs = ["--method", "random-search", "--seeds", "1", "--workers", "1"]
    result = cli(*words, *few_runs)

    assert result.returncode == 0, result.stderr
    assert "After 15 trials random-search leaves least" in result.stdout
