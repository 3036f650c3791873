"""Runs many cells: in this process, in several, or on a Dask cluster; a failed run fails alone."""

import faulthandler
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.errors import (
    DamagedFilesWarning,
    ExperimentError,
    MethodError,
    SuggestionTimeoutError,
)
from hpobench_ordered.experiment._dask import DaskCluster, connected
from hpobench_ordered.experiment.failures import Failure
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.runner import one_thread, run_cell
from hpobench_ordered.experiment.store import MANY, Store
from hpobench_ordered.experiment.watchdog import Overdue, Watchdog

if TYPE_CHECKING:
    from distributed import Client

TIME_LIMIT = 300.0
"""Seconds that one call into a method may take."""
ORPHAN_SECONDS = 1.0
"""Time after which a process notices that the one that started it is gone."""
DEATHS_ALONE = 3
"""How often a process must die, with one run alone, for that to be the run's failure."""
FRUITLESS = 3
"""How often in a row all workers may die without a run being finished."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How an experiment is run; none of it changes results.

    Attributes:
        workers: Number of processes.
        time_limit: Seconds that a call into a method may take; None: no limit.
        dask: A Dask client, or the address of a scheduler, whose workers run the cells; all of
            them must see the store's folder.
    """

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

    Args:
        cells: The runs.
        store: Where results go.
        settings: How to run them.
        session: What to record of this start, to which the versions of Dask's workers are added;
            default: nothing.
        progress: Called with the number of runs that are over and of all runs.

    Raises:
        StoreError: The store cannot be written.
        ExperimentError: The Dask cluster cannot be reached, or is lost.
    """
    # A relative path means something else in a worker of another machine or folder.
    store = Store(Path(store.folder).absolute())
    store.prepare()
    _set_aside(store)
    store.records.forget_progress(store.records.in_progress(alive=False))
    total, left, fruitless = len(cells), _unfinished(cells, store), 0
    report = progress or (lambda done, total: None)
    report(total - len(left), total)
    with nullcontext() if settings.dask is None else connected(settings.dask, store) as cluster:
        pool = _Pool(store, settings, cluster)
        if session is not None:
            machines = {} if cluster is None else {"machines": cluster.machines}
            store.records.write_session({**session, **machines})
        while left:
            before = len(left)
            try:
                for over, _ in enumerate(pool.run(left), start=1):
                    report(total - before + over, total)
            except _deaths():
                _run_suspects(left, pool)
                report(total - len(_unfinished(cells, store)), total)
            left = _unfinished(cells, store)
            fruitless = fruitless + 1 if len(left) == before else 0
            if fruitless == FRUITLESS:
                raise ExperimentError(
                    f"processes ended {FRUITLESS} times in a row before a run was finished: is "
                    "there enough memory?"
                )
    store.compact(at_least=MANY)


@dataclass(frozen=True, slots=True)
class _Pool:
    """Where runs are made: here, in processes of this machine, or on a Dask cluster.

    Attributes:
        store: Where results go.
        settings: How to run.
        cluster: The Dask cluster.
    """

    store: Store
    settings: Settings
    cluster: DaskCluster | None = None

    def run(self, cells: Sequence[Cell], *, trace: bool = False) -> Iterator[None]:
        """Make runs; yields each time one is over.

        Args:
            cells: The runs.
            trace: Whether to record what a process says when it crashes.
        """
        # Even a single run of several workers is made in a process that may be ended.
        is_apart = self.cluster is not None or self.settings.workers > 1
        runner = os.getpid() if is_apart and self.cluster is None else None
        job = _Job(self.store, self.settings.time_limit, is_apart, trace, runner)
        if self.cluster is not None:
            yield from self.cluster.run(job, cells)
        else:
            yield from self._run_here(job, cells)

    def _run_here(self, job: "_Job", cells: Sequence[Cell]) -> Iterator[None]:
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=self.settings.workers, return_as="generator_unordered")
        try:
            yield from parallel(delayed(job)(cell) for cell in cells)
        except BrokenProcessPool as error:
            if isinstance(error, _deaths()):
                raise
            raise ExperimentError(
                "a method cannot be sent to another process: define it in a module that can be "
                f"imported there, or use one worker ({error.__cause__ or error})"
            ) from error


@dataclass(frozen=True, slots=True)
class _Job:
    """Makes one run and writes what comes of it.

    Attributes:
        store: Where results go.
        time_limit: As in `Settings`.
        is_apart: Whether this is a process of its own, which may be ended.
        trace: Whether to keep what the process says when it crashes.
        runner: Process that started this one; None if it is none of this machine.
    """

    store: Store
    time_limit: float | None
    is_apart: bool
    trace: bool
    runner: int | None

    def __call__(self, cell: Cell) -> None:
        """Make a run, unless somebody else has."""
        if self.runner is not None:
            _end_with(self.runner)
        if self.store.has(cell.key):
            return
        with self.store.records.running(cell.key), self._traced(cell):
            try:
                give_up = self._giving_up(cell) if self.is_apart and _is_replaced() else None
                with one_thread(), Watchdog(self.time_limit, give_up=give_up) as watchdog:
                    table, timing = run_cell(cell, watchdog=watchdog)
            except MethodError as error:
                self.store.records.write_failure(Failure.of(cell, error))
            except Overdue:
                self.store.records.write_failure(Failure.of(cell, self._too_long(cell)))
            else:
                self.store.write(cell.key, table)
                self.store.records.write_timing(timing)

    def _giving_up(self, cell: Cell) -> Callable[[str], None]:
        def record(stack: str) -> None:
            self.store.records.write_failure(Failure.of(cell, self._too_long(cell), stack=stack))
            self.store.records.forget_progress([cell.key])

        return record

    def _too_long(self, cell: Cell) -> SuggestionTimeoutError:
        return SuggestionTimeoutError(f"{cell.method.name}: took longer than {self.time_limit:g} s")

    @contextmanager
    def _traced(self, cell: Cell) -> Iterator[None]:
        if not self.trace:
            yield
            return
        path = self.store.records.crash_file(cell.key)
        path.unlink(missing_ok=True)  # it may be a link
        with path.open("w") as file:
            faulthandler.enable(file)
            try:
                yield
            finally:
                faulthandler.disable()
        path.unlink(missing_ok=True)


@cache
def _end_with(runner: int) -> None:
    """End this process soon after the one that started it, which may be killed."""

    def watch() -> None:
        while os.getppid() == runner:
            time.sleep(ORPHAN_SECONDS)
        os._exit(1)

    if os.getppid() == runner:
        threading.Thread(target=watch, daemon=True).start()


def _run_suspects(cells: Sequence[Cell], pool: _Pool) -> None:
    """Find out which of the runs that were being made end their process, one by one.

    A process may have been killed from outside: a run fails if it dies alone, several times. Dask
    itself tries several times.
    """
    store = pool.store
    was_running = store.records.in_progress(alive=False)
    if pool.cluster is not None:  # nobody knows of processes on other machines
        was_running |= store.records.in_progress(alive=True)
    attempts = 1 if pool.cluster is not None else DEATHS_ALONE
    for cell in cells:
        if cell.key not in was_running or store.has(cell.key):
            continue
        for attempt in range(1, attempts + 1):
            store.records.forget_progress([cell.key])
            try:
                for _ in pool.run([cell], trace=True):
                    pass
                break
            except _deaths():
                said = store.records.crash_text(cell.key)
                if attempt == attempts and not store.has(cell.key):
                    store.records.write_failure(Failure.died(cell, said))
        store.records.forget_progress([cell.key])


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


def _unfinished(cells: Sequence[Cell], store: Store) -> list[Cell]:
    over = store.keys() | store.failures().keys()
    return [cell for cell in cells if cell.key not in over]


def _deaths() -> tuple[type[BaseException], ...]:
    """What is raised when a process ends without a word."""
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    if "distributed" not in sys.modules:
        return (TerminatedWorkerError,)
    from distributed import KilledWorker

    return (TerminatedWorkerError, KilledWorker)


def _is_replaced() -> bool:
    """Whether this process is replaced if it ends: not a Dask worker without a nanny."""
    if "distributed" not in sys.modules:
        return True
    from distributed import get_worker

    try:
        return get_worker().nanny is not None
    except ValueError:  # no Dask worker
        return True
