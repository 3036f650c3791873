"""The command generate."""

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from cli_results import FAILURE, MISUSE, assert_fails, read_names

import hpobench_ordered as hbo
from hpobench_ordered.benchmarks.registry import suites
from hpobench_ordered.generation.base import generators
from hpobench_ordered.surrogates import pipeline
from hpobench_ordered.surrogates.best import best_known

SMALL_SIZES = ("--sizes", "20,60", "--configs", "10", "--workers", "1")
"""Options of a small benchmark: tasks of 20 and 60 rows of training data."""
TREE_ON_WINE = ("--data", "sklearn:wine", "--model", "sklearn.tree:DecisionTreeClassifier")
"""Options of a benchmark of decision trees on the data set wine."""
PRICES_OF_9 = {"price_0": 9, "price_1": 9, "price_2": 9}
"""A configuration of newsvendor, which has three prices from 0 to 20."""


def generate_custom_words(name: str, *words: str) -> Sequence[str]:
    """Words of the command that makes a benchmark of this name from a model and data."""
    return ["generate", "custom", "--name", name, *words]


def test_options_may_stand_before_name(cli):
    assert cli("generate", "--output", "mine", "newsvendor").stdout == "mine/newsvendor\n"


def test_generated_benchmark_is_loaded_by_path(cli):
    """Generated again, newsvendor has the same values as the one in the package."""
    cli("generate", "newsvendor", "--output", "mine")

    generated = hbo.load("mine/newsvendor").tasks[0]

    packaged = hbo.load("newsvendor").tasks[0]
    assert generated.evaluate(PRICES_OF_9) == packaged.evaluate(PRICES_OF_9)


def test_damaged_artifact_is_refused(cli, tmp_path):
    """The last byte of a file is replaced, so that its hash is not the recorded one."""
    cli("generate", "newsvendor", "--output", "mine")
    table_file = tmp_path / "mine" / "newsvendor" / "table.npz"
    all_but_last_byte = table_file.read_bytes()[:-1]
    table_file.write_bytes(all_but_last_byte + b"x")

    result = cli("info", "mine/newsvendor")

    assert_fails(result, FAILURE, "table.npz", "damaged")


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
    assert_fails(cli("generate", *words), MISUSE, *parts)


WITHOUT_ARTIFACT = ["yahpo-xgboost-458", "yahpo-rpart-1220"]
"""Benchmarks that are to be generated: the package has no artifact of them."""


@pytest.fixture
def small_wide_suite(monkeypatch):
    """Reduces the suite `wide` to four benchmarks: two with an artifact, two without."""
    monkeypatch.setitem(suites(), "wide", ("newsvendor", *WITHOUT_ARTIFACT, "yahpo-svm-40966"))
    # The best value of a task is searched among few configurations, which takes less time.
    monkeypatch.setattr(pipeline, "best_known", partial(best_known, draws=200))


@pytest.mark.slow
@pytest.mark.usefixtures("small_wide_suite")
def test_run_names_what_suite_lacks(cli):
    """Two of the suite's four benchmarks have no artifact; yahpo-xgboost-458 is the first."""
    short = ["--seeds", "1", "--trials", "2", "--tasks", "1", "--workers", "1", "--no-report"]

    result = cli("run", "--suite", "wide", "--method", "random-search", *short)

    assert "2 more benchmarks of suite wide, such as yahpo-xgboost-458" in result.stderr
    assert "generate --suite wide" in result.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("small_wide_suite")
def test_generate_makes_what_suite_lacks(cli, shared, folder_of_user):
    """Two of the suite's four benchmarks are generated; then the whole suite is ready."""
    data = str(shared / "data" / "yahpo")

    # Thirty configurations are few, so that it takes less time.
    result = cli("generate", "--suite", "wide", "--from", data, "--configs", "30")

    assert result.stdout.split() == [str(folder_of_user / name) for name in WITHOUT_ARTIFACT]
    ready = read_names(cli("list", "--suite", "wide", "--ready", "--json"))
    assert set(ready) == set(suites()["wide"])


def test_complete_suite_has_nothing_to_generate(cli):
    """All benchmarks of the suite othpo have their artifacts in the package."""
    result = cli("generate", "--suite", "othpo")

    assert result.returncode == 0, result.stderr
    assert result.stdout == ""
    assert "nothing to generate" in result.stderr


