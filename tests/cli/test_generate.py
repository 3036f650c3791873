"""The command generate."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from cli_results import assert_fails, read_names

from hpobench_ordered.generation.base import generators
from hpobench_ordered.registry import suites
from hpobench_ordered.surrogates import pipeline
from hpobench_ordered.surrogates.best import best_known

SIZES = ("--sizes", "20,60", "--configs", "10", "--workers", "1")
WINE = ("--data", "sklearn:wine", "--model", "sklearn.tree:DecisionTreeClassifier")
PRICES = ("price_0=9", "price_1=9", "price_2=9")


def custom(name: str, *words: str) -> Sequence[str]:
    return ["generate", "custom", "--name", name, *words]


def test_options_may_stand_before_name(cli):
    assert cli("generate", "--output", "mine", "newsvendor").stdout == "mine/newsvendor\n"


def test_generated_benchmark_is_loaded_by_path(cli):
    cli("generate", "newsvendor", "--output", "mine")
    result = cli("evaluate", "mine/newsvendor", "--task", "0", *PRICES)
    assert result.stdout == cli("evaluate", "newsvendor", "--task", "0", *PRICES).stdout


def test_damaged_artifact_is_refused(cli, tmp_path):
    cli("generate", "newsvendor", "--output", "mine")
    path = tmp_path / "mine" / "newsvendor" / "table.npz"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    result = cli("evaluate", "mine/newsvendor", "--task", "0", *PRICES)
    assert_fails(result, 1, "table.npz", "damaged")


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["newsvendr"], ["did you mean 'newsvendor'"]),
        (["xgboost-mnist", "--source", "training"], ["did you mean 'train'"]),
        (["xgboost-mnist", "--sizes", "a,b"], ["56,155,433"]),
        (["newsvendor", "--seed", "0"], ["does not take --seed", "no options"]),
        (["yahpo-svm-1220", "--from", ".", "--sizes", "56"], ["--sizes", "it takes --from"]),
        (["yahpo-svm-1220", "--from", ".", "--configs", "5"], ["at least 10 configurations"]),
        (["--suite", "othp"], ["did you mean 'othpo'"]),
        (["--suite", "othpo", "newsvendor"], ["NAME of a benchmark or --suite"]),
        (["--seed", "0"], ["NAME of a benchmark or --suite"]),
    ],
)
def test_wrong_generation_is_misuse(cli, words, parts):
    assert_fails(cli("generate", *words), 2, *parts)


MISSING = ["yahpo-xgboost-458", "yahpo-rpart-1220"]


@pytest.fixture
def wide_suite(monkeypatch):
    """Makes the suite wide small: two benchmarks with an artifact, two without."""
    monkeypatch.setitem(suites(), "wide", ("newsvendor", *MISSING, "yahpo-svm-40966"))
    monkeypatch.setattr(pipeline, "best_known", partial(best_known, draws=200))


@pytest.mark.slow
@pytest.mark.usefixtures("wide_suite")
def test_run_names_what_suite_lacks(cli):
    words = ["run", "--suite", "wide", "--method", "random-search", "--workers", "1"]
    result = cli(*words, "--seeds", "1", "--trials", "2", "--tasks", "1", "--no-report")
    assert "2 more benchmarks of suite wide, such as yahpo-xgboost-458" in result.stderr
    assert "generate --suite wide" in result.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("wide_suite")
def test_generate_makes_what_suite_lacks(cli, shared, tmp_path):
    data = ("--from", str(shared / "data" / "yahpo"))
    result = cli("generate", "--suite", "wide", *data, "--configs", "30")
    assert result.stdout.split() == [str(tmp_path / "own" / name) for name in MISSING]
    ready = read_names(cli("list", "--suite", "wide", "--ready", "--json"))
    assert set(ready) == set(suites()["wide"])

    again = cli("generate", "--suite", "wide", *data)
    assert (again.returncode, again.stdout) == (0, "")
    assert "nothing to generate" in again.stderr


@pytest.fixture
def wine_tree(cli):
    """Makes a benchmark of a model on bundled data."""
    result = cli(*custom("wine-tree", *WINE, *SIZES))
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.slow
def test_custom_prints_path_and_command(wine_tree, tmp_path):
    assert wine_tree.stdout == f"{tmp_path / 'own' / 'wine-tree'}\n"
    assert "hpobench-ordered run --benchmark wine-tree" in wine_tree.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("wine_tree")
def test_custom_benchmark_is_described(cli):
    assert "wine-tree@1" in cli("list").stdout
    info = cli("info", "wine-tree").stdout
    assert "minimize error" in info
    assert "generate custom --model sklearn.tree:DecisionTreeClassifier" in info


@pytest.mark.slow
@pytest.mark.usefixtures("wine_tree")
def test_custom_benchmark_is_run_by_name(cli):
    words = ["--seeds", "2", "--trials", "4", "--workers", "1"]
    run = cli("run", "--benchmark", "wine-tree", *words)
    assert run.returncode == 0, run.stderr
    assert "wine-tree@1" in run.stdout
    assert "simple-ordered" in run.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("wine_tree")
def test_custom_benchmark_is_not_replaced_unasked(cli):
    again = cli(*custom("wine-tree", *WINE, *SIZES))
    assert_fails(again, 2, "--replace")


MODEL = """
import numpy as np

