"""The numbers that the page's script shows: curves and leaderboards of everything to select.

Notation:
    A   number of methods
    M   number of trials per task
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.analysis.labels import label_protocol
from hpobench_ordered.analysis.leaderboard import ALL, DECIMALS
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.analysis.scoring import BenchmarkScores, group_by_protocol
from hpobench_ordered.reporting.chart import build_specification
from hpobench_ordered.reporting.charts.theme import styles
from hpobench_ordered.reporting.formats import number
from hpobench_ordered.reporting.tables import format_failed_evaluations, has_failed_evaluations

if TYPE_CHECKING:
    import pandas as pd

MAX_METHODS_ALL_IN_COLOUR = 9
"""At first, all methods are in colour if there are at most so many."""

BEST_IN_COLOUR = 5
"""Of more methods, so many of the best are in colour at first."""

SIGNIFICANT_DIGITS = 5
"""Significant digits of the numbers on the page; `means.csv` has all."""

TINY = 1e-250
"""Absolute values up to this one are shown as 0."""

FIRST_PART = "0-0"
"""Name of the numbers that the page shows first, and has inside."""

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
    (
        "failed_evaluations",
        "Failed evaluations",
        "Of those in finished runs; a failed one is worse than any other.",
    ),
    ("seconds", "CPU ms per suggestion", "CPU time of the method, the mean."),
)
"""Columns of the leaderboard: sort key, heading, and explanation."""

Views = Mapping[tuple[str, str], Mapping[str, Mapping[str, list[Any]]]]
"""Curves by benchmark and surrogate, task ("" for the mean over tasks), and measure."""


def collect_page_data(
    scored: Sequence[BenchmarkScores], means: "pd.DataFrame", board: "pd.DataFrame"
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Collect everything that the page's script shows.

    Readers of the page select a protocol, and one of its entries: all benchmarks together, or one
    benchmark.

    Args:
        scored: Scores by benchmark, of all protocols.
        means: Means over trials, as `analysis.curves.curves` gives.
        board: The leaderboard after the last trial.

    Returns:
        The data that the page loads at once, with the numbers of its first entry alone, and parts
        that it loads when they are selected, by name: "0-2" has the numbers of the third entry of
        the first protocol, "0-2-tasks" its curves of single tasks.
    """
    protocols: list[dict[str, Any]] = []
    parts: dict[str, Any] = {}
    for protocol_number, (protocol, items) in enumerate(group_by_protocol(scored).items()):
        board_of_protocol = board[board["protocol"] == protocol]
        # All planned methods, which have rows even if they are not compared.
        methods = [str(method) for method in board_of_protocol["method"].unique()]
        views = _arrange_curves(means[means["protocol"] == protocol], methods)
        wins_of_entries = _count_wins_of_entries(items)
        entries = _list_entries(items, views)
        for entry_number, entry in enumerate(entries):
            key = entry.pop("key")  # benchmark and surrogate, which the page does not need
            curves_of_tasks = views.get(key, {})
            name = f"{protocol_number}-{entry_number}"
            parts[name] = _collect_numbers_of_entry(
                key,
                methods,
                wins_of_entries[key],
                board_of_protocol,
                curves_of_tasks.get("", {}),  # the means over tasks
                shows_failures=has_failed_evaluations(board),
            )
            if entry["tasks"]:
                parts[f"{name}-tasks"] = [curves_of_tasks[task] for task in entry["tasks"]]

        protocols.append(
            {
                "label": label_protocol(protocol),
                "methods": methods,
                "looks": _list_looks(methods),
                "entries": entries,
            }
        )

    columns = [
        {"key": key, "title": title, "meaning": meaning, "decimals": DECIMALS.get(key)}
        for key, title, meaning in list_columns(board)
    ]
    data = {
        "protocols": protocols,
        "parts": {FIRST_PART: parts.pop(FIRST_PART)},
        "columns": columns,
        "measures": [key for key, _, _ in MEASURES],
        "spec": build_specification(),
        "reference": RANDOM_SEARCH,
        # Names that the page's script knows:
        "few": MAX_METHODS_ALL_IN_COLOUR,
        "best": BEST_IN_COLOUR,
    }
    return data, parts


def list_columns(board: "pd.DataFrame") -> list[tuple[str, str, str]]:
    """List the `COLUMNS` that the page shows.

    The column of times is left out if no time is known, and that of failed evaluations if none
    failed.
    """
    hidden = set()
    if board["seconds"].isna().all():
        hidden.add("seconds")
    if not has_failed_evaluations(board):
        hidden.add("failed_evaluations")
    return [column for column in COLUMNS if column[0] not in hidden]


