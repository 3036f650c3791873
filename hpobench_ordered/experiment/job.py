"""Makes one run, here or in another process, and writes the result."""

import math
import os
import random
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from hpobench_ordered.errors import HPOBenchOrderedError, MethodError
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.records import Failure
from hpobench_ordered.experiment.runner import run_cell
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.runtime.child import ChildDiedError, Children
from hpobench_ordered.runtime.threads import one_thread

PACKAGES = ("hpobench_ordered", "numpy")
"""Packages whose loaded modules, with their classes, are protected from being patched."""
STANDARD = (math, os, random, time)


@dataclass(frozen=True, slots=True)
class Job:
    """Makes one run, and writes its result or failure."""

    store: Store
    time_limit: float | None

    def __call__(self, cell: Cell) -> None:
        """Make a run, unless it is finished or failed."""
        if self.store.has(cell.key):
            return
        with self.store.records.running(cell.key):
            try:
                with one_thread(), unpatched(cell.apart) if cell.apart else nullcontext():
                    table, timing = run_cell(cell, time_limit=self.time_limit)
            except MethodError as error:
                self.store.records.write_failure(Failure.of(cell, error))
            else:
                self.store.write(table)
                self.store.records.write_timing(timing)

    def made(self, cell: Cell, children: Children | None = None) -> str | None:
        """Make a run, here or in another process; the crash report or traceback if that broke."""
        if children is None:
            self(cell)
            return None
        try:
            children.call_apart(cell.apart, self, cell)
        except HPOBenchOrderedError:  # such as a StoreError
            raise
        except BaseException as error:  # no Ctrl-C: neither that process nor this thread gets it
            self.store.records.forget_progress(cell.key)
            if isinstance(error, ChildDiedError):
                return str(error)
            return "".join(traceback.format_exception(error))
        return None


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
