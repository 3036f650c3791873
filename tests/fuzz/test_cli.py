"""The command line, given anything: an exit code, at most one message, never a traceback."""

import json
import string
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from hpobench_ordered.cli import main
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
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setenv(OFFLINE_VARIABLE, "1")
    monkeypatch.setattr(_download, "FIRST_PAUSE", 0.0)


@pytest.fixture
def call(monkeypatch, capsys):
    monkeypatch.setattr("signal.signal", lambda *_: None)  # as before after the test

    def run(words: Sequence[str], codes: tuple[int, ...] = (0, 1, 2)) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["hpobench-ordered", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        code = ended.value.code or 0
        assert code in codes, (words, err)
        assert "Traceback" not in err
        if code:
            assert err.strip()
            assert err.casefold().count("error: ") == 1, err
        return int(code), out, err

    return run


@fuzzed
@given(st.sampled_from(["info", "verify", "fetch", "evaluate", "report"]), ANY_NAME)
@example("info", "\0/x")
@example("verify", "/")
@example("info", "\udcff")
@example("verify", "\udcff/")
@example("verify", "\0/x")
@example("info", "x" * 5000 + "/")
@example("info", "forrester-seed-" + "9" * 400)
def test_any_name(call, command, name):
    call([command, *(["--task", "0"] if command == "evaluate" else []), "--", name])


def test_fetching_offline_says_so(call):
    _, _, message = call(["fetch", "xgboost-mnist"], codes=(1,))
    assert OFFLINE_VARIABLE in message and "--from" in message


@fuzzed
@given(st.lists(SETTING | ANY_TEXT | st.just("price_1=3"), max_size=4), ANY_TEXT | NUMBER)
@example(["price_0=1e400", "price_1=-0", "price_2=9" + "9" * 5000], "0")
def test_any_configuration(call, words, task):
    call(["evaluate", "newsvendor", f"--task={task}", "--", *words])


@fuzzed
@given(st.lists(ANY_TEXT, max_size=3))
def test_any_words(call, words):
    if words and words[0] in ("-h", "--help", "--version"):
        return
    call([*words, "--no-such-option"], codes=(2,))


@fuzzed
@given(
    st.sampled_from(["--trials", "--tasks", "--history", "--simulated-workers", "--workers"]),
    ANY_TEXT | NUMBER.filter(lambda text: not text.isdecimal()),
)
def test_any_number(call, option, text):
    try:
        possible = int(text) > 0
    except ValueError:
        possible = False
    if not possible:
        call(["run", "--benchmark", "newsvendor", f"{option}={text}"], codes=(1, 2))


@fuzzed
@given(ANY_TEXT.filter(lambda text: not any(c.isdigit() for c in text)))
@example("1,,2")
@example("5-3")
@example("-1")
@example("--")
@example("1-")
@example("1,-2")
def test_any_seeds(call, seeds):
    words = ["run", "--benchmark", "newsvendor", "--trials", "1", "--tasks", "1"]
    call([*words, "--output", "no-results", f"--seeds={seeds}"], codes=(2,))
    assert not Path("no-results").exists()


def damaged_copy(folder: Path, *, value: float | None) -> None:
    """A newsvendor, with another best value or else with another file than is listed."""
    packaged = Artifact.packaged("newsvendor")
    content = packaged.read_json("benchmark.json")
    if value is not None:
        content["surrogates"]["table"]["best_values"][3] = value
    with ArtifactWriter(folder) as writer:
        for name in ("card.json", "table.npz"):
            writer.write_bytes(name, packaged.read(name))
        writer.write_json("benchmark.json", content)
    if value is None:
        (folder / "card.json").write_text("{}")


def test_verify_says_what_is_wrong_and_checks_the_rest(call):
    damaged_copy(Path("one"), value=None)
    damaged_copy(Path("two"), value=1.0)
    Path("three").mkdir()
    damaged_copy(Path("mine"), value=228.8)
    names = ["./mine", "newsvendor", "forrester", "forrester-seed-7"]
    _, out, err = call(["verify", "./one", "./two", "./three", *names], codes=(1,))
    said = [
        ("damaged", "card.json is damaged: its SHA-256 is not the recorded one"),
        ("damaged", "best value 1.0 of task '3' on surrogate 'table' should be 228.8"),
        ("damaged", "no readable SHA256SUMS"),
        ("ok", "/mine@1: 3 files, card"),
        ("ok", "newsvendor@1: 3 files, 18 golden values, card"),
        ("ok", "forrester@1: 18 golden values"),
        ("-", "forrester-seed-7@1: nothing to check"),
    ]
    for line, (state, message) in zip(out.splitlines(), said, strict=True):
        assert line.split()[0] == state and message in line
    assert err.endswith("error: some benchmarks are damaged\n")


def test_verify_compares_golden_values(call, monkeypatch):
    from hpobench_ordered.cli import trust

    golden = json.loads(json.dumps(trust.read_golden()))
    golden["newsvendor@1"]["values"]["table"]["0"][0] += 0.1
    monkeypatch.setattr(trust, "read_golden", lambda: golden)
    _, out, _ = call(["verify", "newsvendor"], codes=(1,))
    assert out.startswith("damaged  newsvendor@1: surrogate 'table', task '0': ")
    assert out.count("\n") == 1