def _list_looks(methods: Sequence[str]) -> list[dict[str, Any]]:
    """List the colour and the dashes of each method, for the page's script.

    A colour is text of CSS such as "light-dark(#aa3377, #ee99aa)": browsers take the first colour
    if the page is light, and the second if it is dark.
    """
    style_of_method = styles(methods)
    looks = []
    for method in methods:
        style = style_of_method[method]
        colour = f"light-dark({style.colour}, {style.dark})"
        looks.append({"colour": colour, "dash": style.dashes})
    return looks


def _list_entries(items: Sequence[BenchmarkScores], views: Views) -> list[dict[str, Any]]:
    """List the entries that can be selected: all benchmarks together, then each benchmark.

    There is no entry of all benchmarks if there is only one.

    Args:
        items: Scores of the benchmarks under one protocol.
        views: Curves by benchmark and surrogate.

    Returns:
        For each entry its key (benchmark and surrogate), label, number of trials, notes, whether
        the objective is maximised, and the tasks that have curves.
    """
    entries: list[dict[str, Any]] = []
    if len(items) > 1:
        group = BenchmarkGroup.for_means(items)
        entries.append(
            {
                "key": (ALL, ""),
                "label": f"all {group.scope}",
                "trials": group.last_trial,
                "notes": [],
                "maximised": False,
            }
        )
    for item in items:
        entries.append(
            {
                "key": (item.benchmark, item.surrogate),
                "label": item.label,
                "trials": item.last_trial,
                "notes": item.notes(),
                "maximised": item.is_maximised,
            }
        )
    for entry in entries:
        curves_of_tasks = views.get(entry["key"], {})
        entry["tasks"] = [task for task in curves_of_tasks if task != ""]  # "" is their mean
    return entries


def _count_wins_of_entries(
    items: Sequence[BenchmarkScores],
) -> dict[tuple[str, str], Mapping[str, IntArray]]:
    """Count wins, ties and losses of each method after every trial, for every entry of the page.

    Returns:
        The counts, (trials, 3), by benchmark and surrogate, and then by method. All benchmarks
        together have an entry as well, if there are several.
    """
    wins_of_entries: dict[tuple[str, str], Mapping[str, IntArray]] = {}
    for item in items:
        wins_of_entries[item.benchmark, item.surrogate] = _count_wins_of_trials(item)
    if len(items) > 1:
        wins_of_entries[ALL, ""] = _add_up_wins(BenchmarkGroup.for_means(items))
    return wins_of_entries


def _collect_numbers_of_entry(
    key: tuple[str, str],
    methods: Sequence[str],
    wins: Mapping[str, IntArray],
    board: "pd.DataFrame",
    measures: Mapping[str, list[Any]],
    *,
    shows_failures: bool,
) -> dict[str, Any]:
    """Collect the numbers of one entry of the page: its curves and columns of its leaderboard.

    Args:
        key: The benchmark and surrogate of the entry.
        methods: All methods, in the order of each column. Methods without a value have None.
        wins: Wins, ties and losses after every trial, (trials, 3), by method.
        board: The leaderboard of the protocol.
        measures: Curves of means over tasks, by measure.
        shows_failures: Whether the page has a column of failed evaluations.
    """
    benchmark, surrogate = key
    is_of_entry = (board["benchmark"] == benchmark) & (board["surrogate"] == surrogate)
    row_of_method = {row["method"]: row for row in board[is_of_entry].to_dict("records")}
    columns: dict[str, Any] = {"measures": measures, "wins": []}
    for method in methods:
        counts = wins.get(method)
        columns["wins"].append(None if counts is None else counts.tolist())

    make_cell_of_column = {"failed": _make_cell_of_failed_runs, "seconds": _make_cell_of_time}
    if shows_failures:
        make_cell_of_column["failed_evaluations"] = _make_cell_of_failed_evaluations
    for name, make_cell in make_cell_of_column.items():
        cells: list[Cell | None] = []
        for method in methods:
            has_row = method in row_of_method
            cells.append(make_cell(row_of_method[method]) if has_row else None)
        columns[name] = cells
    return columns


Cell = tuple[float | None, str]
"""A cell of the leaderboard: the number to sort by, None if it is missing, and the text to show."""


def _make_cell_of_failed_runs(row: Mapping[Any, Any]) -> Cell:
    """Make a cell of the column of failed runs, such as "1 of 10"."""
    return int(row["failed"]), f"{row['failed']} of {row['runs']}"


def _make_cell_of_failed_evaluations(row: Mapping[Any, Any]) -> Cell:
    """Make a cell of the column of failed evaluations, such as "12 of 40"."""
    return int(row["failed_evaluations"]), format_failed_evaluations(row)


def _make_cell_of_time(row: Mapping[Any, Any]) -> Cell:
    """Make a cell of the column of times: sorted by seconds, shown in milliseconds."""
    (seconds,) = _round_for_page(np.array([row["seconds"]]))  # None if the time is unknown
    return seconds, number(1000 * row["seconds"], 2)


