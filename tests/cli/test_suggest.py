"""The command `suggest`: everything is in files."""

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
from cli_results import assert_fails
from tuning_support import METHODS, make_task_and_history, make_tuner, tune

import hpobench_ordered as hbo
from hpobench_ordered.testing.toy import conditional_space, numeric_space

SPACE = json.dumps(conditional_space().to_json())


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


@pytest.fixture
def files(folder):
    """The files of the toy task: what is tuned, and what was evaluated on earlier tasks."""
    (folder / "space.json").write_text(SPACE)
    frames = [
        e.frame(task="month", objective="loss").assign(**e.context)
        for e in make_task_and_history()[1]
    ]
    lines = [frame.to_csv(index=False, header=not i) for i, frame in enumerate(frames)]
    (folder / "old.csv").write_text("".join(lines))
    return folder


def words(method="bo", *, direction="minimize", **options: object) -> list[str]:
    chosen = {
        "space": "space.json",
        "direction": direction,
        "objective": "loss",
        "task": "month",
        "history": "old.csv",
        "method": method,
        "context": "index=2",
        "budget": 12,
    } | options
    chosen = {name: value for name, value in chosen.items() if value is not None}
    return ["suggest", *(w for n, v in chosen.items() for w in (f"--{n}", str(v)))]


def append(file: Path, rows: list[dict[str, Any]], values: list[float | None]) -> None:
    """Write what was evaluated, as a user would."""
    new = not file.exists()
    with file.open("a", newline="") as stream:
        writer = csv.DictWriter(stream, dict.fromkeys([*rows[0], "loss"]))
        if new:
            writer.writeheader()
        for row, value in zip(rows, values, strict=True):
            writer.writerow(row | {"loss": "" if value is None else repr(value)})


