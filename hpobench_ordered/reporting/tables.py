"""The tables of a report: leaderboards, pairs of methods, surrogates, runs and failures."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered.analysis.benchmark_group import (
    BenchmarkGroup,
    count_all_wins,
    speedups_after_adjustment,
)
from hpobench_ordered.analysis.labels import (
    format_range_of_seeds,
    format_ranges,
    format_scope,
    join_names,
    label_protocol,
)
from hpobench_ordered.analysis.leaderboard import DECIMALS, WIN_COUNTS
from hpobench_ordered.analysis.scoring import GROUP_COLUMNS, BenchmarkScores, group_by_protocol
from hpobench_ordered.analysis.speedup import Speedups, geometric_mean
from hpobench_ordered.analysis.verdict import (
    MIN_FAMILIES_OF_TEST,
    ComparedMethods,
    Verdict,
    surrogate_agreement,
)
from hpobench_ordered.reporting.formats import NOTHING, TextTable, number

if TYPE_CHECKING:
    import pandas as pd

STATES = ("done", "failed", "missing")
"""States of a run."""

SESSION = ("started", "shard", "workers", "backend", "python", "platform", "processor", "cores")
"""Columns of the table of sessions."""


def leaders_table(verdicts: Sequence[Verdict]) -> TextTable:
    """Tabulate which method leads after each of some trials, and which methods it is better than.

    Args:
        verdicts: At least one verdict. All are of the same protocol, and thus of the same
            benchmarks and methods.
    """
    first = verdicts[0]
    where = format_scope(first.benchmarks, first.families)
    caption = (
        f"Lowest mean rank of {first.methods} methods, {where}. Better on these benchmarks: other "
        "seeds and tasks of the same benchmarks would hardly give another order."
    )
    tests_others = first.families >= MIN_FAMILIES_OF_TEST
    if not tests_others:
        caption += f" Fewer than {MIN_FAMILIES_OF_TEST} families are too few to say so of others."
    caption += " Tests at 5 % for all comparisons of the leader together."

    header = ["after trial", "leads", "mean rank", "next"]
    header += ["better on these benchmarks than", "not told apart from"]
    if tests_others:
        header.append("better on others, by families, than")
    rows = []
    for verdict in verdicts:
        next_text = NOTHING
        if verdict.next_method:
            next_text = f"{verdict.next_method}, {verdict.next_rank:.2f}"
        row = [
            str(verdict.trial),
            join_names(verdict.leaders),
            f"{verdict.mean_rank:.2f}",
            next_text,
            *_name_tested(verdict.on_these, verdict.methods),
        ]
        if tests_others:
            better_on_others, _ = _name_tested(verdict.on_others, verdict.methods)
            row.append(better_on_others)
        rows.append(row)
    return TextTable(caption, header, rows, text_columns=len(header))


def _name_tested(tested: ComparedMethods | None, n_methods: int) -> tuple[str, str]:
    """Name the methods that the leader is better than, and those not told apart from it.

    Args:
        tested: The result of the test; None without a test, which gives two placeholders.
        n_methods: Number of all methods, with the leader.
    """
    if tested is None:
        return NOTHING, NOTHING
    better_than = _name_others(tested.better_than, n_methods)
    not_told_apart = _name_others(tested.not_told_apart, n_methods)
    return better_than, not_told_apart


def _name_others(names: Sequence[str], n_methods: int) -> str:
    """Join the names of some methods, or write "all 5 others" if they are all but the leader."""
    if not names:
        return NOTHING
    n_others = n_methods - 1
    if len(names) == n_others > 1:
        return f"all {n_others} others"
    return join_names(names)


def leaderboard_tables(board: "pd.DataFrame", *, narrow: bool = False) -> Iterator[TextTable]:
    """Make a table of all benchmarks together under each protocol, and one of each benchmark.

    A table of runs whose CPU times are unknown has no column of times.

    Args:
        board: The leaderboard, as `analysis.leaderboard` gives.
        narrow: Whether to leave out intervals and counts of wins.
    """
    for labels, rows in board.groupby(["protocol", "benchmark", "surrogate"], sort=False):
        protocol, benchmark, surrogate = map(str, labels)
        scope = f"{benchmark} ({surrogate})"
        if surrogate == "":  # the rows of all benchmarks together
            n_benchmarks = int(rows["benchmarks"].max())
            n_families = int(rows["families"].max())
            scope = f"All {format_scope(n_benchmarks, n_families)}"

        has_intervals = bool(rows["rank_low"].notna().any())
        note = ""
        if narrow:
            note = "; a wider terminal shows intervals and wins"
        elif has_intervals:
            note = "; in brackets 95 % intervals over seeds"
        columns_of_wins = () if narrow else ("won/tied/lost",)
        has_times = bool(rows["seconds"].notna().any())
        columns_of_times = ("CPU ms per suggestion",) if has_times else ()
        has_failures = has_failed_evaluations(rows)
        columns_of_failures = ("failed evaluations",) if has_failures else ()
        yield TextTable(
            f"{scope}, {label_protocol(protocol)}, after trial {rows['trial'].iloc[0]}, "
            f"{_describe_seeds(rows)}{note}.",
            (
                "method",
                *DECIMALS,
                *columns_of_wins,
                "failed",
                *columns_of_failures,
                *columns_of_times,
            ),
            [
                leaderboard_row(row, narrow=narrow, has_failures=has_failures, has_times=has_times)
                for row in rows.to_dict("records")
            ],
        )


def _describe_seeds(rows: "pd.DataFrame") -> str:
    """Say how many seeds the numbers of a leaderboard are over, such as "8 to 10 seeds".

    Methods that are not compared, which finished too few seeds, do not count if others are.

    Args:
        rows: The rows of the leaderboard on one benchmark, or over all benchmarks.
    """
    compared_rows = rows[rows["rank"].notna()]
    counts = (compared_rows if len(compared_rows) else rows)["seeds"]
    return format_range_of_seeds(list(map(int, counts)))


def has_failed_evaluations(board: "pd.DataFrame") -> bool:
    """Whether any evaluation failed in the runs of a leaderboard."""
    return bool((board["failed_evaluations"] > 0).any())


def format_failed_evaluations(row: Mapping[Any, Any]) -> str:
    """Format the number of failed evaluations in a leaderboard's row, such as "12 of 40"."""
    return f"{row['failed_evaluations']} of {row['evaluations']}"


