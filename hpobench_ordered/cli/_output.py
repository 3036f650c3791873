"""Output shared by the commands: results on standard output, progress on standard error."""

import io
import json
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hpobench_ordered.generation.base import Progress
from hpobench_ordered.runtime.progress import make_bars

PIPE_WIDTH = 120  # width of sentences in pipes, where rows of tables are not wrapped

MAX_ROW_WIDTH = 10_000  # width of tables in pipes, more than any row has

COLUMN_GAP = 2  # spaces between the columns of a table


def allow_all_characters() -> None:
    """Make standard output and standard error replace characters that their encoding lacks by "?".

    Printing such a character would otherwise raise an error.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # else it was replaced, as in tests
            stream.reconfigure(errors="replace")


def make_console() -> Console:
    """Make the console for results: as wide as the terminal or `COLUMNS`, unlimited in pipes."""
    console = Console()
    has_width = console.is_terminal or os.environ.get("COLUMNS", "").isdigit()
    return console if has_width else Console(width=MAX_ROW_WIDTH)


def say(message: str) -> None:
    """Print a message that is not a result, on standard error."""
    click.echo(message, err=True)


@contextmanager
def warnings_at_end() -> Iterator[None]:
    """Collect the warnings of the block, and print each once at its end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    for warning in caught:
        say(f"warning: {warning.message}")


@contextmanager
def output_file(path: Path) -> Iterator[None]:
    """Create the folder of a file before the block writes the file.

    If the folder or the file cannot be written, the command ends with a message instead of a
    traceback.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise click.ClickException(f"cannot write {path}: {error.strerror}") from None


def print_table(
    headers: Iterable[str],
    rows: Iterable[Iterable[str]],
    *,
    title: str = "",
    column_of_names: int = 0,
) -> None:
    """Print a table on the console.

    Long cells are broken into lines, but not those of the column of names.

    Args:
        headers: Titles of the columns.
        rows: Cells of each row.
        title: Title above the table.
        column_of_names: Index of the column of names.
    """
    if title:  # not in the table, which may be narrower
        print_text(title)
    table = Table(box=None, pad_edge=False)
    for column, header in enumerate(headers):
        is_name = column == column_of_names  # names are not broken, so that they can be copied
        table.add_column(header, overflow="fold", no_wrap=is_name)
    for row in rows:
        table.add_row(*map(escape, row))
    make_console().print(table)


def fits_console(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether `print_table` needs no line breaks inside the rows."""
    width = COLUMN_GAP * (len(headers) - 1)
    for column, header in enumerate(headers):
        longest_word = max(map(len, header.split()))  # headers are broken between words
        longest_cell = max((len(row[column]) for row in rows), default=0)
        width += max(longest_word, longest_cell)
    return width <= make_console().width


def print_text(text: str) -> None:
    """Print sentences wrapped to the width of the terminal, without breaking names."""
    width_and_height_of_pipe = (PIPE_WIDTH, 24)  # the height has no effect
    width = shutil.get_terminal_size(width_and_height_of_pipe).columns
    lines = textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)
    click.echo("\n".join(lines))


def print_json(content: object) -> None:
    """Print JSON; numbers that are not finite become null."""
    text = json.dumps(content, default=dict)  # mappings of other types become dicts
    # JSON has no NaN and Infinity, but Python writes them. Reading the text finds them wherever
    # they are, and calls `parse_constant` for each.
    finite_content = json.loads(text, parse_constant=lambda _: None)
    click.echo(json.dumps(finite_content, indent=2))


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show progress bars during the block.

    Yields:
        A function to call with the name of a step, the number of its parts that are done, and the
        number of all its parts. It moves the bar of the step.
    """
    with make_bars() as bars:
        bar_of_step = {}

        def show_progress(step: str, done: int, total: int) -> None:
            """Move the bar of a step; the first call for a step adds its bar."""
            if step not in bar_of_step:
                bar_of_step[step] = bars.add_task(step, total=total)
            bars.update(bar_of_step[step], completed=done, total=total)

        yield show_progress
