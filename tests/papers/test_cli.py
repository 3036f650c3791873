"""The command `reproduce`, called in this process, where it refuses something."""

import re

import pytest
from click.testing import CliRunner, Result

from hpobench_ordered.cli import app
from hpobench_ordered.errors import ExperimentError, NotFetchedError, UnknownNameError


def call_reproduce(*words: str) -> Result:
    """Call `hpobench-ordered reproduce` with these arguments."""
    return CliRunner().invoke(app, ["reproduce", *words])


@pytest.mark.parametrize(
    ("words", "error", "message"),
    [
        ("othpo --figure 3", ExperimentError, "no figure 3 to reproduce, only 1, 4, 5"),
        ("othpo --table 4 --surrogate nearest", NotFetchedError, "fetch xgboost-mnist"),
        ("othpo --surrogate near", UnknownNameError, "near"),
        ("othp", UnknownNameError, "did you mean 'othpo'"),
        ("ablr --authors-bo", ExperimentError, "of ablr is not rebuilt"),
    ],
)
def test_wrong_requests_are_refused(tmp_path, monkeypatch, words, error, message):
    """A request for what is unknown, or for data that are not fetched, fails and writes nothing."""
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
