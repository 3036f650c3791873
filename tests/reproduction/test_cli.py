"""The command, in this process; with a small paper where experiments are run."""

import pytest
from click.testing import CliRunner, Result

from hpobench_ordered import reproduction
from hpobench_ordered.cli import app
from hpobench_ordered.errors import ExperimentError, NotFetchedError, UnknownNameError


def call_reproduce(*words: str) -> Result:
    """Call `hpobench-ordered reproduce` with these arguments."""
    return CliRunner().invoke(app, ["reproduce", *words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where figure 2 and table 1 of the small paper are written."""
    return tmp_path_factory.mktemp("reproduce") / "out"


@pytest.fixture(scope="module")
def call_on_small_paper(small_paper, folder):
    """Call the command for figure 2 and table 1 of the small paper: two methods, two seeds."""

    def call() -> Result:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reproduction, "paper", {"small": small_paper}.__getitem__)
            exhibits = ("small", "--figure", "2", "--table", "1", "--output", str(folder))
            return call_reproduce(*exhibits, "--seeds", "2", "--workers", "1")

    return call


@pytest.fixture(scope="module")
def first_call(call_on_small_paper):
    """The first call for the small paper, which runs everything."""
    return call_on_small_paper()


@pytest.mark.slow
def test_reproduce_prints_results(first_call):
    assert first_call.exit_code == 0, first_call.output
    for part in ("transfer is ahead", "holds", "Table 1: caption.", "summary.md"):
        assert part in first_call.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("first_call")
def test_reproduce_writes_selection_only(folder):
    names = {path.name for path in folder.iterdir()}
    assert {"figure-2.png", "figure-2.svg", "figure-2.csv", "table-1.csv", "results"} <= names
    assert "figure-3.png" not in names


@pytest.mark.slow
@pytest.mark.usefixtures("first_call")
def test_reproduce_stores_every_run(folder):
    runs = list((folder / "results" / "runs").iterdir())
    # Two methods, each with two seeds.
    assert len(runs) == 2 * 2


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
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HPOBENCH_ORDERED_CACHE", str(tmp_path / "cache"))
    # The result of a call holds the error that ended it.
    with pytest.raises(error, match=message):
        raise call_reproduce(*words.split()).exception
    assert not list(tmp_path.iterdir())


def test_wrong_seeds_are_refused():
    result = call_reproduce("othpo", "--seeds", "many")
    assert result.exit_code == 2
    assert "--seeds" in result.output