@pytest.fixture
def result_of_wine_tree(cli):
    """The result of the command that generates wine-tree: decision trees on the data set wine."""
    result = cli(*generate_custom_words("wine-tree", *TREE_ON_WINE, *SMALL_SIZES))
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.slow
def test_custom_prints_path_of_artifact(result_of_wine_tree, folder_of_user):
    assert result_of_wine_tree.stdout == f"{folder_of_user / 'wine-tree'}\n"


@pytest.mark.slow
def test_custom_names_command_to_run(result_of_wine_tree):
    assert "hpobench-ordered run --benchmark wine-tree" in result_of_wine_tree.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("result_of_wine_tree")
def test_custom_benchmark_is_listed(cli):
    assert "wine-tree@1" in cli("list").stdout


@pytest.mark.slow
@pytest.mark.usefixtures("result_of_wine_tree")
def test_custom_benchmark_is_described(cli):
    """The user has generated wine-tree; its description has the command that generated it."""
    info = cli("info", "wine-tree").stdout

    assert "minimize error" in info
    assert "generate custom --model sklearn.tree:DecisionTreeClassifier" in info


@pytest.mark.slow
@pytest.mark.usefixtures("result_of_wine_tree")
def test_custom_benchmark_is_run_by_name(cli):
    """The user has generated wine-tree, which is not in the package."""
    short = ["--seeds", "2", "--trials", "4", "--workers", "1"]

    run = cli("run", "--benchmark", "wine-tree", *short)

    assert run.returncode == 0, run.stderr
    assert "wine-tree@1" in run.stdout
    # One of the default methods.
    assert "simple-ordered" in run.stdout


@pytest.mark.slow
@pytest.mark.usefixtures("result_of_wine_tree")
def test_custom_benchmark_is_not_replaced_unasked(cli):
    """The user generates wine-tree again, without the option that allows to replace it."""
    result = cli(*generate_custom_words("wine-tree", *TREE_ON_WINE, *SMALL_SIZES))

    # The message says which option would replace it.
    assert_fails(result, MISUSE, "--replace")


SOURCE_OF_MODEL = """
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
OWN_MODEL = ("--data", "table.csv", "--model", "mine:Constant", "--space", "space.json")
"""Options of a benchmark from the files that `files_of_own_model` writes."""


@pytest.fixture
def files_of_own_model(folder):
    """Writes a model, its search space and a table of data (y = x / 4) into the working folder.

    The model raises an AssertionError for other keywords than mode="fast" and sign=-1.
    """
    (folder / "mine.py").write_text(SOURCE_OF_MODEL)
    (folder / "space.json").write_text(json.dumps(SPACE))
    rows = [f"{x},{x / 4}\n" for x in range(100)]
    (folder / "table.csv").write_text("x,y\n" + "".join(rows))


@pytest.mark.slow
@pytest.mark.usefixtures("files_of_own_model")
def test_model_in_working_folder_becomes_benchmark(process):
    """The model, its search space and data are the user's files in the working folder.

    Tasks are named after their sizes of training data: 20 and 60 rows.
    """
    keywords = ["--set", "mode=fast", "--set", "sign=-1"]
    sizes = ["--sizes", "20,60", "--configs", "10", "--workers", "2"]

    result = process(
        *generate_custom_words("line", *OWN_MODEL, *keywords, *sizes, "--output", "made")
    )

    assert result.returncode == 0, result.stderr
    assert f"--benchmark {Path('made', 'line')}" in result.stderr
    assert hbo.load("made/line").task("20").evaluate({"level": 3}) > 0


@pytest.mark.slow
@pytest.mark.usefixtures("files_of_own_model")
def test_failing_own_model_gives_one_message(process):
    """The user's model raises an AssertionError for other modes than fast."""
    keywords = ["--set", "mode=slow", "--set", "sign=-1"]

    result = process(*generate_custom_words("other", *OWN_MODEL, *SMALL_SIZES, *keywords))

    assert_fails(result, MISUSE, "AssertionError")


