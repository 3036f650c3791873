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
from hpobench_ordered.files import download as _download
from hpobench_ordered.files.artifact import Artifact, ArtifactWriter
from hpobench_ordered.files.download import OFFLINE_VARIABLE
from hpobench_ordered.files.remote import CACHE_VARIABLE

fuzzed = settings(
    max_examples=settings().max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
SUCCESS = 0
"""Exit code of a command that did what it was called for."""
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
    """An empty folder to work in, nothing fetched, and no attempt to fetch anything."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(OFFLINE_VARIABLE, "1")
    monkeypatch.setattr(_download, "FIRST_PAUSE", 0.0)


@pytest.fixture
def call(monkeypatch, capsys):
    """A function that calls the command and returns its output and its errors.

    It checks that the exit code is among `codes` and that there is one error message if it is not
    0, and never a traceback.
    """
    monkeypatch.setattr("signal.signal", lambda *_: None)  # which would outlast the test

    def call(
        words: Sequence[str], codes: tuple[int, ...] = (SUCCESS, FAILURE, MISUSE)
    ) -> tuple[str, str]:
        monkeypatch.setattr("sys.argv", ["hpobench-ordered", *words])
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = capsys.readouterr()
        code = caught.value.code or SUCCESS  # None, too, is success
        assert code in codes, (words, err)
        assert "Traceback" not in err
        if code != SUCCESS:
            assert err.casefold().count("error: ") == 1, err
        return out, err

    return call


@fuzzed
@given(st.sampled_from(["info", "verify", "fetch", "evaluate", "report"]), ANY_NAME)
@example("verify", "/")
@example("info", "\udcff")
@example("verify", "\udcff/")
@example("info", "x" * 5000 + "/")
@example("info", "forrester-seed-" + "9" * 400)
def test_any_name_gives_no_traceback(call, command, name):
    """What follows "--" is no option, even if it begins with a hyphen."""
    needed_options = ["--task", "0"] if command == "evaluate" else []

    # Fails on a traceback.
    call([command, *needed_options, "--", name])


def test_fetching_offline_names_the_variable(call):
    _, message = call(["fetch", "xgboost-mnist"], codes=(FAILURE,))

    assert OFFLINE_VARIABLE in message
    assert "--from" in message


@fuzzed
@given(st.lists(SETTING | ANY_TEXT | st.just("price_1=3"), max_size=4), ANY_TEXT | NUMBER)
@example(["price_0=1e400", "price_1=-0", "price_2=9" + "9" * 5000], "0")
def test_any_configuration_gives_no_traceback(call, words, task):
    # Fails on a traceback.
    call(["evaluate", "newsvendor", f"--task={task}", "--", *words])


@fuzzed
@given(st.lists(ANY_TEXT, max_size=3))
def test_unknown_option_is_misuse(call, words):
    asks_for_help_or_version = words and words[0] in ("-h", "--help", "--version")
    if asks_for_help_or_version:
        return  # what follows is not read

    call([*words, "--no-such-option"], codes=(MISUSE,))


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
def test_number_must_be_positive_integer(call, option, text):
    """The text is no positive integer, and so the command fails."""
    call(["run", "--benchmark", "newsvendor", f"{option}={text}"], codes=(FAILURE, MISUSE))


@fuzzed
@given(ANY_TEXT.filter(lambda text: not any(character.isdigit() for character in text)))
@example("1,,2")
@example("5-3")
@example("-1")
@example("--")
@example("1-")
@example("1,-2")
def test_malformed_seeds_are_misuse(call, seeds):
    options = ["--benchmark", "newsvendor", "--trials", "1", "--tasks", "1"]

    call(["run", *options, "--output", "no-results", f"--seeds={seeds}"], codes=(MISUSE,))

    assert not Path("no-results").exists()


# -- verify ----------------------------------------------------------------------------------------


TRUE_BEST_VALUE = 228.8
"""Of task 3 of newsvendor."""


def write_newsvendor(folder: Path, *, best_value: float = TRUE_BEST_VALUE) -> Path:
    """Write a copy of the artifact of newsvendor, with this best value of task 3."""
    packaged = Artifact.packaged("newsvendor")
    content = packaged.read_json("benchmark.json")
    content["surrogates"]["table"]["best_values"][3] = best_value
    with ArtifactWriter(folder) as writer:
        for name in ("card.json", "table.npz"):
            writer.write_bytes(name, packaged.read(name))
        writer.write_json("benchmark.json", content)
    return folder


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("newsvendor", "newsvendor@1: 3 files, 18 golden values, card"),
        ("forrester", "forrester@1: 18 golden values"),
    ],
)
def test_verify_tells_what_was_checked(call, name, line):
    out, _ = call(["verify", name], codes=(SUCCESS,))

    assert out.startswith("ok ")
    assert line in out


def test_verify_checks_an_own_artifact(call):
    write_newsvendor(Path("mine"))

    out, _ = call(["verify", "./mine"], codes=(SUCCESS,))

    assert out.startswith("ok ")
    assert "/mine@1: 3 files, card" in out


def test_verify_without_anything_to_check(call):
    """The package has no files and no recorded values of forrester with another seed."""
    out, _ = call(["verify", "forrester-seed-7"], codes=(SUCCESS,))

    assert out.split() == ["-", "forrester-seed-7@1:", "nothing", "to", "check"]


def test_verify_finds_a_changed_file(call):
    folder = write_newsvendor(Path("mine"))
    (folder / "card.json").write_text("{}")

    out, _ = call(["verify", "./mine"], codes=(FAILURE,))

    assert out.startswith("damaged ")
    assert "card.json is damaged: its SHA-256 is not the recorded one" in out


def test_verify_finds_a_wrong_best_value(call):
    write_newsvendor(Path("mine"), best_value=1.0)

    out, _ = call(["verify", "./mine"], codes=(FAILURE,))

    assert out.startswith("damaged ")
    assert f"best value 1.0 of task '3' on surrogate 'table' should be {TRUE_BEST_VALUE}" in out


def test_verify_finds_no_artifact(call):
    Path("empty").mkdir()

    out, _ = call(["verify", "./empty"], codes=(FAILURE,))

    assert out.startswith("damaged ")
    assert "no readable SHA256SUMS" in out


def test_verify_checks_the_rest_after_damage(call):
    """An empty folder counts as damaged; newsvendor follows it."""
    Path("empty").mkdir()

    out, err = call(["verify", "./empty", "newsvendor"], codes=(FAILURE,))

    verdicts = [line.split()[0] for line in out.splitlines()]
    assert verdicts == ["damaged", "ok"]
    assert err.endswith("error: some benchmarks are damaged\n")


def test_verify_finds_a_changed_golden_value(call, monkeypatch):
    """Golden values are recorded evaluations, by benchmark, surrogate and task."""
    golden = copy.deepcopy(trust.read_golden())
    golden["newsvendor@1"]["values"]["table"]["0"][0] += 0.1
    monkeypatch.setattr(trust, "read_golden", lambda: golden)

    out, _ = call(["verify", "newsvendor"], codes=(FAILURE,))

    (line,) = out.splitlines()
    assert line.startswith("damaged  newsvendor@1: surrogate 'table', task '0': ")
