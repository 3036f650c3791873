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
FAMILY_OF_BENCHMARK = {"a1@1": "a_family", "a2@1": "a_family"}
"""The family of benchmarks that resemble each other; `b@1` is of none."""
A1_IS_PLATEAU = {("a1@1", "forest"): "It is a plateau."}
"""Why means leave out the benchmark a1, on its surrogate "forest"."""


def trials_on(
    benchmark: str,
    *,
    methods: tuple[str, ...] = METHODS,
    seeds: int = 5,
    trials: int = LAST_TRIAL,
) -> pd.DataFrame:
    """Make up trials on a benchmark: random losses, which differ between benchmarks."""
    entropy = list(benchmark.encode())  # the bytes of its name
    return made_up_trials(benchmark, methods=methods, seeds=seeds, trials=trials, entropy=entropy)


def scores_of(
    *frames: pd.DataFrame, left_out: Mapping[tuple[str, str], str] | None = None
) -> list[BenchmarkScores]:
    """Score the benchmarks of these trials, one in each frame.

    Args:
        frames: Trials, as `trials_on` makes them up.
        left_out: Why means over benchmarks leave some out, by benchmark and surrogate.
    """
    scores, _ = score_benchmarks(
        pd.concat(frames), left_out=left_out or {}, families=FAMILY_OF_BENCHMARK
    )
    return scores


@pytest.fixture(scope="module")
def scores():
    """Scores of three benchmarks: a1 and a2, which are a family, and b."""
    return scores_of(trials_on("a1@1"), trials_on("a2@1"), trials_on("b@1"))


def get_column(table: PaperTable, heading: str) -> dict[str, Cell]:
    """The cells of a column, found by its heading, by method."""
    place = table.header.index(heading)
    return {method: cells[place] for method, cells in zip(table.methods, table.rows, strict=True)}


def assert_equal_to_board(column: dict[str, Cell], board: pd.DataFrame, measure: str) -> None:
    """Check the means of a column, and the ends of their intervals, against a leaderboard."""
    row_of_method = board.set_index("method")
    assert set(column) == set(row_of_method.index)
    for method, cell in column.items():
        expected = row_of_method.loc[method, [measure, f"{measure}_low", f"{measure}_high"]]
        estimate = cell.estimate
        assert [estimate.mean, estimate.low, estimate.high] == pytest.approx(list(expected))


@pytest.mark.parametrize("measure", ["score", "regret", "rank"])
@pytest.mark.parametrize("trial", [2, LAST_TRIAL])
def test_cells_of_benchmarks_are_the_leaderboards(scores, measure, trial):
    """A cell has the mean and the interval of its method on the leaderboard of its benchmark."""
    board = leaderboard(scores, trial=trial)

    table = make_paper_table(scores, measure=measure, trial=trial)

    assert table.header == ("a1", "a2", "b", "mean rank")
    for name in ("a1", "a2", "b"):
        rows = board[board["benchmark"] == f"{name}@1"]
        assert_equal_to_board(get_column(table, name), rows, measure)


def test_mean_rank_is_the_leaderboards(scores):
    """The last column has the leaderboard's mean ranks, and methods are in its order."""
    board = leaderboard(scores)

    table = make_paper_table(scores)

    means_over_benchmarks = board[board["benchmark"] == ALL]
    assert_equal_to_board(get_column(table, "mean rank"), means_over_benchmarks, "rank")
    assert list(table.methods) == list(means_over_benchmarks["method"])


def test_cells_of_a_family_are_its_means(scores):
    """The benchmarks a1 and a2 are a family; b is of none, and has a column of its own."""
    scores_of_family = [item for item in scores if item.family == "a_family"]
    board_of_family = leaderboard(scores_of_family)

    table = make_paper_table(scores, columns="families")

    assert table.header == ("a_family", "b", "mean rank")
    means_over_family = board_of_family[board_of_family["benchmark"] == ALL]
    assert_equal_to_board(get_column(table, "a_family"), means_over_family, "score")


def test_columns_may_be_all_measures(scores):
    """The columns are measures over all benchmarks, in the place of benchmarks."""
    board = leaderboard(scores)

    table = make_paper_table(scores, columns="measures")

    assert table.header == ("score", "regret", "mean rank")
    means_over_benchmarks = board[board["benchmark"] == ALL]
    assert_equal_to_board(get_column(table, "regret"), means_over_benchmarks, "regret")


def test_named_methods_keep_order_and_numbers(scores):
    """Rows are in the order of the names; their numbers are those of a table of all methods."""
    all_cells = get_column(make_paper_table(scores), "a1")

    table = make_paper_table(scores, methods=["random-search", "cts"])

    assert table.methods == ("random-search", "cts")
    estimate = get_column(table, "a1")["cts"].estimate
    assert estimate == all_cells["cts"].estimate


