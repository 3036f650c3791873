"""The commands run, report, status and leaderboard."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_results import FAILURE, MISUSE, assert_fails

from hpobench_ordered import suite
from hpobench_ordered.data.identity import BenchmarkIdentity

FEW_TRIALS = ["--trials", "2", "--tasks", "1", "--workers", "1"]
"""Options of short runs."""
SMALL_RUN_OF_DEFAULT_METHODS = [
    *("--benchmark", "newsvendor", "--seeds", "2", "--trials", "4", "--tasks", "3"),
    *("--workers", "1"),
]
"""Options of a run on newsvendor that names no methods; results are in the folder `results`."""


def read_files(folder: Path) -> dict[Path, bytes]:
    """The content of every file in a folder, by its path there."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder): path.read_bytes() for path in paths}


@pytest.mark.slow
def test_run_shows_scores_and_writes_report(cli, tmp_path):
    """`run` prints a leaderboard of its methods, and writes a report: a page, figures and tables.

    `report`, from the stored results, prints and writes the same.
    """
    run = cli("run", *SMALL_RUN_OF_DEFAULT_METHODS)

    assert run.returncode == 0, run.stderr
    # One of the default methods, and a heading of the leaderboard.
    assert "simple-ordered" in run.stdout
    assert "won/tied/lost" in run.stdout
    report_folder = tmp_path / "results" / "report"
    files_of_run = read_files(report_folder)
    assert {path.parts[0] for path in files_of_run} == {
        *("report.html", "report_parts", "figures"),  # the page
        *("summary.md", "leaderboard.csv", "leaderboard.tex", "means.csv", "pairs.csv"),
    }
    # The message names report.html, and counts all other files.
    assert f"and {len(files_of_run) - 1} more files" in run.stdout

    report = cli("report", "results")

    assert report.stdout == run.stdout
    files_of_report = read_files(report_folder)
    assert files_of_report.keys() == files_of_run.keys()
    for path, content in files_of_report.items():
        if path.suffix != ".pdf":  # vl-convert writes the parts of a PDF in any order
            assert content == files_of_run[path], path


def test_leaderboard_is_after_chosen_trial(cli, finished_results):
    """The run has four trials; the leaderboard after the second one is asked for."""
    board = cli("leaderboard", str(finished_results.store.folder), "--trial", "2", "--json")

    assert {row["trial"] for row in json.loads(board.stdout)} == {2}


REFERENCE_LEADERBOARD = ("leaderboard", "--reference", "--suite", "adjustments")
"""The command for the leaderboard of a suite of eight benchmarks, svm-a among them."""


def test_leaderboard_shows_all_benchmarks_together(cli):
    """The suite has eight benchmarks; one of them, such as svm-a, has a table only if asked."""
    shown = cli(*REFERENCE_LEADERBOARD).stdout
    assert "All 8 benchmarks" in shown
    assert "svm-a@1" not in shown

    shown = cli(*REFERENCE_LEADERBOARD, "--by", "benchmark").stdout
    assert "All 8 benchmarks" in shown
    assert "svm-a@1 (" in shown


def test_leaderboard_is_over_all_suites(cli):
    """Of two suites that are named, benchmarks of both are shown, such as svm-a and forrester."""
    options = ["--suite", "adjustments", "--suite", "synthetic", "--by", "benchmark"]

    board = cli("leaderboard", "--reference", *options, "--json")

    names = {row["benchmark"].partition("@")[0] for row in json.loads(board.stdout)}
    assert names >= {"svm-a", "forrester"}


@pytest.mark.parametrize(
    ("words", "parts_of_message"),
    [
        (["--benchmark", "newsvendr"], ["did you mean 'newsvendor'"]),
        (
            ["--history", "9"],
            ["ordered does not take --history", "--trials, --tasks, --simulated-w"],
        ),
        (
            ["--simulated-workers", "4", "--protocol", "adjustment"],
            ["adjustment does not take --simulated-w", "--first-trials, --trials, --first-me"],
        ),
        (["--protocol", "adjustment"], ["newsvendor@1 was never adjusted"]),
        (["--seeds", "none"], ["--seeds", "10-19"]),
        (["--seeds", "5-3"], ["--seeds"]),
        (["--surrogate", "xgboost-mnist=nearest", "--benchmark", "newsvendor"], ["not in the"]),
    ],
)
def test_wrong_runs_are_misuse(cli, words, parts_of_message, tmp_path):
    """A run with unknown or contradictory options is a misuse, and writes nothing."""
    assert_fails(cli("run", *words), MISUSE, *parts_of_message)

    assert list(tmp_path.iterdir()) == []


