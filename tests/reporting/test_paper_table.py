"""The table of methods for a paper has the leaderboard's numbers, the best of them marked."""

import re
from collections.abc import Mapping

import pandas as pd
import pytest
from reporting_support import HOSTILE, OTHER, made_up_trials

from hpobench_ordered.analysis.leaderboard import ALL, leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores, score_benchmarks
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.reporting.paper_table import (
    Cell,
    Mark,
    PaperTable,
    format_latex,
    format_markdown,
    make_paper_table,
)

METHODS = ("random-search", "bo", "cts")
"""Each is better than the one before."""
LAST_TRIAL = 6
FAMILY = {"a1@1": "a_family", "a2@1": "a_family"}
"""Benchmarks that resemble each other, by their ids; `b@1` is of no family."""


def trials_on(
    name: str, *, methods: tuple[str, ...] = METHODS, seeds: int = 5, trials: int = LAST_TRIAL
) -> pd.DataFrame:
    """Make up trials on a benchmark, whose name decides the numbers."""
    return made_up_trials(
        name, methods=methods, seeds=seeds, trials=trials, entropy=list(name.encode())
    )


def scores_of(
    *frames: pd.DataFrame, left_out: Mapping[tuple[str, str], str] | None = None
) -> list[BenchmarkScores]:
    """Score the benchmarks of these trials.

    Means leave out those of `left_out`: a reason, by benchmark and surrogate.
    """
    scores, _ = score_benchmarks(pd.concat(frames), left_out=left_out or {}, families=FAMILY)
    return scores


@pytest.fixture(scope="module")
def scores():
    """Scores of three benchmarks: a1 and a2, which are a family, and b."""
    return scores_of(trials_on("a1@1"), trials_on("a2@1"), trials_on("b@1"))


def get_column(table: PaperTable, title: str) -> dict[str, Cell]:
    """The cells of a column by method."""
    place = table.header.index(title)
    return {method: cells[place] for method, cells in zip(table.methods, table.rows, strict=True)}


def assert_equal_to_board(column: dict[str, Cell], board: pd.DataFrame, measure: str) -> None:
    """Check the means and the intervals of a column against rows of a leaderboard."""
    rows = board.set_index("method")
    assert set(column) == set(rows.index)
    for method, cell in column.items():
        expected = rows.loc[method, [measure, f"{measure}_low", f"{measure}_high"]]
        estimate = cell.estimate
        assert [estimate.mean, estimate.low, estimate.high] == pytest.approx(list(expected))


@pytest.mark.parametrize("measure", ["score", "regret", "rank"])
@pytest.mark.parametrize("trial", [2, LAST_TRIAL])
def test_cells_of_benchmarks_are_the_leaderboards(scores, measure, trial):
    board = leaderboard(scores, trial=trial)

    table = make_paper_table(scores, measure=measure, trial=trial)

    assert table.header == ("a1", "a2", "b", "mean rank")
    for name in ("a1", "a2", "b"):
        rows = board[board["benchmark"] == f"{name}@1"]
        assert_equal_to_board(get_column(table, name), rows, measure)


def test_mean_rank_is_the_leaderboards(scores):
    board = leaderboard(scores)

    table = make_paper_table(scores)

    overall = board[board["benchmark"] == ALL]
    assert_equal_to_board(get_column(table, "mean rank"), overall, "rank")
    assert list(table.methods) == list(overall["method"])


def test_cells_of_a_family_are_its_means(scores):
    """A family has the benchmarks a1 and a2; b is alone."""
    board_of_family = leaderboard([item for item in scores if item.family == "a_family"])

    table = make_paper_table(scores, columns="families")

    assert table.header == ("a_family", "b", "mean rank")
    overall = board_of_family[board_of_family["benchmark"] == ALL]
    assert_equal_to_board(get_column(table, "a_family"), overall, "score")


def test_columns_may_be_all_measures(scores):
    board = leaderboard(scores)

    table = make_paper_table(scores, columns="measures")

    assert table.header == ("score", "regret", "mean rank")
    overall = board[board["benchmark"] == ALL]
    assert_equal_to_board(get_column(table, "regret"), overall, "regret")


def test_named_methods_keep_order_and_numbers(scores):
    all_cells = get_column(make_paper_table(scores), "a1")

    table = make_paper_table(scores, methods=["random-search", "cts"])

    assert table.methods == ("random-search", "cts")
    estimate = get_column(table, "a1")["cts"].estimate
    assert estimate == all_cells["cts"].estimate


