"""The tables of a report: leaderboards, pairs of methods, surrogates, runs and failures."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered.analysis.benchmark_group import (
    BenchmarkGroup,
    Unit,
    compare_pairs,
    count_all_wins,
    speedups_after_adjustment,
)
from hpobench_ordered.analysis.bootstrap import MIN_SAMPLES_OF_INTERVAL
from hpobench_ordered.analysis.labels import (
    format_count,
    format_ranges,
    format_scope,
    join_names,
    label_protocol,
)
from hpobench_ordered.analysis.leaderboard import DECIMALS
from hpobench_ordered.analysis.scoring import GROUP, BenchmarkScores, group_by_protocol
from hpobench_ordered.analysis.speedup import geometric_mean
from hpobench_ordered.analysis.verdict import TESTS, Verdict, surrogate_agreement
from hpobench_ordered.reporting.formats import NOTHING, TextTable, number

if TYPE_CHECKING:
    import pandas as pd

CONTESTS = ("wins", "ties", "losses")
STATES = ("done", "failed", "running", "missing")
"""States of a run."""

SESSION = ("started", "shard", "workers", "backend", "python", "platform", "processor", "cores")
"""Columns of the table of sessions."""


def leaders_table(verdicts: Sequence[Verdict]) -> TextTable:
    """Who leads after which trial under one protocol, and who differs."""
    first = verdicts[0]
    where = format_scope(first.benchmarks, first.families)
    caption = f"Lowest mean rank of {first.methods} methods, {where}."
    if first.families == 1:
        caption += " This says nothing of others."
    elif first.test is None:
        caption += " Too few to test differences."
    else:
        caption += f" Differences are significant at 5 % by {TESTS[first.test]}."
    rows = []
    for one in verdicts:
        row = [str(one.trial), join_names(one.leaders), f"{one.mean_rank:.2f}"]
        row.append(f"{one.first_on} of {one.families}")
        if first.test is not None:
            row += [_some(one.better_than, one.methods), _some(one.not_told_apart, one.methods)]
        rows.append(row)
    header = ["after trial", "leads", "mean rank", "first on"]
    header += ["significantly better than", "not told apart from"] if first.test is not None else []
    return TextTable(caption, header, rows, text_columns=len(header))


def _some(names: Sequence[str], methods: int) -> str:
    """Names of methods, or that they are all of the others."""
    if not names:
        return NOTHING
    return f"all {methods - 1} others" if len(names) == methods - 1 > 1 else join_names(names)


def leaderboard_tables(board: "pd.DataFrame", *, narrow: bool = False) -> Iterator[TextTable]:
    """A table of each protocol's overall rows, and one of each benchmark.

    Narrow ones are without intervals and counts of wins.
    """
    for labels, rows in board.groupby(["protocol", "benchmark", "surrogate"], sort=False):
        protocol, benchmark, surrogate = map(str, labels)
        counts = int(rows["benchmarks"].max()), int(rows["families"].max())
        seeds = int(rows["seeds"].max())
        note = "; in brackets 95 % intervals over seeds" if seeds >= MIN_SAMPLES_OF_INTERVAL else ""
        contests = () if narrow else ("won/tied/lost",)
        if narrow:
            note = "; a wider terminal shows intervals and wins"
        what = f"{benchmark} ({surrogate})" if surrogate else f"All {format_scope(*counts)}"
        yield TextTable(
            f"{what}, {label_protocol(protocol)}, after trial {rows['trial'].iloc[0]}, "
            f"{format_count(seeds, 'seed')}{note}.",
            ("method", *DECIMALS, *contests, "failed", "ms per suggestion"),
            [leaderboard_row(row, narrow=narrow) for row in rows.to_dict("records")],
        )


def leaderboard_row(row: Mapping[Any, Any], *, narrow: bool = False) -> list[str]:
    """A row of the leaderboard as texts."""
    cells = []
    for measure, decimals in DECIMALS.items():
        mean, *ends = (number(row[measure + end], decimals) for end in ("", "_low", "_high"))
        cells.append(mean if narrow or NOTHING in ends else f"{mean} ({' to '.join(ends)})")
    if not narrow:
        contests = [row[name] for name in CONTESTS]
        known = all(isinstance(count, int) for count in contests)
        cells += ["/".join(map(str, contests)) if known else NOTHING]
    milliseconds = number(1000 * row["seconds"], 2)
    return [row["method"], *cells, f"{row['failed']} of {row['runs']}", milliseconds]


def pairs(scored: Sequence[BenchmarkScores]) -> "pd.DataFrame":
    """Every pair of methods compared on all benchmarks: wins, and p values of both tests."""
    import pandas as pd

    frames = []
    for items in group_by_protocol(scored).values():
        group = BenchmarkGroup.for_means(items)
        first, second = np.nonzero(~np.eye(len(group.methods), dtype=bool))
        names = np.array(group.methods, dtype=object)
        counts = count_all_wins(group)
        matrices: dict[str, Any] = {name: getattr(counts, name) for name in CONTESTS}
        for unit in Unit:
            if test := compare_pairs(group, unit=unit):
                matrices[f"p_{unit.value}"] = test.p_values
                matrices[f"p_holm_{unit.value}"] = test.adjusted
        columns = {name: matrix[first, second] for name, matrix in matrices.items()}
        labels = {"protocol": group.protocol, "method": names[first], "other": names[second]}
        frames.append(pd.DataFrame(labels | columns))
    return pd.concat(frames) if frames else pd.DataFrame()


def agreement_table(scored: Sequence[BenchmarkScores]) -> TextTable | None:
    """The order of methods on each surrogate of benchmarks that were run on several."""
    rows = []
    for (protocol, benchmark, surrogate), part in surrogate_agreement(scored).groupby(
        ["protocol", "benchmark", "surrogate"], sort=False
    ):
        ordered = part.sort_values("place")
        ranks = zip(ordered["method"], ordered["rank"], strict=True)
        order = ", ".join(f"{method} {rank:.2f}" for method, rank in ranks)
        alike = "yes" if part["is_same"].all() else "no"
        rows.append((f"{benchmark}, {label_protocol(protocol)}", alike, surrogate, order))
    caption = (
        "Methods by mean rank on every surrogate of the same benchmark, best first, and whether "
        "their order is the same on all of them."
    )
    header = ("benchmark", "same order", "surrogate", "methods with their mean ranks")
    return TextTable(caption, header, rows, text_columns=4) if rows else None


def speedup_tables(scored: Sequence[BenchmarkScores]) -> Iterator[TextTable]:
    """Speed-ups and failure rates after an adjustment: means over tasks, then over benchmarks."""
    for items in group_by_protocol(scored).values():
        if speedups := speedups_after_adjustment(BenchmarkGroup.for_means(items)):
            first = speedups[0]
            means = geometric_mean(np.stack([one.mean for one in speedups]), axis=0)
            failures = np.mean([one.mean_failure_rate for one in speedups], axis=0)
            yield TextTable(
                f"Speed-up over {first.reference}: how many times fewer trials a method needs to "
                "get as far as that on average in so many trials (geometric means), and in "
                "brackets the share of its runs that never get there.",
                ("method", *(f"{budget} trials" for budget in first.budgets)),
                [
                    (m, *(f"{x:.2f} ({rate:.0%})" for x, rate in zip(*ends, strict=True)))
                    for m, *ends in zip(first.methods, means, failures, strict=True)
                ],
            )


def experiment_table(runs: "pd.DataFrame") -> TextTable:
    """The planned runs: one row for all benchmarks with the same protocol, methods and seeds."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for (benchmark, surrogate, protocol), group in runs.groupby(list(GROUP), observed=True):
        methods = ", ".join(sorted(map(str, group["method"].unique())))
        planned = label_protocol(str(protocol)), methods, format_ranges(group["seed"].unique())
        alike.setdefault(planned, []).append(f"{benchmark} ({surrogate})")
    return TextTable(
        "Benchmarks with their versions (and surrogates), methods and seeds.",
        ("protocol", "benchmarks", "methods", "seeds"),
        [(label, ", ".join(names), *rest) for (label, *rest), names in alike.items()],
        text_columns=4,
    )


