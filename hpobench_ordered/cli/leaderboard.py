"""Comparison of methods: the command `leaderboard`, and the output of `run` and `report`."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpobench_ordered.analysis.labels import SUBMITTED_MARK, is_submitted
from hpobench_ordered.analysis.leaderboard import ALL
from hpobench_ordered.analysis.leaderboard import leaderboard as make_leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores
from hpobench_ordered.analysis.verdict import final_verdicts
from hpobench_ordered.cli._options import (
    json_option,
    measured_only_option,
    open_results,
    results_arguments,
)
from hpobench_ordered.cli._output import fits_console, print_json, print_table, print_text, say
from hpobench_ordered.reporting.tables import agreement_tables, leaderboard_tables

if TYPE_CHECKING:
    import pandas as pd

MAX_ROWS = 12  # methods per benchmark that `run` and `report` print

LEGEND = (
    "Of the best trial so far; lower is better. rank: among the methods, each seed on each task, 1 "
    "is best. score: 0 is the best value known or met, 100 no better than half of all random "
    "configurations. regret: 0 is the best value known or met, 1 the worst that any method met. "
    "Means over tasks and seeds, then over the benchmarks of a family, then over families. "
    "Of ordered runs the first task does not count, which has no history. Time is that inside the "
    "method."
)

SUBMITTED = (
    f"{SUBMITTED_MARK} Submitted by others, not a method of this package; the leaderboard in the "
    "documentation describes each."
)


EPILOG = """\b
Examples:
  hpobench-ordered leaderboard results --trial 10 --by benchmark
  hpobench-ordered leaderboard --reference --suite retrain
      the package's methods, of which the results come with it
  hpobench-ordered leaderboard --reference --suite openml --suite synthetic
      on the benchmarks of two suites together
  hpobench-ordered leaderboard results --reference
      those in results among these
