"""The command `suggest`: everything is in files."""

import csv
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest
from cli_results import MISUSE, assert_fails
from tuning_support import make_task_and_history, make_tuner, tune

import hpobench_ordered as hbo
from hpobench_ordered.cli._history import read_space_file
from hpobench_ordered.space import SpaceChange
from hpobench_ordered.testing.toy import conditional_space, numeric_space
from hpobench_ordered.tuning.optimiser import Optimiser


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
def toy_folder(folder):
    """The working folder, with the search space of the toy task and the history before it.

    These are the files space.json and old.csv, which the command reads by default.
    """
    (folder / "space.json").write_text(json.dumps(conditional_space().to_json()))
    write_history(folder / "old.csv")
    return folder


def suggest_words(method="bo", **options: object) -> list[str]:
    """Build the words of the command, by default for the toy task with its history and context.

    An option that is None is left out.
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


@pytest.mark.parametrize("method", ["bo", "simple-ordered"])
def test_first_suggestions_are_those_of_the_optimiser(cli, toy_folder, method):
    """An optimiser in this process, with the same seed, is asked for as many."""
    tuner, _ = make_tuner(method, direction=hbo.Direction.MAXIMIZE, seed=3)
    write_history(toy_folder / "old.csv", hbo.Direction.MAXIMIZE)

    configs = suggest(cli, method, direction="maximize", seed=3, trials=4)

    assert configs == ask(tuner, 4)


def test_next_suggestions_know_the_results(cli, toy_folder):
    """They are those of an optimiser that is told of the four results, one of them a failure.

    In the file of results, the second of four trials has an empty cell.
    """
    tuner, task = make_tuner()
    configs = suggest(cli, trials=4)
    losses = [task.evaluate(config) for config in configs]
    losses[1] = None  # a failure, which is written as an empty cell
    tell(tuner, configs, losses)
    append_to_csv(toy_folder / "this.csv", configs, losses)

    next_configs = suggest(cli, trials=4, results="this.csv")

    assert next_configs == ask(tuner, 4)


def ask(tuner: Optimiser, count: int) -> list[dict[str, Any]]:
    """Ask an optimiser for some configurations, one after the other."""
    return [tuner.ask() for _ in range(count)]


def tell(
    tuner: Optimiser, configs: Sequence[Mapping[str, Any]], objective: Sequence[float | None]
) -> None:
    """Tell an optimiser the objective of some configurations; None is a failed evaluation."""
    for config, value in zip(configs, objective, strict=True):
        tuner.tell(config, value)


CONFIG_OF_USER = {"kind": "c", "level": 10, "n": 7, "fixed": "always"}
"""A configuration of the toy task that the user tried without any suggestion."""
LOSS_OF_USER = 0.25


@pytest.mark.parametrize("method", ["random-search", "simple-ordered"])
def test_results_are_not_suggested_again(cli, toy_folder, method):
    """No configuration in the file of results is suggested once more, whatever their order."""
    tuner, task = make_tuner(method)
    suggested = tune(tuner, task, trials=2)
    losses = [task.evaluate(config) for config in suggested]
    evaluated = [CONFIG_OF_USER, *suggested]
    append_to_csv(toy_folder / "this.csv", evaluated, [LOSS_OF_USER, *losses])

    configs = suggest(cli, method, results="this.csv", trials=3)

    assert len(configs) == 3
    assert all(config not in evaluated for config in configs)


WITHOUT_HISTORY = {"history": None, "task": None, "context": None}
"""Options that are left out where there are no earlier tasks."""


def test_used_up_space_repeats(cli, toy_folder):
    """The search space has two configurations, and both have been evaluated.

    Still the command suggests as many as it is asked for.
    """
    space_of_two = hbo.SearchSpace([hbo.Parameter.choice("kind", ("a", "b"))])
    (toy_folder / "space.json").write_text(json.dumps(space_of_two.to_json()))
    both_evaluated = "kind,loss\nb,1\nb,2\na,3\n"
    (toy_folder / "this.csv").write_text(both_evaluated)

    words = suggest_words(trials=3, results="this.csv", format="json", **WITHOUT_HISTORY)
    result = cli(*words)

    configs = json.loads(result.stdout)
    assert "configurations are suggested again: there are no others" in result.stderr
    assert len(configs) == 3
    assert all(config["kind"] in ("a", "b") for config in configs)


def test_output_file_holds_what_is_printed(cli, toy_folder):
    printed = cli(*suggest_words(trials=3))

    written = cli(*suggest_words(trials=3, output="next.csv"))

    assert written.stdout == ""
    assert (toy_folder / "next.csv").read_text() == printed.stdout


def test_csv_holds_the_configurations(cli, toy_folder):
    """By default the command prints CSV, where cells of inactive hyperparameters are empty.

    The same configurations are printed as JSON, without inactive hyperparameters.
    """
    configs_from_json = suggest(cli, trials=3)

    csv_text = cli(*suggest_words(trials=3)).stdout

    names = ["kind", "level", "n", "x", "fixed"]
    expected_rows = []
    for config in configs_from_json:
        expected_rows.append({name: str(config.get(name, "")) for name in names})
    assert csv_text.startswith(",".join(names) + "\n")
    assert read_csv_text(csv_text) == expected_rows


def test_suggest_needs_no_history(cli, toy_folder):
    """Without earlier tasks, suggestions are those of an optimiser with the same budget and seed.

    The budget is 12 by default in these tests.
    """
    tuner = hbo.optimiser(
        "random-search", space=conditional_space(), direction="minimize", seed=4, budget=12
    )

    configs = suggest(cli, "random-search", objective=None, trials=2, seed=4, **WITHOUT_HISTORY)

    assert configs == ask(tuner, 2)


THREE_EVALUATIONS = "month,x,y,loss\nMay,1,0.5,3\nMay,2,0.1,\nJune,3,0.2,1\n"
"""Evaluations of two earlier tasks, in lines 2 to 4; that of line 3 failed, without a loss."""


@pytest.fixture
def numeric_folder(folder):
    """The working folder, with a space of x from -5 to 5 and y up to 1, and three evaluations.

    These are the files space.json and old.csv, which the command reads by default.
    """
    (folder / "space.json").write_text(json.dumps(numeric_space().to_json()))
    (folder / "old.csv").write_text(THREE_EVALUATIONS)
    return folder


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": None}, "no column 'objective' for the objective (if it is 'loss'"),
        ({"context": "size"}, "NAME=NUMBER"),
        ({"context": "size=2"}, "old.csv cannot be read:\n- no column 'size'"),
        ({"space": "other.json"}, "unknown file 'other.json'"),
        ({"space": "old.csv"}, "no search space in old.csv"),
    ],
)
def test_wrong_option_is_named(cli, numeric_folder, options, message):
    """One option is missing or wrong; all others fit the files, which have no context."""
    all_options = {"context": None} | options

    result = cli(*suggest_words("simple-ordered", **all_options))

    assert_fails(result, MISUSE, message)


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ("x,loss\n1,2\n", "--results cannot be read:\n- no column 'y'"),
        (
            "x,y,loss\n1,0.5,2\n\n1,5,2\n",
            "(the numbers of the column go from 0.5 to 5): line 4 ('5')",
        ),
        ("x,y,loss\n1,0.5,low\n", "the evaluation failed: line 2 ('low')"),
        ("month,x,y,loss\nMay,1,0.5,2\nJune,1,0.5,3\n", "results must be of one task"),
    ],
    ids=["column missing", "out of range", "text as loss", "two tasks"],
)
def test_wrong_results_are_named(cli, numeric_folder, results, message):
    """The file of results on the current task is broken; lines are counted from the header, 1."""
    (numeric_folder / "this.csv").write_text(results)

    result = cli(*suggest_words("simple-ordered", context=None, results="this.csv"))

    assert_fails(result, MISUSE, message)


@pytest.fixture
def words_with_invalid_row(numeric_folder):
    """Words of the command that suggests the best configuration of June, the latest task.

    It is in the last row of old.csv, where y is 20: above its bound of 1, so that the row is
    invalid. The evaluation of May failed, as its loss is empty.
    """
    (numeric_folder / "old.csv").write_text(
        "month,x,y,loss\nJune,1,0.5,3\nMay,2,0.1,\nJune,3,20,1\n"
    )
    return suggest_words("simple-ordered", context=None, format="json")


def test_invalid_row_is_dropped_if_asked(cli, words_with_invalid_row):
    """June has two evaluations; that of y = 20 is invalid, the other one is suggested."""
    result = cli(*words_with_invalid_row, "--drop-invalid")

    assert "warning: 1 of 3 evaluations are left out" in result.stderr
    assert json.loads(result.stdout) == [{"x": 1.0, "y": 0.5}]


def test_invalid_row_is_clipped_if_asked(cli, words_with_invalid_row):
    """The best evaluation of June is suggested: its y of 20 becomes 1, the upper bound."""
    result = cli(*words_with_invalid_row, "--clip")

    assert "1 of 'y'" in result.stderr
    assert json.loads(result.stdout) == [{"x": 3.0, "y": 1.0}]


@pytest.fixture
def folder_with_new_space(numeric_folder):
    """The working folder; space.json has a hyperparameter z that the table lacks.

    The search space that the table was evaluated on is in old-space.json, in the short form.
    """
    (numeric_folder / "old-space.json").write_text(
        '{"x": [-5.0, 5.0, "linear"], "y": [0.1, 1.0, "linear"]}'
    )
    new_space = '{"x": [-5.0, 9.0, "linear"], "y": [0.1, 1.0, "linear"], "z": ["a", "b"]}'
    (numeric_folder / "space.json").write_text(new_space)
    return numeric_folder


def test_table_on_old_space_is_carried_over(cli, folder_with_new_space):
    """As in Python, the table is read on its own space, and the optimiser has the new one."""
    old_space = read_space_file(folder_with_new_space / "old-space.json")
    new_space = read_space_file(folder_with_new_space / "space.json")
    history = hbo.read_history(
        pd.read_csv(folder_with_new_space / "old.csv"),
        old_space,
        objective="loss",
        direction="minimize",
        task="month",
    )
    with pytest.warns(hbo.errors.HistoryWarning, match="another search space"):
        tuner = hbo.optimiser(
            "best-first", space=new_space, direction="minimize", history=history, budget=12
        )

    words = suggest_words("best-first", context=None, trials=3, format="json")
    result = cli(*words, "--history-space", "old-space.json")

    assert json.loads(result.stdout) == ask(tuner, 3)
    assert "z: new (a or b)" in result.stderr


def test_old_space_needs_a_table(cli, folder_with_new_space):
    words = suggest_words(history=None, context=None)
    result = cli(*words, "--history-space", "old-space.json")
    assert_fails(result, MISUSE, "--history-space needs --history")


@pytest.fixture
def storage_of_studies(folder):
    """Name of a storage with two studies to maximise; x is up to 1 in May and up to 2 in June."""
    storage = "sqlite:///tuning.db"
    for month, upper in (("May", 1.0), ("June", 2.0)):
        study = optuna.create_study(study_name=month, storage=storage, direction="maximize")
        distributions = {"x": optuna.distributions.FloatDistribution(0.0, upper)}
        for x in (0.25 * upper, 0.75 * upper):
            trial = optuna.trial.create_trial(
                params={"x": x}, distributions=distributions, value=-abs(x - 0.5)
            )
            study.add_trial(trial)
    return storage


def test_storage_has_space_and_direction(cli, storage_of_studies):
    """They are those of the last study, June, which is said, and as if they had been given."""
    history = hbo.read_history(storage_of_studies)
    with pytest.warns(hbo.errors.HistoryWarning, match="another search space"):
        tuner = hbo.optimiser(space=history[-1].space, direction="maximize", history=history)

    result = cli("suggest", "--storage", storage_of_studies, "--trials", "2", "--format", "json")

    assert json.loads(result.stdout) == ask(tuner, 2)
    assert "search space is that of 'June': x a number in [0.0, 2.0]" in result.stderr
    assert "the direction is that of the studies: maximize" in result.stderr


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ({"space": None}, "say on which search space old.csv was made: `space`"),
        ({"direction": None}, "to minimize or maximize: `direction`"),
        ({"space": None, "history": None}, "give --space and --direction"),
    ],
)
def test_table_needs_space_and_direction(cli, numeric_folder, missing, message):
    result = cli(*suggest_words(context=None, **missing))
    assert_fails(result, MISUSE, message)


@pytest.fixture
def lines_of_example(cli):
    """The lines of the example in `suggest --help`.

    They are the content of space.json (two lines), that of old.csv (a header and three lines), and
    two commands of one or more lines, each with a comment after it.
    """
    help_text = cli("suggest", "--help").stdout
    _, _, example = help_text.partition("Example")
    return [line.strip() for line in example.splitlines()]


@pytest.fixture
def folder_of_example(folder, lines_of_example):
    """The working folder, with the files space.json and old.csv of the example."""
    first_of_space = next(n for n, line in enumerate(lines_of_example) if line.startswith("{"))
    lines_of_space = lines_of_example[first_of_space : first_of_space + 2]
    (folder / "space.json").write_text("\n".join(lines_of_space))

    header = lines_of_example.index("month,rate,depth,booster,auc")
    header_and_evaluations = lines_of_example[header : header + 1 + 3]
    (folder / "old.csv").write_text("\n".join(header_and_evaluations) + "\n")
    return folder


@pytest.fixture
def commands_of_example(lines_of_example):
    """The words of both commands of the example, without the name of the program."""
    # A long line ends in a backslash, and goes on in the next one.
    text = " ".join(line.removesuffix("\\") for line in lines_of_example)
    _files, first, second = text.split("hpobench-ordered ")

    # A comment comes after each command.
    first_command, _, _ = first.partition("five configurations")
    second_command, _, _ = second.partition("the next five")
    return first_command.split(), second_command.split()


@pytest.fixture
def first_configs(cli, folder_of_example, commands_of_example):
    """The five configurations that the first command of the example suggests."""
    first_command, _ = commands_of_example
    result = cli(*first_command)
    assert result.returncode == 0, result.stderr
    return read_csv_text((folder_of_example / "next.csv").read_text())


def test_first_command_of_help_works(first_configs):
    """The first command suggests the best configurations of both earlier tasks first."""
    first_two = {tuple(config.values()) for config in first_configs[:2]}

    assert first_two == {("0.01", "4", "tree"), ("0.02", "5", "tree")}


def test_second_command_of_help_works(cli, folder_of_example, commands_of_example, first_configs):
    """The second command reads results of the first five configurations, and suggests others."""
    with (folder_of_example / "this.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["rate", "depth", "booster", "auc"])
        writer.writeheader()
        for config in first_configs:
            made_up_auc = -abs(math.log10(float(config["rate"])) + 2)
            writer.writerow(config | {"auc": made_up_auc})
    _, second_command = commands_of_example

    result = cli(*second_command)

    assert result.returncode == 0, result.stderr
    next_configs = read_csv_text((folder_of_example / "next.csv").read_text())
    assert len(next_configs) == 5
    assert all(config not in first_configs for config in next_configs)


def test_short_form_of_space_is_read(tmp_path):
    """A file with lists for ranges and choices gives the space that such a dict gives in Python."""
    descriptions = {
        "rate": [1e-4, 1.0, "log"],
        "depth": [2, 10, "linear"],
        "booster": ["tree", None],
        "sizes": [1, 2, 4],
        "folds": {"choices": [5, 10]},
        "trees": 100,
    }
    path = tmp_path / "space.json"
    path.write_text(json.dumps(descriptions))

    space = read_space_file(path)

    assert space == hbo.SearchSpace(
        [
            hbo.Parameter.number("rate", 1e-4, 1.0, log=True),
            hbo.Parameter.number("depth", 2, 10, integer=True),
            hbo.Parameter.choice("booster", ("tree", None)),
            hbo.Parameter.choice("sizes", (1, 2, 4), ordered=True),
            hbo.Parameter.choice("folds", (5, 10), ordered=True),
        ],
        constants={"trees": 100},
    )
    assert SpaceChange.between(descriptions, space).describe() == ["nothing changed"]
