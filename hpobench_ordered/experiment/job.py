"""Makes one run, here or in another process, and writes the result."""

import traceback
from contextlib import nullcontext
from dataclasses import dataclass

from hpobench_ordered.errors import HPOBenchOrderedError, MethodError
from hpobench_ordered.experiment._patches import unpatched
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.records import Failure
from hpobench_ordered.experiment.runner import run_cell
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.runtime.child import ChildDiedError, Children
from hpobench_ordered.runtime.threads import one_thread


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