def test_mean_rank_is_over_named_benchmarks(scores):
    _, a2, b = scores
    board = leaderboard([a2, b])

    table = make_paper_table(scores, benchmarks=["b", "a2@1"])

    assert table.header == ("b", "a2", "mean rank")
    overall = board[board["benchmark"] == ALL]
    assert_equal_to_board(get_column(table, "mean rank"), overall, "rank")


def test_benchmarks_that_means_leave_out_are_named():
    scores = scores_of(
        trials_on("a1@1"), trials_on("b@1"), left_out={("a1@1", "forest"): "It is a plateau."}
    )

    table = make_paper_table(scores)

    # The benchmark a1 has a reason to be left out, b has none.
    assert table.header == ("b", "mean rank")
    assert "Left out, as plateaus or implausible: a1." in table.caption


def test_named_benchmark_is_never_left_out():
    scores = scores_of(
        trials_on("a1@1"), trials_on("b@1"), left_out={("a1@1", "forest"): "It is a plateau."}
    )

    table = make_paper_table(scores, benchmarks=["a1", "b"])

    assert table.header == ("a1", "b", "mean rank")
    assert "Left out" not in table.caption


def test_surrogates_of_a_benchmark_have_columns():
    on_forest = trials_on("b@1")
    scores = scores_of(on_forest, on_forest.assign(surrogate="table"))

    table = make_paper_table(scores)

    assert table.header == ("b@1 (forest)", "b@1 (table)", "mean rank")


def test_best_and_second_best_are_marked(scores):
    """Of the made-up results, those of cts are best, then those of bo."""
    table = make_paper_table(scores, measure="rank")

    marks = {method: cell.mark for method, cell in get_column(table, "b").items()}

    assert marks == {"cts": Mark.BEST, "bo": Mark.SECOND_BEST, "random-search": Mark.OTHER}


def test_numbers_printed_alike_are_marked_alike():
    trials = trials_on("b@1")
    copy_of_best = trials[trials["method"] == "cts"].assign(method="copy")

    table = make_paper_table(scores_of(trials, copy_of_best), measure="rank")

    marks = {method: cell.mark for method, cell in get_column(table, "b").items()}
    assert marks["cts"] is marks["copy"] is Mark.BEST
    assert marks["bo"] is Mark.SECOND_BEST


def test_method_missing_somewhere_is_last_without_mean_rank():
    """The method cts has no runs on b."""
    scores = scores_of(trials_on("a1@1"), trials_on("b@1", methods=("random-search", "bo")))

    table = make_paper_table(scores)

    assert table.methods[-1] == "cts"
    # Three lines end the table after the last row.
    *_, last_row, _, _, _ = format_latex(table).splitlines()
    *_, cell_of_b, cell_of_mean_rank = last_row.removesuffix(r" \\").split(" & ")
    assert cell_of_b == "--"
    assert cell_of_mean_rank == "--"


def test_caption_says_trial_seeds_and_measure(scores):
    caption = make_paper_table(scores, measure="regret", trial=3).caption

    assert caption.startswith("Regret after trial 3 (ordered, 6 trials), means over 5 seeds")
    assert "3 benchmarks, each of 2 families counting once; ranks are among 3 methods" in caption


def test_caption_counts_different_seeds():
    scores = scores_of(trials_on("a1@1", seeds=5), trials_on("b@1", seeds=2))

    assert "means over 2 to 5 seeds" in make_paper_table(scores).caption


def test_default_trial_is_made_on_all_benchmarks():
    """It is the last of the benchmark with fewest trials."""
    scores = scores_of(trials_on("a1@1", trials=6), trials_on("b@1", trials=4))

    assert "after trial 4" in make_paper_table(scores).caption


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"methods": ["ctz"]}, UnknownNameError, "did you mean 'cts'"),
        ({"benchmarks": ["a3"]}, UnknownNameError, "choose from 'a1', 'a2', 'b'"),
        ({"measure": "scores"}, UnknownNameError, "did you mean 'score'"),
        ({"columns": "family"}, UnknownNameError, "did you mean 'families'"),
        ({"trial": 7}, ExperimentError, "trial must be from 1 to 6, but got 7"),
        ({"trial": 0}, ExperimentError, "trial must be from 1 to 6, but got 0"),
        ({"columns": "measures", "measure": "rank"}, ExperimentError, "'rank' cannot be chosen"),
    ],
)
def test_impossible_choice_is_an_error(scores, options, error, message):
    with pytest.raises(error, match=message):
        make_paper_table(scores, **options)


