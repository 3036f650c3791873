"""Comparison of methods: the command `leaderboard`, and the output of `run` and `report`."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpobench_ordered.analysis.leaderboard import ALL
from hpobench_ordered.analysis.leaderboard import leaderboard as make_leaderboard
from hpobench_ordered.analysis.scoring import BenchmarkScores
from hpobench_ordered.analysis.verdict import surrogate_agreement, verdicts
from hpobench_ordered.cli._options import (
    chosen_results,
    json_option,
    measured_only_option,
    results_arguments,
)
from hpobench_ordered.cli._show import fits, print_json, print_table, print_text, say
from hpobench_ordered.reporting.tables import leaderboard_tables

if TYPE_CHECKING:
    import pandas as pd

MOST_ROWS = 12  # most methods per benchmark that `run` and `report` print

LEGEND = (
    "Of the best trial so far; lower is better. rank: among the methods, each seed on each task, 1 "
    "is best. score: 0 is the best value known or met, 100 no better than half of all random "
    "configurations. regret: 0 is the best value known or met, 1 the worst that any method met. "
    "Means over tasks and seeds, then over the benchmarks of a family, then over families. "
    "Of ordered runs the first task does not count, which has no history. Time is that inside the "
    "method."
)


EPILOG = """\b
Examples:
  hpobench-ordered leaderboard results --trial 10 --by benchmark
  hpobench-ordered leaderboard --reference --suite retrain
      the package's methods, of which the results come with it
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
    suite_name: str | None,
    trial: int | None,
    by: str | None,
    measured_only: bool,
    as_json: bool,
) -> None:
    """Show how methods compare on the finished runs in a folder of results."""
    chosen = chosen_results(results, with_reference=with_reference, suite_name=suite_name)
    scores, unscored = chosen.scored(measured_only=measured_only)
    table = make_leaderboard(scores, trial=trial)
    printed = _without_repetition(table)
    if by is None:
        table = table[(table["benchmark"] == ALL) | ~_has_overall(table)]
        printed = printed[printed.index.isin(table.index)]
    if as_json:
        print_json(table.astype(object).where(table.notna(), None).to_dict("records"))
    else:
        _print(printed)
        _print_agreement(scores, trial)
        for item in scores if by else ():
            for note in item.notes():
                print_text(f"{item.label}: {note}")
        print_text(LEGEND)
    for note in unscored:
        say(f"not compared: {note}")


def show_scores(
    scores: Sequence[BenchmarkScores],
    unscored: Sequence[str],
    *,
    folder: Path,
    own: Collection[str] = (),
) -> None:
    """Print the leaderboard over all benchmarks, the ranks of methods in `own`, and verdicts."""
    table = _without_repetition(make_leaderboard(scores))
    table = table[(table["benchmark"] == ALL) | ~_has_overall(table)]
    _print(table, most=MOST_ROWS, own=own)
    for line in _places(table, own):
        click.echo(line)
    _print_agreement(scores)
    for verdict in verdicts(scores):
        print_text(verdict.sentence)
    left_out = [item.benchmark for item in scores if item.left_out]
    if 0 < len(left_out) < len(scores):
        say(f"left out of means, plateaus or implausible: {', '.join(left_out)}")
    if scores:
        again = f"{folder} --reference" if own else str(folder)
        say(
            f"each benchmark, with what the columns mean: hpobench-ordered leaderboard {again} "
            "--by benchmark"
        )
    for note in unscored:
        say(f"not compared: {note}")


def _print_agreement(scores: Sequence[BenchmarkScores], trial: int | None = None) -> None:
    """Print mean ranks by surrogate for benchmarks that were run on several."""
    table = surrogate_agreement(scores, trial=trial)
    for (_, benchmark), group in table.groupby(["protocol", "benchmark"], sort=False):
        ranks = group.pivot_table(index="method", columns="surrogate", values="rank", sort=False)
        order = "the same" if group["is_same"].all() else "NOT the same"
        rows = [(str(method), *(f"{rank:.2f}" for rank in row)) for method, row in ranks.iterrows()]
        title = f"{benchmark}: mean ranks by surrogate; the order of methods is {order} on all"
        print_table(("method", *map(str, ranks.columns)), rows, title=title)
        click.echo()


def _has_overall(table: "pd.DataFrame") -> "pd.Series[bool]":
    """Whether the protocol of each row has more than one benchmark."""
    benchmarks = table[table["benchmark"] != ALL].groupby("protocol")["benchmark"].nunique()
    return table["protocol"].map(benchmarks) > 1


def _without_repetition(table: "pd.DataFrame") -> "pd.DataFrame":
    """Drop the rows over all benchmarks if there is only one benchmark."""
    return table[(table["benchmark"] != ALL) | _has_overall(table)]


def _places(table: "pd.DataFrame", own: Collection[str]) -> Iterator[str]:
    """A sentence on the mean rank of each of the methods `own`."""
    for _, group in table.groupby(["protocol", "benchmark"], sort=False):
        ranks = group.set_index("method")["rank"].dropna()
        for method in ranks.index.intersection([*own], sort=False):
            place, rank = int((ranks < ranks[method]).sum()) + 1, ranks[method]
            yield f"{method} is number {place} of {len(ranks)} methods: mean rank {rank:.2f}"


def _print(table: "pd.DataFrame", *, most: int | None = None, own: Collection[str] = ()) -> None:
    """Print a leaderboard, a table for each benchmark; of at most so many methods, and these."""
    tables = list(leaderboard_tables(table))
    if not all(fits(shown.header, shown.rows) for shown in tables):
        tables = list(leaderboard_tables(table, narrow=True))
    for shown in tables:
        rows = [row for n, row in enumerate(shown.rows) if n < (most or n + 1) or row[0] in own]
        left_out = len(shown.rows) - len(rows)
        print_table(shown.header, rows, title=shown.caption)
        click.echo(f"and {left_out} more methods\n" if left_out else "")
