"""The command `reproduce`, called in this process, where it takes long with a small paper."""

import re
import shutil

import pytest
from click.testing import CliRunner, Result

from hpobench_ordered import papers
from hpobench_ordered.cli import app
from hpobench_ordered.errors import ExperimentError, NotFetchedError, UnknownNameError


def call_reproduce(*words: str) -> Result:
    """Call `hpobench-ordered reproduce` with these arguments."""
    return CliRunner().invoke(app, ["reproduce", *words])


@pytest.mark.slow
def test_reproduce_prints_results(small_paper, small_folder, tmp_path, monkeypatch):
    """The output has a claim, its verdict, a table, and where the summary is.

    The command runs in a copy of the folder with all runs, with the small paper in the place of the
    package's papers.
    """
    folder = tmp_path / "copy"
    shutil.copytree(small_folder / "results", folder / "results")
    monkeypatch.setattr(papers, "paper", {"small": small_paper}.__getitem__)

    words = ["small", "--figure", "2", "--table", "1", "--seeds", "12", "--output", str(folder)]
    result = call_reproduce(*words)

    assert result.exit_code == 0, result.output
    for part in ("transfer is ahead", "holds", "Table 1: caption.", "summary.md"):
        assert part in result.stdout
    names = {path.name for path in folder.iterdir()}
    assert {"figure-2.png", "figure-2.svg", "figure-2.csv", "table-1.csv", "results"} <= names
    assert "figure-3.png" not in names


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ("othpo --figure 3", ExperimentError, "no figure 3 to reproduce, only 1, 4, 5"),
        ("othpo --table 4 --surrogate nearest", NotFetchedError, "fetch xgboost-mnist"),
        ("othpo --surrogate near", UnknownNameError, "near"),
        ("othp", UnknownNameError, "did you mean 'othpo'"),
    ],
)
def test_wrong_requests_are_refused(tmp_path, monkeypatch, words, error, message):
    """Something unknown is asked for, or data that are not fetched; nothing is written."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HPOBENCH_ORDERED_CACHE", str(tmp_path / "cache"))

    result = call_reproduce(*words.split())

    assert isinstance(result.exception, error)
    assert re.search(message, str(result.exception))
    assert not list(tmp_path.iterdir())


def test_wrong_seeds_are_refused():
    """Seeds are numbers; "many" is a misuse of the command, which has the exit code 2."""
    result = call_reproduce("othpo", "--seeds", "many")

    assert result.exit_code == 2
    assert "--seeds" in result.output
