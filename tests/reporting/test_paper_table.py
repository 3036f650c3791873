"""The table of methods for a paper has the leaderboard's numbers, the best of them in bold."""

import re

import pandas as pd
import pytest

import hpobench_ordered as hbo
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.reporting.paper_table import paper_table

METHODS = ("random-search", "bo", "cts")


@pytest.fixture(scope="module")
def results():
    """Reference results of three methods on the two benchmarks of a suite."""
    return hbo.reference("synthetic", methods=METHODS)


def read_cells(markdown: str) -> pd.DataFrame:
    """Read the cells of a table in Markdown: a row for each method, a column for each title."""
    lines = [line.strip("| ").split(" | ") for line in markdown.splitlines() if line[:1] == "|"]
    titles, _, *rows = lines
    return pd.DataFrame(rows, columns=titles).set_index("method")


@pytest.mark.parametrize(("measure", "decimals"), [("score", 1), ("regret", 4), ("rank", 2)])
def test_numbers_are_those_of_leaderboard(results, measure, decimals):
    """Each cell has the mean of a benchmark, and the ends of its interval in brackets."""
    board = results.leaderboard(full=True, trial=10).set_index(["benchmark", "method"])

    cells = read_cells(paper_table(results, "markdown", measure=measure, trial=10))

    for method in METHODS:
        row = board.loc["forrester@1", method]
        mean, low, high = (
            f"{row[name]:.{decimals}f}" for name in (measure, f"{measure}_low", f"{measure}_high")
        )
        assert cells.loc[method, "forrester"].replace("*", "") == f"{mean} ({low} to {high})"


def test_last_column_is_mean_rank(results):
    """Methods are sorted by their mean rank over all benchmarks."""
    board = results.leaderboard()
    overall = board[board["benchmark"] == "all"]

    cells = read_cells(paper_table(results, "markdown"))

    assert list(cells.index) == list(overall["method"])
    for shown, rank in zip(cells["mean rank"], overall["rank"], strict=True):
        assert shown.replace("*", "").startswith(f"{rank:.2f} ")


@pytest.mark.parametrize(
    ("format", "is_bold"), [("markdown", r"\*\*([\d.]+)\*\*"), ("latex", r"\\textbf\{([\d.]+)\}")]
)
def test_lowest_of_each_column_is_bold(results, format, is_bold):
    board = results.leaderboard()
    lowest_ranks = board.groupby("benchmark", sort=False)["rank"].min()

    text = paper_table(results, format, measure="rank")

    bold = sorted(map(float, re.findall(is_bold, text)))
    assert bold == sorted(lowest_ranks.round(2))


def test_chosen_methods_keep_their_ranks(results):
    """Ranks are among all three methods, also if the table shows one of them."""
    all_cells = read_cells(paper_table(results, "markdown"))

    cells = read_cells(paper_table(results, "markdown", methods=["bo"]))

    without_bold = [shown.replace("*", "") for shown in all_cells.loc["bo"]]
    assert [shown.replace("*", "") for shown in cells.loc["bo"]] == without_bold
    assert list(cells.index) == ["bo"]


def test_caption_says_what_is_shown(results):
    caption = paper_table(results, "markdown", trial=3).splitlines()[-1]

    assert caption.startswith("Score after trial 3 (leave-one-out, 50 trials), means over ")
    assert "lower is better. A score of 0 is the best value" in caption


@pytest.mark.parametrize(
    ("format", "options", "error", "message"),
    [
        ("html", {}, UnknownNameError, "unknown format 'html'"),
        ("latex", {"measure": "scores"}, UnknownNameError, "did you mean 'score'"),
        ("latex", {"methods": ["ct"]}, UnknownNameError, "did you mean 'cts'"),
        ("latex", {"trial": 99}, ExperimentError, "trial must be from 1 to 50"),
    ],
)
def test_impossible_tables_are_refused(results, format, options, error, message):
    with pytest.raises(error, match=message):
        paper_table(results, format, **options)


def test_score_needs_random_search():
    results = hbo.reference("forrester", methods=["bo", "cts"])
    with pytest.raises(ExperimentError, match="score is not defined"):
        paper_table(results)


def test_part_of_a_benchmark_has_its_own_column():
    whole = hbo.load("newsvendor")
    part = whole.restrict({"price_0": 3})
    results = hbo.run(
        benchmarks=[whole, part],
        methods=["random-search"],
        seeds=[0],
        protocol=hbo.Ordered(trials=3, tasks=2),
    )

    titles = list(read_cells(paper_table(results, "markdown")).columns)

    assert titles[:2] == ["newsvendor@1", part.identify_by_values()]
