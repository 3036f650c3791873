"""Formats of numbers and tables: plain text, Markdown, LaTeX (booktabs) and CSV."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

FORMULAS = ("=", "+", "-", "@", "\t", "\r")
"""Characters that begin a formula in a spreadsheet."""

MARKDOWN = re.compile(r"([\\`*_{}\[\]<>#|~&])")
"""Characters with a meaning in Markdown or HTML."""

NOTHING = "\u2013"
"""Placeholder for a missing number: an en rule."""

MINUS = "\u2212"

LATEX = re.compile(r"([&%$#_{}])")
"""Characters with a meaning in LaTeX."""


@dataclass(frozen=True)
class TextTable:
    """A table of texts."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1


def markdown(table: TextTable) -> str:
    """A table as GitHub-flavoured Markdown."""
    numbers = len(table.header) - table.text_columns
    rows = [[markdown_text(cell) for cell in row] for row in (table.header, *table.rows)]
    rows.insert(1, [":--"] * table.text_columns + ["--:"] * numbers)
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([*lines, "", markdown_text(table.caption), ""])


def markdown_text(text: str) -> str:
    """Text on one line, escaped for Markdown."""
    return MARKDOWN.sub(r"\\\1", " ".join(text.split()))


def latex(table: TextTable) -> str:
    """A table as LaTeX, for the package booktabs."""
    import pandas as pd

    rows = pd.DataFrame([list(row) for row in table.rows], columns=list(table.header))
    columns = "l" * table.text_columns + "r" * (len(table.header) - table.text_columns)
    caption = LATEX.sub(r"\\\1", table.caption)
    text: str = rows.to_latex(index=False, escape=True, column_format=columns, caption=caption)
    return text.replace(MINUS, "$-$")


def number(value: float, decimals: int) -> str:
    """A number with a number of decimals; an en rule for NaN."""
    return NOTHING if math.isnan(value) else f"{value:.{decimals}f}".replace("-", MINUS)


def slug(text: str) -> str:
    """Lower-case letters, digits and hyphens of a text, such as "heatmap-ordered-25-trials"."""
    return "-".join(re.findall("[a-z0-9]+", text.lower()))


def csv_bytes(rows: "pd.DataFrame | list[dict[str, Any]]") -> bytes:
    """A table as CSV; numbers as Python writes them, and no text that a spreadsheet would run."""
    import pandas as pd

    def escape_formula(cell: object) -> object:
        is_formula = isinstance(cell, str) and cell.startswith(FORMULAS)
        return f"'{cell}" if is_formula else cell

    texts = pd.DataFrame(rows).map(escape_formula)
    return bytes(texts.to_csv(index=False, lineterminator="\r\n").encode())