def test_mean_rank_is_over_named_benchmarks(scores):
    """Named are b and a2, with or without its version; the mean leaves out a1."""
    _a1, a2, b = scores
    board = leaderboard([a2, b])

    table = make_paper_table(scores, benchmarks=["b", "a2@1"])

    assert table.header == ("b", "a2", "mean rank")
    means_over_benchmarks = board[board["benchmark"] == ALL]
    assert_equal_to_board(get_column(table, "mean rank"), means_over_benchmarks, "rank")


def test_benchmarks_that_means_leave_out_are_named():
    """A benchmark with a reason to be left out has no column; the caption names it."""
    scores = scores_of(trials_on("a1@1"), trials_on("b@1"), left_out=A1_IS_PLATEAU)

    table = make_paper_table(scores)

    # The benchmark a1 has a reason to be left out, b has none.
    assert table.header == ("b", "mean rank")
    assert "Left out, as plateaus or implausible: a1." in table.caption


def test_named_benchmark_is_never_left_out():
    """A benchmark that the user asks for has a column in spite of a reason to leave it out."""
    scores = scores_of(trials_on("a1@1"), trials_on("b@1"), left_out=A1_IS_PLATEAU)

    table = make_paper_table(scores, benchmarks=["a1", "b"])

    assert table.header == ("a1", "b", "mean rank")
    assert "Left out" not in table.caption


def test_surrogates_of_a_benchmark_have_columns():
    """A benchmark that was run on two surrogates has a column for each.

    To make it simple, the trials on both surrogates are the same.
    """
    on_forest = trials_on("b@1")
    on_table = on_forest.assign(surrogate="table")

    table = make_paper_table(scores_of(on_forest, on_table))

    assert table.header == ("b@1 (forest)", "b@1 (table)", "mean rank")


def test_best_and_second_best_are_marked(scores):
    """Of the made-up results, those of cts are best, then those of bo."""
    table = make_paper_table(scores, measure="rank")

    marks = {method: cell.mark for method, cell in get_column(table, "b").items()}

    assert marks == {"cts": Mark.BEST, "bo": Mark.SECOND_BEST, "random-search": Mark.OTHER}


def test_numbers_printed_alike_are_marked_alike():
    """A method with the results of the best one is best, too; the third is second best."""
    trials = trials_on("b@1")
    copy_of_best = trials[trials["method"] == "cts"].assign(method="copy")

    table = make_paper_table(scores_of(trials, copy_of_best), measure="rank")

    marks = {method: cell.mark for method, cell in get_column(table, "b").items()}
    assert marks["cts"] is Mark.BEST
    assert marks["copy"] is Mark.BEST
    assert marks["bo"] is Mark.SECOND_BEST


def test_method_missing_somewhere_is_last_without_mean_rank():
    """The method cts, elsewhere the best one, has no runs on b."""
    scores = scores_of(trials_on("a1@1"), trials_on("b@1", methods=("random-search", "bo")))

    table = make_paper_table(scores)

    assert table.methods[-1] == "cts"
    rows_of_methods = [line for line in format_latex(table).splitlines() if " & " in line]
    last_row = rows_of_methods[-1].removesuffix(r" \\")
    _method, _cell_of_a1, cell_of_b, cell_of_mean_rank = last_row.split(" & ")
    assert cell_of_b == "--"
    assert cell_of_mean_rank == "--"


def test_caption_says_trial_seeds_and_measure(scores):
    """A caption says what is shown, and on how many benchmarks, families and methods.

    The benchmarks a1 and a2 are a family; b counts as another one.
    """
    caption = make_paper_table(scores, measure="regret", trial=3).caption

    assert caption.startswith("Regret after trial 3 (ordered, 6 trials), means over 5 seeds")
    assert "3 benchmarks, each of 2 families counting once; ranks are among 3 methods" in caption


def test_caption_counts_different_seeds():
    """One benchmark has runs with five seeds, the other one with two."""
    scores = scores_of(trials_on("a1@1", seeds=5), trials_on("b@1", seeds=2))

    assert "means over 2 to 5 seeds" in make_paper_table(scores).caption


def test_default_trial_is_last_of_shortest_benchmark():
    """Methods have six trials on a1, and four on b: after trial 4 there are numbers of both."""
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
    """A score of 100 is what random search reaches, so that it needs runs of random search."""
    scores = scores_of(trials_on("b@1", methods=("bo", "cts")))

    with pytest.raises(ExperimentError, match=r"there is no score: .*random-search"):
        make_paper_table(scores)


def test_undefined_score_has_no_column():
    """A score of 100 is what random search reaches, so that it needs results of random search."""
    scores = scores_of(trials_on("b@1", methods=("bo", "cts")))

    table = make_paper_table(scores, columns="measures")

    assert table.header == ("regret", "mean rank")