@pytest.mark.parametrize(
    ("name", "words", "message"),
    [
        ("x", ["--sizes", "a,b"], "56,155,433"),
        ("x", ["--sizes", "60", "--set", "depth"], "KEYWORD=VALUE"),
        ("x", ["--sizes", "60", "--set", "depth=3"], "'max_depth'"),
        ("newsvendor", ["--sizes", "60"], "already"),
    ],
)
def test_wrong_custom_benchmark_is_misuse(cli, name, words, message, folder_of_user):
    """The benchmark has a wrong option, or the name of another; nothing is written."""
    result = cli(*generate_custom_words(name, *TREE_ON_WINE, *words))

    assert_fails(result, MISUSE, message)
    assert list(folder_of_user.rglob("*")) == []


@pytest.fixture
def help_text(cli):
    """The help of `generate` as one line."""
    return " ".join(cli("generate", "--help").stdout.split())


def test_help_shows_both_usages(help_text):
    """A benchmark of the package is generated by its name, one of the user's own by `custom`."""
    usage = "Usage: hpobench-ordered generate NAME [OPTIONS] hpobench-ordered generate custom"
    assert usage in help_text
    assert "custom --help Make a benchmark of your own" in help_text


def test_help_has_default_source_first(help_text):
    """The evaluations of xgboost-mnist have two sources; by default they are the published ones."""
    place_of_default = help_text.index("xgboost-mnist --source published")
    place_of_other = help_text.index("xgboost-mnist --source train")

    assert place_of_default < place_of_other


@pytest.mark.parametrize("name", sorted(generators()))
def test_help_names_every_benchmark(help_text, name):
    """Benchmarks like yahpo-svm-1220 share a line, yahpo-svm-ID, which lists their numbers."""
    family, _, number = name.rpartition("-")

    has_own_line = f"{name} --source" in help_text
    has_line_of_family = f"{family}-ID --source" in help_text and number in help_text

    assert has_own_line or has_line_of_family


def test_help_of_name_has_its_options_alone(cli):
    """The help for newsvendor has no option --model, which only `generate custom` has."""
    help_of_newsvendor = cli("generate", "newsvendor", "--help").stdout

    assert help_of_newsvendor.startswith("Usage: hpobench-ordered generate NAME [OPTIONS]")
    assert "--source" in help_of_newsvendor
    options, _, _ = help_of_newsvendor.partition("Examples")
    assert "--model MODULE" not in options


@pytest.fixture
def marks_file(cli, folder_of_user):
    """The user's own file of marks, which is generated for forrester and quadratic.

    Marks say what is special of a benchmark: "plateau" or "copying", for instance. The package has
    a file of them, too.
    """
    result = cli("generate", "marks", "quadratic", "forrester")
    assert result.returncode == 0, result.stderr
    path = folder_of_user / "marks.json"
    *_, last_line = result.stdout.splitlines()
    assert last_line == str(path)
    return path


def test_marks_are_of_named_benchmarks(marks_file):
    entries = json.loads(marks_file.read_text())["benchmarks"]
    assert set(entries) == {"forrester@1", "quadratic@1"}


@pytest.mark.usefixtures("marks_file")
def test_info_shows_own_marks(cli):
    assert "marks:     copying (" in cli("info", "quadratic").stdout


@pytest.mark.usefixtures("marks_file")
def test_packaged_marks_are_listed_too(cli):
    """The user has a file of marks, too, but with other benchmarks than yahpo-svm-458."""
    (entry,) = json.loads(cli("list", "yahpo-svm-458", "--json").stdout)

    assert entry["marks"] == ["plateau", "copying"]


@pytest.mark.usefixtures("marks_file")
def test_info_has_figures_of_packaged_marks(cli):
    """The package marks yahpo-svm-458 as a plateau: over a tenth of configurations is near best."""
    info = json.loads(cli("info", "yahpo-svm-458", "--json").stdout)

    assert info["marks"]["near_best"] > 0.1


def test_info_says_that_marks_are_missing(cli):
    """Marks of openml-ranger are neither in the package nor in the user's folder."""
    assert "not computed" in cli("info", "openml-ranger").stdout


def test_file_without_marks_is_named(cli, marks_file):
    """The user's own file of marks has been emptied; whatever is asked, a message names it."""
    marks_file.write_text("{}")

    assert "holds no marks" in cli("info", "openml-ranger").stderr
