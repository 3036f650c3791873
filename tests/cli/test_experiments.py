"""The commands run, report, status and leaderboard."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cli_results import assert_fails

from hpobench_ordered import suite
from hpobench_ordered.core.identity import BenchmarkIdentity

SHORT = ["--trials", "2", "--tasks", "1", "--workers", "1"]
REPORTED = ["--benchmark", "newsvendor", "--seeds", "2", "--trials", "4", "--tasks", "3"]


def read_files(folder: Path) -> dict[Path, bytes]:
    """The content of every file in a folder, by its path there."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder): path.read_bytes() for path in paths}


@pytest.mark.slow
def test_run_shows_scores_and_writes_report(cli, tmp_path):
    result = cli("run", *REPORTED, "--workers", "1")
    assert result.returncode == 0, result.stderr
    assert "simple-ordered" in result.stdout
    assert "won/tied/lost" in result.stdout
    files = read_files(tmp_path / "results" / "report")
    data = {"leaderboard.csv", "leaderboard.tex", "means.csv", "pairs.csv"}
    assert {path.parts[0] for path in files} == {"report.html", "summary.md", "figures", *data}
    assert f"and {len(files) - 1} more files" in result.stdout


@pytest.mark.slow
def test_report_repeats_that_of_run(cli, tmp_path):
    first = cli("run", *REPORTED, "--workers", "1")
    written = read_files(tmp_path / "results" / "report")
    again = cli("report", "results")
    assert again.stdout == first.stdout
    for path, content in read_files(tmp_path / "results" / "report").items():
        if path.suffix != ".pdf":  # vl-convert writes the parts of a PDF in any order
            assert content == written[path], path


@pytest.mark.slow
def test_run_without_report_shows_scores(cli, tmp_path):
    result = cli("run", *REPORTED, "--workers", "1", "--no-report")
    assert result.returncode == 0, result.stderr
    assert "won/tied/lost" in result.stdout
    assert not (tmp_path / "results" / "report").exists()


@pytest.mark.slow
def test_leaderboard_after_a_trial(cli):
    cli("run", *REPORTED, "--workers", "1", "--no-report")
    board = cli("leaderboard", "results", "--trial", "2", "--json")
    assert {row["trial"] for row in json.loads(board.stdout)} == {2}


ADJUSTMENTS = ("leaderboard", "--reference", "--suite", "adjustments")


def test_leaderboard_shows_all_benchmarks_together(cli):
    shown = cli(*ADJUSTMENTS).stdout
    assert "All 8 benchmarks" in shown
    assert "svm-a@1" not in shown


def test_leaderboard_shows_each_benchmark_too(cli):
    shown = cli(*ADJUSTMENTS, "--by", "benchmark").stdout
    assert "All 8 benchmarks" in shown
    assert "svm-a@1 (" in shown


