"""Formats of numbers and tables: plain text, Markdown, LaTeX (booktabs) and CSV."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&])")
"""Characters with a meaning in Markdown or HTML."""

NOTHING = "\u2013"
"""Placeholder for a missing number: an en rule."""

MINUS = "\u2212"

LATEX = str.maketrans(
    {
        **{character: f"\\{character}" for character in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        MINUS: "$-$",
        NOTHING: "--",
    }
)
"""Characters with a meaning in LaTeX or missing in its default fonts, and what stands for them."""


@dataclass(frozen=True)
class TextTable:
    """A table of texts.

    Attributes:
        caption: What it shows.
        header: Names of the columns.
        rows: Cells of each row, as many as there are columns.
        text_columns: How many columns, from the left, are aligned as text; others are as numbers.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1


def markdown(table: TextTable) -> str:
    """Format a table as GitHub-flavoured Markdown, with its caption below."""
    rows = []
    for row in (table.header, *table.rows):
        rows.append([markdown_text(cell) for cell in row])

    # The line below the header aligns texts on the left, and numbers on the right.
    n_numbers = len(table.header) - table.text_columns
    rows.insert(1, [":--"] * table.text_columns + ["--:"] * n_numbers)
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", markdown_text(table.caption), ""])


def markdown_text(text: str) -> str:
    """Escape the characters with a meaning in Markdown, and put the text on one line."""
    line = " ".join(text.split())
    return MARKDOWN.sub(r"\\\1", line)


def latex(table: TextTable) -> str:
    """Format a table as LaTeX, for the package booktabs."""
    import pandas as pd

    rows = pd.DataFrame([list(row) for row in table.rows], columns=list(table.header))
    n_numbers = len(table.header) - table.text_columns
    columns = "l" * table.text_columns + "r" * n_numbers  # left or right aligned
    caption = latex_text(table.caption)
    text: str = rows.to_latex(index=False, escape=True, column_format=columns, caption=caption)
    return text.replace(MINUS, "$-$")  # LaTeX's default fonts lack the character


def latex_text(text: str) -> str:
    """Escape the characters with a meaning in LaTeX, and put the text on one line."""
    line = " ".join(text.split())
    return line.translate(LATEX)


def number(value: float, decimals: int) -> str:
    """Format a number with a typographic minus; NaN becomes an en rule.

    Args:
        value: The number.
        decimals: Number of digits after the point.
    """
    if math.isnan(value):
        return NOTHING
    return f"{value:.{decimals}f}".replace("-", MINUS)


def slug(text: str) -> str:
    """Turn a text into a file name or an id, such as "heatmap-ordered-25-trials".

    The result has only lower-case letters and digits, with a hyphen in place of all else.
    """
    return "-".join(re.findall("[a-z0-9]+", text.lower()))


def csv_bytes(rows: "pd.DataFrame | list[dict[str, Any]]") -> bytes:
    """Format a table as CSV, with numbers as Python writes them."""
    import pandas as pd

    return bytes(pd.DataFrame(rows).to_csv(index=False, lineterminator="\r\n").encode())
