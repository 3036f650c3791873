"""A clock of CPU time that stands still while this process imports modules or compiles functions.

Only the first run in a process has to wait for both: times that included them would depend on the
number of processes. Methods import much of what they need at their first call, and it is not known
before which modules these are, so import statements stop the clock themselves.
"""

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from time import process_time
from typing import Any


class LoadingTime:
    """Adds up the CPU time that this process spends importing modules and compiling functions.

    Attributes:
        seconds: That time so far, of all threads.
    """

    def __init__(self) -> None:
        """Start at 0 seconds."""
        self.seconds = 0.0
        # Number of imports and compilations that are running. One may cause others within it.
        self._depth = 0
        # CPU time of the process when the outermost one began.
        self._start = 0.0

    def begin(self) -> None:
        """Remember when the outermost import or compilation begins."""
        if self._depth == 0:
            self._start = process_time()
        self._depth += 1

    def end(self) -> None:
        """Add the time since the outermost import or compilation began."""
        self._depth -= 1
        if self._depth == 0:
            self.seconds += process_time() - self._start


loading_time = LoadingTime()


def cpu_clock() -> float:
    """Return the CPU seconds that this process has used, without those of imports and compiling.

    All threads are counted. Unlike elapsed time, CPU time does not grow while the process waits for
    the processor.
    """
    return process_time() - loading_time.seconds


@contextmanager
def clock_stopped_by_imports() -> Iterator[None]:
    """Within a block, stop `cpu_clock` while import statements run.

    Python's `builtins.__import__`, which every import statement calls, is replaced in the meantime.
    """
    import_module = builtins.__import__

    def import_with_stopped_clock(*arguments: Any, **keywords: Any) -> Any:
        """Import a module as Python does, and add the time to `loading_time`."""
        loading_time.begin()
        try:
            return import_module(*arguments, **keywords)
        finally:
            loading_time.end()

    builtins.__import__ = import_with_stopped_clock
    try:
        yield
    finally:
        builtins.__import__ = import_module
