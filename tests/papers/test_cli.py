"""The command `reproduce`, called in this process, where it takes long with a small paper."""

import re

import pytest
from click.testing import CliRunner, Result

from hpobench_ordered import papers
from hpobench_ordered.cli import app
from hpobench_ordered.errors import ExperimentError, NotFetchedError, UnknownNameError
from hpobench_ordered.papers import Paper


def call_reproduce(*words: str) -> Result:
    """Call `hpobench-ordered reproduce` with these arguments."""
    return CliRunner().invoke(app, ["reproduce", *words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where figure 2 and table 1 of the small paper are written."""
    return tmp_path_factory.mktemp("reproduce") / "out"


@pytest.fixture(scope="module")
def call_on_small_paper(small_paper, folder):
    """A function that calls the command for figure 2 and table 1 of the small paper.

    They need runs of two methods with two seeds.
    """

    def look_up_paper(name: str) -> Paper:
        assert name == "small"
        return small_paper

    def call() -> Result:
        """Call the command with the small paper in the place of the package's papers."""
        words = ["small", "--figure", "2", "--table", "1", "--seeds", "2", "--workers", "1"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(papers, "paper", look_up_paper)
            return call_reproduce(*words, "--output", str(folder))

    return call


@pytest.fixture(scope="module")
def first_call(call_on_small_paper):
    """The result of the first call for the small paper, which writes to `folder`."""
    return call_on_small_paper()


@pytest.mark.slow
def test_reproduce_prints_results(first_call):
    """The output has a claim, its verdict, a table, and where the summary is."""
    assert first_call.exit_code == 0, first_call.output
    for part in ("transfer is ahead", "holds", "Table 1: caption.", "summary.md"):
        assert part in first_call.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("first_call")
def test_reproduce_writes_selection_only(folder):
    """The command was called for figure 2 and table 1, into this folder; the paper has others."""
    names = {path.name for path in folder.iterdir()}
    assert {"figure-2.png", "figure-2.svg", "figure-2.csv", "table-1.csv", "results"} <= names
    assert "figure-3.png" not in names


@pytest.mark.slow
@pytest.mark.usefixtures("first_call")
def test_reproduce_stores_every_run(folder):
    """The command was called, into this folder, for exhibits that need two methods."""
    runs = list((folder / "results" / "runs").iterdir())

    methods, seeds = 2, 2
    assert len(runs) == methods * seeds


@pytest.mark.slow
def test_second_call_prints_the_same(first_call, call_on_small_paper):
    assert call_on_small_paper().stdout == first_call.stdout


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ("othpo --figure 3", ExperimentError, "no figure 3 to reproduce, only 1, 4, 5"),
        ("othpo --table 4 --surrogate nearest", NotFetchedError, "fetch xgboost-mnist"),
        ("othpo --surrogate near", UnknownNameError, "near"),
        ("hellan", UnknownNameError, "hellan"),
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