"""


@click.command(epilog=EPILOG)
@results_arguments
@click.option("--trial", type=int, help="After this trial.  [default: the last]")
@click.option(
    "--by",
    type=click.Choice(["benchmark"]),
    help="Show each benchmark as well.  [default: all benchmarks together]",
)
@measured_only_option
@json_option
def leaderboard(
    results: Path | None,
    with_reference: bool,
    suite_names: tuple[str, ...],
    trial: int | None,
    by: str | None,
    measured_only: bool,
    as_json: bool,
) -> None:
    """Show how methods compare on the finished runs in a folder of results."""
    opened = open_results(results, with_reference=with_reference, suite_names=suite_names)
    scores, unscored = opened.scored(measured_only=measured_only)
    board = make_leaderboard(scores, trial=trial)
    if not as_json:  # programs should find the rows over all benchmarks in any case
        board = drop_repeated_overall(board)
    is_by_benchmark = by is not None
    if not is_by_benchmark:
        board = select_overall(board)

    if as_json:
        with_none_for_nan = board.astype(object).where(board.notna(), None)
        print_json(with_none_for_nan.to_dict("records"))
    else:
        _print_board(board)
        _print_agreement(scores, trial)
        _print_verdicts(scores, trial)
        click.echo()
        if is_by_benchmark:
            _print_notes(scores)
        print_text(LEGEND)
        if board["method"].map(is_submitted).any():
            print_text(SUBMITTED)
    for note in unscored:
        say(f"not compared: {note}")


def show_scores(
    scores: Sequence[BenchmarkScores],
    unscored: Sequence[str],
    *,
    folder: Path,
    own_methods: Collection[str] = (),
) -> None:
    """Print the leaderboard over all benchmarks, the places of the user's methods, and verdicts.

    Args:
        scores: Scores by benchmark.
        unscored: Why other benchmarks have none.
        folder: Folder of the results, for the command that shows more.
        own_methods: The user's methods, if they are compared with other results.
    """
    board = select_overall(drop_repeated_overall(make_leaderboard(scores)))
    _print_board(board, max_rows=MAX_ROWS, always_shown=own_methods)
    for line in describe_places(board, own_methods):
        click.echo(line)
    _print_agreement(scores)
    _print_verdicts(scores)

    left_out = [item.benchmark for item in scores if item.left_out]
    if left_out and len(left_out) < len(scores):
        say(f"left out of means, plateaus or implausible: {', '.join(left_out)}")
    if scores:
        # The user's methods are compared with the reference results; the command needs them, too.
        arguments = f"{folder} --reference" if own_methods else str(folder)
        say(
            "each benchmark, with what the columns mean: hpobench-ordered leaderboard "
            f"{arguments} --by benchmark"
        )
    for note in unscored:
        say(f"not compared: {note}")


def select_overall(board: "pd.DataFrame") -> "pd.DataFrame":
    """Select the rows over all benchmarks.

    A protocol with a single benchmark has its rows of that benchmark selected as well.
    """
    is_over_all = board["benchmark"] == ALL  # in place of the name of a benchmark
    return board[is_over_all | ~_has_several_benchmarks(board)]


def drop_repeated_overall(board: "pd.DataFrame") -> "pd.DataFrame":
    """Drop the rows over all benchmarks where a protocol has only one benchmark.

    The rows of that benchmark have the same numbers.
    """
    is_of_benchmark = board["benchmark"] != ALL  # else the row is over all benchmarks
    return board[is_of_benchmark | _has_several_benchmarks(board)]


def _has_several_benchmarks(board: "pd.DataFrame") -> "pd.Series[bool]":
    """Whether the protocol of each row has more than one benchmark."""
    benchmarks = board[board["benchmark"] != ALL]
    number_of_benchmarks = benchmarks.groupby("protocol")["benchmark"].nunique()
    return board["protocol"].map(number_of_benchmarks) > 1


def describe_places(board: "pd.DataFrame", methods: Collection[str]) -> Iterator[str]:
    """Yield a sentence on the place and the mean rank of each given method.

    There is one for each protocol and benchmark of the leaderboard. Methods without a rank are not
    counted. Methods of equal mean rank have the same place.
    """
    for _, rows in board.groupby(["protocol", "benchmark"], sort=False):
        rank_of_method = rows.set_index("method")["rank"].dropna()
        for method, rank in rank_of_method.items():
            if method in methods:
                place = 1 + int((rank_of_method < rank).sum())
                yield (
                    f"{method} is number {place} of {len(rank_of_method)} methods: mean rank "
                    f"{rank:.2f}"
                )


def _print_board(
    board: "pd.DataFrame", *, max_rows: int | None = None, always_shown: Collection[str] = ()
) -> None:
    """Print a leaderboard: a table for all benchmarks together, or one for each.

    If a table is too wide for the console, all tables have fewer columns.

    Args:
        board: The leaderboard.
        max_rows: Number of methods that a table shows at most; default: all.
        always_shown: Methods that are shown even if they are further down.
    """
    tables = list(leaderboard_tables(board))
    if not all(fits_console(table.header, table.rows) for table in tables):
        tables = list(leaderboard_tables(board, narrow=True))  # with fewer columns
    for table in tables:
        rows = list(table.rows[:max_rows])
        for later_row in table.rows[len(rows) :]:
            method = later_row[0]
            if method in always_shown:
                rows.append(later_row)
        number_left_out = len(table.rows) - len(rows)
        print_table(table.header, rows, title=table.caption)
        click.echo(f"and {number_left_out} more methods\n" if number_left_out else "")


def _print_agreement(scores: Sequence[BenchmarkScores], trial: int | None = None) -> None:
    """Print mean ranks by surrogate for benchmarks that were run on several."""
    for table in agreement_tables(scores, trial=trial):
        print_table(table.header, table.rows, title=table.caption)
        click.echo()


def _print_verdicts(scores: Sequence[BenchmarkScores], trial: int | None = None) -> None:
    """Print who leads after a trial, by default the last, and from which others it differs."""
    for verdict in final_verdicts(scores, trial=trial):
        print_text(verdict.sentence)


def _print_notes(scores: Sequence[BenchmarkScores]) -> None:
    """Print the notes on the scores of each benchmark, such as failed evaluations."""
    for item in scores:
        for note in item.notes():
            print_text(f"{item.label}: {note}")
