"""The command, in this process; with a small paper where experiments are run."""

import pytest
from click.testing import CliRunner, Result

from hpobench_ordered import reproduction
from hpobench_ordered.cli import app
from hpobench_ordered.errors import ExperimentError, NotFetchedError, UnknownNameError


@pytest.fixture
def small(small_paper, monkeypatch):
    monkeypatch.setattr(reproduction, "paper", {"small": small_paper}.__getitem__)


def call(*words: str) -> Result:
    return CliRunner().invoke(app, ["reproduce", *words])


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_reproduce_writes_and_prints_results(tmp_path):
    words = ("small", "--figure", "2", "--table", "1", "--output", str(tmp_path / "out"))
    result = call(*words, "--seeds", "2", "--workers", "1")
    assert result.exit_code == 0, result.output
    for part in ("transfer is ahead", "yes", "Table 1: caption.", "summary.md"):
        assert part in result.stdout
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"figure-2.png", "figure-2.svg", "figure-2.csv", "table-1.csv", "results"} <= names
    assert "figure-3.png" not in names
    assert len(list((tmp_path / "out" / "results" / "runs").iterdir())) == 4
    assert call(*words, "--seeds", "2", "--workers", "1").stdout == result.stdout


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
    with pytest.raises(error, match=message):
        raise call(*words.split()).exception
    assert not list(tmp_path.iterdir())


def test_wrong_seeds_are_refused():
    result = call("othpo", "--seeds", "many")
    assert result.exit_code == 2
    assert "--seeds" in result.output
