"""The command line, given anything: an exit code, at most one message, never a traceback."""

import string
from collections.abc import Sequence
from pathlib import Path

import pytest
from cli_results import FAILURE, MISUSE
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hpobench_ordered.cli import main
from hpobench_ordered.data import download as _download
from hpobench_ordered.data.download import OFFLINE_VARIABLE
from hpobench_ordered.data.remote import CACHE_VARIABLE

fuzzed = settings(
    max_examples=settings().max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
SUCCESS = 0
"""Exit code of a command that did what it was called for."""
ANY_CODE = (SUCCESS, FAILURE, MISUSE)
NAMES = ("newsvendor", "newsvendor@1", "newsvendor@2", "yahpo-svm-1", "forrester-seed-7", "./x", "")
ANY_TEXT = (st.text(max_size=12) | st.text(string.printable, max_size=12)).filter(
    lambda text: "\0" not in text  # which no shell can pass
)
ANY_NAME = (
    ANY_TEXT
    | st.sampled_from(NAMES)
    | st.builds("{}{}".format, st.sampled_from(NAMES), ANY_TEXT)
    | st.builds("forrester-seed-{}".format, ANY_TEXT | st.integers())
    | st.builds("yahpo-svm-{}".format, ANY_TEXT | st.integers())
)
NUMBER = st.integers(-(10**30), 10**30).map(str) | st.sampled_from(["nan", "inf", "1e400", "0x1"])


@pytest.fixture(autouse=True)
def offline_in_empty_folder(tmp_path, monkeypatch):
    """Work in an empty folder, with nothing downloaded before and nothing to be downloaded."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(OFFLINE_VARIABLE, "1")
    # Seconds before a second attempt: if there was a download after all, the test would wait.
    monkeypatch.setattr(_download, "FIRST_PAUSE", 0.0)


@pytest.fixture
def call_command(monkeypatch, capsys):
    """A function that calls the command with words; returns its output and its errors, as texts.

    It fails if the exit code is not among the expected ones, on a traceback, and if a command that
    fails does not print exactly one error message.
    """
    # The handlers of signals that the command sets would outlast the test.
    monkeypatch.setattr("signal.signal", lambda *_: None)

    def run_main(words: Sequence[str], *, expected: tuple[int, ...] = ANY_CODE) -> tuple[str, str]:
        """Run the command line with these words; return its output and its errors."""
        monkeypatch.setattr("sys.argv", ["hpobench-ordered", *words])
        with pytest.raises(SystemExit) as caught:
            main()
        output, errors = capsys.readouterr()

        exit_code = caught.value.code or SUCCESS  # None, too, is success
        assert exit_code in expected, (words, errors)
        assert "Traceback" not in errors
        if exit_code != SUCCESS:
            assert errors.casefold().count("error: ") == 1, errors
        return output, errors

    return run_main


@fuzzed
@given(st.sampled_from(["info", "fetch", "report"]), ANY_NAME)
@example("info", "/")
@example("info", "\udcff")
@example("fetch", "\udcff/")
@example("info", "x" * 5000 + "/")
@example("info", "forrester-seed-" + "9" * 400)
def test_any_name_gives_no_traceback(call_command, command, name):
    """Any text stands where the name of a benchmark or a folder of results should be."""
    end_of_options = "--"  # a name may begin with a hyphen

    # This fails on a traceback, and on an exit code that no command should have.
    call_command([command, end_of_options, name])


def test_fetching_offline_names_the_variable(call_command):
    """The message says how to allow downloads, and how to do without one."""
    _, message = call_command(["fetch", "xgboost-mnist"], expected=(FAILURE,))

    assert OFFLINE_VARIABLE in message
    assert "--from" in message


def asks_for_nothing_else(words: list[str]) -> bool:
    """Whether words ask for help or the version, after which a command reads no other option."""
    return bool(words) and words[0] in ("-h", "--help", "--version")


@fuzzed
@given(st.lists(ANY_TEXT, max_size=3).filter(lambda words: not asks_for_nothing_else(words)))
def test_unknown_option_is_misuse(call_command, words):
    """The option comes after any words that do not ask for help or the version."""
    call_command([*words, "--no-such-option"], expected=(MISUSE,))


def is_positive_integer(text: str) -> bool:
    """Whether Python reads a text as an integer above 0."""
    try:
        return int(text) > 0
    except ValueError:
        return False


@fuzzed
@given(
    st.sampled_from(["--trials", "--tasks", "--history", "--simulated-workers", "--workers"]),
    (ANY_TEXT | NUMBER).filter(lambda text: not is_positive_integer(text)),
)
def test_number_must_be_positive_integer(call_command, option, text):
    """The text is no positive integer, and so the command fails."""
    call_command(
        ["run", "--benchmark", "newsvendor", f"{option}={text}"], expected=(FAILURE, MISUSE)
    )


@fuzzed
@given(ANY_TEXT.filter(lambda text: not any(character.isdigit() for character in text)))
@example("1,,2")
@example("5-3")
@example("-1")
@example("--")
@example("1-")
@example("1,-2")
def test_malformed_seeds_are_misuse(call_command, seeds):
    """Seeds are a list of numbers and ranges, such as "1,3-5"; `seeds` is no such list."""
    options = ["--benchmark", "newsvendor", "--trials", "1", "--tasks", "1"]

    call_command(
        ["run", *options, "--output", "no-results", f"--seeds={seeds}"], expected=(MISUSE,)
    )

    assert not Path("no-results").exists()
