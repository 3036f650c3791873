"""Texts in Markdown and LaTeX are shown as they are."""

from hpobench_ordered.reporting.formats import TextTable, latex, markdown, markdown_text


def test_markdown_text_is_escaped():
    """Signs of Markdown and of HTML get a backslash, which keeps them texts."""
    text = markdown_text('<img src=x onerror="f()"> & [a](b) `c` |')

    assert text == '\\<img src=x onerror="f()"\\> \\& \\[a\\](b) \\`c\\` \\|'


MINUS = "\u2212"
TABLE = TextTable("a & b", ("m|n", "p"), [("50 % <i>_", f"{MINUS}1 to 2")])
"""A title, a header of two columns, and a row."""


def test_markdown_tables_are_escaped():
    """Signs of Markdown and of HTML in a cell get a backslash."""
    assert r"| 50 % \<i\>\_ |" in markdown(TABLE)


def test_latex_tables_are_escaped():
    r"""Signs of LaTeX in cells are escaped; the & between cells and the \\ after a row are not."""
    assert r"50 \% <i>\_ & $-$1 to 2 \\" in latex(TABLE)