@pytest.mark.parametrize(
    ("words", "parts"),
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
def test_wrong_runs_are_misuse(cli, words, parts, tmp_path):
    assert_fails(cli("run", *words), 2, *parts)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def run_on_suite(cli):
    """Runs random search on a suite and one benchmark more."""
    words = ["--suite", "synthetic", "--benchmark", "newsvendor", "--seeds", "1"]
    result = cli("run", *words, *SHORT, "--method", "random-search", "--no-report")
    assert result.returncode == 0, result.stderr


@pytest.mark.usefixtures("run_on_suite")
def test_status_shows_protocol(cli):
    assert "ordered, 2 trials, tasks=1 " in cli("status", "results").stdout


@pytest.mark.usefixtures("run_on_suite")
def test_benchmark_runs_beside_suite(cli):
    counts = json.loads(cli("status", "results", "--json").stdout)["counts"]
    names = {BenchmarkIdentity.parse(row["benchmark"]).name for row in counts}
    assert names == {*suite("synthetic"), "newsvendor"}


@pytest.mark.usefixtures("run_on_suite")
def test_status_counts_runs_as_json(cli):
    state = json.loads(cli("status", "results", "--json").stdout)
    # One run on each of the four synthetic benchmarks and on newsvendor.
    assert [row["done"] for row in state["counts"]] == [1] * 5
    assert state["failures"] == []


@pytest.mark.slow
def test_default_methods_run_with_three_seeds(cli):
    cli("run", "--benchmark", "newsvendor", *SHORT, "--no-report")
    counts = json.loads(cli("status", "results", "--json").stdout)["counts"]
    done_of_method = {row["method"]: row["done"] for row in counts}
    methods = ("random-search", "bo", "simple-ordered", "ordered-gp")
    assert done_of_method == dict.fromkeys(methods, 3)


FAILING = """
class Bad:
    def __init__(self, *_):
        1 / 0

    def ask(self): ...

    def tell(self, *_): ...
"""
ON_SYNTHETIC = ["run", "--suite", "synthetic", "--trials", "2", "--tasks", "2", "--workers", "1"]


@pytest.fixture
def run_failing(cli, tmp_path, monkeypatch):
    """Runs a method that fails."""
    monkeypatch.delitem(sys.modules, "bad", raising=False)  # from another test's folder
    (tmp_path / "bad.py").write_text(FAILING)
    words = ["--no-check", "--no-report", "--seeds", "2", "--method", "bad.py:Bad"]
    return cli(*ON_SYNTHETIC, *words)


def test_failing_method_makes_run_fail(run_failing):
    assert run_failing.returncode == 1
    assert "status results --failures" in run_failing.stderr


@pytest.mark.usefixtures("run_failing")
def test_status_has_a_line_of_failing_method(cli):
    lines = [line for line in cli("status", "results").stdout.splitlines() if "bad.Bad" in line]
    assert [line.split()[:5] for line in lines] == [
        ["bad.Bad", "each", "of", "4", "benchmarks"],
        ["failed:", "bad.Bad", "on", "forrester-ordered@1,", "seed"],
    ]


@pytest.mark.usefixtures("run_failing")
def test_run_shows_methods_of_earlier_runs(cli):
    words = ["--no-report", "--seeds", "2", "--method", "simple-previous-no-bo"]
    shown = cli(*ON_SYNTHETIC, *words).stdout
    assert "bad.Bad " in shown
    assert "simple-previous-no-bo " in shown


@pytest.mark.parametrize("width", [60, 100])
def test_sentences_are_as_wide_as_terminal(cli, width):
    shown = cli(*ADJUSTMENTS, COLUMNS=str(width)).stdout
    assert max(map(len, shown.splitlines())) <= width
    assert "best-first" in shown  # the name of a method is not broken at its hyphen


def test_narrow_terminal_has_a_line_a_method(cli):
    shown = cli("leaderboard", "--reference", "--suite", "retrain", COLUMNS="80").stdout
    table = shown.partition("\nmethod")[2].partition("\n\n")[0]
    lines = table.splitlines()[1:]
    assert len(lines) > 30  # methods
    assert all(re.match(r"[a-z-]+ +\d+\.\d\d ", line) for line in lines)


ONE_RUN = ["run", "--benchmark", "newsvendor", "--seeds", "1", *SHORT]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ([*ONE_RUN, "--output", "file"], "not a folder"),
        ([*ONE_RUN, "--output", "file/results"], "cannot write"),
        (["generate", "newsvendor", "--output", "file/x"], "cannot write"),
        (["report", "empty"], "there are no runs in empty"),
    ],
)
def test_unusable_folder_is_named(cli, tmp_path, words, part):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    assert_fails(cli(*words), 1, part)


def test_store_of_other_format_is_refused(cli, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "store.json").write_text(json.dumps({"format": 1, "version": "9.9"}))
    assert_fails(cli(*ONE_RUN, "--output", "other"), 1, "store format 1")


def test_unwritable_folder_is_found_first(cli, tmp_path):
    """Before the generation begins, which may take long."""
    (tmp_path / "file").write_text("")
    result = cli("generate", "newsvendor", "--output", "file/x")
    assert "simulating" not in result.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("hpobench-ordered") is None, reason="the script is not installed")
def test_script_and_module_are_the_same(process):
    script = subprocess.run(["hpobench-ordered", "list"], capture_output=True, check=True)
    assert script.stdout.decode() == process("list").stdout


@pytest.mark.slow
def test_process_has_exit_codes(process):
    assert_fails(process("info", "newsvendr"), 2, "did you mean 'newsvendor'")
    assert_fails(process("report", "."), 1, "no")


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
    line = " ".join(["hpobench-ordered", *words])
    result = process(
        _HPOBENCH_ORDERED_COMPLETE="bash_complete", COMP_WORDS=line, COMP_CWORD=str(len(words))
    )
    assert result.returncode == 0, result.stderr
    assert {entry.partition(",")[2] for entry in result.stdout.split()} == names