class Constant:
    def __init__(self, level, *, mode, sign):
        assert mode == "fast" and sign == -1
        self.level = level
    def fit(self, x, y):
        self.sum = self.level * len(y)
    def predict(self, x):
        return np.full(len(x), self.sum)
"""
SPACE = {
    "hyperparameters": [
        {"type": "uniform_float", "name": "level", "lower": 0, "upper": 9, "log": False}
    ]
}
OWN = ("--data", "table.csv", "--model", "mine:Constant", "--space", "space.json")


@pytest.fixture
def own_model(folder):
    """A model, its search space and a table, in the working folder."""
    (folder / "mine.py").write_text(MODEL)
    (folder / "space.json").write_text(json.dumps(SPACE))
    rows = [f"{k},{k / 4}\n" for k in range(100)]
    (folder / "table.csv").write_text("x,y\n" + "".join(rows))


@pytest.mark.slow
@pytest.mark.usefixtures("own_model")
def test_own_model_lies_in_the_folder(process):
    words = ["--set", "mode=fast", "--set", "sign=-1", "--sizes", "20,60", "--configs", "10"]
    result = process(*custom("line", *OWN, *words, "--workers", "2", "--output", "made"))
    assert result.returncode == 0, result.stderr
    assert f"--benchmark {Path('made', 'line')}" in result.stderr
    assert float(process("evaluate", "made/line", "--task", "20", "level=3").stdout) > 0


@pytest.mark.slow
@pytest.mark.usefixtures("own_model")
def test_failing_own_model_gives_one_message(process):
    words = ["--set", "mode=slow", "--set", "sign=-1"]
    result = process(*custom("other", *OWN, *SIZES, *words))
    assert_fails(result, 2, "AssertionError")


@pytest.mark.parametrize(
    ("name", "words", "part"),
    [
        ("x", ["--sizes", "a,b"], "56,155,433"),
        ("x", ["--sizes", "60", "--set", "depth"], "KEYWORD=VALUE"),
        ("x", ["--sizes", "60", "--set", "depth=3"], "'max_depth'"),
        ("newsvendor", ["--sizes", "60"], "already"),
    ],
)
def test_wrong_custom_benchmark_is_misuse(cli, name, words, part, tmp_path):
    assert_fails(cli(*custom(name, *WINE, *words)), 2, part)
    own = tmp_path / "own"
    assert not own.exists() or not list(own.iterdir())


@pytest.fixture
def help_text(cli):
    """The help of `generate` as one line."""
    return " ".join(cli("generate", "--help").stdout.split())


def test_help_shows_both_usages(help_text):
    usage = "Usage: hpobench-ordered generate NAME [OPTIONS] hpobench-ordered generate custom"
    assert usage in help_text
    assert "custom --help Make a benchmark of your own" in help_text


def test_help_has_default_source_first(help_text):
    published, train = (f"xgboost-mnist --source {name}" for name in ("published", "train"))
    assert help_text.index(published) < help_text.index(train)


@pytest.mark.parametrize("name", sorted(generators()))
def test_help_names_every_benchmark(help_text, name):
    stem, _, number = name.rpartition("-")
    is_shared_line = f"{stem}-ID --source" in help_text  # of the data sets of one scenario
    assert f"{name} --source" in help_text or (is_shared_line and number in help_text)


def test_help_of_name_has_its_options_alone(cli):
    shown = cli("generate", "newsvendor", "--help").stdout
    assert shown.startswith("Usage: hpobench-ordered generate NAME [OPTIONS]")
    assert "--source" in shown
    assert "--model MODULE" not in shown.partition("Examples")[0]


@pytest.fixture
def marks_file(cli, tmp_path):
    """Computes the marks of two benchmarks into the user's own file."""
    result = cli("generate", "marks", "quadratic", "forrester")
    assert result.returncode == 0, result.stderr
    path = tmp_path / "own" / "marks.json"
    assert result.stdout.splitlines()[-1] == str(path)
    return path


def test_marks_are_of_named_benchmarks(marks_file):
    entries = json.loads(marks_file.read_text())["benchmarks"]
    assert set(entries) == {"forrester@1", "quadratic@1"}


@pytest.mark.usefixtures("marks_file")
def test_info_shows_own_marks(cli):
    assert "marks:     copying (" in cli("info", "quadratic").stdout


@pytest.mark.usefixtures("marks_file")
def test_packaged_marks_are_shown_too(cli):
    (entry,) = json.loads(cli("list", "yahpo-svm-458", "--json").stdout)
    assert (entry["marks"], entry["family"]) == (["plateau", "copying"], "rbv2_svm")
    info = json.loads(cli("info", "yahpo-svm-458", "--json").stdout)
    assert info["marks"]["near_best"] > 0.1


def test_info_says_that_marks_are_missing(cli):
    assert "not computed" in cli("info", "openml-ranger").stdout


def test_file_without_marks_is_named(cli, marks_file):
    marks_file.write_text("{}")
    assert "holds no marks" in cli("info", "openml-ranger").stderr
