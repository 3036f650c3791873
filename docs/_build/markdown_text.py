"""Pieces of Markdown that the generated pages are made of."""

import re
from collections.abc import Iterable, Sequence

SPECIAL = re.compile(r"([\\`*_\[\]<>|#~^$])")


def plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Text as inline code, also in a table."""
    return f"`{text.replace('|', chr(0x2502))}`" if text else ""


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown already.

    Args:
        header: Titles of the columns; one that starts with ">" is of numbers, set to the right.
        rows: The cells.
    """
    rule = ["---:" if title.startswith(">") else "---" for title in header]
    lines = [[title.removeprefix(">") for title in header], rule, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """A definition list; names without a value are left out."""
    listed = "\n\n".join(f"{name}\n:   {value}" for name, value in pairs if value)
    return f'<div class="facts" markdown>\n\n{listed}\n\n</div>'
