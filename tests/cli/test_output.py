"""Output in terminals and pipes whose encoding lacks characters."""

import io
import json
import sys
from contextlib import contextmanager, redirect_stdout

import pytest

from hpobench_ordered.cli import main
from hpobench_ordered.cli._output import print_json


@contextmanager
def stdout_in(encoding):
    """Let standard output have an encoding; yields its bytes."""
    stream = io.BytesIO()
    with redirect_stdout(io.TextIOWrapper(stream, encoding, write_through=True)):
        yield stream


def test_command_prints_in_any_encoding(cli, monkeypatch):
    """A method without results on one of two benchmarks has en rules in place of scores."""
    size = ("--trials", "2", "--seeds", "1", "--no-report")
    cli("run", "--benchmark", "newsvendor", "--method", "simple-ordered", *size)
    cli("run", "--benchmark", "svm-a", "--method", "random-search", *size)
    monkeypatch.setattr(sys, "argv", ["hpobench-ordered", "leaderboard", "results"])

    with stdout_in("cp437") as printed:
        with pytest.raises(SystemExit) as caught:
            main()
        words = printed.getvalue().split()

    assert not caught.value.code
    assert b"?" in words


def test_json_is_plain():
    """JSON has escapes in place of characters that an encoding may lack."""
    with stdout_in("ascii") as printed:
        print_json({"\u8cea": 1})
        content = json.loads(printed.getvalue())
    assert content == {"\u8cea": 1}
