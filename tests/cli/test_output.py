"""Output in terminals and pipes whose encoding lacks characters."""

import io
import json
import sys
from contextlib import contextmanager, redirect_stdout

import pytest

from hpobench_ordered.cli import main
from hpobench_ordered.cli._output import allow_all_characters, print_json, print_table

without_en_rules = pytest.mark.parametrize("encoding", ["ascii", "cp437", "cp850"])


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
    assert b"-" in words


@without_en_rules
def test_table_spells_characters_plainly(encoding):
    with stdout_in(encoding) as printed:
        allow_all_characters()
        print_table(["method", "score"], [["bo", "\u2013"], ["cts", "\u22123.5"]])
        words = printed.getvalue().decode("ascii").split()
    assert words == ["method", "score", "bo", "-", "cts", "-3.5"]


@without_en_rules
@pytest.mark.parametrize("name", ["\u8cea", "\U0001f600"])
def test_json_stays_valid(encoding, name):
    with stdout_in(encoding) as printed:
        allow_all_characters()
        print_json({name: 1})
        content = json.loads(printed.getvalue())
    assert content == {name: 1}
