"""The command `suggest`: everything is in files."""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from cli_results import MISUSE, assert_fails
from tuning_support import METHODS, make_task_and_history, make_tuner, tune

import hpobench_ordered as hbo
from hpobench_ordered.cli._history import read_space_file
from hpobench_ordered.testing.toy import conditional_space, numeric_space


def read_csv_text(text: str) -> list[dict[str, str]]:
    """Read the rows of a CSV text, each by the names of its columns."""
    return list(csv.DictReader(text.splitlines()))


def write_history(path: Path, direction: hbo.Direction = hbo.Direction.MINIMIZE) -> None:
    """Write the evaluations of the toy task's earlier tasks, with their contexts as columns."""
    _, history = make_task_and_history(direction=direction)
    frames = []
    for evaluations in history:
        frame = evaluations.frame(task="month", objective="loss")
        frames.append(frame.assign(**evaluations.context))
    pd.concat(frames).to_csv(path, index=False)


@pytest.fixture
def files(folder):
    """The files of the toy task: what is tuned, and what was evaluated on earlier tasks."""
    (folder / "space.json").write_text(json.dumps(conditional_space().to_json()))
    write_history(folder / "old.csv")
    return folder


def suggest_words(method="bo", **options: object) -> list[str]:
    """Build the words of the command, by default on the toy task with a history and its context.

    None leaves an option out.
    """
    default_options = {
        "space": "space.json",
        "direction": "minimize",
        "objective": "loss",
        "task": "month",
        "history": "old.csv",
        "context": "index=2",
        "budget": 12,
    }
    words = ["suggest", "--method", method]
    for name, value in (default_options | options).items():
        if value is not None:
            words += [f"--{name}", str(value)]
    return words


def suggest(cli, method="bo", **options: object) -> list[dict[str, Any]]:
    """Run the command and return the configurations that it prints as JSON."""
    result = cli(*suggest_words(method, format="json", **options))
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def append_to_csv(
    path: Path, configs: Sequence[Mapping[str, Any]], losses: Sequence[float | None]
) -> None:
    """Append evaluations of the toy task, as a user would; None is a failure, an empty cell."""
    is_new = not path.exists()
    with path.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, ["kind", "level", "n", "x", "fixed", "loss"])
        if is_new:
            writer.writeheader()
        for config, loss in zip(configs, losses, strict=True):
            cell = "" if loss is None else repr(loss)
            writer.writerow({**config, "loss": cell})