def leaderboard_row(
    row: Mapping[Any, Any], *, narrow: bool, has_failures: bool, has_times: bool
) -> list[str]:
    """Format a row of the leaderboard as the cells of `leaderboard_tables`.

    Args:
        row: The row, by column.
        narrow: Whether to leave out intervals and counts of wins.
        has_failures: Whether the table has a column of failed evaluations.
        has_times: Whether the table has a column of CPU times.
    """
    cells = []
    for measure, decimals in DECIMALS.items():
        mean = number(row[measure], decimals)
        low = number(row[f"{measure}_low"], decimals)
        high = number(row[f"{measure}_high"], decimals)
        has_interval = NOTHING not in (low, high)
        if has_interval and not narrow:
            cells.append(f"{mean} ({low} to {high})")
        else:
            cells.append(mean)

    if not narrow:
        counts = [row[name] for name in WIN_COUNTS]
        # The counts of a method that is not compared are <NA> instead of whole numbers.
        is_compared = all(isinstance(count, int) for count in counts)
        cells.append("/".join(map(str, counts)) if is_compared else NOTHING)
    cells.append(f"{row['failed']} of {row['runs']}")
    if has_failures:
        cells.append(format_failed_evaluations(row))
    if has_times:
        milliseconds = 1000 * row["seconds"]
        cells.append(number(milliseconds, 2))
    return [row["method"], *cells]


