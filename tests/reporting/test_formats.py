"""Texts in CSV, Markdown and LaTeX are shown as they are."""

import csv
import io

import pandas as pd
import pytest

from hpobench_ordered.reporting.formats import TextTable, csv_bytes, latex, markdown, markdown_text

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("http://x")', "\t=1", "\r=1"]
"""Texts that a spreadsheet would compute."""


def write_and_read_csv(frame: pd.DataFrame) -> list[dict[str, str]]:
    """Write a frame as CSV; returns the rows, by column, as they stand there."""
    text = csv_bytes(frame).decode()
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("dtype", ["object", "category"])
def test_texts_are_no_spreadsheet_formulas(dtype):
    """An apostrophe before a text says that it is no formula."""
    frame = pd.DataFrame({"name": [*FORMULAS, "bo"]}, dtype=dtype)

    rows = write_and_read_csv(frame)

    assert [row["name"] for row in rows] == [*(f"'{text}" for text in FORMULAS), "bo"]


def test_negative_numbers_stay_numbers():
    """A text that begins with a minus may be a formula, but a negative number is none."""
    rows = write_and_read_csv(pd.DataFrame({"loss": [-1.5]}))

    assert rows == [{"loss": "-1.5"}]


def test_markdown_text_is_escaped():
    """Signs of Markdown and of HTML get a backslash, which keeps them texts."""
    text = markdown_text('<img src=x onerror="f()"> & [a](b) `c` |')

    assert text == '\\<img src=x onerror="f()"\\> \\& \\[a\\](b) \\`c\\` \\|'


MINUS = "\u2212"
TABLE = TextTable("a & b", ("m|n", "p"), [("50 % <i>_", f"{MINUS}1 to 2")])
"""A title, a header of two columns, and a row."""


def test_markdown_tables_are_escaped():
    assert r"| 50 % \<i\>\_ |" in markdown(TABLE)


def test_latex_tables_are_escaped():
    r"""Cells are separated by &, and rows end with \\."""
    assert r"50 \% <i>\_ & $-$1 to 2 \\" in latex(TABLE)
