"""One table for a paper: methods and their results, the best in bold, as LaTeX or Markdown."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup, select_counting
from hpobench_ordered.analysis.labels import format_count, label_protocol
from hpobench_ordered.analysis.leaderboard import ALL, DECIMALS, leaderboard
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.experiment.api import Results
from hpobench_ordered.reporting.formats import NOTHING, latex_text, markdown_text, number
from hpobench_ordered.reporting.plots import score_one_protocol

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("latex", "markdown")

SCALES = {
    "score": "A score of 0 is the best value known or met, 100 no better than half of all random "
    "configurations.",
    "regret": "A regret of 0 is the best value known or met, 1 the worst that any method met.",
}
"""What the numbers of a measure mean, for the caption."""


def paper_table(
    results: Results,
    format: str = "latex",
    *,
    measure: str = "score",
    methods: Sequence[str] | None = None,
    trial: int | None = None,
) -> str:
    """Format one table for a paper: a row for each method, the best results in bold.

    The columns are the benchmarks that count in means, and the mean rank over these. Numbers and
    intervals are those of the leaderboard, relative to all methods of the results, whichever of
    them the table shows. Of several protocols, the one with the most benchmarks is shown.

    Args:
        results: The results.
        format: "latex", for the package booktabs, or "markdown".
        measure: The measure on each benchmark: "score", "regret" or "rank".
        methods: The methods of the rows; default: all. They are sorted by mean rank.
        trial: The trial, counted from 1; default: the last that was made on all benchmarks.

    Raises:
        UnknownNameError: There is no such format, measure or method.
        ExperimentError: There is no such trial; the measure is not defined; or no run is finished.
    """
    if format not in FORMATS:
        raise UnknownNameError("format", format, FORMATS)
    if measure not in DECIMALS:
        raise UnknownNameError("measure", measure, DECIMALS)

    items = select_counting(score_one_protocol(results))
    group = BenchmarkGroup.of_all(items)
    if not any(item.is_defined(measure) for item in items):
        raise ExperimentError(f"the {measure} is not defined on any benchmark")
    board = leaderboard(items, trial=trial or group.last_trial)
    board = _select_methods(board, methods)
    is_overall = board["benchmark"] == ALL

    names = list(board.loc[is_overall, "method"])  # by mean rank
    titles = ["method"]
    columns = [names]
    for title, rows in _rows_of_titles(board[~is_overall]).items():
        titles.append(title)
        columns.append(_format_column(rows, measure, names, format))
    titles.append("mean rank")
    columns.append(_format_column(board[is_overall], "rank", names, format))

    rows_of_cells = list(zip(*columns, strict=True))
    caption = _write_caption(group, board, measure)
    format_table = _format_markdown if format == "markdown" else _format_latex
    return format_table(titles, rows_of_cells, caption)


def _select_methods(board: "pd.DataFrame", methods: Sequence[str] | None) -> "pd.DataFrame":
    """Select the rows of some methods, or all rows if `methods` is None."""
    if methods is None:
        return board
    names = list(board["method"].unique())
    for method in methods:
        if method not in names:
            raise UnknownNameError("method of these results", method, names)
    return board[board["method"].isin(methods)]


def _rows_of_titles(board: "pd.DataFrame") -> "dict[str, pd.DataFrame]":
    """Group the rows of benchmarks by the title of the column that shows them.

    A title is the name of the benchmark; with its version and hash if there are several of this
    name, such as parts of it. It also names the surrogate if the benchmark was run on several.
    """
    rows_of_titles = {}
    identities = map(str, board["benchmark"].unique())
    number_of_name = Counter(BenchmarkIdentity.parse(identity).name for identity in identities)
    has_several_surrogates = board.groupby("benchmark")["surrogate"].nunique() > 1
    for labels, rows in board.groupby(["benchmark", "surrogate"], sort=False):
        benchmark, surrogate = map(str, labels)
        name = BenchmarkIdentity.parse(benchmark).name
        title = name if number_of_name[name] == 1 else benchmark
        if has_several_surrogates[benchmark]:
            title += f" ({surrogate})"
        rows_of_titles[title] = rows
    return rows_of_titles


def _format_column(
    rows: "pd.DataFrame", measure: str, methods: Sequence[str], format: str
) -> list[str]:
    """Format the cells of a column, one for each method.

    The lowest number is bold, and so are all numbers that look the same once they are rounded. A
    method without a row has a placeholder.

    Args:
        rows: Rows of the leaderboard on one benchmark, or over all benchmarks.
        measure: The measure to show.
        methods: The methods of the cells, some of which may have no row.
        format: "latex" or "markdown".
    """
    row_of_method = {row["method"]: row for row in rows.to_dict("records")}
    placeholder = NOTHING if format == "markdown" else latex_text(NOTHING)
    lowest = rows[measure].min()  # pandas leaves out NaN
    best = number(lowest, DECIMALS[measure])
    cells = []
    for method in methods:
        row = row_of_method.get(method)
        cells.append(placeholder if row is None else _format_cell(row, measure, best, format))
    return cells


def _format_cell(row: Mapping[Any, Any], measure: str, best: str, format: str) -> str:
    r"""Format a number with its interval, in bold if it is printed like the best.

    In Markdown the ends of the interval follow in brackets: `**8.1** (7.2 to 8.5)`. In LaTeX the
    distances to the ends follow, the upper one raised and the lower one lowered, in small type:
    `\textbf{8.1}$^{+0.4}_{-0.9}$`.

    Args:
        row: The row of the leaderboard.
        measure: The measure to show.
        best: The best number of the column, as it is printed.
        format: "latex" or "markdown".
    """
    decimals = DECIMALS[measure]
    value = row[measure]
    low = row[f"{measure}_low"]
    high = row[f"{measure}_high"]
    text = number(value, decimals)
    is_best = text == best  # all numbers that look the same as the best are bold
    has_interval = low <= high  # false if both are NaN, as with too few seeds
    if format == "markdown":
        text = f"**{text}**" if is_best else text
        interval = f" ({number(low, decimals)} to {number(high, decimals)})"
    else:
        text = latex_text(text)  # it may have a typographic minus, which LaTeX's fonts lack
        text = rf"\textbf{{{text}}}" if is_best else text
        distance_up = f"{high - value:.{decimals}f}"
        distance_down = f"{value - low:.{decimals}f}"
        interval = f"$^{{+{distance_up}}}_{{-{distance_down}}}$"
    return text + interval if has_interval else text


def _write_caption(group: BenchmarkGroup, board: "pd.DataFrame", measure: str) -> str:
    """Write the caption: the measure, the trial, the protocol, and what means are over."""
    fewest = board["seeds"].min()
    most = board["seeds"].max()
    seeds = format_count(most, "seed") if fewest == most else f"{fewest} to {most} seeds"
    sentences = [
        f"{measure.capitalize()} after trial {board['trial'].iloc[0]} "
        f"({label_protocol(group.protocol)}), means over {seeds}; lower is better.",
        f"The mean rank, among {len(group.methods)} methods, is over {group.scope}.",
        "The best is bold; intervals are 95 % intervals over seeds.",
    ]
    if measure in SCALES:
        sentences.insert(1, SCALES[measure])
    return " ".join(sentences)


def _format_latex(titles: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Format a table as LaTeX, for the package booktabs.

    Args:
        titles: Titles of the columns, as plain text.
        rows: Rows of cells. The first cell, the name of the method, is plain text; the others are
            LaTeX already.
        caption: The caption, as plain text.
    """
    lines = [_latex_row(map(latex_text, titles)), r"\midrule"]
    lines += [_latex_row([latex_text(method), *cells]) for method, *cells in rows]
    return "\n".join(
        [
            r"% \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{latex_text(caption)}}}",
            r"\renewcommand{\arraystretch}{1.2}",
            rf"\begin{{tabular}}{{l{'r' * (len(titles) - 1)}}}",
            r"\toprule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _latex_row(cells: Iterable[str]) -> str:
    """Join the cells of a row of a LaTeX table, and end the row."""
    return rf"{' & '.join(cells)} \\"


def _format_markdown(titles: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> str:
    """Format a table as Markdown, with its caption below.

    Args:
        titles: Titles of the columns, as plain text.
        rows: Rows of cells. The first cell, the name of the method, is plain text; the others are
            Markdown already.
        caption: The caption, as plain text.
    """
    header = list(map(markdown_text, titles))
    alignment = [":--", *("--:" for _ in titles[1:])]  # names on the left, numbers on the right
    body = [[markdown_text(method), *cells] for method, *cells in rows]
    lines = [f"| {' | '.join(row)} |" for row in (header, alignment, *body)]
    return "\n".join([*lines, "", markdown_text(caption), ""])
