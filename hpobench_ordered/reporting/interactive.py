"""The numbers that the page's script shows: curves and leaderboards of everything to select.

Notation:
    A   number of methods
    M   number of trials per task
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.labels import protocol_label
from hpobench_ordered.analysis.leaderboard import ALL, overall_intervals
from hpobench_ordered.analysis.samples import Resampling
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.analysis.scoring import BenchmarkScores, MethodRuns, by_protocol
from hpobench_ordered.analysis.together import Together
from hpobench_ordered.analysis.wins import count_wins
from hpobench_ordered.plotting.axes import HIGHEST_SCORE
from hpobench_ordered.plotting.theme import DASHES, drawing_order, styles
from hpobench_ordered.reporting.chart import interactive_specification, variable
from hpobench_ordered.reporting.formats import MINUS, NOTHING, duration
from hpobench_ordered.suites import SUITES

if TYPE_CHECKING:
    import pandas as pd

FEW, BEST = 12, 5
"""With at most so many methods all are in colour at first; with more, the best so many."""

DIGITS, TASK_DIGITS = 5, 4
"""Significant digits of the numbers on the page; `means.csv` and `scores.csv` have all."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the leaderboard.

    Attributes:
        key: What it is sorted by.
        title: Its heading.
        meaning: What it is; empty where the heading says so.
        decimals: Number of decimals of a measure; None for four significant digits.
        is_scaled: Whether a measure is on one scale on all benchmarks.
    """

    key: str
    title: str
    meaning: str = ""
    decimals: int | None = None
    is_scaled: bool = True


MEASURES = (
    Column(
        "score",
        "Normalised score",
        "0 is the best method after the last trial, 100 random search. Lower is better.",
        1,
    ),
    Column(
        "regret",
        "Normalised regret",
        "Distance from the best known value; 1 is the worst value that any compared method met. "
        "Lower is better.",
        4,
    ),
    Column(
        "rank",
        "Mean rank",
        "Among the methods compared, each seed ranked by itself on each task; 1 is best, ties "
        "share a rank.",
        2,
    ),
    Column("value", "Value", "In the objective's own units.", is_scaled=False),
)
MOST = {"score": HIGHEST_SCORE}
"""Where the axis of a measure ends at the latest."""

NO_CELL = {"order": None, "text": NOTHING, "small": ""}
Means = Mapping[tuple[str, ...], "pd.DataFrame"]
COLUMNS = (
    Column("method", "Method"),
    *MEASURES,
    Column(
        "wins",
        "Won / tied / lost",
        "Pairs of runs with the same seed on the same task, against every other method.",
    ),
    Column("failed", "Failed", "Failed runs, of all that were planned."),
    Column(
        "seconds", "Time per suggestion", "Time inside the method for one suggestion, the mean."
    ),
)


@dataclass(frozen=True)
class Board:
    """The leaderboard as the page shows it before its script runs: all benchmarks, last trial.

    Attributes:
        caption: What it is of.
        sorted_by: The column it is sorted by.
        rows: One a method, best first: texts, with their intervals, by column.
    """

    caption: str
    sorted_by: str
    rows: Sequence[Sequence[Mapping[str, Any]]]


def interactive(
    scored: Sequence[BenchmarkScores], means: "pd.DataFrame"
) -> tuple[dict[str, Any], list[Any]]:
    """Everything that the script shows, and the curves of tasks by protocol and entry.

    Args:
        scored: Scores by benchmark.
        means: Their curves without those of tasks, as `analysis.curves.curves` gives.
    """
    labels = ["protocol", "benchmark", "surrogate", "measure"]
    by_label = {tuple(map(str, name)): part for name, part in means.groupby(labels, observed=True)}
    made = [_protocol(name, items, by_label) for name, items in by_protocol(scored).items()]
    data = {
        "protocols": [protocol for protocol, _ in made],
        "measures": [{**asdict(m), "most": MOST.get(m.key)} for m in MEASURES],
        "spec": interactive_specification(),
        "reference": RANDOM_SEARCH,
        "few": FEW,
        "best": BEST,
    }
    return data, [tasks for _, tasks in made]


def first_board(data: Mapping[str, Any]) -> Board:
    """The leaderboard that the page first shows."""
    protocol = data["protocols"][0]
    entry = protocol["entries"][0]
    sorted_by = "rank" if "rank" in entry["measures"] else "method"
    methods = range(len(protocol["methods"]))
    rows = [[_cell(column, protocol, entry, a) for column in COLUMNS] for a in methods]
    place = [column.key for column in COLUMNS].index(sorted_by)
    rows.sort(key=lambda row: (row[place]["order"] is None, row[place]["order"]))
    caption = f"{entry['label']}; {protocol['label']}; after trial {entry['trials']}"
    return Board(caption, sorted_by, rows)


def _cell(column: Column, protocol: Any, entry: Any, a: int) -> Mapping[str, Any]:
    if column in MEASURES:
        rows = [by_method[a] for by_method in entry["measures"].get(column.key, ())]
        if not rows or rows[0] is None or rows[0][-1] is None:
            return NO_CELL
        ends = [row[-1] for row in rows]
        texts = ["" if end is None else _number(end, column.decimals) for end in ends]
        return {"order": ends[0], "text": texts[0], "small": " to ".join(filter(None, texts[1:]))}
    if column.key == "wins":
        counts = entry["wins"][a]
        return (
            {**NO_CELL, "text": "\u2009/\u2009".join(map(str, counts[-1]))} if counts else NO_CELL
        )
    if column.key == "method":
        return {"order": protocol["methods"][a], "text": protocol["methods"][a], "small": ""}
    cell: Mapping[str, Any] = entry["others"][column.key][a]
    return cell


def _number(value: float, decimals: int | None) -> str:
    text = f"{value:.4g}" if decimals is None else f"{value:.{decimals}f}"
    return text.replace("-", MINUS)


def _protocol(
    name: str, items: Sequence[BenchmarkScores], means: Means
) -> tuple[dict[str, Any], list[Any]]:
    methods = drawing_order(method for item in items for method in item.runs)
    looks = styles(methods).values()
    dashes = [() if look.dashes == DASHES["solid"] else look.dashes for look in looks]
    colours = [variable(look.colour) for look in looks]
    entries = list(_entries(name, items, methods, means))
    protocol = {
        "label": protocol_label(name),
        "methods": methods,
        "looks": [{"colour": c, "dash": d} for c, d in zip(colours, dashes, strict=True)],
        "entries": [entry for entry, _ in entries],
    }
    return protocol, [tasks for _, tasks in entries]


def _entries(
    protocol: str, items: Sequence[BenchmarkScores], methods: Sequence[str], means: Means
) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """What can be selected (all benchmarks, suites, each benchmark), with the curves of tasks."""

    def known(benchmark: str, surrogate: str) -> dict[str, "_Curves"]:
        labels = (protocol, benchmark, surrogate)
        keys = [m.key for m in MEASURES if (*labels, m.key) in means]
        return {key: _Curves.of_frame(means[*labels, key]) for key in keys}

    if len(items) > 1:
        label = f"all {len(Together.of(items).benchmarks)} benchmarks"
        yield _entry("Overall", label, items, methods, known(ALL, "")), []
    for suite, names in SUITES.items():
        chosen = [item for item in items if item.benchmark.partition("@")[0] in names]
        if 1 < len(chosen) < len(items):
            label = f"suite {suite} ({len(chosen)} benchmarks)"
            yield _entry("Suites", label, chosen, methods, _Curves.of_suite(chosen)), []
    for item in items:
        curves = known(item.benchmark, item.surrogate)
        entry = _entry("Benchmarks", item.label, [item], methods, curves)
        entry["tasks"] = item.task_names
        yield entry, _tasks(item, methods, list(curves))


@dataclass(frozen=True)
class _Curves:
    """A measure by method and trial.

    Attributes:
        methods: Names of the methods, length A.
        ends: Mean and both ends of its interval, shape (3, A, M).
    """

    methods: Sequence[str]
    ends: FloatArray

    @classmethod
    def of_frame(cls, frame: "pd.DataFrame") -> "_Curves":
        """Of rows of one benchmark and measure, by method and trial."""
        methods = [str(name) for name in dict.fromkeys(frame["method"])]
        ends = frame[["mean", "low", "high"]].to_numpy().T
        return cls(methods, ends.reshape(3, len(methods), -1))

    @classmethod
    def of_suite(cls, items: Sequence[BenchmarkScores]) -> "dict[str, _Curves]":
        """Of several benchmarks together, by measure."""
        together = Together.of(items)
        curves = {}
        for measure in MEASURES:
            if measure.is_scaled and together.methods:
                found = overall_intervals(together, measure.key, Resampling.SEEDS)
                ends = np.stack([found.mean, found.lower, found.upper])
                if found.samples:
                    curves[measure.key] = cls(together.methods, ends)
        return curves

    def nested(self, methods: Sequence[str]) -> list[Any]:
        """As JSON has them, [mean, low, high] by method and trial; null where there is none."""
        return [_nested(array, self.methods, methods, DIGITS) for array in self.ends]


def _entry(
    group: str,
    label: str,
    items: Sequence[BenchmarkScores],
    methods: Sequence[str],
    curves: Mapping[str, _Curves],
) -> dict[str, Any]:
    trials = min(item.last_trial for item in items)
    runs = [[item.runs[method] for item in items if method in item.runs] for method in methods]
    return {
        "group": group,
        "label": label,
        "trials": trials,
        "maximised": len(items) == 1 and items[0].is_maximised,
        "measures": {key: curve.nested(methods) for key, curve in curves.items()},
        "tasks": [],
        "wins": _wins(items, methods, trials),
        "others": {
            "failed": [_failed(ones) for ones in runs],
            "seconds": [_seconds(ones) for ones in runs],
        },
        "notes": items[0].notes() if len(items) == 1 else [],
    }


def _tasks(
    item: BenchmarkScores, methods: Sequence[str], measures: Sequence[str]
) -> list[dict[str, Any]]:
    """Means over seeds by task, measure, method and trial."""
    means = {measure: item.measures[measure].mean for measure in measures}
    return [
        {
            measure: [_nested(mean[:, t], item.methods, methods, TASK_DIGITS)]
            for measure, mean in means.items()
            if not np.isnan(mean[:, t]).all()
        }
        for t in range(len(item.tasks))
    ]


def _nested(
    values: FloatArray, rows: Sequence[str], methods: Sequence[str], digits: int
) -> list[Any]:
    """Numbers of the methods in `rows`, shape (A, M), as JSON by all methods."""
    numbers = _rounded(values, digits)
    shown = numbers.astype(object)
    shown[~np.isfinite(numbers)] = None
    by_method = dict(zip(rows, shown.tolist(), strict=True))
    return [by_method.get(method) for method in methods]


def _rounded(values: FloatArray, digits: int) -> FloatArray:
    """Values with so many significant digits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        exponents = np.floor(np.log10(np.abs(values)))
    scale = 10.0 ** (digits - 1 - np.where(np.isfinite(exponents), exponents, 0))
    return np.asarray(np.round(values * scale) / scale)


