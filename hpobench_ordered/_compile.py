"""Compilation of the inner loops."""

from collections.abc import Callable
from typing import TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., object])


def compiled(function: F) -> F:
    """Compile a function with numba when it is first called.

    The machine code is kept beside the module, or in the user's cache folder; where neither can
    be written, every process compiles for itself.
    """
    try:
        return cast(F, njit(cache=True)(function))
    except RuntimeError:  # numba finds no folder to keep the code in
        return cast(F, njit(function))
