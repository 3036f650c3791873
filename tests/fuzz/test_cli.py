"""The command line, given anything: an exit code, at most one message, never a traceback."""

import copy
import string
from collections.abc import Sequence
from pathlib import Path

import pytest
from cli_results import FAILURE, MISUSE
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hpobench_ordered.cli import main, trust
from hpobench_ordered.data import download as _download
from hpobench_ordered.data.artifact import Artifact, ArtifactWriter
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
SETTING = st.builds("{}={}".format, st.sampled_from(["price_0", "price_9", ""]), ANY_TEXT)
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
@given(st.sampled_from(["info", "verify", "fetch", "evaluate", "report"]), ANY_NAME)
@example("verify", "/")
@example("info", "\udcff")
@example("verify", "\udcff/")
@example("info", "x" * 5000 + "/")
@example("info", "forrester-seed-" + "9" * 400)
def test_any_name_gives_no_traceback(call_command, command, name):
    """Any text stands where the name of a benchmark or a folder of results should be."""
    needed_options = ["--task", "0"] if command == "evaluate" else []
    end_of_options = "--"  # a name may begin with a hyphen

    # This fails on a traceback, and on an exit code that no command should have.
    call_command([command, *needed_options, end_of_options, name])


def test_fetching_offline_names_the_variable(call_command):
    """The message says how to allow downloads, and how to do without one."""
    _, message = call_command(["fetch", "xgboost-mnist"], expected=(FAILURE,))

    assert OFFLINE_VARIABLE in message
    assert "--from" in message


@fuzzed
@given(st.lists(SETTING | ANY_TEXT | st.just("price_1=3"), max_size=4), ANY_TEXT | NUMBER)
@example(["price_0=1e400", "price_1=-0", "price_2=9" + "9" * 5000], "0")
def test_any_configuration_gives_no_traceback(call_command, words, task):
    """Any texts stand where the task and the hyperparameters, such as price_1=3, should be."""
    # This fails on a traceback, and on an exit code that no command should have.
    call_command(["evaluate", "newsvendor", f"--task={task}", "--", *words])


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


# -- verify ----------------------------------------------------------------------------------------


TRUE_BEST_VALUE = 228.8
"""Best value of task 3 of newsvendor, as its artifact has it."""


def write_newsvendor(folder: Path, *, best_value: float = TRUE_BEST_VALUE) -> Path:
    """Write a copy of the artifact of newsvendor; its task 3 has this best value.

    The hashes are right: an artifact with a wrong value seems to be written like that.
    """
    packaged = Artifact.packaged("newsvendor")
    content = packaged.read_json("benchmark.json")
    content["surrogates"]["table"]["best_values"][3] = best_value
    with ArtifactWriter(folder) as writer:
        for name in ("card.json", "table.npz"):
            writer.write_bytes(name, packaged.read(name))
        writer.write_json("benchmark.json", content)
    return folder


@pytest.mark.parametrize(
    ("name", "checked"),
    [
        ("newsvendor", "newsvendor@1: 3 files, 18 golden values, card"),
        ("forrester", "forrester@1: 18 golden values"),
    ],
)
def test_verify_tells_what_was_checked(call_command, name, checked):
    """After "ok" come the benchmark and `checked`: the numbers of files and of golden values."""
    output, _ = call_command(["verify", name], expected=(SUCCESS,))

    assert output.startswith("ok ")
    assert checked in output


def test_verify_checks_an_own_artifact(call_command):
    """The package has no golden values, recorded evaluations, of a user's benchmark."""
    write_newsvendor(Path("mine"))

    output, _ = call_command(["verify", "./mine"], expected=(SUCCESS,))

    assert output.startswith("ok ")
    assert "/mine@1: 3 files, card" in output


def test_verify_without_anything_to_check(call_command):
    """Forrester is a formula without files; its golden values are of another seed."""
    output, _ = call_command(["verify", "forrester-seed-7"], expected=(SUCCESS,))

    verdict, *text = output.split()
    assert verdict == "-"
    assert " ".join(text) == "forrester-seed-7@1: nothing to check"


def test_verify_finds_a_changed_file(call_command):
    """The card of an artifact is changed, so that its recorded hash is wrong."""
    folder = write_newsvendor(Path("mine"))
    (folder / "card.json").write_text("{}")

    output, _ = call_command(["verify", "./mine"], expected=(FAILURE,))

    assert output.startswith("damaged ")
    assert "card.json is damaged: its SHA-256 is not the recorded one" in output


def test_verify_finds_a_wrong_best_value(call_command):
    """The artifact is undamaged, but states a best value that its table does not have."""
    write_newsvendor(Path("mine"), best_value=1.0)

    output, _ = call_command(["verify", "./mine"], expected=(FAILURE,))

    assert output.startswith("damaged ")
    assert f"best value 1.0 of task '3' on surrogate 'table' should be {TRUE_BEST_VALUE}" in output


def test_verify_finds_no_artifact(call_command):
    """A folder that has nothing in it is no artifact, and counts as damaged."""
    Path("empty").mkdir()

    output, _ = call_command(["verify", "./empty"], expected=(FAILURE,))

    assert output.startswith("damaged ")
    assert "no readable SHA256SUMS" in output


def test_verify_checks_the_rest_after_damage(call_command):
    """An empty folder counts as damaged; newsvendor, which comes after it, is still checked."""
    Path("empty").mkdir()

    output, errors = call_command(["verify", "./empty", "newsvendor"], expected=(FAILURE,))

    verdicts = [line.split()[0] for line in output.splitlines()]
    assert verdicts == ["damaged", "ok"]
    assert errors.endswith("error: some benchmarks are damaged\n")


def test_verify_finds_a_changed_golden_value(call_command, monkeypatch):
    """Golden values are evaluations that were recorded once, and must never change."""
    golden = copy.deepcopy(trust.read_golden())
    values_of_first_task = golden["newsvendor@1"]["values"]["table"]["0"]
    values_of_first_task[0] += 0.1
    monkeypatch.setattr(trust, "read_golden", lambda: golden)

    output, _ = call_command(["verify", "newsvendor"], expected=(FAILURE,))

    (line,) = output.splitlines()
    assert line.startswith("damaged  newsvendor@1: surrogate 'table', task '0': ")
