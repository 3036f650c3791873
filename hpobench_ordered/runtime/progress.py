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

NOTEBOOK_SHELLS = ("ZMQInteractiveShell", "Shell")
"""Classes of IPython's shell in a notebook: Jupyter's and Colab's."""


@contextmanager
def show_progress(progress: bool | Watcher | None, *, unit: str) -> Iterator[Watcher | None]:
    """Open a progress bar, and yield the function that moves it.

    Nothing is opened, and None is yielded, if there is neither a terminal nor a notebook.

    Args:
        progress: Whether to show a bar; or a function to report progress to, which is then yielded
            as it is.
        unit: What is counted, such as "runs".
    """
    if not isinstance(progress, bool | None):
        yield progress
    elif progress and is_in_notebook():
        yield _NotebookBar(unit)
    elif progress and sys.stderr.isatty():
        with _terminal_bar(unit) as move:
            yield move
    else:
        yield None


def is_in_notebook() -> bool:
    """Whether this process runs the cells of a notebook, which can show HTML."""
    ipython = sys.modules.get("IPython")  # a notebook has imported it
    if ipython is None:
        return False
    shell = ipython.get_ipython()  # None outside of IPython
    return type(shell).__name__ in NOTEBOOK_SHELLS


def make_bars() -> "Progress":
    """Make bars on the terminal's standard error, one for each task that is added."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    )


@contextmanager
def _terminal_bar(unit: str) -> Iterator[Watcher]:
    """Yield a function that moves a bar, which appears only after `DELAY` seconds of work."""
    bar = make_bars()
    task = bar.add_task(unit)
    started = time.monotonic()

    def move(done: int, total: int) -> None:
        """Move the bar to `done` of `total` parts, and show it if it is time."""
        bar.update(task, completed=done, total=total)
        elapsed = time.monotonic() - started
        if done < total and elapsed > DELAY:
            # `start` shows the bar. It has no effect on a bar that is shown already.
            bar.start()

    try:
        yield move
    finally:
        bar.stop()


class _NotebookBar:
    """A line of HTML under the cell, updated as runs finish."""

    def __init__(self, unit: str) -> None:
        """Start the clock; `unit` is what is counted, such as "runs"."""
        self._unit = html.escape(unit)
        self._started = time.monotonic()
        # IPython's handle of the line, once it is shown.
        self._display: Any = None

    def __call__(self, done: int, total: int) -> None:
        """Show the line, or update it, when parts have finished.

        Work that takes less than `DELAY` seconds shows no line.
        """
        elapsed = time.monotonic() - self._started
        is_shown = self._display is not None
        if not is_shown and (done >= total or elapsed < DELAY):
            return

        from IPython.display import HTML, display

        line = HTML(self._format_line(done, total, elapsed))
        if is_shown:
            self._display.update(line)
        else:
            self._display = display(line, display_id=True)

    def _format_line(self, done: int, total: int, elapsed: float) -> str:
        """Format the bar, the counts, the seconds passed and, as an estimate, the seconds left."""
        remaining = ""
        if 0 < done < total:
            seconds_left = elapsed / done * (total - done)  # at the pace so far
            remaining = f", about {seconds_left:.0f} s left"
        return (
            f'<progress value="{done}" max="{total}"></progress> '
            f"{done} of {total} {self._unit}, {elapsed:.0f} s{remaining}"
        )
