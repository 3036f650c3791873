"""The leaderboard as it first stands on the page, also without scripts.

The script of the page (`script.js`) makes the same of the same numbers for whatever a reader
chooses; a test compares the two.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from hpobench_ordered.reporting.page.coverage import STATES
from hpobench_ordered.reporting.page.formats import MINUS, NOTHING
from hpobench_ordered.reporting.page.leaderboard import MEASURES
from hpobench_ordered.reporting.page.provenance import duration

CAPTION = "{benchmarks}; {protocol}; after trial {trial} of {trials}"

CUSTOM = (
    "No intervals: they are worked out for single benchmarks, for suites and for all benchmarks "
    "together, not for other choices."
)

READING = (
    "Everything is of the best trial so far. A figure is a mean over seeds and tasks; of ordered "
    "runs the first task does not count, which has no history. Of several benchmarks it is the "
    "plain mean of theirs, each counting the same, over those on which the measure is defined.",
    "Scores, normalised regrets and ranks are relative to the methods compared here: compare them "
    "within one report only. Values and regrets in the objective's own units do not depend on the "
    "other methods.",
    "Three mean ranks are on this page. In the leaderboard and the tables by benchmark each seed "
    "is ranked by itself on each task, and the mean is over both; of several benchmarks each "
    "counts the same. In the figures of ranks over trials it is the same of one benchmark, but "
    "over all benchmarks each task counts the same, so that benchmarks of many tasks count more. "
    "In the critical-difference diagram every task is ranked once, by its mean normalised regret "
    "over seeds. They may differ, even in their order.",
    "Uncertainty is shown in two ways. \u00b1 in tables and the whiskers of bars are two standard "
    "errors of the mean over seeds. Intervals in the leaderboard and bands of curves are 95 % "
    "intervals: bootstrap-t, or Student's with fewer than 4 samples; a single sample has none. "
    "Either may leave the range that is possible, such as below a rank of 1.",
    "Intervals over seeds say what other seeds might have given on the same tasks; intervals over "
    "tasks what other tasks like these might have given. Of several benchmarks the latter are "
    "between benchmarks, and the former are there if all have the same seeds. Tasks of one ordered "
    "benchmark resemble each other, and intervals over them are too narrow.",
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the leaderboard.

    Attributes:
        key: What it is sorted by.
        title: Its heading.
        meaning: What it is, one sentence; nothing where the heading says so.
        decimals: Number of decimals of a measure; None of other columns.
        is_number: Whether it stands at the right.
    """

    key: str
    title: str
    meaning: str = ""
    decimals: int | None = None
    is_number: bool = True


COLUMNS = (
    Column("method", "Method", is_number=False),
    *(Column(m.name, m.title, f"{m.meaning} Lower is better.", m.decimals) for m in MEASURES),
    Column(
        "wins",
        "Won / tied / lost",
        "Pairs of runs with the same seed on the same task, against every other method; summed "
        "over benchmarks, sorted by the share won, a tie counting half.",
    ),
    Column("failures", "Failed", "Failed runs, of all that were planned."),
    Column(
        "seconds",
        "Time per suggestion",
        "Time inside the method for one suggestion, the mean over all its runs.",
    ),
)


