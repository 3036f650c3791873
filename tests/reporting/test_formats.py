import csv
import io

import pandas as pd
import pytest

from hpobench_ordered.reporting.formats import TextTable, csv_bytes, latex, markdown, markdown_text

FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", '=HYPERLINK("http://x")', "\t=1", "\r=1"]


@pytest.mark.parametrize("dtype", ["object", "category"])
def test_texts_are_no_spreadsheet_formulas(dtype):
    frame = pd.DataFrame({"name": [*FORMULAS, "bo"], "loss": -1.5})
    data = csv_bytes(frame.astype({"name": dtype})).decode()
    rows = list(csv.DictReader(io.StringIO(data, newline="")))
    assert [row["name"] for row in rows] == [*(f"'{text}" for text in FORMULAS), "bo"]
    assert {float(row["loss"]) for row in rows} == {-1.5}  # a number stays one


def test_markdown_text_is_escaped():
    text = markdown_text('<img src=x onerror="f()"> & [a](b) `c` |')
    assert text == '\\<img src=x onerror="f()"\\> \\& \\[a\\](b) \\`c\\` \\|'


def test_tables_are_escaped():
    table = TextTable("a & b", ("m|n", "p"), [("50 % <i>_", "\u22121 to 2")])
    assert r"| 50 % \<i\>\_ |" in markdown(table)
    assert r"50 \% <i>\_ & $-$1 to 2 \\" in latex(table)
