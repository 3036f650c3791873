"""The commands list and info."""

import json

import pytest
from cli_results import FAILURE, MISUSE, assert_fails, read_names

from hpobench_ordered import SearchSpace, list_benchmarks, list_methods, load, suite
from hpobench_ordered.data import extras
from hpobench_ordered.reporting.recommendations import read_recommendations


@pytest.mark.parametrize(
    ("filters", "names"),
    [
        ([], list_benchmarks()),
        (["--ready"], list_benchmarks(ready=True)),
        (["MNIST"], ["xgboost-mnist"]),
    ],
)
def test_list_is_filtered(cli, filters, names):
    assert read_names(cli("list", *filters, "--json")) == names


def test_list_has_families_as_json(cli):
    """The family of a benchmark from YAHPO is its scenario, here rbv2_svm."""
    (entry,) = json.loads(cli("list", "yahpo-svm-458", "--json").stdout)

    assert entry["family"] == "rbv2_svm"


def test_list_has_benchmarks_of_suite(cli):
    result = cli("list", "--suite", "othpo", "--json")
    assert set(read_names(result)) == set(suite("othpo"))


def test_empty_list_says_so(cli):
    result = cli("list", "nothing-like-it")
    assert "no benchmark matches" in result.stderr


def test_list_suggests_names(cli):
    assert_fails(cli("list", "--suite", "otpho"), MISUSE, "did you mean 'othpo'")


def test_methods_are_listed(cli):
    result = cli("list", "--methods")

    for name in list_methods():
        assert name in result.stdout


def test_methods_are_not_filtered(cli):
    assert_fails(cli("list", "--methods", "--ready"), MISUSE, "--methods lists all methods")


def test_methods_begin_with_recommendations(cli):
    """Before all methods, each situation has a line with the method that is recommended for it."""
    recommendations = read_recommendations()

    header, *lines = cli("list", "--methods").stdout.splitlines()

    assert header.startswith("situation")
    # The list of all methods follows.
    lines_of_recommendations = lines[: len(recommendations)]
    for line, recommendation in zip(lines_of_recommendations, recommendations, strict=True):
        assert line.startswith(recommendation.situation)
        assert f" {recommendation.row[1]} " in line


@pytest.mark.parametrize("width", [80, 100])
def test_recommendations_do_not_break_names(cli, width):
    """All words, such as simple-previous-no-bo, are in one line, also on a narrow terminal."""
    shown = cli("list", "--methods", COLUMNS=str(width)).stdout

    table, _, _ = shown.partition("\n\n")  # the list of all methods follows
    shown_words = table.split()
    for recommendation in read_recommendations():
        for cell in recommendation.row[:-1]:  # without what the methods need
            assert set(cell.split()) <= set(shown_words)


def test_benchmarks_are_a_line_each_in_pipes(cli):
    """Output that goes into a pipe, not to a terminal, has a line for each benchmark."""
    header, *lines = cli("list").stdout.splitlines()

    assert header.startswith("benchmark")
    assert len(lines) == len(list_benchmarks())


def test_methods_are_listed_as_json(cli):
    assert read_names(cli("list", "--methods", "--json")) == list_methods()


def test_version_names_the_program(cli):
    assert cli("--version").stdout.startswith("hpobench-ordered")


@pytest.mark.parametrize(
    "text",
    ["maximize auc", "kernel = radial", "train_fraction: 0.05", "Spearman", "Apache-2.0"],
)
def test_info_shows_benchmark(cli, text):
    assert text in cli("info", "yahpo-svm-1220").stdout


def test_info_shows_method(cli):
    text = cli("info", "fsbo").stdout
    assert "fsbo, a method" in text
    assert "needs:  1 earlier task, extra neural" in text
    assert "Wistuba and Grabocka (2021)" in text


def test_info_has_method_as_json(cli):
    """It is the same as in the list of all methods."""
    methods = json.loads(cli("list", "--methods", "--json").stdout)
    assert json.loads(cli("info", "fsbo", "--json").stdout) in methods


@pytest.fixture
def info_as_json(cli):
    """What `info` says of yahpo-svm-1220 as JSON."""
    return json.loads(cli("info", "yahpo-svm-1220", "--json").stdout)


def test_info_has_tasks_as_json(info_as_json):
    """Each task is described by its best value and its context."""
    expected = []
    for task in load("yahpo-svm-1220").tasks:
        expected.append((task.best_value, dict(task.context)))

    shown = [(task["best_value"], task["context"]) for task in info_as_json["tasks"]]

    assert shown == expected


def test_info_has_search_space_as_json(info_as_json):
    assert SearchSpace.from_json(info_as_json["space"]) == load("yahpo-svm-1220").space


CHANGES_OF_FCN_B = [
    "activation_fn_1: was fixed to tanh, now relu or tanh",
    "activation_fn_2: was fixed to tanh, now relu or tanh",
    "lr_schedule: fixed to const before, now to cosine",
]
"""What differs in the search space of fcn-b from that of fcn-b-old."""


def test_info_shows_changes_of_space(cli):
    """The search space of fcn-b was adjusted: before, the benchmark was fcn-b-old."""
    text = cli("info", "fcn-b").stdout

    _, _, after_heading = text.partition("What changed in the search space since fcn-b-old:\n")
    changes, _, _ = after_heading.partition("\n\n")
    assert changes.splitlines() == [f"  {change}" for change in CHANGES_OF_FCN_B]


def test_info_has_changes_as_json(cli):
    """The search space of fcn-b was adjusted: before, the benchmark was fcn-b-old."""
    previous = json.loads(cli("info", "fcn-b", "--json").stdout)["previous"]

    assert previous["name"] == "fcn-b-old"
    assert previous["changes"] == CHANGES_OF_FCN_B
    assert SearchSpace.from_json(previous["space"]) == load("fcn-b").previous.space


def test_missing_files_are_named(cli):
    result = cli("info", "yahpo-rpart-1220")
    assert_fails(result, FAILURE, "hpobench-ordered fetch yahpo-rpart-1220")


@pytest.fixture
def no_extras(monkeypatch):
    """As if no package of an extra were installed."""
    monkeypatch.setattr(extras, "find_spec", lambda module: None)


@pytest.mark.usefixtures("no_extras")
def test_fetch_names_missing_extra(cli):
    assert_fails(cli("fetch", "yahpo-svm-1220"), FAILURE, "pip install onnxruntime")


@pytest.mark.usefixtures("no_extras")
def test_benchmark_that_needs_extra_is_not_ready(cli):
    """The tables of fcnet are in a package of an extra; no such package is installed here."""
    ready = read_names(cli("list", "--ready", "--json"))

    assert "fcnet" not in ready


@pytest.mark.usefixtures("no_extras")
def test_benchmark_with_a_surrogate_is_ready(cli):
    """Of its two surrogates, the network needs an extra, which is not installed here.

    The forest does not, and one surrogate is enough.
    """
    ready = read_names(cli("list", "--ready", "--json"))

    assert "yahpo-svm-1220" in ready


@pytest.mark.parametrize(
    ("name", "key"), [("yahpo-svm-1220", "pfisterer2022"), ("cts", "salinas2020")]
)
def test_info_shows_what_to_cite(cli, name, key):
    """It prints the entries of a benchmark or a method, and that of this package, alone."""
    bibtex = cli("info", name, "--bibtex").stdout
    assert bibtex.startswith("@")
    assert f"{{{key}," in bibtex
    assert "@misc{hpobench_ordered," in bibtex
