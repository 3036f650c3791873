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
from hpobench_ordered.reporting.chart import build_specification
from hpobench_ordered.reporting.formats import number

if TYPE_CHECKING:
    import pandas as pd

MAX_METHODS_ALL_IN_COLOUR = 9
"""At first, all methods are in colour if there are at most so many."""

BEST_IN_COLOUR = 5
"""Of more methods, so many of the best are in colour at first."""

SIGNIFICANT_DIGITS = 5
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
    protocols = []
    task_curves_of_protocols = []
    for protocol, items in group_by_protocol(scored).items():
        of_protocol = board[board["protocol"] == protocol]
        # All planned methods have a row of each benchmark.
        methods = [str(method) for method in of_protocol["method"].unique()]
        views = _make_views(means[means["protocol"] == protocol], methods)
        entries = _make_entries(items, methods, of_protocol, views)
        protocols.append(
            {
                "label": label_protocol(protocol),
                "methods": methods,
                "looks": _looks_of(methods),
                "entries": entries,
            }
        )

        task_curves = []
        for entry in entries:
            view = views.get(entry["key"], {})
            task_curves.append([view[task] for task in entry["tasks"]])
        task_curves_of_protocols.append(task_curves)

    columns = [
        {"key": key, "title": title, "meaning": meaning, "decimals": DECIMALS.get(key)}
        for key, title, meaning in COLUMNS
    ]
    return {
        "protocols": protocols,
        "columns": columns,
        "measures": [key for key, _, _ in MEASURES],
        "spec": build_specification(),
        "reference": RANDOM_SEARCH,
        "few": MAX_METHODS_ALL_IN_COLOUR,
        "best": BEST_IN_COLOUR,
    }, task_curves_of_protocols


def _looks_of(methods: Sequence[str]) -> list[dict[str, Any]]:
    """Colour, which follows the page's theme, and dashes of each method."""
    style_of_method = styles(methods)
    looks = []
    for method in methods:
        style = style_of_method[method]
        colour = f"light-dark({style.colour}, {style.dark})"
        looks.append({"colour": colour, "dash": style.dashes})
    return looks


def _make_entries(
    items: Sequence[BenchmarkScores], methods: Sequence[str], board: "pd.DataFrame", views: Views
) -> list[dict[str, Any]]:
    """What can be selected: all benchmarks together, if there are several, and each of them."""
    wins_of_items = {item.label: _count_wins_of_trials(item) for item in items}
    entries = []
    if len(items) > 1:
        group = BenchmarkGroup.for_means(items)
        entry: dict[str, Any] = {
            "key": (ALL, ""),
            "label": f"all {group.scope}",
            "trials": group.last_trial,
            "notes": [],
            "maximised": False,
        }
        wins = _add_up_wins(group, wins_of_items)
        entries.append(entry | _columns_of_methods(entry["key"], methods, wins, board, views))

    for item in items:
        entry = {
            "key": (item.benchmark, item.surrogate),
            "label": item.label,
            "trials": item.last_trial,
            "notes": item.notes(),
            "maximised": item.is_maximised,
        }
        wins = wins_of_items[item.label]
        entries.append(entry | _columns_of_methods(entry["key"], methods, wins, board, views))
    return entries


def _columns_of_methods(
    key: tuple[str, str],
    methods: Sequence[str],
    wins: Mapping[str, IntArray],
    board: "pd.DataFrame",
    views: Views,
) -> dict[str, Any]:
    """Curves of an entry, and its columns of the leaderboard; None for methods without.

    `key` is the benchmark and the surrogate of the entry.
    """
    is_of_entry = (board["benchmark"] == key[0]) & (board["surrogate"] == key[1])
    rows = {row["method"]: row for row in board[is_of_entry].to_dict("records")}
    view = views.get(key, {})
    return {
        "measures": view.get("", {}),
        "tasks": [task for task in view if task],
        "wins": [wins[m].tolist() if m in wins else None for m in methods],
        "failed": [_failed_cell(rows[m]) if m in rows else None for m in methods],
        "seconds": [_seconds_cell(rows[m]) if m in rows else None for m in methods],
    }


def _failed_cell(row: Mapping[Any, Any]) -> tuple[int, str]:
    """Sort key and text of a cell."""
    return int(row["failed"]), f"{row['failed']} of {row['runs']}"


def _seconds_cell(row: Mapping[Any, Any]) -> tuple[float | None, str]:
    """Sort key and text of a cell."""
    return _round_for_page(row["seconds"]), number(1000 * row["seconds"], 2)


def _make_views(means: "pd.DataFrame", methods: Sequence[str]) -> Views:
    """Curves as JSON: [mean, low, high] by method and trial, or only [mean]."""
    views: dict[tuple[str, str], dict[str, dict[str, list[Any]]]] = {}
    levels = ["benchmark", "surrogate", "task", "measure"]
    for labels, rows in means.groupby(levels, observed=True, sort=False):
        benchmark, surrogate, task, measure = labels
        names = rows["method"].unique()
        curves = rows[["mean", "low", "high"]].to_numpy().T.reshape(3, len(names), -1)
        mean, low, _ = curves
        if np.isnan(mean).all():
            continue
        if np.isnan(low).all():
            curves = curves[:1]

        rounded = np.vectorize(_round_for_page, otypes=[object])(curves)
        view = views.setdefault((benchmark, surrogate), {}).setdefault(task, {})
        view[measure] = []
        for curves_of_methods in rounded.tolist():
            curve_of_method = dict(zip(names, curves_of_methods, strict=True))
            view[measure].append([curve_of_method.get(method) for method in methods])
    return views


def _round_for_page(value: float) -> float | None:
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if np.isfinite(value) else None


def _count_wins_of_trials(item: BenchmarkScores) -> dict[str, IntArray]:
    """How many runs won, tied and lost after every trial, (M, 3), by method."""
    counts_of_trials = []
    for trial in range(1, item.last_trial + 1):
        counts = count_wins(item.losses, item.methods, trial=trial, first_task=item.first_task)
        matrices = (counts.wins, counts.ties, counts.losses)
        counts_of_trials.append([matrix.sum(axis=1) for matrix in matrices])
    counts_of_methods = np.array(counts_of_trials).transpose(2, 0, 1)  # (A, M, 3)
    return dict(zip(item.methods, counts_of_methods, strict=True))


def _add_up_wins(
    group: BenchmarkGroup, wins_of_items: Mapping[str, Mapping[str, IntArray]]
) -> dict[str, IntArray]:
    """Sums over benchmarks of the counts after every trial that all have, (M, 3), by method."""
    sums = {}
    for method in group.methods:
        counts = [wins_of_items[item.label][method][: group.last_trial] for item in group.items]
        sums[method] = np.sum(counts, axis=0)
    return sums
