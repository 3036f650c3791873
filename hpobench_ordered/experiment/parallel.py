"""Runs many cells: in this process, in several, or on a Dask cluster; a failed run fails alone."""

import faulthandler
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.errors import (
    DamagedFilesWarning,
    ExperimentError,
    MethodError,
    MissingExtraError,
    StoreError,
    SuggestionTimeoutError,
)
from hpobench_ordered.experiment._run_file import package_version
from hpobench_ordered.experiment.failures import Failure
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.runner import one_thread, run_cell
from hpobench_ordered.experiment.store import MANY, Store
from hpobench_ordered.experiment.watchdog import Overdue, Watchdog

if TYPE_CHECKING:
    from distributed import Client

TIME_LIMIT = 300.0
"""Seconds that one call into a method may take."""
CONNECT_SECONDS = 10
"""Time to reach a Dask cluster."""
ORPHAN_SECONDS = 1.0
"""Time after which a process notices that the one that started it is gone."""
FRUITLESS = 3
"""How often in a row all workers may die without a run being finished."""

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How an experiment is run; none of it changes results.

    Attributes:
        workers: Number of processes.
        time_limit: Seconds that a call into a method may take; None for ever.
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
        progress: Called with the number of runs that are over and of all runs.

    Raises:
        StoreError: The store cannot be written.
        ExperimentError: The Dask cluster cannot be reached.
    """
    # A relative path means something else in a worker of another machine or folder.
    store = Store(Path(store.folder).absolute())
    store.prepare()
    _set_aside(store)
    store.records.forget_progress(store.records.in_progress(alive=False))
    total, left, fruitless = len(cells), _unfinished(cells, store), 0
    report = progress or (lambda done, total: None)
    report(total - len(left), total)
    with _cluster(settings, store) as pool:
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


# -- internals -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Pool:
    """Where runs are made: here, in processes of this machine, or on a Dask cluster.

    Attributes:
        store: Where results go.
        settings: How to run.
        client: The Dask cluster.
    """

    store: Store
    settings: Settings
    client: "Client | None" = None

    def run(self, cells: Sequence[Cell], *, trace: bool = False) -> Iterator[None]:
        """Make runs; yields each time one is over.

        Args:
            cells: The runs.
            trace: Whether to keep what a process says when it crashes.
        """
        from joblib import Parallel, delayed, parallel_config

        # Even a single run of several workers is made in a process that may be given up.
        is_apart = self.client is not None or self.settings.workers > 1
        runner = os.getpid() if is_apart and self.client is None else None
        job = _Job(self.store, self.settings.time_limit, is_apart, trace, runner)
        with self._backend(parallel_config):
            parallel = Parallel(
                n_jobs=-1 if self.client else self.settings.workers,
                return_as="generator_unordered",
            )
            try:
                yield from parallel(delayed(job)(cell) for cell in cells)
            except BrokenProcessPool as error:
                if isinstance(error, _deaths()):
                    raise
                raise ExperimentError(
                    "a method cannot be sent to another process: define it in a module that can be "
                    f"imported there, or use one worker ({error.__cause__ or error})"
                ) from error

    def _backend(self, parallel_config: Any) -> AbstractContextManager[Any]:
        return nullcontext() if self.client is None else parallel_config(backend="dask")


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
    """Find out which of the runs that were being made ends its process, one by one."""
    store = pool.store
    was_running = store.records.in_progress(alive=False)
    if pool.client is not None:  # nobody knows of processes on other machines
        was_running |= store.records.in_progress(alive=True)
    for cell in cells:
        if cell.key not in was_running or store.has(cell.key):
            continue
        store.records.forget_progress([cell.key])
        try:
            for _ in pool.run([cell], trace=True):
                pass
        except _deaths():
            if not store.has(cell.key):
                store.records.write_failure(Failure.died(cell, store.records.crash_text(cell.key)))
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


@contextmanager
def _cluster(settings: Settings, store: Store) -> Iterator[_Pool]:
    """The pool of the settings; a Dask cluster is looked at first.

    Raises:
        MissingExtraError: Dask is not installed.
        ExperimentError: The cluster cannot be reached, or lacks this package.
        StoreError: A worker does not see the store.
    """
    if settings.dask is None:
        yield _Pool(store, settings)
        return
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError(
            "distributed", extra="dask", purpose="running on a Dask cluster"
        ) from None
    if isinstance(settings.dask, Client):
        with settings.dask.as_current():
            _check_cluster(settings.dask, store)
            yield _Pool(store, settings, settings.dask)
        return
    try:
        client = Client(settings.dask, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise ExperimentError(
            f"no Dask scheduler at {settings.dask!r}: {error or type(error).__name__}; expected an "
            "address such as tcp://host:8786"
        ) from None
    with client:
        _check_cluster(client, store)
        yield _Pool(store, settings, client)


def _check_cluster(client: "Client", store: Store) -> None:
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        found = client.run(_look, str(store.folder))
    except TimeoutError:
        raise ExperimentError("the Dask cluster has no workers") from None
    except ModuleNotFoundError as error:
        raise ExperimentError(f"the Dask workers lack a package: {error}") from None
    for worker, (version, sees_store) in found.items():
        if version != package_version():
            raise ExperimentError(
                f"the Dask worker {worker} has version {version} of this package, here it is "
                f"{package_version()}"
            )
        if not sees_store:
            raise StoreError(
                f"the Dask worker {worker} does not see {store.folder}: the folder of the results "
                "must be on a file system that all of them share"
            )


def _look(folder: str) -> tuple[str, bool]:
    """What a worker has: the version of this package, and the store."""
    return package_version(), Store(Path(folder)).is_prepared