def _arrange_curves(means: "pd.DataFrame", methods: Sequence[str]) -> Views:
    """Arrange curves for JSON, by benchmark and surrogate, then by task, then by measure.

    A measure has a list of three items: the means, the lower ends and the upper ends of their
    intervals. If there are no intervals, it has the means alone. Each item has a curve per method,
    which is a number per trial, or None if the method has no curve.

    Args:
        means: Means of one protocol, as `analysis.curves.curves` gives: sorted by method and trial.
        methods: All methods, in the order of the lists.
    """
    views: dict[tuple[str, str], dict[str, dict[str, list[Any]]]] = {}
    levels = ["benchmark", "surrogate", "task", "measure"]
    for labels, rows in means.groupby(levels, observed=True, sort=False):
        benchmark, surrogate, task, measure = labels
        names = rows["method"].unique()
        numbers = rows[["mean", "low", "high"]].to_numpy().T  # (3, methods * trials)
        curves = numbers.reshape(3, len(names), -1)  # (3, methods, trials)
        mean, low, _ = curves
        if np.isnan(mean).all():
            continue
        if np.isnan(low).all():  # there are no intervals
            curves = curves[:1]

        items = []
        for curves_of_methods in _round_for_page(curves).tolist():  # the means, then both ends
            curve_of_method = dict(zip(names, curves_of_methods, strict=True))
            items.append([curve_of_method.get(method) for method in methods])
        curves_of_tasks = views.setdefault((benchmark, surrogate), {})
        curves_of_measures = curves_of_tasks.setdefault(task, {})
        curves_of_measures[measure] = items
    return views


def _round_for_page(values: FloatArray) -> "np.ndarray[Any, np.dtype[np.object_]]":
    """Round numbers to `SIGNIFICANT_DIGITS`, so that the page stays small.

    Numbers that are not finite become None, as JSON cannot express them. The function rounds a
    whole array at once, as a large page has millions of numbers.
    """
    is_finite = np.isfinite(values)
    # Tiny numbers become 0: the power of ten that would scale them overflows.
    values = np.where(is_finite & (np.abs(values) > TINY), values, 0.0)
    # The exponent of 0, which has no logarithm, stays 0.
    logarithms = np.zeros_like(values)
    np.log10(np.abs(values), where=values != 0, out=logarithms)
    exponent = np.floor(logarithms)
    # Digits to keep after the point, negative to round before it. The first significant digit is
    # the one of the exponent.
    decimals = SIGNIFICANT_DIGITS - 1 - exponent
    # The number is made whole, rounded, and scaled back. Dividing and multiplying by whole powers
    # of ten, instead of by 0.1 and the like, gives the closest floats, which JSON writes with few
    # digits.
    power = 10.0 ** np.abs(decimals)
    with np.errstate(over="ignore", invalid="ignore"):  # the variant not chosen may overflow
        rounded_after_point = np.rint(values * power) / power
        rounded_before_point = np.rint(values / power) * power
    rounded = np.where(decimals >= 0, rounded_after_point, rounded_before_point)
    numbers_or_none: np.ndarray[Any, np.dtype[np.object_]] = rounded.astype(object)
    numbers_or_none[~is_finite] = None
    return numbers_or_none


def _count_wins_of_trials(item: BenchmarkScores) -> dict[str, IntArray]:
    """Count how many comparisons of runs each method wins, ties and loses after every trial.

    A comparison is with a run of another method, of the same seed and on the same task.

    Returns:
        For each method an array (trials, 3), whose columns are the wins, ties and losses.
    """
    counts_of_trials = []
    for trial in range(1, item.last_trial + 1):
        pairs = item.count_wins(trial)
        # Each matrix has a row for a method and a column for every other: sum over the others.
        wins = pairs.wins.sum(axis=1)
        ties = pairs.ties.sum(axis=1)
        losses = pairs.losses.sum(axis=1)
        counts_of_trials.append(np.stack([wins, ties, losses], axis=1))  # (methods, 3)
    counts = np.stack(counts_of_trials, axis=1)  # (methods, trials, 3)
    return dict(zip(item.methods, counts, strict=True))


def _add_up_wins(group: BenchmarkGroup) -> dict[str, IntArray]:
    """Add up the counts of all benchmarks after every trial that all of them have.

    Returns:
        The sums, (trials, 3), by method, of the methods that are compared on all benchmarks.
    """
    wins_of_items = [_count_wins_of_trials(item) for item in group.items]
    sums = {}
    for method in group.methods:
        counts_on_items = []
        for wins_of_methods in wins_of_items:
            counts = wins_of_methods[method]
            counts_on_items.append(counts[: group.last_trial])  # some benchmarks have more trials
        sums[method] = np.sum(counts_on_items, axis=0)
    return sums
