"""Output shared by the commands: results on standard output, progress on standard error."""

import json
import math
import os
import shutil
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import click
import rich.progress
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from hpobench_ordered.generation.base import Progress

PIPE_WIDTH = 120
"""Width of sentences in pipes, where rows of tables are not wrapped."""

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
    click.echo(json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False))


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """Show progress; yields a function of the step, the parts done and all parts."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with rich.progress.Progress(*columns, console=Console(stderr=True)) as bar:
        steps = {}

        def move(step: str, done: int, total: int) -> None:
            if step not in steps:
                steps[step] = bar.add_task(step, total=total)
            bar.update(steps[step], completed=done, total=total)

        yield move


def _plain(content: object) -> object:
    if isinstance(content, Mapping):
        return {str(name): _plain(value) for name, value in content.items()}
    if isinstance(content, list | tuple):
        return [_plain(value) for value in content]
    if isinstance(content, float) and not math.isfinite(content):
        return None
    return content