def tabulate_pairs(scored: Sequence[BenchmarkScores]) -> "pd.DataFrame":
    """Tabulate every pair of methods that are compared on all benchmarks of a protocol.

    Returns:
        A row for each ordered pair, with the columns `protocol`, `method` and `other`, and the
        counts `wins`, `ties` and `losses` of the method against the other.
    """
    import pandas as pd

    frames = []
    for items in group_by_protocol(scored).values():
        group = BenchmarkGroup.for_means(items)
        counts = count_all_wins(group)
        matrices: dict[str, Any] = {  # (methods, methods) each
            "wins": counts.wins,
            "ties": counts.ties,
            "losses": counts.losses,
        }
        is_pair = ~np.eye(len(group.methods), dtype=bool)  # a method is no pair with itself
        method, other = np.nonzero(is_pair)  # indices of both methods of each pair
        names = np.array(group.methods, dtype=object)
        labels = {"protocol": group.protocol, "method": names[method], "other": names[other]}
        columns = {name: matrix[method, other] for name, matrix in matrices.items()}
        frames.append(pd.DataFrame(labels | columns))
    return pd.concat(frames) if frames else pd.DataFrame()


def agreement_tables(
    scored: Sequence[BenchmarkScores], *, trial: int | None = None
) -> Iterator[TextTable]:
    """Make a table of mean ranks by surrogate for each benchmark that was run on several.

    Args:
        scored: Scores by benchmark.
        trial: The trial, counted from 1; default: the last that was made on every surrogate.
    """
    agreement = surrogate_agreement(scored, trial=trial)
    for labels, group in agreement.groupby(["protocol", "benchmark"], sort=False):
        _, benchmark = map(str, labels)
        ranks = group.pivot_table(index="method", columns="surrogate", values="rank", sort=False)
        rows = []
        for method, ranks_by_surrogate in ranks.iterrows():
            rows.append((str(method), *(f"{rank:.2f}" for rank in ranks_by_surrogate)))
        order = "the same" if group["is_same"].all() else "NOT the same"
        caption = f"{benchmark}: mean ranks by surrogate; the order of methods is {order} on all."
        yield TextTable(caption, ("method", *map(str, ranks.columns)), rows)


def speedup_tables(scored: Sequence[BenchmarkScores]) -> Iterator[TextTable]:
    """Make a table of speedups for each protocol with an adjustment of the search space.

    Speedups and failure rates are averaged over the tasks of a benchmark, then over benchmarks.
    """
    for items in group_by_protocol(scored).values():
        speedups_of_benchmarks = speedups_after_adjustment(BenchmarkGroup.for_means(items))
        if speedups_of_benchmarks:
            yield _speedup_table(speedups_of_benchmarks)


def _speedup_table(speedups_of_benchmarks: Sequence[Speedups]) -> TextTable:
    """Tabulate the speedup and the failure rate of each method, averaged over benchmarks.

    A cell such as "2.50 (10%)" has the speedup and, in brackets, the failure rate. There is a row
    for each method, and a column for each budget of the reference.

    Args:
        speedups_of_benchmarks: Speedups on each benchmark, all with the same methods, reference and
            budgets.
    """
    first = speedups_of_benchmarks[0]
    benchmark_means = [speedups.mean for speedups in speedups_of_benchmarks]
    benchmark_rates = [speedups.mean_failure_rate for speedups in speedups_of_benchmarks]
    means = geometric_mean(np.stack(benchmark_means), axis=0)  # (methods, budgets)
    failure_rates = np.mean(benchmark_rates, axis=0)  # (methods, budgets)
    rows = []
    for method, means_of_method, rates_of_method in zip(
        first.methods, means, failure_rates, strict=True
    ):
        cells = []
        for mean, rate in zip(means_of_method, rates_of_method, strict=True):
            cells.append(f"{mean:.2f} ({rate:.0%})")
        rows.append((method, *cells))
    caption = (
        f"Speed-up over {first.reference}: how many times fewer trials a method needs to reach the "
        f"mean loss of {first.reference} after the trials in the column's heading (geometric "
        "means). In brackets: the share of runs that never reach this loss."
    )
    headings = ("method", *(f"{budget} trials" for budget in first.budgets))
    return TextTable(caption, headings, rows)