def test_one_table_has_one_protocol():
    """The trials on c are under another protocol, leave-one-out, than those on a1."""
    trials_of_other_protocol = made_up_trials("c@1", protocol=OTHER, trials=4)
    scores = scores_of(trials_on("a1@1"), trials_of_other_protocol)

    with pytest.raises(ExperimentError, match=r"under leave-one-out.* under ordered, 6 trials"):
        make_paper_table(scores, benchmarks=["a1", "c"])


def test_latex_marks_and_has_distances_to_interval_ends(scores):
    """The best mean of a column, that of cts, is bold; the ends of its interval stand beside it."""
    estimate = get_column(make_paper_table(scores), "b")["cts"].estimate
    above = estimate.high - estimate.mean
    below = estimate.mean - estimate.low

    text = format_latex(make_paper_table(scores))

    assert rf"\textbf{{{estimate.mean:.1f}}}$^{{+{above:.1f}}}_{{-{below:.1f}}}$" in text
    # The second best of each column, of three benchmarks and of mean ranks, is underlined.
    assert text.count(r"\underline{") == 3 + 1


def test_markdown_marks_and_has_interval_ends(scores):
    """The best mean of a column, that of cts, is bold; its interval stands in brackets."""
    estimate = get_column(make_paper_table(scores), "b")["cts"].estimate

    text = format_markdown(make_paper_table(scores))

    assert f"**{estimate.mean:.1f}** ({estimate.low:.1f} to {estimate.high:.1f})" in text
    # The second best of each column, of three benchmarks and of mean ranks, is underlined.
    assert text.count("<u>") == 3 + 1


def test_intervals_may_be_left_out(scores):
    """Cells in Markdown have intervals in brackets, and captions in LaTeX say what they are."""
    table = make_paper_table(scores, intervals=False)

    _headings, _alignments, *rows_and_caption = format_markdown(table).splitlines()
    rows = rows_and_caption[: len(METHODS)]
    assert "(" not in "".join(rows)
    assert "interval" not in format_latex(table)


def test_few_seeds_have_no_intervals():
    """An interval needs five seeds; with four, there is none, and the caption explains none."""
    table = make_paper_table(scores_of(trials_on("b@1", seeds=4)))

    assert "interval" not in format_latex(table)


@pytest.fixture(scope="module")
def latex_of_odd_names():
    """The table in LaTeX of a method and a benchmark whose names are full of its special signs."""
    methods = ("random-search", "bo", HOSTILE)
    scores = scores_of(trials_on("a1@1", methods=methods), trials_on("b_&%#@1", methods=methods))
    return format_latex(make_paper_table(scores))


def remove_escaped(latex: str) -> str:
    r"""Remove signs that LaTeX takes for text, such as \&."""
    return re.sub(r"\\[&%$#_{}]", "", latex)


def test_latex_closes_braces_and_environments(latex_of_odd_names):
    """Names with signs of LaTeX open no brace and no environment that stays open."""
    without_escaped = remove_escaped(latex_of_odd_names)

    assert without_escaped.count("{") == without_escaped.count("}")
    assert re.findall(r"\\(?:begin|end)\{\w+\}", latex_of_odd_names) == [
        r"\begin{table}",
        r"\begin{tabular}",
        r"\end{tabular}",
        r"\end{table}",
    ]


def test_latex_rows_have_cells_of_all_columns(latex_of_odd_names):
    r"""Cells of a row are separated by &, and a row ends with \\."""
    lines = remove_escaped(latex_of_odd_names).splitlines()

    rows = [line for line in lines if line.endswith(r" \\")]
    assert len(rows) == 1 + 3  # the headings, and three methods
    # Four columns: the method at the left; two benchmarks and the mean rank at the right.
    assert r"\begin{tabular}{lrrr}" in latex_of_odd_names
    assert {line.count(" & ") for line in rows} == {4 - 1}


def test_names_are_escaped_for_latex():
    """The name of a method begins with "a_b & 5% </script>", that of the benchmark is "b_1"."""
    scores = scores_of(trials_on("b_1@1", methods=("random-search", HOSTILE)))

    text = format_latex(make_paper_table(scores))

    assert r"a\_b \& 5\% \textless{}/script\textgreater{}" in text
    assert r"& b\_1 &" in text


def test_names_are_escaped_for_markdown():
    """The name of a method begins with "a_b & 5% </script>", that of the benchmark is "b_1"."""
    scores = scores_of(trials_on("b_1@1", methods=("random-search", HOSTILE)))

    text = format_markdown(make_paper_table(scores))

    assert r"a\_b \& 5% \</script\>" in text
    assert r"| b\_1 |" in text


def test_long_titles_are_turned_in_latex():
    """A comment at the top of the table says which package of LaTeX turns them."""
    text = format_latex(make_paper_table(scores_of(trials_on("a-benchmark-of-long-name@1"))))

    assert r"\rotatebox{90}{a-benchmark-of-long-name}" in text
    assert r"% \usepackage{graphicx}" in text
