"""Runs many cells: in this process, in several, or on a Dask cluster; a failed run fails alone."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered._child import ChildDiedError, Children
from hpobench_ordered._threads import one_thread
from hpobench_ordered.errors import (
    DamagedFilesWarning,
    ExperimentError,
    MethodError,
    ProcessDiedError,
    SuggestionTimeoutError,
)
from hpobench_ordered.experiment._dask import connected
from hpobench_ordered.experiment.failures import Failure
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.runner import run_cell
from hpobench_ordered.experiment.store import MANY, Store
from hpobench_ordered.experiment.watchdog import ENDED, can_interrupt

if TYPE_CHECKING:
    from distributed import Client

TIME_LIMIT = 300.0
"""Seconds that one call into a method may take."""
DEATHS_ALONE = 3
"""How often a process must die, with one run alone, for that to be the run's failure."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How an experiment is run, see `hpobench_ordered.run`; none of it changes results."""

    workers: int = 1
    time_limit: float | None = TIME_LIMIT
    dask: "Client | str | None" = None

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ExperimentError(f"at least 1 worker is needed, got {self.workers}")
        if self.time_limit is not None and not self.time_limit > 0:
            raise ExperimentError(f"a time limit is longer than 0 s, got {self.time_limit}")


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    settings: Settings = Settings(),
    session: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> None:
    """Run what the store has neither finished nor recorded as failed.

    Each run is written when it is finished; stopping at any moment loses those in flight alone,
    and calling this again continues. A run whose method raises, takes too long or suggests
    nonsense, or whose process dies, is recorded as failed; the others go on.

    `session` is recorded, with the versions of Dask's workers; `progress` is called with the
    number of runs that are over and of all runs.

    Raises:
        StoreError: The store cannot be written.
        ExperimentError: The Dask cluster cannot be reached, or is lost.
    """
    # A relative path means something else in a worker of another machine or folder.
    store = Store(Path(store.folder).absolute())
    store.prepare()
    _set_aside(store)
    over = store.keys() | store.failures().keys()
    left = [cell for cell in cells if cell.key not in over]
    report = progress or (lambda done, total: None)
    report(len(cells) - len(left), len(cells))
    died = {}
    with _pool(store, settings) as (pool, machines):
        if session is not None:
            store.records.write_session({**session, **machines})
        for done, (cell, last_words) in enumerate(pool(left), start=len(cells) - len(left) + 1):
            if last_words is not None:
                died[cell] = last_words
            report(done, len(cells))
        for cell, last_words in died.items():
            _settle(cell, last_words, pool, store, settings.time_limit)
    store.compact(at_least=MANY)


Pool = Callable[[Sequence[Cell]], Iterator[tuple[Cell, str | None]]]
"""Makes runs; yields each that is over, and if its process died, what it said."""


@contextmanager
def _pool(store: Store, settings: Settings) -> Iterator[tuple[Pool, Mapping[str, Any]]]:
    """Where runs are made, and what a session records of the machines there."""
    job = Job(store, settings.time_limit)
    if settings.dask is not None:
        with connected(settings.dask) as cluster:
            yield lambda cells: cluster.run(job, cells), {"machines": cluster.machines}
    elif settings.workers == 1 and (settings.time_limit is None or can_interrupt()):
        yield lambda cells: ((cell, job.made_here(cell)) for cell in cells), {}
    else:
        children = Children()
        try:
            yield lambda cells: _in_processes(job, cells, settings.workers, children), {}
        finally:
            children.close()


def _in_processes(
    job: "Job", cells: Sequence[Cell], workers: int, children: Children
) -> Iterator[tuple[Cell, str | None]]:
    with ThreadPoolExecutor(workers) as threads:
        sent = {threads.submit(job.made_apart, cell, children): cell for cell in cells}
        try:
            for future in as_completed(sent):
                yield sent[future], future.result()
        except BaseException:
            threads.shutdown(wait=False, cancel_futures=True)
            children.close()
            raise


@dataclass(frozen=True, slots=True)
class Job:
    """Makes one run, with the time limit of `Settings`, and writes what comes of it."""

    store: Store
    time_limit: float | None

    def __call__(self, cell: Cell) -> None:
        """Make a run, unless somebody else has."""
        if self.store.has(cell.key):
            return
        with self.store.records.running(cell.key):
            try:
                with one_thread():
                    table, timing = run_cell(cell, time_limit=self.time_limit)
            except MethodError as error:
                self.store.records.write_failure(Failure.of(cell, error))
            else:
                self.store.write(table)
                self.store.records.write_timing(timing)

    def made_here(self, cell: Cell) -> str | None:
        """Make a run in this process, which it does not end."""
        self(cell)
        return None

    def made_apart(self, cell: Cell, children: Children) -> str | None:
        """Make a run in another process; if that died, what it said."""
        try:
            children.call(self, cell)
        except ChildDiedError as died:
            self.store.records.forget_progress(cell.key)
            return str(died)
        return None


def _settle(cell: Cell, last_words: str, pool: Pool, store: Store, limit: float | None) -> None:
    """Find out whether a run ends its process, whenever it is made, or that was killed."""
    error: MethodError = ProcessDiedError(f"{cell.method.name}: its process crashed or was killed")
    for _ in range(DEATHS_ALONE):
        if last_words.startswith(ENDED):
            error = SuggestionTimeoutError(f"{cell.method.name}: took longer than {limit:g} s")
            break
        ((_, said),) = pool([cell])
        if said is None:
            return
        last_words = said
    store.records.write_failure(Failure.of(cell, error, said=last_words))


def _set_aside(store: Store) -> None:
    """Put damaged files of single runs out of the way, so that these are run again."""
    moved = store.set_aside_damaged()
    if moved:
        warnings.warn(
            f"{len(moved)} damaged files were moved to {moved[0].parent}, such as {moved[0].name}; "
            "what was in them is run again",
            DamagedFilesWarning,
            stacklevel=4,
        )
