"""Tables of a report as Markdown, LaTeX (booktabs) and CSV, whatever characters are in them."""

import io
import re
from collections.abc import Sequence, Set
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

WRAPPED_WIDTH = 0.6
"""Share of the line that columns of long texts have together."""

LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    MINUS: r"$-$",
    "·": r"$\cdot$",
    "\u00b5": r"\textmu{}",
    "\u03bc": r"\textmu{}",
    NOTHING: "--",
    "\u2009": r"\,",
    "\u202f": r"\,",
    "\u2026": r"\dots{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
"""What LaTeX would take for its own, or has no letter for."""


@dataclass(frozen=True)
class Table:
    """A table as people read it, with its numbers.

    Attributes:
        stem: Name of its files, without ending.
        caption: What it shows, a sentence or two.
        header: Names of the columns, length C.
        rows: Cells of every row, length C each.
        text_columns: Number of columns at the left that are text; the others are numbers.
        data: The same as numbers, for CSV.
        note: How to read it, for the page and Markdown; a caption in print has no place for it.
        wrapped: Columns of long texts, which are set as paragraphs in print.
        best: Row and column of the cells that are in bold in print.
    """

    stem: str
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int
    data: "pd.DataFrame"
    note: str = ""
    wrapped: Sequence[int] = ()
    best: Set[tuple[int, int]] = frozenset()


def table_files(table: Table) -> dict[str, bytes]:
    """A table's files, by name: Markdown, LaTeX and CSV."""
    return {
        f"{table.stem}.md": markdown(table).encode(),
        f"{table.stem}.tex": latex(table).encode(),
        f"{table.stem}.csv": csv_bytes(table.data),
    }


def markdown(table: Table) -> str:
    """A table as GitHub-flavoured Markdown."""
    numbers = len(table.header) - table.text_columns
    ruler = [":--"] * table.text_columns + ["--:"] * numbers
    lines = [markdown_row(table.header), f"| {' | '.join(ruler)} |"]
    lines += [markdown_row(row) for row in table.rows]
    return "\n".join([*lines, "", markdown_text(f"{table.caption} {table.note}"), ""])


def markdown_text(text: str) -> str:
    """Text in which Markdown sees nothing of its own, on one line."""
    return MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def latex(table: Table) -> str:
    """A table as LaTeX, for the package booktabs."""
    width = f"p{{{WRAPPED_WIDTH / max(1, len(table.wrapped)):.2f}\\linewidth}}"
    columns = "".join(
        width if place in table.wrapped else "l" if place < table.text_columns else "r"
        for place in range(len(table.header))
    )
    body = [
        _latex_row(row, {column for line, column in table.best if line == place})
        for place, row in enumerate(table.rows)
    ]
    lines = [
        r"\begin{table}",
        r"  \centering",
        f"  \\caption{{{latex_text(table.caption)}}}",
        f"  \\label{{tab:{table.stem}}}",
        f"  \\begin{{tabular}}{{{columns}}}",
        r"    \toprule",
        _latex_row(table.header),
        r"    \midrule",
        *body,
        r"    \bottomrule",
        r"  \end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def latex_text(text: str) -> str:
    """Text in which LaTeX sees no commands, on one line."""
    # First the letters: thin spaces are white space as well.
    return " ".join("".join(LATEX.get(character, character) for character in text).split())


def markdown_row(cells: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(map(markdown_text, cells))} |"


def _latex_row(cells: Sequence[str], bold: Set[int] = frozenset()) -> str:
    texts = map(latex_text, cells)
    shown = (f"\\textbf{{{t}}}" if place in bold else t for place, t in enumerate(texts))
    return f"    {' & '.join(shown)} \\\\"


def duration(seconds: float) -> str:
    """A duration in the unit that suits it, such as "0.41 ms" or "2.5 h"."""
    for unit, factor in (("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0)):
        limit = 100 if unit in ("s", "min") else 1000
        if seconds < limit * factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds / 3600:.3g} h"


def slug(text: str) -> str:
    """Lower-case letters, digits and hyphens of a text, such as "newsvendor-1-table-ordered"."""
    letters = (char if char.isascii() and char.isalnum() else " " for char in text.lower())
    return "-".join("".join(letters).split())


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
