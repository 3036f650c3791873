"""Compilation of inner loops with numba."""

import logging
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit
from numba.core import event

from hpobench_ordered.runtime import announcements
from hpobench_ordered.runtime.clocks import loading_time

F = TypeVar("F", bound=Callable[..., object])

DIVISION = "numpy"  # by 0 it is inf or NaN: a loop with a check, as in Python, is not vectorised

NO_CACHE = (
    "compiled code cannot be cached, so every process compiles for some seconds: set "
    "NUMBA_CACHE_DIR to a writable folder"
)

_cached_functions: list[Any] = []


class _Announcer(event.Listener):  # type: ignore[misc]  # numba has no types
    """Logs once that functions of this package are compiled, if that is to be announced."""

    has_announced = False

    def on_start(self, event: Any) -> None:
        """Log the first time that numba begins to compile a function of this package."""
        module = event.data["dispatcher"].py_func.__module__
        is_ours = module.startswith("hpobench_ordered.")
        if is_ours and announcements.announces_compiling and not self.has_announced:
            self.has_announced = True
            # It is logged as a warning, as Python hides lower levels unless the user shows them.
            logging.getLogger("hpobench_ordered").warning(
                "compiling the numerics, once: the first suggestions take about half a minute"
            )

    def on_end(self, event: Any) -> None:
        """Do nothing: only the beginning is announced."""


event.register("numba:compile", _Announcer())  # not sent if compiled code is loaded from the cache


class _ClockStopper(event.Listener):  # type: ignore[misc]
    """Lets the package's clock stand still while this process compiles or loads compiled code."""

    def on_start(self, event: object) -> None:
        """Stop the clock; numba calls this, with details that are not needed."""
        loading_time.begin()

    def on_end(self, event: object) -> None:
        """Let the clock go on; numba calls this."""
        loading_time.end()


event.register("numba:compiler_lock", _ClockStopper())  # held while code is compiled or loaded


def compiled(function: F) -> F:
    """Return a version of a function that numba compiles at its first call; used as a decorator.

    The machine code is cached beside the module or in the user's folder. If neither can be written,
    a warning is issued, and every process compiles the function again. Divisions by 0 give inf or
    NaN as in numpy (`DIVISION`), since checking each division would make loops slower.
    """
    try:
        cached = njit(cache=True, error_model=DIVISION)(function)
    except RuntimeError:  # numba finds no writable folder for its cache
        # The text of the warning says how to choose another folder.
        warnings.warn(NO_CACHE, RuntimeWarning, stacklevel=1)
        return cast(F, njit(error_model=DIVISION)(function))
    _cached_functions.append(cached)
    return cast(F, cached)


def is_compiled() -> bool:
    """Whether numba's cache holds machine code of at least one function that `compiled` decorated.

    If so, an earlier process has probably compiled all of them, and this one need not.
    """
    for function in _cached_functions:
        folder = Path(function.stats.cache_path)
        code = function.py_func.__code__
        stem = Path(code.co_filename).stem
        # Numba's cache has a file of such a name for every function whose machine code it holds.
        pattern = f"{stem}.{function.__name__}-{code.co_firstlineno}.*.nbi"
        has_machine_code = folder.is_dir() and any(folder.glob(pattern))
        if has_machine_code:
            return True
    return False
