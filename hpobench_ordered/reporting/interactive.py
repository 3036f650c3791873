"""The numbers that the page's script shows: curves and leaderboards of everything to select.

Notation:
    A   number of methods
    M   number of trials per task
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import IntArray
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.analysis.labels import label_protocol
from hpobench_ordered.analysis.leaderboard import ALL, DECIMALS
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.analysis.scoring import BenchmarkScores, group_by_protocol
from hpobench_ordered.analysis.wins import count_wins
from hpobench_ordered.plotting.theme import styles
from hpobench_ordered.reporting.chart import interactive_specification
from hpobench_ordered.reporting.formats import number

if TYPE_CHECKING:
    import pandas as pd

FEW, BEST = 9, 5
"""At first, all methods are in colour if there are at most `FEW`, else the best `BEST`."""

DIGITS = 5
"""Significant digits of the numbers on the page; `means.csv` has all."""

MEASURES = (
    ("rank", "Mean rank", "Among the methods compared, by seed and task; 1 is best."),
    ("score", "Score", "0 is the best, 100 no better than half of all random configurations."),
    ("regret", "Normalised regret", "0 is the best, 1 the worst that any method met."),
    ("value", "Value", "In the objective's own units."),
)
COLUMNS = (
    ("method", "Method", ""),
    *MEASURES,
    ("wins", "Won / tied / lost", "Runs of the same seed on the same task, against every other."),
    ("failed", "Failed", "Failed runs, of all that were planned."),
    ("seconds", "ms per suggestion", "Inside the method, the mean."),
)
"""Columns of the leaderboard: sort key, heading, and explanation."""

Views = Mapping[tuple[str, str], Mapping[str, Mapping[str, list[Any]]]]
"""Curves by benchmark and surrogate, task ("" for the mean over tasks), and measure."""


def interactive(
    scored: Sequence[BenchmarkScores], means: "pd.DataFrame", board: "pd.DataFrame"
) -> tuple[dict[str, Any], list[Any]]:
    """Everything that the script shows, and the curves of tasks by protocol and entry."""
    protocols, tasks = [], []
    for protocol, items in group_by_protocol(scored).items():
        rows = board[board["protocol"] == protocol]
        compared = [str(method) for method in rows["method"]]
        methods = [*dict.fromkeys([*compared, *(m for item in items for m in item.runs)])]
        every = styles(methods)
        looks = [
            {"colour": f"light-dark({one.colour}, {one.dark})", "dash": one.dashes}
            for one in map(every.__getitem__, methods)
        ]
        views = _views(means[means["protocol"] == protocol], methods)
        entries = _entries(items, methods, rows, views)
        protocols.append(
            {
                "label": label_protocol(protocol),
                "methods": methods,
                "looks": looks,
                "entries": entries,
            }
        )
        by_entry = [views.get(entry["key"], {}) for entry in entries]
        tasks.append([[view[task] for task in view if task] for view in by_entry])
    columns = [
        {"key": key, "title": title, "meaning": meaning, "decimals": DECIMALS.get(key)}
        for key, title, meaning in COLUMNS
    ]
    return {
        "protocols": protocols,
        "columns": columns,
        "measures": [key for key, _, _ in MEASURES],
        "spec": interactive_specification(),
        "reference": RANDOM_SEARCH,
        "few": FEW,
        "best": BEST,
    }, tasks


def _entries(
    items: Sequence[BenchmarkScores], methods: Sequence[str], board: "pd.DataFrame", views: Views
) -> list[dict[str, Any]]:
    """What can be selected: all benchmarks together, and each of them."""
    group, wins = BenchmarkGroup.for_means(items), {item.label: _wins(item) for item in items}
    parts: list[Any] = [
        ((one.benchmark, one.surrogate), label, one.last_trial, wins[label], one.notes(), one)
        for label, one in zip(wins, items, strict=True)
    ]
    if len(items) > 1:
        last = group.last_trial
        counting = [wins[item.label] for item in group.items]
        total = {m: np.sum([one[m][:last] for one in counting], axis=0) for m in group.methods}
        label = f"all {group.scope}"
        parts.insert(0, ((ALL, ""), label, last, total, [], None))
    entries = []
    for key, label, trials, counts, notes, item in parts:
        of_key = (board["benchmark"] == key[0]) & (board["surrogate"] == key[1])
        rows = {row["method"]: row for row in board[of_key].to_dict("records")}
        view = views.get(key, {})
        entries.append(
            {
                "key": key,
                "label": label,
                "trials": trials,
                "measures": view.get("", {}),
                "tasks": [task for task in view if task],
                "wins": [counts[m].tolist() if m in counts else None for m in methods],
                "failed": [_failed(rows[m]) if m in rows else None for m in methods],
                "seconds": [_seconds(rows[m]) if m in rows else None for m in methods],
                "notes": notes,
                "maximised": item is not None and item.is_maximised,
            }
        )
    return entries


def _failed(row: Mapping[Any, Any]) -> tuple[int, str]:
    """Sort key and text of a cell."""
    return int(row["failed"]), f"{row['failed']} of {row['runs']}"


def _seconds(row: Mapping[Any, Any]) -> tuple[float | None, str]:
    return _rounded(row["seconds"]), number(1000 * row["seconds"], 2)


def _views(means: "pd.DataFrame", methods: Sequence[str]) -> Views:
    """Curves as JSON: [mean, low, high] by method and trial, or only [mean]."""
    views: dict[tuple[str, str], dict[str, dict[str, list[Any]]]] = {}
    levels = ["benchmark", "surrogate", "task", "measure"]
    for (benchmark, surrogate, task, measure), rows in means.groupby(
        levels, observed=True, sort=False
    ):
        names = rows["method"].unique()
        ends = rows[["mean", "low", "high"]].to_numpy().T.reshape(3, len(names), -1)
        if np.isnan(ends[0]).all():
            continue
        known = np.vectorize(_rounded, otypes=[object])(ends[: 1 if np.isnan(ends[1]).all() else 3])
        curves = [dict(zip(names, numbers, strict=True)) for numbers in known.tolist()]
        by_measure = views.setdefault((benchmark, surrogate), {}).setdefault(task, {})
        by_measure[measure] = [[one.get(method) for method in methods] for one in curves]
    return views


def _rounded(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None


def _wins(item: BenchmarkScores) -> dict[str, IntArray]:
    """By method how many runs won, tied and lost after every trial, shape (M, 3)."""
    sums = []
    for trial in range(1, item.last_trial + 1):
        one = count_wins(item.losses, item.methods, trial=trial, first_task=item.first_task)
        sums.append([counts.sum(axis=1) for counts in (one.wins, one.ties, one.losses)])
    return dict(zip(item.methods, np.array(sums).transpose(2, 0, 1), strict=True))
