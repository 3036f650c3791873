"""Numbers and tables as people read them: plain text, Markdown, LaTeX (booktabs) and CSV."""

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""What spreadsheets take for the beginning of a formula."""

MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&])")
"""What Markdown or the HTML in it could take for its own."""

NOTHING = "\u2013"
"""Stands where there is no number: an en rule."""

MINUS = "\u2212"

LATEX = str.maketrans(
    {character: f"\\{character}" for character in "&%$#_{}"}
    | {MINUS: "$-$", "µ": r"\textmu{}", NOTHING: "--", "\u2026": r"\dots{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}"}
)
"""What LaTeX would take for its own, or has no letter for."""


@dataclass(frozen=True)
class Table:
    """A table as people read it.

    Attributes:
        caption: What it shows, a sentence or two.
        header: Names of the columns, length C.
        rows: Cells of every row, length C each.
        text_columns: Number of columns at the left that are text; the others are numbers.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1


def markdown(table: Table) -> str:
    """A table as GitHub-flavoured Markdown."""
    numbers = len(table.header) - table.text_columns
    rows = [[markdown_text(cell) for cell in row] for row in (table.header, *table.rows)]
    rows.insert(1, [":--"] * table.text_columns + ["--:"] * numbers)
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", markdown_text(table.caption), ""])


def markdown_text(text: str) -> str:
    """Text in which Markdown sees nothing of its own, on one line."""
    return MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def latex(table: Table) -> str:
    """A table as LaTeX, for the package booktabs."""
    columns = "l" * table.text_columns + "r" * (len(table.header) - table.text_columns)
    head, *body = (
        f"    {' & '.join(map(latex_text, row))} \\\\" for row in (table.header, *table.rows)
    )
    lines = [
        r"\begin{table}",
        r"  \centering",
        f"  \\caption{{{latex_text(table.caption)}}}",
        f"  \\begin{{tabular}}{{{columns}}}",
        *(r"    \toprule", head, r"    \midrule", *body, r"    \bottomrule"),
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def latex_text(text: str) -> str:
    """Text in which LaTeX sees no commands, on one line."""
    return " ".join(text.translate(LATEX).split())


def number(value: float, decimals: int) -> str:
    """A number with so many decimals; an en rule where there is none."""
    return NOTHING if math.isnan(value) else f"{value:.{decimals}f}".replace("-", MINUS)


def duration(seconds: float) -> str:
    """A duration in the unit that suits it, such as "0.41 ms" or "2.5 h"."""
    for unit, factor in (("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0)):
        limit = 100 if unit in ("s", "min") else 1000
        if seconds < limit * factor:
            return f"{seconds / factor:.3g} {unit}"
    return NOTHING if math.isnan(seconds) else f"{seconds / 3600:.3g} h"


def slug(text: str) -> str:
    """Lower-case letters, digits and hyphens of a text, such as "heatmap-ordered-25-trials"."""
    return "-".join(re.findall("[a-z0-9]+", text.lower()))


def csv_bytes(frame: "pd.DataFrame") -> bytes:
    """A table as CSV; numbers as Python writes them, and no text that a spreadsheet would run."""
    import pyarrow as pa
    import pyarrow.csv as pa_csv

    buffer = io.BytesIO()
    harmless = frame.apply(_without_formulas)
    # Ten times as fast as pandas.
    pa_csv.write_csv(pa.Table.from_pandas(harmless, preserve_index=False), buffer)
    return buffer.getvalue()


def _without_formulas(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """A column whose texts that look like formulas have an apostrophe before them."""
    if column.dtype.kind in "biufM":
        return column
    distinct = column.unique().tolist()
    changed = {x: f"'{x}" for x in distinct if isinstance(x, str) and x.startswith(FORMULAS)}
    return column.astype(object).replace(changed) if changed else column
