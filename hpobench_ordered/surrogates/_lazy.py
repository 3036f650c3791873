"""The compiled kernels, imported when they are first needed."""

from functools import cache
from types import ModuleType


@cache
def kernels() -> ModuleType:
    """The module `_kernels`; importing numba takes longer than loading a benchmark may."""
    from hpobench_ordered.surrogates import _kernels

    return _kernels