@dataclass(frozen=True, slots=True)
class Shown:
    """What stands in a cell.

    Attributes:
        text: The figure.
        interval: Its interval, or more about it; in small print.
        order: What the column is sorted by, the best lowest; None where there is no figure.
    """

    text: str
    interval: str = ""
    order: float | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the leaderboard.

    Attributes:
        method: Name of the method.
        note: Why it is not ranked; empty if it is.
        cells: One for each column but the first, or if it is not ranked, of the last columns.
    """

    method: str
    note: str
    cells: tuple[Shown, ...]

    @property
    def is_unranked(self) -> bool:
        """Whether the method is not compared on all benchmarks."""
        return bool(self.note)

    @property
    def note_columns(self) -> int:
        """Number of columns that the note stands in."""
        return len(COLUMNS) - 1 - len(self.cells)


@dataclass(frozen=True, slots=True)
class View:
    """The leaderboard of one protocol, of all benchmarks after the last trial.

    Attributes:
        protocol: The protocol, with its settings.
        caption: What is shown.
        sorted_by: Key of the column that it is sorted by.
        rows: The rows, best first, then those that are not ranked.
        notes: What a reader must know, one sentence each.
    """

    protocol: str
    caption: str
    sorted_by: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def first_view(board: Mapping[str, Any]) -> View:
    """The leaderboard of a protocol as it first stands on the page.

    Args:
        board: Its numbers, as `leaderboard` gives them.
    """
    entries = board["benchmarks"]
    group = next((g for g in board["groups"] if g["name"] == "all"), entries[0])
    name = f"all {len(entries)} benchmarks" if len(entries) > 1 else group["name"]
    sorted_by = first_measure(board)
    caption = CAPTION.format(
        benchmarks=name, protocol=board["label"], trial=board["trials"], trials=board["trials"]
    )
    methods = [m for m in board["methods"] if any(m in entry["runs"] for entry in entries)]
    return View(
        protocol=board["name"],
        caption=caption,
        sorted_by=sorted_by,
        rows=tuple(_row(m, group, entries) for m in _ordered(methods, group, sorted_by)),
        notes=tuple(_notes(entries)),
    )


def first_measure(board: Mapping[str, Any]) -> str:
    """The measure that a leaderboard is sorted by at first: the first that is defined anywhere."""
    for measure in MEASURES:
        if any(_last(entry, measure.name, 0) is not None for entry in board["benchmarks"]):
            return measure.name
    return COLUMNS[0].key


def _ordered(methods: Sequence[str], group: Mapping[str, Any], sorted_by: str) -> list[str]:
    def place(method: str) -> tuple[bool, float]:
        value = _mean(group, sorted_by, method)
        return value is None, value or 0.0

    return sorted(methods, key=place)


def _row(method: str, group: Mapping[str, Any], entries: Sequence[Mapping[str, Any]]) -> Row:
    compared = [entry for entry in entries if method in entry["methods"]]
    others = (_failures(method, entries), _time(method, entries))
    if len(compared) < len(entries):
        return Row(method, _unranked(method, entries, compared), others)
    measured = (_measured(group, m.name, method, m.decimals) for m in MEASURES)
    return Row(method, "", (*measured, _contests(method, compared), *others))


def _measured(group: Mapping[str, Any], measure: str, method: str, decimals: int) -> Shown:
    value = _mean(group, measure, method)
    if value is None:
        return Shown(NOTHING)
    place = group["methods"].index(method)
    ends = [end[place][-1] for end in group["measures"][measure]["seeds"]]
    if ends[0] is None:
        return Shown(_fixed(value, decimals), order=value)
    interval = " to ".join(_fixed(end, decimals) for end in ends)
    return Shown(_fixed(value, decimals), interval, value)


def _mean(group: Mapping[str, Any], measure: str, method: str) -> float | None:
    if method not in group["methods"] or measure not in group["measures"]:
        return None
    return _last(group, measure, group["methods"].index(method))


def _last(entry: Mapping[str, Any], measure: str, place: int) -> float | None:
    value: float | None = entry["measures"][measure]["mean"][place][-1]
    return value


def _contests(method: str, entries: Sequence[Mapping[str, Any]]) -> Shown:
    counts = [
        sum(entry[name][entry["methods"].index(method)][-1] for entry in entries)
        for name in ("wins", "ties", "losses")
    ]
    if not any(counts):
        return Shown(NOTHING)
    won = (counts[0] + counts[1] / 2) / sum(counts)
    return Shown("\u2009/\u2009".join(map(str, counts)), order=-won)


def _failures(method: str, entries: Sequence[Mapping[str, Any]]) -> Shown:
    rows = [entry["runs"][method] for entry in entries if method in entry["runs"]]
    states = dict(zip(STATES, (sum(counts) for counts in zip(*rows, strict=True)), strict=True))
    others = (f"{states[state]} {state}" for state in STATES[2:] if states[state])
    return Shown(f"{states['failed']} of {sum(states.values())}", ", ".join(others))


def _time(method: str, entries: Sequence[Mapping[str, Any]]) -> Shown:
    times = [entry["seconds"][method] for entry in entries if method in entry["seconds"]]
    suggestions = sum(time[1] for time in times)
    return Shown(duration(sum(t[0] for t in times) / suggestions) if suggestions else NOTHING)


def _unranked(
    method: str, entries: Sequence[Mapping[str, Any]], compared: Sequence[Mapping[str, Any]]
) -> str:
    where = f"on {len(compared)} of {len(entries)} benchmarks; " if len(entries) > 1 else ""
    finished = [
        entry["excluded"][method]
        if len(entries) == 1
        else f"{entry['name']}: {entry['excluded'][method]}"
        for entry in entries
        if method in entry["excluded"]
    ]
    why = f"finished {', '.join(finished[:3])}" if finished else "not run on the others"
    return f"unranked: {where}{why}{', …' if len(finished) > 3 else ''}"


def _notes(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    notes = []
    for measure in MEASURES:
        defined = sum(_last(entry, measure.name, 0) is not None for entry in entries)
        if defined < len(entries):
            reasons = [e["unavailable"].get(measure.name) for e in entries]
            why = "; ".join(dict.fromkeys(reason for reason in reasons if reason))
            on = f"on {defined} of {len(entries)} benchmarks"
            where = "not available" if len(entries) == 1 else on
            notes.append(f"{measure.title}: {where}{f' ({why})' if why else ''}.")
    return notes


def _fixed(value: float, decimals: int) -> str:
    """A number with so many decimals; of two that are equally near the one further from 0."""
    # As the script rounds; Python's own formats prefer even digits.
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-decimals), ROUND_HALF_UP)
    text = str(abs(rounded)) if rounded == 0 else str(rounded)
    return text.replace("-", MINUS)
