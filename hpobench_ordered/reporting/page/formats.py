"""Tables of a report as Markdown, LaTeX (booktabs) and CSV, whatever characters are in them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&])")
"""What Markdown or the HTML in it could take for its own."""

NOTHING = "\u2013"
"""Stands where there is no number: an en rule."""

MINUS = "\u2212"

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
        data: The same unrounded, for CSV.
    """

    stem: str
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int
    data: "pd.DataFrame"


def table_files(table: Table) -> dict[str, bytes]:
    """A table's files, by name: Markdown, LaTeX and CSV."""
    return {
        f"{table.stem}.md": markdown(table).encode(),
        f"{table.stem}.tex": latex(table).encode(),
        f"{table.stem}.csv": table.data.to_csv(index=False).encode(),
    }


def markdown(table: Table) -> str:
    """A table as GitHub-flavoured Markdown."""
    numbers = len(table.header) - table.text_columns
    ruler = [":--"] * table.text_columns + ["--:"] * numbers
    lines = [markdown_row(table.header), f"| {' | '.join(ruler)} |"]
    lines += [markdown_row(row) for row in table.rows]
    return "\n".join([*lines, "", markdown_text(table.caption), ""])


def markdown_text(text: str) -> str:
    """Text in which Markdown sees nothing of its own, on one line."""
    return MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def latex(table: Table) -> str:
    """A table as LaTeX, for the package booktabs."""
    columns = "l" * table.text_columns + "r" * (len(table.header) - table.text_columns)
    body = [_latex_row(row) for row in table.rows]
    lines = [
        r"\begin{table}",
        r"  \centering",
        f"  \\caption{{{latex_text(table.caption)}}}",
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
    return "".join(LATEX.get(character, character) for character in " ".join(text.split()))


def markdown_row(cells: Sequence[str]) -> str:
    """A row of a table."""
    return f"| {' | '.join(map(markdown_text, cells))} |"


def _latex_row(cells: Sequence[str]) -> str:
    return f"    {' & '.join(map(latex_text, cells))} \\\\"