def test_no_score_without_random_search():
    scores = scores_of(trials_on("b@1", methods=("bo", "cts")))

    with pytest.raises(ExperimentError, match=r"there is no score: .*random-search"):
        make_paper_table(scores)


def test_measures_leave_out_the_undefined():
    scores = scores_of(trials_on("b@1", methods=("bo", "cts")))

    table = make_paper_table(scores, columns="measures")

    assert table.header == ("regret", "mean rank")


def test_one_table_has_one_protocol():
    other = made_up_trials("c@1", protocol=OTHER, trials=4)
    scores = scores_of(trials_on("a1@1"), other)

    with pytest.raises(ExperimentError, match=r"under leave-one-out.* under ordered, 6 trials"):
        make_paper_table(scores, benchmarks=["a1", "c"])


def test_latex_marks_and_has_distances_to_interval_ends(scores):
    cell = get_column(make_paper_table(scores), "b")["cts"]
    above = cell.estimate.high - cell.estimate.mean
    below = cell.estimate.mean - cell.estimate.low

    text = format_latex(make_paper_table(scores))

    expected = rf"\textbf{{{cell.estimate.mean:.1f}}}$^{{+{above:.1f}}}_{{-{below:.1f}}}$"
    assert expected in text
    # The second best is underlined, once in each of four columns.
    assert text.count(r"\underline{") == 4


def test_markdown_marks_and_has_interval_ends(scores):
    estimate = get_column(make_paper_table(scores), "b")["cts"].estimate

    text = format_markdown(make_paper_table(scores))

    assert f"**{estimate.mean:.1f}** ({estimate.low:.1f} to {estimate.high:.1f})" in text
    # The second best is underlined, once in each of four columns.
    assert text.count("<u>") == 4


def test_intervals_may_be_left_out(scores):
    """In Markdown, intervals would be in brackets."""
    table = make_paper_table(scores, intervals=False)

    _headings, _alignments, *rows = format_markdown(table).splitlines()
    rows_of_three_methods = rows[:3]  # before the caption
    assert "(" not in "".join(rows_of_three_methods)
    assert "interval" not in format_latex(table)


def test_few_seeds_have_no_intervals():
    """An interval needs five seeds."""
    table = make_paper_table(scores_of(trials_on("b@1", seeds=4)))

    assert "interval" not in format_latex(table)


def test_latex_is_well_formed():
    r"""Braces and environments are closed; rows have as many cells as columns, and end with \\."""
    methods = ("random-search", "bo", HOSTILE)
    scores = scores_of(trials_on("a1@1", methods=methods), trials_on("b_&%#@1", methods=methods))

    text = format_latex(make_paper_table(scores))

    without_escaped = re.sub(r"\\[&%$#_{}]", "", text)
    assert without_escaped.count("{") == without_escaped.count("}")
    assert re.findall(r"\\(?:begin|end)\{\w+\}", text) == [
        r"\begin{table}",
        r"\begin{tabular}",
        r"\end{tabular}",
        r"\end{table}",
    ]
    rows = [line for line in without_escaped.splitlines() if line.endswith(r" \\")]
    # A row of headings and one a method, with four cells: method, two benchmarks, mean rank.
    assert len(rows) == 1 + len(methods)
    assert {line.count(" & ") for line in rows} == {3}
    assert r"\begin{tabular}{lrrr}" in text


def test_names_are_escaped_for_latex():
    scores = scores_of(trials_on("b_1@1", methods=("random-search", HOSTILE)))

    text = format_latex(make_paper_table(scores))

    assert r"a\_b \& 5\% \textless{}/script\textgreater{}" in text
    assert r"& b\_1 &" in text


def test_names_are_escaped_for_markdown():
    scores = scores_of(trials_on("b_1@1", methods=("random-search", HOSTILE)))

    text = format_markdown(make_paper_table(scores))

    assert r"a\_b \& 5% \</script\>" in text
    assert r"| b\_1 |" in text


def test_long_titles_are_turned_in_latex():
    text = format_latex(make_paper_table(scores_of(trials_on("a-benchmark-of-long-name@1"))))

    assert r"\rotatebox{90}{a-benchmark-of-long-name}" in text
    assert r"% \usepackage{graphicx}" in text