def experiment_table(runs: "pd.DataFrame") -> TextTable:
    """Tabulate which methods were planned on which benchmarks, with which seeds.

    A row has all benchmarks on which the same methods were planned with the same seeds under the
    same protocol. Methods of a benchmark with different seeds are in different rows.

    Args:
        runs: One row per planned run, as `Overview.runs`.
    """
    # A plan is the protocol, the methods and the seeds, as texts.
    benchmarks_of_plan: dict[tuple[str, str, str], list[str]] = {}
    for (benchmark, surrogate, protocol), group in runs.groupby(list(GROUP_COLUMNS), observed=True):
        methods_of_seeds: dict[str, list[str]] = {}
        for method, runs_of_method in group.groupby("method", observed=True):
            seeds = format_ranges(runs_of_method["seed"].unique())
            methods_of_seeds.setdefault(seeds, []).append(str(method))
        for seeds, names in methods_of_seeds.items():
            plan = (label_protocol(str(protocol)), ", ".join(sorted(names)), seeds)
            benchmarks_of_plan.setdefault(plan, []).append(f"{benchmark} ({surrogate})")

    rows = []
    for (protocol, methods, seeds), benchmarks in benchmarks_of_plan.items():
        rows.append((protocol, ", ".join(benchmarks), methods, seeds))
    return TextTable(
        "Benchmarks with their versions (and surrogates), methods and seeds.",
        ("protocol", "benchmarks", "methods", "seeds"),
        rows,
        text_columns=4,
    )


def session_table(sessions: Sequence[Mapping[str, Any]]) -> TextTable:
    """Tabulate the starts of the runner, the earliest first.

    Columns of `SESSION` that no session has are left out.
    """
    columns = []
    for name in SESSION:
        values = [session.get(name) for session in sessions]
        if any(value is not None for value in values):
            columns.append(name)

    rows = []
    for session in sorted(sessions, key=lambda session: str(session.get("started", ""))):
        cells = [str(session.get(name, NOTHING)) for name in columns]
        # Times are in ISO format; people read " UTC" more easily than the offset.
        rows.append([cell.replace("+00:00", " UTC") for cell in cells])
    return TextTable(
        "Every start of the runner, and where it ran.", columns, rows, text_columns=len(columns)
    )


def states_table(runs: "pd.DataFrame", *, unfinished: bool = False) -> TextTable | None:
    """Tabulate how many runs of each method are done, failed or missing.

    Benchmarks share a row if a method has the same numbers on them under the same protocol.

    Args:
        runs: One row per run, as `Overview.runs`.
        unfinished: Whether to leave out methods and benchmarks of which all runs are finished.

    Returns:
        The table; None if it would be empty.
    """
    # A key is what benchmarks in a row share: the method, the protocol, and the number of runs in
    # each state.
    benchmarks_of_row: dict[tuple[str, ...], list[str]] = {}
    levels = ["method", "protocol", "benchmark", "surrogate"]
    for labels, states in runs.groupby(levels, observed=True)["state"]:
        method, protocol, benchmark, surrogate = map(str, labels)
        counts = states.astype(str).value_counts().reindex(STATES, fill_value=0)
        is_finished = counts["done"] == len(states)
        if unfinished and is_finished:
            continue
        key = (method, label_protocol(protocol), *map(str, counts))
        benchmarks_of_row.setdefault(key, []).append(f"{benchmark} ({surrogate})")
    if not benchmarks_of_row:
        return None

    rows = []
    for (method, protocol, *counts_of_states), benchmarks in benchmarks_of_row.items():
        scope = benchmarks[0] if len(benchmarks) == 1 else f"each of {len(benchmarks)} benchmarks"
        rows.append((method, scope, protocol, *counts_of_states))
    caption = "Runs of methods and benchmarks."
    if unfinished:
        caption = "Runs of methods and benchmarks of which not all are finished."
    return TextTable(caption, ("method", "benchmark", "protocol", *STATES), rows, text_columns=3)