def _wins(
    items: Sequence[BenchmarkScores], methods: Sequence[str], trials: int
) -> list[list[list[int]] | None]:
    """By method and trial how many runs won, tied and lost; of the methods compared on all."""
    common = [method for method in methods if all(method in item.methods for item in items)]
    if len(common) < 2:
        return [None] * len(methods)
    totals = np.zeros((len(common), trials, 3), dtype=np.int64)
    for item in items:
        rows = [item.place(method) for method in common]
        for trial in range(1, trials + 1):
            wins = count_wins(item.losses, item.methods, trial=trial, first_task=item.first_task)
            counts = (wins.wins, wins.ties, wins.losses)
            totals[:, trial - 1] += np.stack([count[rows].sum(axis=1) for count in counts], axis=1)
    by_method = dict(zip(common, totals.tolist(), strict=True))
    return [by_method.get(method) for method in methods]


def _failed(runs: Sequence[MethodRuns]) -> dict[str, Any]:
    if not runs:
        return NO_CELL
    failed, planned = sum(one.failed for one in runs), sum(one.planned for one in runs)
    return {"order": failed, "text": f"{failed} of {planned}", "small": ""}


def _seconds(runs: Sequence[MethodRuns]) -> dict[str, Any]:
    suggestions = sum(one.suggestions for one in runs)
    if not suggestions:
        return NO_CELL
    seconds = sum(one.seconds for one in runs) / suggestions
    return {"order": float(f"{seconds:.3g}"), "text": duration(seconds), "small": ""}