def session_table(sessions: Sequence[Mapping[str, Any]]) -> TextTable:
    """The starts of the runner, one per row, without empty columns."""
    shown = [name for name in SESSION if any(s.get(name) is not None for s in sessions)]
    ordered = sorted(sessions, key=lambda session: str(session.get("started", "")))
    return TextTable(
        "Every start of the runner, and where it ran.",
        shown,
        [[str(s.get(name, NOTHING)).replace("+00:00", " UTC") for name in shown] for s in ordered],
        text_columns=len(shown),
    )


def states_table(runs: "pd.DataFrame", *, unfinished: bool = False) -> TextTable | None:
    """States of runs, one row for all benchmarks on which those of a method are alike."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for labels, states in runs.groupby(["method", "protocol", *GROUP[:2]], observed=True)["state"]:
        method, protocol, benchmark, surrogate = map(str, labels)
        counts = states.astype(str).value_counts().reindex(STATES, fill_value=0)
        if not unfinished or counts["done"] < len(states):
            key = method, label_protocol(protocol), *map(str, counts)
            alike.setdefault(key, []).append(f"{benchmark} ({surrogate})")
    rows = []
    for (method, label, *counts), names in alike.items():
        where = names[0] if len(names) == 1 else f"each of {len(names)} benchmarks"
        rows.append((method, where, label, *counts))
    caption = "Runs of methods and benchmarks" + " of which not all are finished" * unfinished + "."
    header = ("method", "benchmark", "protocol", *STATES)
    return TextTable(caption, header, rows, text_columns=3) if rows else None
