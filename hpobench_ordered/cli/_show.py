"""Output shared by the commands: results on standard output, progress on standard error."""

import json
import os
import shutil
import textwrap
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hpobench_ordered.generation.base import Progress
from hpobench_ordered.runtime.progress import bars

PIPE_WIDTH = 120  # width of sentences in pipes, where rows of tables are not wrapped

LONGEST_ROW = 10_000


def console() -> Console:
    """The console for results: standard output, as wide as the terminal or `COLUMNS`."""
    plain = Console()
    is_free = not plain.is_terminal and not os.environ.get("COLUMNS", "").isdigit()
    return Console(width=LONGEST_ROW) if is_free else plain


def say(message: str) -> None:
    """Print a message that is not a result, on standard error."""
    click.echo(message, err=True)


@contextmanager
def warnings_said() -> Iterator[None]:
    """Print each warning once, at the end of the block."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    for warning in caught:
        say(f"warning: {warning.message}")


def print_table(headers: Iterable[str], rows: Iterable[Iterable[str]], *, title: str = "") -> None:
    """Print a table."""
    if title:  # not in the table, which may be narrower
        print_text(title)
    table = Table(box=None, pad_edge=False)
    for place, header in enumerate(headers):  # do not break names, so that they can be copied
        table.add_column(header, overflow="fold", no_wrap=place == 0)
    for row in rows:
        table.add_row(*map(escape, row))
    console().print(table)


def fits(headers: Iterable[str], rows: Iterable[Iterable[str]]) -> bool:
    """Whether `print_table` needs no line breaks inside the rows."""
    titles = [max(header.split(), key=len) for header in headers]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    return sum(widths) + 2 * (len(widths) - 1) <= console().width


def print_text(text: str) -> None:
    """Print sentences wrapped to the width of the terminal, without breaking names."""
    width = shutil.get_terminal_size((PIPE_WIDTH, 24)).columns
    lines = textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)
    click.echo("\n".join(lines))


def print_json(content: object) -> None:
    """Print JSON; numbers that are not finite become null."""
    plain = json.loads(json.dumps(content, default=dict), parse_constant=lambda _: None)
    click.echo(json.dumps(plain, indent=2, ensure_ascii=False))


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show progress; yields a function of the step, the parts done and all parts."""
    with bars() as bar:
        steps = {}

        def move(step: str, done: int, total: int) -> None:
            if step not in steps:
                steps[step] = bar.add_task(step, total=total)
            bar.update(steps[step], completed=done, total=total)

        yield move