@pytest.mark.parametrize(
    ("direction", "trials_per_call"),
    [
        pytest.param(hbo.Direction.MINIMIZE, 1, marks=pytest.mark.slow),
        (hbo.Direction.MAXIMIZE, 4),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_suggestions_are_those_of_the_optimiser(cli, files, method, direction, trials_per_call):
    """Called until there are eight trials, with what was evaluated in between."""
    tuner, task = make_tuner(method, direction=direction, seed=3)
    write_history(files / "old.csv", direction)
    options = {"direction": direction.value, "seed": 3, "trials": trials_per_call}

    for _ in range(8 // trials_per_call):
        configs = suggest(cli, method, **options)

        assert configs == ask(tuner, trials_per_call)
        objective = [task.evaluate(config) for config in configs]
        tell(tuner, configs, objective)
        append_to_csv(files / "this.csv", configs, objective)
        options["results"] = "this.csv"


def ask(tuner: hbo.Optimiser, count: int) -> list[dict[str, Any]]:
    """Ask an optimiser for some configurations, one after the other."""
    return [tuner.ask() for _ in range(count)]


def tell(
    tuner: hbo.Optimiser, configs: Sequence[Mapping[str, Any]], objective: Sequence[float | None]
) -> None:
    """Tell an optimiser the objective of some configurations; None is a failed evaluation."""
    for config, value in zip(configs, objective, strict=True):
        tuner.tell(config, value)


def test_empty_objective_marks_failed_evaluation(cli, files):
    """An optimiser that is told of the failure suggests the same."""
    tuner, task = make_tuner()
    configs = ask(tuner, 4)
    losses = [task.evaluate(config) for config in configs]
    losses[1] = None
    tell(tuner, configs, losses)
    append_to_csv(files / "this.csv", configs, losses)

    next_configs = suggest(cli, trials=4, results="this.csv")

    assert next_configs == ask(tuner, 4)


CONFIG_OF_USER = {"kind": "c", "level": 10, "n": 7, "fixed": "always"}
"""A configuration of the toy task that no method suggested."""


@pytest.mark.parametrize("method", ["random-search", "bo", "tpe"])
def test_own_configurations_are_told(cli, files, method):
    """The next suggestion is that of an optimiser that is told the same."""
    tuner, task = make_tuner(method)
    suggested = tune(tuner, task, trials=2)
    losses = [task.evaluate(config) for config in suggested]
    loss_of_user = 0.25
    tuner.tell(CONFIG_OF_USER, loss_of_user)
    append_to_csv(files / "this.csv", [*suggested, CONFIG_OF_USER], [*losses, loss_of_user])

    configs = suggest(cli, method, results="this.csv")

    assert configs == ask(tuner, 1)


@pytest.mark.parametrize("method", ["random-search", "bo", "tpe"])
def test_results_are_not_suggested_again(cli, files, method):
    """Not even if a configuration of the user's own stands before those that were suggested."""
    tuner, task = make_tuner(method)
    suggested = tune(tuner, task, trials=2)
    evaluated = [CONFIG_OF_USER, *suggested]
    loss_of_user = 0.25
    losses = [task.evaluate(config) for config in suggested]
    append_to_csv(files / "this.csv", evaluated, [loss_of_user, *losses])

    configs = suggest(cli, method, results="this.csv", trials=3)

    assert len(configs) == 3
    assert all(config not in evaluated for config in configs)


WITHOUT_HISTORY = {"history": None, "task": None, "context": None}
"""Options that are left out where there are no earlier tasks."""


def test_used_up_space_repeats(cli, files):
    """Both configurations of the space have been evaluated."""
    space_of_two = hbo.SearchSpace([hbo.Parameter.choice("kind", ("a", "b"))])
    (files / "space.json").write_text(json.dumps(space_of_two.to_json()))
    both_evaluated = "kind,loss\nb,1\nb,2\na,3\n"
    (files / "this.csv").write_text(both_evaluated)

    configs = suggest(cli, trials=3, results="this.csv", **WITHOUT_HISTORY)

    assert len(configs) == 3
    assert all(config["kind"] in ("a", "b") for config in configs)


def test_output_file_holds_what_is_printed(cli, files):
    printed = cli(*suggest_words(trials=3))

    written = cli(*suggest_words(trials=3, output="next.csv"))

    assert written.stdout == ""
    assert (files / "next.csv").read_text() == printed.stdout


def test_csv_holds_the_configurations(cli, files):
    """Cells of inactive hyperparameters are empty."""
    configs = suggest(cli, trials=3)  # as JSON
    names = ["kind", "level", "n", "x", "fixed"]
    expected_rows = []
    for config in configs:
        expected_rows.append({name: str(config.get(name, "")) for name in names})

    text = cli(*suggest_words(trials=3)).stdout

    assert text.startswith(",".join(names) + "\n")
    assert read_csv_text(text) == expected_rows


def test_suggest_needs_no_history(cli, files):
    """A budget of 12 trials is what `suggest_words` sets."""
    tuner = hbo.optimiser(
        "random-search", space=conditional_space(), direction="minimize", seed=4, budget=12
    )

    configs = suggest(cli, "random-search", objective=None, trials=2, seed=4, **WITHOUT_HISTORY)

    assert configs == ask(tuner, 2)


def test_choices_are_read_as_written(cli, folder):
    """Texts of numbers, "None" and "NA", and truth values.

    Each of three earlier tasks has one evaluation, which simple-ordered repeats, the latest first.
    """
    space = hbo.SearchSpace(
        [
            hbo.Parameter.choice("text", ("1", "2")),
            hbo.Parameter.choice("empty", ("None", "NA")),
            hbo.Parameter.choice("truth", (True, False)),
            hbo.Parameter.choice("n", (1, 2.5)),
        ]
    )
    (folder / "space.json").write_text(json.dumps(space.to_json()))
    (folder / "old.csv").write_text(
        "month,text,empty,truth,n,loss\n"
        "May,1,NA,True,2.5,1.0\n"
        "June,2,None,False,1,2.0\n"
        "July,1,None,False,2.5,3.0\n"
    )

    configs = suggest(cli, "simple-ordered", context=None, trials=3)

    assert configs == [
        {"text": "1", "empty": "None", "truth": False, "n": 2.5},
        {"text": "2", "empty": "None", "truth": False, "n": 1},
        {"text": "1", "empty": "NA", "truth": True, "n": 2.5},
    ]


OLD = "month,x,y,loss\nMay,1,0.5,3\nMay,2,0.1,\nJune,3,0.2,1\n"
"""Three evaluations in lines 2 to 4, of which the second failed, on the numeric space."""
OLD_WITH_TWO_SIZES_OF_MAY = "month,x,y,loss,size\nMay,1,0.5,3,3\nMay,2,0.1,,4\n"


@pytest.fixture
def numeric_files(folder):
    """The numeric space of x from -5 to 5 and y up to 1, and the evaluations on it."""
    (folder / "space.json").write_text(json.dumps(numeric_space().to_json()))
    (folder / "old.csv").write_text(OLD)
    return folder


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": None}, "needs --task COLUMN and --objective"),
        ({"context": "size"}, "NAME=NUMBER"),
        ({"context": "size=2"}, "old.csv cannot be read:\n- no column 'size'"),
        ({"space": "other.json"}, "unknown file 'other.json'"),
        ({"space": "old.csv"}, "no search space in old.csv"),
    ],
)
def test_wrong_option_is_named(cli, numeric_files, options, message):
    """By default there are a history and an objective, but no context."""
    words = suggest_words("simple-ordered", **({"context": None} | options))

    result = cli(*words)

    assert_fails(result, MISUSE, message)


@pytest.mark.parametrize(
    ("history", "message"),
    [
        (OLD.replace("0.2,", ""), "line 4 of old.csv has 3 values, but its header"),
        (OLD + "May,1,0.5,3\n", "repeat another row of their task: line 5 (line 2)"),
        (OLD.replace(",", ";"), "separated by commas, not ';'"),
        ("", "old.csv is empty"),
    ],
    ids=["cell missing", "row repeated", "semicolons", "empty"],
)
def test_wrong_history_is_named(cli, numeric_files, history, message):
    """The file of earlier evaluations is broken; lines are counted from the header, 1."""
    (numeric_files / "old.csv").write_text(history)

    result = cli(*suggest_words("simple-ordered", context=None))

    assert_fails(result, MISUSE, message)


def test_context_must_be_the_same_within_a_task(cli, numeric_files):
    """The two evaluations of May have sizes of 3 and 4."""
    (numeric_files / "old.csv").write_text(OLD_WITH_TWO_SIZES_OF_MAY)

    result = cli(*suggest_words("simple-ordered", context="size=2"))

    assert_fails(result, MISUSE, "each task, but task 'May' has '4' in l")


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ("x,loss\n1,2\n", "--results cannot be read:\n- no column 'y'"),
        ("x,y,loss\n1,0.5,2\n\n1,5,2\n", "(log scale): line 4 ('5')"),
        ("x,y,loss\n1,0.5,low\n", "the evaluation failed: line 2 ('low')"),
        ("month,x,y,loss\nMay,1,0.5,2\nJune,1,0.5,3\n", "results must be of one task"),
    ],
    ids=["column missing", "out of range", "text as loss", "two tasks"],
)
def test_wrong_results_are_named(cli, numeric_files, results, message):
    """The file of results on the current task is broken; lines are counted from the header, 1."""
    (numeric_files / "this.csv").write_text(results)

    result = cli(*suggest_words("simple-ordered", context=None, results="this.csv"))

    assert_fails(result, MISUSE, message)


