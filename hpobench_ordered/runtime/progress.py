"""Progress bars, on a terminal or in a notebook only."""

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

Watcher = Callable[[int, int], None]  # called with the numbers of finished and of all parts

DELAY = 2.0  # seconds before a bar is shown


@contextmanager
def watched(progress: bool | Watcher | None, *, what: str) -> Iterator[Watcher | None]:
    """The function that reports progress: a bar's if `progress` is True, else `progress` itself."""
    if not isinstance(progress, bool | None):
        yield progress
    elif progress and in_notebook():
        yield _NotebookBar(what)
    elif progress and sys.stderr.isatty():
        with _terminal_bar(what) as move:
            yield move
    else:
        yield None


def in_notebook() -> bool:
    """Whether this is a notebook, which can show HTML."""
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    return type(shell).__name__ in ("ZMQInteractiveShell", "Shell")  # Jupyter's, Colab's


def bars() -> "Progress":
    """Bars on the terminal's standard error, one for each task that is added."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    times = (TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(*columns, *times, console=Console(stderr=True))


@contextmanager
def _terminal_bar(what: str) -> Iterator[Watcher]:
    bar = bars()
    task = bar.add_task(what)
    began = time.monotonic()

    def move(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)
        if done < total and time.monotonic() - began > DELAY:
            bar.start()

    try:
        yield move
    finally:
        bar.stop()


class _NotebookBar:
    """A line of HTML under the cell, updated as runs finish."""

    def __init__(self, what: str) -> None:
        self._what = html.escape(what)
        self._began = time.monotonic()
        self._handle: Any = None

    def __call__(self, done: int, total: int) -> None:
        seconds = time.monotonic() - self._began
        if self._handle is None and (done >= total or seconds < DELAY):
            return
        from IPython.display import HTML, display

        left = f", about {seconds / done * (total - done):.0f} s left" if 0 < done < total else ""
        line = HTML(
            f'<progress value="{done}" max="{total}"></progress> '
            f"{done} of {total} {self._what}, {seconds:.0f} s{left}"
        )
        if self._handle is None:
            self._handle = display(line, display_id=True)
        else:
            self._handle.update(line)
