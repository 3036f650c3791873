"""Protects modules that all methods in a process share from being patched."""

import math
import os
import random
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hpobench_ordered.errors import MethodError

PACKAGES = ("hpobench_ordered", "numpy")
"""Packages whose loaded modules, with their classes, are protected."""
STANDARD = (math, os, random, time)


@contextmanager
def unpatched(method: str) -> Iterator[None]:
    """Restore shared functions and classes after a run; raise a `MethodError` if any changed."""
    before = [(owner, dict(vars(owner))) for owner in _owners()]
    found = []
    try:
        yield
    finally:
        for owner, names in before:
            now = vars(owner)
            for name, value in names.items():
                if callable(value) and now.get(name) is not value:
                    setattr(owner, name, value)
                    found.append(f"{owner.__name__}.{name}")
    if found:
        raise MethodError(f"{method}: it changed {', '.join(found[:5])}, which all methods share")


def _owners() -> Iterator[Any]:
    yield from STANDARD
    for name, module in [*sys.modules.items()]:
        if name.partition(".")[0] in PACKAGES:
            yield module
            for value in [*vars(module).values()]:
                if isinstance(value, type) and value.__module__ == name:
                    yield value