@pytest.fixture
def words_with_invalid_row(numeric_files):
    """Words of the command where y of the last row is 20, and its upper bound 1.

    The rows are the best of two tasks: simple-ordered suggests the last one first.
    """
    (numeric_files / "old.csv").write_text(
        "month,x,y,loss\nJune,1,0.5,3\nMay,2,0.1,\nJune,3,20,1\n"
    )
    return suggest_words("simple-ordered", context=None, format="json")


def test_invalid_row_is_misuse(cli, words_with_invalid_row):
    assert_fails(cli(*words_with_invalid_row), MISUSE, "'20'")


def test_invalid_row_is_dropped_if_asked(cli, words_with_invalid_row):
    """What is left of June has its best evaluation at x = 1 and y = 0.5."""
    result = cli(*words_with_invalid_row, "--drop-invalid")

    assert result.stderr.startswith("warning: 1 of 3 evaluations are left out")
    assert json.loads(result.stdout) == [{"x": 1.0, "y": 0.5}]


def test_invalid_row_is_clipped_if_asked(cli, words_with_invalid_row):
    """The best evaluation of June is at x = 3 and y = 20, whose upper bound is 1."""
    result = cli(*words_with_invalid_row, "--clip")

    assert "1 of 'y'" in result.stderr
    assert json.loads(result.stdout) == [{"x": 3.0, "y": 1.0}]


