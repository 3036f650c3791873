"""One table for a paper: methods and their results, the best in bold, as LaTeX or Markdown.

Means and intervals are those of the leaderboard (`analysis.leaderboard`). Ranks, scores and regrets
are relative to all methods that were compared, whichever of them the table shows.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup
from hpobench_ordered.analysis.bootstrap import Intervals
from hpobench_ordered.analysis.labels import format_count, join_names, label_protocol
from hpobench_ordered.analysis.leaderboard import (
    DECIMALS,
    benchmark_intervals,
    overall_intervals,
)
from hpobench_ordered.analysis.samples import Resampling
from hpobench_ordered.analysis.scoring import REASON_UNDEFINED, BenchmarkScores, group_by_protocol
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.reporting.formats import latex_text, markdown_text, number

MEASURES = ("score", "regret", "rank")
"""Measures that a table may show; lower is better in all of them."""

COLUMNS = ("benchmarks", "families", "measures")
"""What the columns may be: a measure on each benchmark or family, or all measures over all."""

SCALES = {
    "score": "A score of 0 is the best value known or met, 100 no better than half of all random "
    "configurations.",
    "regret": "A regret of 0 is the best value known or met, 1 the worst that any method met.",
}
"""What captions say of measures."""

LONGEST_LEVEL_TITLE = 17
"""Characters of a title above which LaTeX turns the titles upright, to keep columns narrow."""


class Mark(Enum):
    """How a number compares with the others of its column."""

    BEST = "best"
    SECOND_BEST = "second best"
    OTHER = "other"


@dataclass(frozen=True)
class Estimate:
    """A mean and its interval over seeds; NaN where there is none."""

    mean: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def has_interval(self) -> bool:
        """Whether it has an interval."""
        return not math.isnan(self.low)


@dataclass(frozen=True)
class Cell:
    """An estimate with the decimals and the mark that it is printed with."""

    estimate: Estimate
    decimals: int
    mark: Mark


@dataclass(frozen=True)
class PaperTable:
    """A table of methods.

    Attributes:
        name: What it shows, in one word.
        caption: What it shows, in sentences.
        methods: The method of each row.
        header: Titles of the columns of numbers.
        rows: The numbers of each method.
    """

    name: str
    caption: str
    methods: tuple[str, ...]
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def has_intervals(self) -> bool:
        """Whether any cell has an interval."""
        return any(cell.estimate.has_interval for row in self.rows for cell in row)


@dataclass(frozen=True)
class Column:
    """A measure of methods, before it is known which of them are shown."""

    title: str
    measure: str
    estimates: dict[str, Estimate]  # by method, only of those that are compared


def make_paper_table(
    scores: Sequence[BenchmarkScores],
    *,
    columns: str = "benchmarks",
    measure: str | None = None,
    methods: Sequence[str] | None = None,
    benchmarks: Sequence[str] | None = None,
    trial: int | None = None,
    intervals: bool = True,
) -> PaperTable:
    """Tabulate how methods compare, for a paper; the last column is their mean rank.

    Args:
        scores: Scores by benchmark. If there are several protocols, those under the one with the
            most benchmarks are shown.
        columns: "benchmarks" or their "families", with one measure; or "measures", with all
            measures over all benchmarks.
        measure: "score" (default), "regret" or "rank"; None with the columns "measures".
        methods: The methods of the rows, in this order; default: all, by mean rank.
        benchmarks: Names of the benchmarks, in this order; default: all that count in means.
        trial: The trial, counted from 1; default: the last that was made on all benchmarks.
        intervals: Whether cells have the leaderboard's intervals over seeds.

    Raises:
        UnknownNameError: There is no such method, benchmark or measure, or no such columns.
        ExperimentError: There is no such trial; the measure is not defined; the benchmarks were
            not run under the same protocol; or a measure is chosen for the columns "measures".
    """
    if columns not in COLUMNS:
        raise UnknownNameError("columns", columns, COLUMNS)
    if columns == "measures" and measure is not None:
        raise ExperimentError(f"the columns are all measures, so {measure!r} cannot be chosen")
    if measure is None:
        measure = "score"
    if measure not in MEASURES:
        raise UnknownNameError("measure", measure, MEASURES)

    group, left_out = _choose_benchmarks(scores, benchmarks)
    trial = _choose_trial(group, trial)
    mean_rank = Column("mean rank", "rank", _estimate_mean(group, "rank", trial))
    ranked_methods = _sort_methods(group, mean_rank.estimates)
    shown_methods = _choose_methods(ranked_methods, methods)

    measures = [measure]
    if columns == "measures":
        measures = [name for name in MEASURES if _is_defined(group, name)]
        result_columns = []
        for name in measures:
            if name != "rank":  # the last column
                result_columns.append(Column(name, name, _estimate_mean(group, name, trial)))
    else:
        _check_defined(group, measure)
        make_columns = _columns_of_benchmarks if columns == "benchmarks" else _columns_of_families
        result_columns = make_columns(group, measure, trial)

    all_columns = (*result_columns, mean_rank)
    cells_of_columns = [_make_cells(column, shown_methods, intervals) for column in all_columns]
    return PaperTable(
        name=columns if columns == "measures" else measure,
        caption=_write_caption(group, measures, trial, ranked_methods, left_out),
        methods=shown_methods,
        header=tuple(column.title for column in all_columns),
        rows=tuple(zip(*cells_of_columns, strict=True)),
    )


def _choose_benchmarks(
    scores: Sequence[BenchmarkScores], names: Sequence[str] | None
) -> tuple[BenchmarkGroup, list[str]]:
    """Choose the benchmarks of one protocol.

    Returns:
        The benchmarks, and names of those that are left out as means leave them out. Benchmarks
        that are named are never left out.
    """
    if names is None:
        items_of_protocols = list(group_by_protocol(scores).values())
        items = items_of_protocols[0]  # the protocol with the most benchmarks is first
        group = BenchmarkGroup.for_means(items)
        left_out = [_bare_name(item) for item in items if item not in group.items]
        return group, left_out

    named_items: list[BenchmarkScores] = []
    for name in dict.fromkeys(names):
        items_of_name = [item for item in scores if name in (item.benchmark, _bare_name(item))]
        if not items_of_name:
            known_names = {_bare_name(item) for item in scores}
            raise UnknownNameError("benchmark of these results", name, known_names)
        named_items += items_of_name

    items_of_protocols = list(group_by_protocol(named_items).values())
    group = BenchmarkGroup.of_all(items_of_protocols[0])
    for item in named_items:
        if item.benchmark not in group.benchmarks:
            raise ExperimentError(
                f"one table shows one protocol, but {_bare_name(group.items[0])} was run under "
                f"{label_protocol(group.protocol)}, and {_bare_name(item)} under "
                f"{label_protocol(item.protocol)}"
            )
    return group, []


def _bare_name(item: BenchmarkScores) -> str:
    """Name of a benchmark without its version."""
    return BenchmarkIdentity.parse(item.benchmark).name


def _choose_trial(group: BenchmarkGroup, trial: int | None) -> int:
    """The trial, by default the last that was made on all benchmarks."""
    if trial is None:
        return group.last_trial
    if not 1 <= trial <= group.last_trial:
        raise ExperimentError(f"trial must be from 1 to {group.last_trial}, but got {trial}")
    return trial


def _sort_methods(group: BenchmarkGroup, mean_ranks: dict[str, Estimate]) -> list[str]:
    """Sort all methods by mean rank; those that not all benchmarks compare come last."""
    ranked = sorted(mean_ranks, key=lambda method: mean_ranks[method].mean)
    all_methods = dict.fromkeys(ranked)  # each once
    for item in group.items:
        all_methods |= dict.fromkeys(item.methods)
    return list(all_methods)


def _choose_methods(methods: Sequence[str], names: Sequence[str] | None) -> tuple[str, ...]:
    """The methods of the rows: those that are named, or all."""
    if names is None:
        return tuple(methods)
    for name in names:
        if name not in methods:
            raise UnknownNameError("method of these results", name, methods)
    return tuple(dict.fromkeys(names))


def _is_defined(group: BenchmarkGroup, measure: str) -> bool:
    """Whether a measure is defined on any of the benchmarks."""
    return any(item.is_defined(measure) for item in group.items)


def _check_defined(group: BenchmarkGroup, measure: str) -> None:
    """Raise an error if a measure is defined on none of the benchmarks."""
    if not _is_defined(group, measure):
        reason = group.items[0].unavailable.get(measure, REASON_UNDEFINED[measure])
        raise ExperimentError(f"there is no {measure}: {reason}")


def _columns_of_benchmarks(group: BenchmarkGroup, measure: str, trial: int) -> list[Column]:
    """A column of each benchmark, or of each of its surrogates if there are several."""
    names = [_bare_name(item) for item in group.items]
    columns = []
    for item, name in zip(group.items, names, strict=True):
        is_only_one = names.count(name) == 1  # otherwise versions and surrogates tell them apart
        this_trial = slice(trial - 1, trial)
        intervals = benchmark_intervals(item, trials=this_trial, intervals_over=[Resampling.SEEDS])
        estimates = _by_method(item.methods, intervals[measure, Resampling.SEEDS])
        columns.append(Column(name if is_only_one else item.label, measure, estimates))
    return columns


def _columns_of_families(group: BenchmarkGroup, measure: str, trial: int) -> list[Column]:
    """A column of each family; a benchmark without a family is its own."""
    items_of_title: dict[str, list[BenchmarkScores]] = {}
    for item in group.items:
        title = item.family or _bare_name(item)
        items_of_title.setdefault(title, []).append(item)

    columns = []
    for title, items in items_of_title.items():
        family = BenchmarkGroup.of_all(items)
        columns.append(Column(title, measure, _estimate_mean(family, measure, trial)))
    return columns


def _estimate_mean(group: BenchmarkGroup, measure: str, trial: int) -> dict[str, Estimate]:
    """Estimate the mean of a measure over benchmarks, by method that all of them compare."""
    this_trial = slice(trial - 1, trial)
    intervals = overall_intervals(group, measure, Resampling.SEEDS, trials=this_trial)
    return _by_method(group.methods, intervals)


def _by_method(methods: Sequence[str], intervals: Intervals) -> dict[str, Estimate]:
    """Estimates by method, from intervals of the shape (methods, 1)."""
    estimates = {}
    for a, method in enumerate(methods):
        estimates[method] = Estimate(
            mean=float(intervals.mean[a, 0]),
            low=float(intervals.lower[a, 0]),
            high=float(intervals.upper[a, 0]),
        )
    return estimates


def _make_cells(column: Column, methods: Sequence[str], intervals: bool) -> list[Cell]:
    """Make the cells of a column, and mark the lowest and the second lowest number.

    Numbers that are printed alike are marked alike.
    """
    decimals = DECIMALS[column.measure]
    estimates = [column.estimates.get(method, Estimate()) for method in methods]
    printed_means = [round(estimate.mean, decimals) for estimate in estimates]
    distinct_means = sorted({mean for mean in printed_means if not math.isnan(mean)})
    mark_of_mean = dict(zip(distinct_means, (Mark.BEST, Mark.SECOND_BEST), strict=False))

    cells = []
    for estimate, printed_mean in zip(estimates, printed_means, strict=True):
        shown = estimate if intervals else Estimate(estimate.mean)
        cells.append(Cell(shown, decimals, mark_of_mean.get(printed_mean, Mark.OTHER)))
    return cells


def _write_caption(
    group: BenchmarkGroup,
    measures: Sequence[str],
    trial: int,
    methods: Sequence[str],
    left_out: Sequence[str],
) -> str:
    """Write what a table shows: the measures, the trial, and what means are over.

    Args:
        group: The benchmarks.
        measures: The measures of the columns.
        trial: The trial, counted from 1.
        methods: All methods that are compared, which ranks are among.
        left_out: Names of benchmarks that are left out.
    """
    shown = join_names(measures).capitalize()
    sentences = [
        f"{shown} after trial {trial} ({label_protocol(group.protocol)}), means over "
        f"{_count_seeds(group)}; lower is better."
    ]
    sentences += [SCALES[measure] for measure in measures if measure in SCALES]
    has_means_of_all = len(measures) > 1  # otherwise only ranks are over all benchmarks
    what = "Means are" if has_means_of_all else "The mean rank is"
    n_methods = format_count(len(methods), "method")
    sentences.append(f"{what} over {group.scope}; ranks are among {n_methods}.")
    if left_out:
        sentences.append(f"Left out, as plateaus or implausible: {', '.join(left_out)}.")
    sentences.append("The best is bold, the second best underlined.")
    return " ".join(sentences)


def _count_seeds(group: BenchmarkGroup) -> str:
    """The number of seeds that methods have finished: "5 seeds" or "3 to 5 seeds"."""
    counts = set()
    for item in group.items:
        counts |= {len(item.runs[method].seeds) for method in item.methods}
    most = format_count(max(counts), "seed")
    return most if len(counts) == 1 else f"{min(counts)} to {most}"


def format_latex(table: PaperTable) -> str:
    """Format a table as LaTeX, for the package booktabs, and graphicx if titles are long."""
    has_long_title = any(len(title) > LONGEST_LEVEL_TITLE for title in table.header)
    titles = [latex_text(title) for title in table.header]
    packages = ["booktabs"]
    if has_long_title:
        titles = [rf"\rotatebox{{90}}{{{title}}}" for title in titles]
        packages.append("graphicx")

    caption = table.caption
    line_spacing = []
    if table.has_intervals:
        line_spacing = [r"\renewcommand{\arraystretch}{1.2}"]
        caption += " Small numbers lead to the ends of 95 % intervals over seeds."
    rows = []
    for method, cells in zip(table.methods, table.rows, strict=True):
        rows.append([latex_text(method), *map(_latex_cell, cells)])

    return "\n".join(
        [
            *(rf"% \usepackage{{{package}}}" for package in packages),
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text(caption)}}}",
            rf"\label{{tab:{table.name}}}",
            *line_spacing,
            rf"\begin{{tabular}}{{l{'r' * len(titles)}}}",
            r"\toprule",
            _latex_row(["method", *titles]),
            r"\midrule",
            *map(_latex_row, rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _latex_row(cells: Iterable[str]) -> str:
    """A row of LaTeX."""
    return rf"{' & '.join(cells)} \\"


def _latex_cell(cell: Cell) -> str:
    r"""A number with the distances to the ends of its interval: `\textbf{8.1}$^{+0.4}_{-0.9}$`."""
    estimate = cell.estimate
    mean = latex_text(number(estimate.mean, cell.decimals))
    if cell.mark is Mark.BEST:
        mean = rf"\textbf{{{mean}}}"
    elif cell.mark is Mark.SECOND_BEST:
        mean = rf"\underline{{{mean}}}"
    if not estimate.has_interval:
        return mean
    above = f"{estimate.high - estimate.mean:.{cell.decimals}f}"
    below = f"{estimate.mean - estimate.low:.{cell.decimals}f}"
    return f"{mean}$^{{+{above}}}_{{-{below}}}$"


def format_markdown(table: PaperTable) -> str:
    """Format a table as GitHub-flavoured Markdown, with its caption below."""
    caption = table.caption
    if table.has_intervals:
        caption += " In brackets 95 % intervals over seeds."
    titles = [markdown_text(title) for title in table.header]
    rows = []
    for method, cells in zip(table.methods, table.rows, strict=True):
        rows.append([markdown_text(method), *map(_markdown_cell, cells)])

    # The line below the titles aligns methods on the left, and numbers on the right.
    alignment = [":--", *("--:" for _ in titles)]
    lines = [f"| {' | '.join(row)} |" for row in (["method", *titles], alignment, *rows)]
    return "\n".join([*lines, "", markdown_text(caption), ""])


def _markdown_cell(cell: Cell) -> str:
    """A number with its interval: "**8.1** (7.2 to 8.5)"."""
    estimate = cell.estimate
    mean = number(estimate.mean, cell.decimals)
    if cell.mark is Mark.BEST:
        mean = f"**{mean}**"
    elif cell.mark is Mark.SECOND_BEST:
        mean = f"<u>{mean}</u>"
    if not estimate.has_interval:
        return mean
    low = number(estimate.low, cell.decimals)
    high = number(estimate.high, cell.decimals)
    return f"{mean} ({low} to {high})"


FORMATS: dict[str, Callable[[PaperTable], str]] = {
    "latex": format_latex,
    "markdown": format_markdown,
}
"""What writes a table, by the name of the format."""
