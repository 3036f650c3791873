"""Compilation of the inner loops."""

import warnings
from collections.abc import Callable
from functools import cache
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile a function with numba when it is first called.

    The machine code is kept beside the module, or in the user's cache folder; where neither can
    be written, every process compiles for itself, after a warning.
    """
    try:
        return cast(F, njit(cache=True)(function))
    except RuntimeError:  # numba finds no folder to keep the code in
        _warn_of_no_cache()
        return cast(F, njit(function))


@cache  # once a process, however many functions are compiled
def _warn_of_no_cache() -> None:
    warnings.warn(
        "compiled code cannot be kept, so every process compiles for some seconds: set "
        "NUMBA_CACHE_DIR to a folder that can be written",
        RuntimeWarning,
        stacklevel=3,
    )