@pytest.fixture
def commands_of_help(cli, folder):
    """The two commands of the example in --help as words, with its two files in the folder.

    The example shows the content of space.json, a line, then that of old.csv, a header and three
    evaluations, and then the commands, of one or more lines, each with a comment after it.
    """
    help_text = cli("suggest", "--help").stdout
    _, _, example = help_text.partition("Example")
    lines = [line.strip() for line in example.splitlines()]

    (space_line,) = [line for line in lines if line.startswith('{"rate"')]
    (folder / "space.json").write_text(space_line)
    start_of_history = lines.index("month,rate,depth,booster,auc")
    end_of_history = start_of_history + 1 + 3
    history_lines = lines[start_of_history:end_of_history]
    (folder / "old.csv").write_text("\n".join(history_lines) + "\n")

    unbroken_lines = [line.removesuffix("\\") for line in lines[end_of_history:]]
    _, first, second = " ".join(unbroken_lines).split("hpobench-ordered ")
    first_command, _comment, _ = first.partition("five configurations")
    second_command, _comment, _ = second.partition("the next five")
    return first_command.split(), second_command.split()


@pytest.fixture
def configs_of_help(cli, folder, commands_of_help):
    """The five configurations that the first command of the example suggests."""
    first_command, _ = commands_of_help
    result = cli(*first_command)
    assert result.returncode == 0, result.stderr
    return read_csv_text((folder / "next.csv").read_text())


def test_first_command_of_help_works(configs_of_help):
    """It begins with the best configurations of the two earlier tasks in the example."""
    first_two = {tuple(config.values()) for config in configs_of_help[:2]}

    assert first_two == {("0.01", "4", "tree"), ("0.02", "5", "tree")}


def test_second_command_of_help_works(cli, folder, commands_of_help, configs_of_help):
    """It reads results of the first five configurations, and suggests five others."""
    with (folder / "this.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["rate", "depth", "booster", "auc"])
        writer.writeheader()
        for config in configs_of_help:
            made_up_auc = -abs(math.log10(float(config["rate"])) + 2)
            writer.writerow(config | {"auc": made_up_auc})
    _, second_command = commands_of_help

    result = cli(*second_command)

    assert result.returncode == 0, result.stderr
    next_configs = read_csv_text((folder / "next.csv").read_text())
    assert len(next_configs) == 5
    assert all(config not in configs_of_help for config in next_configs)


def test_short_form_of_space_is_read(tmp_path):
    """Integers make an integer range, a list of texts or of three numbers makes choices."""
    descriptions = {
        "rate": [1e-4, 1.0, "log"],
        "depth": [2, 10],
        "booster": ["tree", "linear"],
        "sizes": [1, 2, 4],
        "trees": 100,
    }
    path = tmp_path / "space.json"
    path.write_text(json.dumps(descriptions))

    space = read_space_file(path)

    assert space == hbo.SearchSpace(
        [
            hbo.Parameter.number("rate", 1e-4, 1.0, log=True),
            hbo.Parameter.number("depth", 2, 10, integer=True),
            hbo.Parameter.choice("booster", ("tree", "linear")),
            hbo.Parameter.choice("sizes", (1, 2, 4)),
        ],
        constants={"trees": 100},
    )
