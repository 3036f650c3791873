"""Clocks that stand still while this process imports modules or compiles functions.

Only the first run in a process has to wait for both: times that included them would depend on the
number of processes.
"""

import builtins
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter, process_time  # imported early, as a method may replace them
from typing import Any


class LoadingTimes:
    """Adds up the time that this process spends importing modules and compiling functions.

    Attributes:
        wall_seconds: Time that has passed.
        cpu_seconds: CPU time, of all threads of this process.
    """

    def __init__(self) -> None:
        """Start at 0 seconds."""
        self.wall_seconds = 0.0
        self.cpu_seconds = 0.0
        # How many imports and compilations have begun, as one of them may cause others.
        self._depth = 0

    def begin(self) -> None:
        """Remember when the outermost import or compilation begins."""
        if self._depth == 0:
            self._wall_start = perf_counter()
            self._cpu_start = process_time()
        self._depth += 1

    def end(self) -> None:
        """Add the time since the outermost import or compilation began."""
        self._depth -= 1
        if self._depth == 0:
            self.wall_seconds += perf_counter() - self._wall_start
            self.cpu_seconds += process_time() - self._cpu_start


loading_times = LoadingTimes()


def wall_clock() -> float:
    """Seconds that have passed, without those of `loading_times`."""
    return perf_counter() - loading_times.wall_seconds


def cpu_clock() -> float:
    """CPU seconds of all threads of this process, without those of `loading_times`.

    Unlike the time that passes, they do not count waiting while other processes use the processor.
    """
    return process_time() - loading_times.cpu_seconds


@contextmanager
def clocks_stopped_by_imports() -> Iterator[None]:
    """Let the clocks stand still while an import statement runs that the block reaches."""
    import_module = builtins.__import__  # what an import statement calls

    def import_with_stopped_clocks(*arguments: Any, **keywords: Any) -> Any:
        """Import a module, as the import statement asks."""
        loading_times.begin()
        try:
            return import_module(*arguments, **keywords)
        finally:
            loading_times.end()

    builtins.__import__ = import_with_stopped_clocks
    try:
        yield
    finally:
        builtins.__import__ = import_module
