"""Runs many cells in this process, in several processes, or on a Dask cluster."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.data.checks import check_count
from hpobench_ordered.errors import (
    ExperimentError,
    ProcessDiedError,
)
from hpobench_ordered.experiment._dask import connect, run_on_workers
from hpobench_ordered.experiment.job import (
    CrashedRun,
    Job,
    RunReply,
    perform,
    perform_in_child,
)
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.runtime.child import Children
from hpobench_ordered.runtime.machine import describe_machine

if TYPE_CHECKING:
    from distributed import Client

TIME_LIMIT = 300.0  # seconds that one call into a method may take
REPEATS_AFTER_CRASH = 3  # of a run whose process died, before it counts as failed

Pool = Callable[[Sequence[Cell]], Iterator[tuple[Cell, RunReply | CrashedRun | None]]]
"""Runs cells; yields each when it is over, with None for one that another process has made."""


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    workers: int = 1,
    time_limit: float | None = TIME_LIMIT,
    dask: "Client | str | None" = None,
    session: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
    children: Children | None = None,
) -> None:
    """Run all cells that the store has neither finished nor recorded as failed.

    Each run is written when it is finished: interrupted at any moment, only unfinished runs are
    lost, and calling this again continues. A run whose process crashed is repeated after all
    others.

    Args:
        cells: The runs.
        store: Where they are written.
        workers: See `hpobench_ordered.run`.
        time_limit: Seconds that one call into a method may take; None: no limit.
        dask: A Dask client or the address of a scheduler; None: this machine.
        session: Recorded as this start of the runner, with the machine and the versions of Dask's
            workers; None: this start is not recorded.
        progress: Called with the number of runs that are over and of all runs.
        children: The processes, which stay open for the caller; None: new ones, closed at the end.

    Raises:
        ExperimentError: The options are not such as `hpobench_ordered.run` describes.
        StoreError: The store cannot be written.
    """
    check_workers(workers)
    if time_limit is not None and not time_limit > 0:
        raise ExperimentError(f"a time limit must be above 0 s, but got {time_limit}")
    store = Store(Path(store.folder).absolute())
    store.prepare()
    keys_that_are_over = store.keys() | store.records.failures().keys()
    remaining = [cell for cell in cells if cell.key not in keys_that_are_over]
    # Runs of one method in a row use the same processes, so that fewer are started.
    remaining.sort(key=lambda cell: cell.process_group)
    report_progress = progress or (lambda done, total: None)  # by default nothing is reported
    done = len(cells) - len(remaining)
    report_progress(done, len(cells))

    crashed: dict[Cell, CrashedRun] = {}
    job = Job(store, time_limit)
    with _open_pool(job, workers, dask, children) as (pool, machines):
        if session is not None:
            store.records.write_session(
                {
                    **session,
                    "workers": workers,
                    "backend": "processes" if dask is None else "dask",
                    "time_limit": time_limit,
                    "started": datetime.now(UTC).isoformat(timespec="seconds"),
                    **describe_machine(),
                    **machines,
                }
            )
        for cell, reply in pool(remaining):
            if isinstance(reply, CrashedRun):
                crashed[cell] = reply
            elif reply is not None:  # None: another process has written the run
                job.write(cell, reply)
            done += 1
            report_progress(done, len(cells))
        for cell, crash in crashed.items():
            _repeat_crashed_run(cell, crash, pool, job)


def check_workers(workers: object) -> None:
    """Raise an `ExperimentError` unless a number of workers is 0 or positive."""
    # `check_count` allows positive whole numbers. False equals 0, but is no number of workers.
    if workers != 0 or isinstance(workers, bool):
        check_count(workers, noun="worker")


@contextmanager
def _open_pool(
    job: Job, workers: int, dask: "Client | str | None", children: Children | None
) -> Iterator[tuple[Pool, Mapping[str, Any]]]:
    """Yield two things: the function that makes runs, and entries for the record of this start.

    The function takes cells, and yields each with its reply when it is over. The store has a record
    of every start of the experiment. With Dask, its entry "machines" tells on which machines the
    workers are; without Dask, there are no entries to add, and the second value is empty.

    Args:
        job: Writes the results of runs.
        workers: Number of processes that make runs; 0: all runs are made in this one.
        dask: A Dask client or the address of a scheduler; None: this machine.
        children: The processes, left open at the end; None: new ones, closed at the end.
    """
    if dask is not None:
        with connect(dask) as (client, machines):
            run_with_dask = partial(run_on_workers, client, job)  # still takes the cells
            yield run_with_dask, {"machines": machines}
        return

    processes = children or Children(workers)
    nothing_recorded: dict[str, Any] = {}
    try:
        if workers <= 1:  # one run at a time needs no threads
            run_in_turn = partial(_run_one_by_one, job=job, workers=workers, children=processes)
            yield run_in_turn, nothing_recorded
        else:
            with closing(_Threads(workers, job, processes)) as threads:
                yield threads.run, nothing_recorded
    finally:
        if children is None:
            processes.close()


def _run_one_by_one(
    cells: Iterable[Cell], job: Job, workers: int, children: Children
) -> Iterator[tuple[Cell, RunReply | CrashedRun | None]]:
    """Run cells in turn: methods of this package here, others in their own processes.

    Without workers, all run here. Yields each cell with its reply, which is None if another process
    has made the run in the meantime.
    """
    for cell in cells:
        if job.is_over(cell):
            yield cell, None
            continue
        is_of_package = cell.identity.source is None  # others are imported from their source
        if workers == 0 or is_of_package:
            yield cell, perform(cell, job.time_limit)
        else:
            yield cell, perform_in_child(cell, job.time_limit, children)


class _Threads:
    """Makes several runs at the same time, each in a child process for which a thread waits.

    A thread only sends a cell to its process and waits for the reply, so threads do not hinder each
    other.
    """

    def __init__(self, workers: int, job: Job, children: Children) -> None:
        """Start the threads.

        Args:
            workers: Number of runs at the same time.
            job: Has the store, which tells which runs are over, and the time limit of calls.
            children: Starts the processes, and reuses them.
        """
        self._threads = ThreadPoolExecutor(workers)
        self._job = job
        self._children = children

    def run(self, cells: Sequence[Cell]) -> Iterator[tuple[Cell, RunReply | CrashedRun | None]]:
        """Run cells in child processes; yield each with its reply, in the order in which they end.

        The reply is None if another process has made the run in the meantime.
        """
        cell_of_future = {self._threads.submit(self._perform, cell): cell for cell in cells}
        for future in as_completed(cell_of_future):
            cell = cell_of_future.pop(future)  # so that its reply, which may be large, is freed
            yield cell, future.result()

    def close(self) -> None:
        """Kill all processes, so that the threads, which wait for their replies, end, too."""
        # First, runs that were not started yet are cancelled: their threads would start processes.
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._children.close()

    def _perform(self, cell: Cell) -> RunReply | CrashedRun | None:
        """Make a run in a child process, and wait for its reply; called in a thread.

        None if another start of the experiment has made the run in the meantime.
        """
        if self._job.is_over(cell):
            return None
        return perform_in_child(cell, self._job.time_limit, self._children)


def _repeat_crashed_run(cell: Cell, crash: CrashedRun, pool: Pool, job: Job) -> None:
    """Repeat a run whose process died, perhaps killed from outside, and write its result.

    If its process dies every time, the run is written as failed.

    Args:
        cell: The run.
        crash: What the process reported when it died.
        pool: Makes runs.
        job: Writes their results.
    """
    for _ in range(REPEATS_AFTER_CRASH):
        replies = list(pool([cell]))  # one pair: the cell, and its reply
        _, reply = replies[0]
        if reply is None:  # another process has written the run
            return
        if not isinstance(reply, CrashedRun):
            job.write(cell, reply)
            return
        crash = reply
    error = ProcessDiedError(f"{cell.method.name}: its process crashed or was killed")
    job.write_failure(cell, error, crash.report)