@pytest.mark.parametrize(
    ("direction", "trials"), [pytest.param("minimize", 1, marks=pytest.mark.slow), ("maximize", 4)]
)
@pytest.mark.parametrize("method", METHODS)
def test_suggestions_are_those_of_the_optimiser(cli, files, method, direction, trials):
    """Called again and again, with what was evaluated in between."""
    wanted = hbo.Direction(direction)
    tuner, task = make_tuner(method, direction=wanted, seed=3)
    if wanted is hbo.Direction.MAXIMIZE:
        old = rows_of((files / "old.csv").read_text())
        (files / "old.csv").unlink()
        append(files / "old.csv", old, [-float(row["loss"]) for row in old])
    results = None
    for _ in range(8 // trials):
        options = {"seed": 3, "trials": trials, "results": results, "format": "json"}
        result = cli(*words(method, direction=direction, **options))
        assert result.returncode == 0, result.stderr
        configs = json.loads(result.stdout)
        assert configs == [tuner.ask() for _ in range(trials)]
        for config in configs:
            tuner.tell(config, task.evaluate(config))
        rows = [dict.fromkeys(task.space.names) | config for config in configs]
        append(files / "this.csv", rows, [task.evaluate(config) for config in configs])
        results = "this.csv"


def test_empty_objective_marks_failed_evaluation(cli, files):
    tuner, task = make_tuner()
    first = rows_of(cli(*words(trials=4)).stdout)
    asked = [tuner.ask() for _ in first]
    values = [task.evaluate(c) for c in asked]
    values[1] = None
    append(files / "this.csv", first, values)
    for config, value in zip(asked, values, strict=True):
        tuner.tell(config, value)
    again = cli(*words(trials=4, results="this.csv", format="json"))
    assert json.loads(again.stdout) == [tuner.ask() for _ in range(4)]


@pytest.mark.parametrize("method", ["random-search", "bo", "tpe"])
def test_own_configurations_are_told(cli, files, method):
    """What comes after them is what the optimiser suggests that is told them."""
    tuner, task = make_tuner(method)
    suggested = tune(tuner, task, trials=2)
    own = [{"kind": "c", "level": 10, "n": 7, "fixed": "always"}]
    tuner.tell(own[0], 0.25)
    with (files / "this.csv").open("w") as file:
        writer = csv.DictWriter(file, ["kind", "level", "n", "x", "fixed", "loss"])
        writer.writeheader()
        for config in suggested + own:
            value = 0.25 if config in own else task.evaluate(config)
            writer.writerow(config | {"loss": value})
    suggestions = json.loads(cli(*words(method, results="this.csv", format="json")).stdout)
    assert suggestions == [tuner.ask()]


@pytest.mark.parametrize("method", ["random-search", "bo", "tpe"])
def test_results_are_not_suggested_again(cli, files, method):
    """Also if the first result is one of the user's own, so that all are told."""
    tuner, task = make_tuner(method)
    suggested = tune(tuner, task, trials=2)
    own = {"kind": "c", "level": 10, "n": 7, "fixed": "always"}
    with (files / "this.csv").open("w") as file:
        writer = csv.DictWriter(file, ["kind", "level", "n", "x", "fixed", "loss"])
        writer.writeheader()
        writer.writerow(own | {"loss": 0.25})
        for config in suggested:
            writer.writerow(config | {"loss": task.evaluate(config)})
    result = cli(*words(method, results="this.csv", format="json", trials=3))
    suggestions = json.loads(result.stdout)
    assert len(suggestions) == 3
    assert all(config not in [own, *suggested] for config in suggestions)


def test_used_up_space_repeats(cli, files):
    space = hbo.SearchSpace([hbo.Parameter.choice("kind", ("a", "b"))])
    (files / "space.json").write_text(json.dumps(space.to_json()))
    (files / "this.csv").write_text("kind,loss\nb,1\nb,2\na,3\n")
    options = {"history": None, "task": None, "results": "this.csv", "context": None}
    result = cli(*words(trials=3, **options))
    assert [row["kind"] in "ab" for row in rows_of(result.stdout)] == [True] * 3


def test_output_file_holds_what_is_printed(cli, files):
    printed = cli(*words(trials=3))
    written = cli(*words(trials=3, output="next.csv"))
    assert written.stdout == ""
    assert (files / "next.csv").read_text() == printed.stdout


def test_csv_holds_the_configurations(cli, files):
    printed = cli(*words(trials=3)).stdout
    assert printed.startswith("kind,level,n,x,fixed\n")
    configs = json.loads(cli(*words(trials=3, format="json")).stdout)
    rows = rows_of(printed)
    assert rows == [{name: str(config.get(name, "")) for name in rows[0]} for config in configs]


def test_suggest_needs_no_history(cli, files):
    options = {"history": None, "task": None, "objective": None, "context": None}
    result = cli(*words("random-search", **options, trials=2, seed=4, format="json"))
    settings = {"space": conditional_space(), "direction": "minimize", "seed": 4, "budget": 12}
    tuner = hbo.optimiser("random-search", **settings)
    assert json.loads(result.stdout) == [tuner.ask() for _ in range(2)]


def test_choices_are_read_as_written(cli, folder):
    """Texts of numbers, "None" and "NA", and truth values."""
    choices = {"text": ["1", "2"], "empty": ["None", "NA"], "truth": [True, False], "n": [1, 2.5]}
    space = hbo.SearchSpace([hbo.Parameter.choice(n, tuple(v)) for n, v in choices.items()])
    (folder / "space.json").write_text(json.dumps(space.to_json()))
    best = [("1", "NA", True, 2.5), ("2", "None", False, 1), ("1", "None", False, 2.5)]
    rows = [dict(zip(choices, values, strict=True)) for values in best]
    append(folder / "old.csv", [{"month": m, **row} for m, row in enumerate(rows)], [1.0, 2.0, 3.0])
    result = cli(*words("simple-ordered", context=None, trials=3, format="json"))
    assert json.loads(result.stdout) == rows[::-1]


SIZES = "month,x,y,loss,size\nMay,1,0.5,3,3\nMay,2,0.1,,4\n"
OLD = "month,x,y,loss\nMay,1,0.5,3\nMay,2,0.1,\nJune,3,0.2,1\n"


@pytest.mark.parametrize(
    ("options", "old", "this", "code", "message"),
    [
        ({"objective": None}, OLD, None, 2, "needs --task COLUMN and --objective"),
        ({"context": "size"}, OLD, None, 2, "NAME=NUMBER"),
        ({"context": "size=2"}, OLD, None, 2, "old.csv cannot be read:\n- no column 'size'"),
        ({"context": "size=2"}, SIZES, None, 2, "each task, but task 'May' has '4' in l"),
        ({"space": "other.json"}, OLD, None, 2, "unknown file 'other.json'"),
        ({"space": "old.csv"}, OLD, None, 2, "no search space in old.csv"),
        ({}, OLD.replace("0.2,", ""), None, 2, "line 4 of old.csv has 3 values, but its header"),
        ({}, OLD + "May,1,0.5,3\n", None, 2, "repeat another row of their task: line 5 (line 2)"),
        ({}, OLD.replace(",", ";"), None, 2, "separated by commas, not ';'"),
        ({}, "", None, 2, "old.csv is empty"),
        ({}, OLD, "x,loss\n1,2\n", 2, "--results cannot be read:\n- no column 'y'"),
        ({}, OLD, "x,y,loss\n1,0.5,2\n\n1,5,2\n", 2, "(log scale): line 4 ('5')"),
        ({}, OLD, "x,y,loss\n1,0.5,low\n", 2, "the evaluation failed: line 2 ('low')"),
        ({}, OLD, "month,x,y,loss\nMay,1,0.5,2\nJune,1,0.5,3\n", 2, "results must be of one task"),
    ],
)
def test_wrong_input_is_named(cli, folder, options, old, this, code, message):
    (folder / "space.json").write_text(json.dumps(numeric_space().to_json()))
    (folder / "old.csv").write_text(old)
    if this is not None:
        (folder / "this.csv").write_text(this)
        options = options | {"results": "this.csv"}
    result = cli(*words(**{"method": "simple-ordered", "context": None} | options))
    assert_fails(result, code, message)


def test_rows_change_only_if_asked(cli, folder):
    (folder / "space.json").write_text(json.dumps(numeric_space().to_json()))
    (folder / "old.csv").write_text(OLD.replace("0.2,1", "20,1").replace("May,1", "June,1"))
    options = words("simple-ordered", context=None, format="json")
    assert cli(*options).returncode == 2
    dropped = cli(*options, "--drop-invalid")
    assert dropped.stderr.startswith("warning: 1 of 3 evaluations are left out")
    assert json.loads(dropped.stdout) == [{"x": 1.0, "y": 0.5}]
    clipped = cli(*options, "--clip")
    assert "1 of 'y'" in clipped.stderr
    assert json.loads(clipped.stdout) == [{"x": 3.0, "y": 1.0}]


def test_example_of_help_works(cli, folder):
    """The files as --help shows them, and its two commands."""
    help_ = cli("suggest", "--help").stdout
    lines = [line.strip() for line in help_[help_.index("Example") :].splitlines()]
    start, end = lines.index('{"hyperparameters": ['), lines.index("month,rate,depth,booster,auc")
    (folder / "space.json").write_text("\n".join(lines[start : end - 1]))
    (folder / "old.csv").write_text("\n".join(lines[end : end + 4]) + "\n")
    shell = " ".join(line.removesuffix("\\") for line in lines[end + 4 :])
    first, second = shell.split("hpobench-ordered ")[1:]
    assert cli(*first.split("five configurations")[0].split()).returncode == 0
    configs = rows_of((folder / "next.csv").read_text())
    bests = [("0.01", "4", "tree"), ("0.02", "5", "tree")]
    assert sorted(tuple(config.values()) for config in configs[:2]) == bests
    with (folder / "this.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*configs[0], "auc"])
        writer.writeheader()
        writer.writerows(c | {"auc": -abs(math.log10(float(c["rate"])) + 2)} for c in configs)
    assert cli(*second.split("the next five")[0].split()).returncode == 0
    further = rows_of((folder / "next.csv").read_text())
    assert len(further) == 5
    assert all(config not in configs for config in further)
