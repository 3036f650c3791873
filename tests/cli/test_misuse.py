"""Wrong input gives one message and the exit code 2, on every command that takes it."""

import json

import pytest
from cli_results import FAILURE, MISUSE, assert_fails

import hpobench_ordered as hbo
from hpobench_ordered import cli as cli_package
from hpobench_ordered.testing.toy import numeric_space

TO_MINIMIZE = ("--direction", "minimize")


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


@pytest.mark.parametrize(("command", "continues"), [("run", True), ("check", False)])
def test_only_commands_with_runs_speak_of_them(cli, monkeypatch, command, continues):
    """A job scheduler's SIGTERM ends a command like Ctrl-C."""

    def end(**_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli_package, "app", end)

    result = cli(command)

    assert result.returncode == cli_package.INTERRUPTED
    assert result.stderr.startswith("interrupted")
    assert ("finished runs are stored" in result.stderr) == continues