def test_run_is_on_all_suites_and_benchmarks(cli):
    """Suites and benchmarks that are named are run on together; `status` counts their runs."""
    options = ["--suite", "synthetic", "--suite", "openml", "--benchmark", "newsvendor"]
    method = ["--method", "random-search", "--seeds", "1"]

    result = cli("run", *options, *method, *FEW_TRIALS, "--no-report")

    assert result.returncode == 0, result.stderr
    status = json.loads(cli("status", "results", "--json").stdout)
    names = [BenchmarkIdentity.parse(row["benchmark"]).name for row in status["counts"]]
    assert sorted(names) == sorted([*suite("synthetic"), *suite("openml"), "newsvendor"])
    assert [row["done"] for row in status["counts"]] == [1] * len(names)
    assert status["failures"] == []
    assert "ordered, 2 trials, tasks=1 " in cli("status", "results").stdout


@pytest.mark.slow
def test_default_methods_run_with_three_seeds(cli):
    """If neither methods nor seeds are named, four methods run with three seeds each."""
    cli("run", "--benchmark", "newsvendor", *FEW_TRIALS, "--no-report")

    counts = json.loads(cli("status", "results", "--json").stdout)["counts"]
    runs_of_method = {row["method"]: row["done"] for row in counts}
    default_methods = ("random-search", "bo", "simple-ordered", "ordered-gp")
    assert runs_of_method == dict.fromkeys(default_methods, 3)


SOURCE_OF_FAILING_METHOD = """
class Bad:  # cannot be constructed
    def __init__(self, *_):
        1 / 0

    def ask(self): ...

    def tell(self, *_): ...
"""
RUN_ON_TWO_BENCHMARKS = [
    *("run", "--suite", "synthetic", "--seeds", "2", "--trials", "2", "--tasks", "2"),
    *("--workers", "1", "--no-report"),
]
"""The command for short runs on a suite; a method follows. Results are in `results`."""


@pytest.fixture
def run_of_failing_method(cli, tmp_path, monkeypatch):
    """The result of a run of a method, bad.Bad, that fails on each of two benchmarks."""
    monkeypatch.delitem(sys.modules, "bad", raising=False)  # imported by another test
    (tmp_path / "bad.py").write_text(SOURCE_OF_FAILING_METHOD)
    return cli(*RUN_ON_TWO_BENCHMARKS, "--no-check", "--method", "bad.py:Bad")


def test_failing_method_makes_run_fail(run_of_failing_method):
    assert run_of_failing_method.returncode == FAILURE
    assert "status results --failures" in run_of_failing_method.stderr


@pytest.mark.usefixtures("run_of_failing_method")
def test_status_counts_failing_method_once(cli):
    """The method bad.Bad was run on two benchmarks before, and failed on each of them.

    It has one line for all of them, and one that names the first failure.
    """
    shown = cli("status", "results").stdout

    line_of_counts, line_of_failure = [line for line in shown.splitlines() if "bad.Bad" in line]
    assert line_of_counts.split()[:5] == ["bad.Bad", "each", "of", "2", "benchmarks"]
    assert line_of_failure.startswith("failed: bad.Bad on forrester@1, seed")


@pytest.mark.usefixtures("run_of_failing_method")
def test_run_shows_methods_of_earlier_runs(cli):
    """A run adds to the results in its folder, which has those of the method bad.Bad already."""
    shown = cli(*RUN_ON_TWO_BENCHMARKS, "--method", "simple-previous-no-bo").stdout

    assert "bad.Bad " in shown
    assert "simple-previous-no-bo " in shown


