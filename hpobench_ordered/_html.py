"""Tables for notebooks."""

from collections.abc import Iterable, Sequence
from html import escape


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as HTML, with escaped texts.

    Args:
        caption: Text above the table.
        columns: Heads of the columns.
        rows: Rows, with a cell for each column.
    """
    parts = [f"<table><caption>{escape(caption)}</caption><thead><tr>"]
    for column in columns:
        parts.append(f"<th>{escape(column)}</th>")
    parts.append("</tr></thead><tbody>")
    for row in rows:
        cells = "".join(f"<td>{escape(str(cell))}</td>" for cell in row)
        parts.append(f"<tr>{cells}</tr>")
    parts.append("</tbody></table>")
    return "".join(parts)


def key_values(items: Iterable[tuple[str, object]]) -> str:
    """Join names and values to the text of one cell, such as "size 10, share 0.25"."""
    return ", ".join(f"{name} {value}" for name, value in items)
