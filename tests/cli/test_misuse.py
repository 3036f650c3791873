"""Wrong input gives one message and the exit code 2, on every command that takes it."""

import json

import pytest
from cli_results import FAILURE, MISUSE, assert_fails

import hpobench_ordered as hbo
from hpobench_ordered.testing.toy import numeric_space

UNOPENABLE = "x\0y"
"""No path may hold a null character."""
TO_MINIMIZE = ("--direction", "minimize")
TREE_ON_WINE = ("--model", "sklearn.tree:DecisionTreeClassifier", "--data", "sklearn:wine")
GENERATE_CUSTOM = ("generate", "custom", "--name", "mine", *TREE_ON_WINE, "--sizes", "60")

COMMANDS_WITH_PATH = {
    "report": ("report", UNOPENABLE),
    "report --output": ("report", ".", "--output", UNOPENABLE),
    "status": ("status", UNOPENABLE),
    "merge": ("merge", "all", UNOPENABLE),
    "merge into": ("merge", UNOPENABLE, "."),
    "compact": ("compact", UNOPENABLE),
    "leaderboard": ("leaderboard", UNOPENABLE),
    "export": ("export", UNOPENABLE, "--output", "trials.csv"),
    "export --output": ("export", ".", "--output", f"{UNOPENABLE}.csv"),
    "run --output": ("run", "--output", UNOPENABLE),
    "compare --output": ("compare", "bo", "--output", UNOPENABLE),
    "fetch --from": ("fetch", "xgboost-mnist", "--from", UNOPENABLE),
    "generate --from": ("generate", "newsvendor", "--from", UNOPENABLE),
    "generate --output": ("generate", "newsvendor", "--output", UNOPENABLE),
    "generate custom --space": (*GENERATE_CUSTOM, "--space", UNOPENABLE),
    "generate custom --output": (*GENERATE_CUSTOM, "--output", UNOPENABLE),
    "generate marks --output": ("generate", "marks", "quadratic", "--output", UNOPENABLE),
    "generate reference": ("generate", "reference", UNOPENABLE),
    "reproduce --output": ("reproduce", "othpo", "--output", UNOPENABLE),
    "suggest --space": ("suggest", *TO_MINIMIZE, "--space", UNOPENABLE),
    "suggest --history": ("suggest", *TO_MINIMIZE, "--space", ".", "--history", UNOPENABLE),
    "suggest --results": ("suggest", *TO_MINIMIZE, "--space", ".", "--results", UNOPENABLE),
    "suggest --output": ("suggest", *TO_MINIMIZE, "--space", ".", "--output", UNOPENABLE),
}


@pytest.mark.parametrize("words", COMMANDS_WITH_PATH.values(), ids=COMMANDS_WITH_PATH)
def test_null_character_in_path_is_refused(cli, words):
    """The words are a command, one of whose paths holds a null character, as no path may."""
    result = cli(*words)

    assert_fails(result, MISUSE, "Invalid value")
    # There is one message, not one after another.
    assert result.stderr.casefold().count("error") == 1


@pytest.fixture
def space_file(folder):
    """A file of a search space of two numbers, x and y, in the working folder."""
    (folder / "space.json").write_text(json.dumps(numeric_space().to_json()))
    return folder / "space.json"


MALFORMED_TABLES = {
    "empty": "",
    "value missing": "x,y,loss\n1,0.5\n",
    "semicolons": "x;y;loss\n1;0.5;1\n",
    "no text": "\0",
}


@pytest.mark.parametrize("table", MALFORMED_TABLES.values(), ids=MALFORMED_TABLES)
def test_malformed_csv_is_misuse(cli, folder, space_file, table):
    """What was evaluated on the current task is in a malformed file, such as an empty one."""
    (folder / "this.csv").write_text(table)
    words = ("--space", str(space_file), "--objective", "loss", "--results", "this.csv")

    result = cli("suggest", *TO_MINIMIZE, *words)

    assert_fails(result, MISUSE, "error: ")


def test_malformed_space_is_misuse(cli, folder):
    """The file of the search space is no JSON."""
    (folder / "space.json").write_text("{")

    result = cli("suggest", *TO_MINIMIZE, "--space", "space.json")

    assert_fails(result, MISUSE, "no search space in space.json")


@pytest.fixture
def results_folder(folder):
    """A folder with the results of one short run."""
    hbo.run(
        benchmarks=["newsvendor"],
        methods=["random-search"],
        seeds=[0],
        protocol=hbo.Ordered(trials=2, tasks=2),
        folder=folder / "results",
    )
    return folder / "results"


@pytest.mark.parametrize("name", ["trials.csv", "curves.svg", "table.tex"])
def test_export_creates_the_folder(cli, folder, results_folder, name):
    """Trials, a figure and a table are exported into a folder that does not exist yet."""
    path = folder / "no" / "such" / "folder" / name

    result = cli("export", str(results_folder), "--output", str(path))

    assert result.returncode == 0, result.stderr
    assert path.stat().st_size > 0


def test_suggest_creates_the_folder(cli, folder, space_file):
    """Suggestions are written into a folder that does not exist yet."""
    words = ("--space", str(space_file), "--output", "no/such/next.csv")

    result = cli("suggest", *TO_MINIMIZE, "--method", "random-search", *words)

    assert result.returncode == 0, result.stderr
    assert (folder / "no" / "such" / "next.csv").exists()


@pytest.mark.parametrize("name", ["trials.csv", "curves.svg", "table.tex"])
def test_failing_export_gives_one_message(cli, folder, results_folder, name):
    """A file stands where the folder of the export should be."""
    (folder / "file").write_text("")

    result = cli("export", str(results_folder), "--output", f"file/{name}")

    assert_fails(result, FAILURE)
    assert result.stderr.startswith(f"Error: cannot write file/{name}: ")
