"""The command line, given anything: an exit code, at most one message, never a traceback."""

import json
import string
from collections.abc import Sequence
from pathlib import Path

import pytest
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
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(OFFLINE_VARIABLE, "1")
    monkeypatch.setattr(_download, "FIRST_PAUSE", 0.0)


@pytest.fixture
def call(monkeypatch, capsys):
    """Calls the command, and checks its exit code and that it prints one error and no traceback."""
    monkeypatch.setattr("signal.signal", lambda *_: None)  # which would outlast the test

    def call(words: Sequence[str], codes: tuple[int, ...] = (0, 1, 2)) -> tuple[str, str]:
        monkeypatch.setattr("sys.argv", ["hpobench-ordered", *words])
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = capsys.readouterr()
        code = caught.value.code or 0
        assert code in codes, (words, err)
        assert "Traceback" not in err
        if code != 0:
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
    options = ["--task", "0"] if command == "evaluate" else []

    call([command, *options, "--", name])


def test_fetching_offline_names_the_variable(call):
    _, message = call(["fetch", "xgboost-mnist"], codes=(1,))

    assert OFFLINE_VARIABLE in message
    assert "--from" in message


@fuzzed
@given(st.lists(SETTING | ANY_TEXT | st.just("price_1=3"), max_size=4), ANY_TEXT | NUMBER)
@example(["price_0=1e400", "price_1=-0", "price_2=9" + "9" * 5000], "0")
def test_any_configuration_gives_no_traceback(call, words, task):
    call(["evaluate", "newsvendor", f"--task={task}", "--", *words])


@fuzzed
@given(st.lists(ANY_TEXT, max_size=3))
def test_unknown_option_is_misuse(call, words):
    if words and words[0] in ("-h", "--help", "--version"):
        return  # which asks for help or the version

    call([*words, "--no-such-option"], codes=(2,))


def is_positive_integer(text: str) -> bool:
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
    call(["run", "--benchmark", "newsvendor", f"{option}={text}"], codes=(1, 2))


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

    call(["run", *options, "--output", "no-results", f"--seeds={seeds}"], codes=(2,))

    assert not Path("no-results").exists()


# -- verify ----------------------------------------------------------------------------------------


def write_newsvendor(folder: Path, *, best_value: float = 228.8) -> Path:
    """A copy of newsvendor, with this best value of task 3, which is 228.8."""
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
    out, _ = call(["verify", name], codes=(0,))

    assert out.split(maxsplit=1)[0] == "ok"
    assert line in out


def test_verify_checks_an_own_artifact(call):
    write_newsvendor(Path("mine"))

    out, _ = call(["verify", "./mine"], codes=(0,))

    assert out.split(maxsplit=1)[0] == "ok"
    assert "/mine@1: 3 files, card" in out


def test_verify_without_anything_to_check(call):
    out, _ = call(["verify", "forrester-seed-7"], codes=(0,))

    assert out.split() == ["-", "forrester-seed-7@1:", "nothing", "to", "check"]


def test_verify_finds_a_changed_file(call):
    (write_newsvendor(Path("mine")) / "card.json").write_text("{}")

    out, _ = call(["verify", "./mine"], codes=(1,))

    assert out.startswith("damaged ")
    assert "card.json is damaged: its SHA-256 is not the recorded one" in out


def test_verify_finds_a_wrong_best_value(call):
    write_newsvendor(Path("mine"), best_value=1.0)

    out, _ = call(["verify", "./mine"], codes=(1,))

    assert out.startswith("damaged ")
    assert "best value 1.0 of task '3' on surrogate 'table' should be 228.8" in out


def test_verify_finds_no_artifact(call):
    Path("empty").mkdir()

    out, _ = call(["verify", "./empty"], codes=(1,))

    assert out.startswith("damaged ")
    assert "no readable SHA256SUMS" in out


def test_verify_checks_the_rest_after_damage(call):
    Path("empty").mkdir()

    out, err = call(["verify", "./empty", "newsvendor"], codes=(1,))

    states = [line.split()[0] for line in out.splitlines()]
    assert states == ["damaged", "ok"]
    assert err.endswith("error: some benchmarks are damaged\n")


def test_verify_finds_a_changed_golden_value(call, monkeypatch):
    golden = json.loads(json.dumps(trust.read_golden()))  # a copy that may be changed
    golden["newsvendor@1"]["values"]["table"]["0"][0] += 0.1
    monkeypatch.setattr(trust, "read_golden", lambda: golden)

    out, _ = call(["verify", "newsvendor"], codes=(1,))

    assert out.startswith("damaged  newsvendor@1: surrogate 'table', task '0': ")
    assert out.count("\n") == 1