@pytest.mark.parametrize("width", [60, 100])
def test_lines_are_as_wide_as_terminal(cli, width):
    """The environment tells the width of the terminal, in characters.

    A line may end at a space, but not at the hyphen of the method best-first.
    """
    shown = cli(*REFERENCE_LEADERBOARD, COLUMNS=str(width)).stdout

    assert max(len(line) for line in shown.splitlines()) <= width
    assert "best-first" in shown


def test_narrow_terminal_has_a_line_a_method(cli):
    """On 80 characters, each line of the table begins with a method and its mean rank."""
    shown = cli(*REFERENCE_LEADERBOARD, COLUMNS="80").stdout

    _, _, after_begin_of_table = shown.partition("\nmethod")
    table, _, _ = after_begin_of_table.partition("\n\n")
    _rest_of_heading, *lines = table.splitlines()
    assert len(lines) > 15, "methods are missing"
    # Such as "bo   3.25 ".
    name_and_rank = r"[a-z-]+\*? +\d+\.\d\d "
    assert all(re.match(name_and_rank, line) for line in lines)


ONE_SHORT_RUN = ["run", "--benchmark", "newsvendor", "--seeds", "1", *FEW_TRIALS]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*ONE_SHORT_RUN, "--output", "file"], "not a folder"),
        ([*ONE_SHORT_RUN, "--output", "file/results"], "cannot write"),
        (["generate", "newsvendor", "--output", "file/x"], "cannot write"),
        (["report", "empty"], "there are no runs in empty"),
    ],
)
def test_unusable_folder_is_named(cli, tmp_path, words, message):
    """Each command writes to `file` as if it were a folder, or reads from the folder `empty`."""
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()

    result = cli(*words)

    assert_fails(result, FAILURE, message)


def test_store_of_other_format_is_refused(cli, tmp_path):
    """The folder is marked as a store of format 1, of another version."""
    marker = {"format": 1, "version": "9.9"}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "store.json").write_text(json.dumps(marker))

    result = cli(*ONE_SHORT_RUN, "--output", "other")

    assert_fails(result, FAILURE, "store format 1")


def test_unwritable_folder_is_found_first(cli, tmp_path):
    """A folder that cannot be written to is refused before a generation, which may take long.

    The generation of newsvendor, once it begins, says that it is simulating.
    """
    # Nothing can be written into a file as if it were a folder.
    (tmp_path / "file").write_text("")

    result = cli("generate", "newsvendor", "--output", "file/x")

    assert "simulating" not in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("hpobench-ordered") is None, reason="the script is not installed")
def test_script_and_module_are_the_same(process):
    """The script `hpobench-ordered` prints what `python -m hpobench_ordered` prints."""
    script = subprocess.run(
        ["hpobench-ordered", "list"],
        capture_output=True,
        check=True,
        text=True,
        # The environment that Python knows. Otherwise the subprocess would get the real one, in
        # which a C library may have set COLUMNS, the width of lines.
        env=dict(os.environ),
    )

    module = process("list")

    assert module.stdout == script.stdout


@pytest.mark.slow
def test_process_has_exit_codes(process):
    """Misuse where a name is unknown, and failure where a folder has no results."""
    assert_fails(process("info", "newsvendr"), MISUSE, "did you mean 'newsvendor'")
    assert_fails(process("report", "."), FAILURE, "no")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "names"),
    [
        (["list", "--suite", "open"], {"openml"}),
        (["run", "--method", "simple-p"], {"simple-previous", "simple-previous-no-bo"}),
        (["run", "--benchmark", "newsvendor", "--surrogate", ""], {"table"}),
    ],
)
def test_shell_completes_names(process, words, names):
    """The environment says to click, as Bash does, what was typed and which word to complete."""
    line = " ".join(["hpobench-ordered", *words])
    number_of_last_word = str(len(words))

    result = process(
        _HPOBENCH_ORDERED_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=number_of_last_word
    )

    assert result.returncode == 0, result.stderr
    completions = [entry.removeprefix("plain,") for entry in result.stdout.split()]
    assert set(completions) == names
