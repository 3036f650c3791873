"""Runs many cells in one or several processes, or on a Dask cluster."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.core.checks import check_count
from hpobench_ordered.errors import (
    DamagedFilesWarning,
    ExperimentError,
    MethodError,
    ProcessDiedError,
    SuggestionTimeoutError,
)
from hpobench_ordered.experiment._dask import connected, on_workers
from hpobench_ordered.experiment.job import Job
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.records import Failure
from hpobench_ordered.experiment.store import MANY, Store
from hpobench_ordered.experiment.watchdog import ENDED, can_interrupt
from hpobench_ordered.runtime.child import Children
from hpobench_ordered.runtime.machine import describe_machine

if TYPE_CHECKING:
    from distributed import Client

TIME_LIMIT = 300.0  # seconds that one call into a method may take
DEATHS_ALONE = 3  # repetitions of a run whose process died, before it counts as failed


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    workers: int = 1,
    time_limit: float | None = TIME_LIMIT,
    dask: "Client | str | None" = None,
    session: dict[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Run all cells that the store has neither finished nor recorded as failed.

    Each run is written when it is finished: interrupted at any moment, only unfinished runs are
    lost, and calling this again continues. Options and errors are as of `hpobench_ordered.run`;
    `session` is recorded, with the machine and the versions of Dask's workers.
    """
    check_count("worker", workers)
    if time_limit is not None and not time_limit > 0:
        raise ExperimentError(f"a time limit must be above 0 s, but got {time_limit}")
    store = Store(Path(store.folder).absolute())  # workers may have another current folder
    store.prepare()
    if moved := store.set_aside_damaged():
        warnings.warn(
            f"{len(moved)} damaged files were moved to {moved[0].parent}, such as {moved[0].name}; "
            "their runs are repeated",
            DamagedFilesWarning,
            stacklevel=3,
        )
    over = store.keys() | store.records.failures().keys()
    left = [cell for cell in cells if cell.key not in over]
    if workers > 1 or dask is not None:
        left.sort(key=lambda cell: cell.apart)  # starts fewer processes
    report = progress or (lambda done, total: None)
    report(len(cells) - len(left), len(cells))
    died: dict[Cell, str] = {}
    job = Job(store, time_limit)
    with _pool(job, workers, dask) as (pool, machines):
        if session is not None:
            backend = "processes" if dask is None else "dask"
            how = {"workers": workers, "backend": backend, "time_limit": time_limit}
            now = datetime.now(UTC).isoformat(timespec="seconds")
            here = {"started": now, **describe_machine(), **machines}
            store.records.write_session(session | how | here)
        for done, (cell, crash) in enumerate(pool(left), start=len(cells) - len(left) + 1):
            if crash is not None:
                died[cell] = crash
            report(done, len(cells))
        for cell, crash in died.items():
            _settle(cell, crash, pool, job)
    store.compact(at_least=MANY)


Pool = Callable[[Sequence[Cell]], Iterator[tuple[Cell, str | None]]]
"""Runs cells; yields each when it is over, with the crash report if its process died."""


@contextmanager
def _pool(
    job: Job, workers: int, dask: "Client | str | None"
) -> Iterator[tuple[Pool, Mapping[str, Any]]]:
    """The function that makes runs, and what a session records of the machines."""
    if dask is not None:
        with connected(dask) as (client, machines):
            yield lambda cells: on_workers(client, job, cells), {"machines": machines}
    elif workers == 1 and (job.time_limit is None or can_interrupt()):
        yield lambda cells: ((cell, job.made(cell)) for cell in cells), {}
    else:
        children, threads = Children(), ThreadPoolExecutor(workers)

        def in_processes(cells: Sequence[Cell]) -> Iterator[tuple[Cell, str | None]]:
            sent = {threads.submit(job.made, cell, children): cell for cell in cells}
            yield from ((sent[future], future.result()) for future in as_completed(sent))

        try:
            yield in_processes, {}
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            children.close()


def _settle(cell: Cell, crash: str, pool: Pool, job: Job) -> None:
    """Repeat a run whose process died; record a failure if it dies each time."""
    name = cell.method.name
    error: MethodError = ProcessDiedError(f"{name}: its process crashed or was killed")
    for _ in range(DEATHS_ALONE):
        if crash.startswith(ENDED):
            error = SuggestionTimeoutError(f"{name}: took longer than {job.time_limit:g} s")
            break
        ((_, again),) = pool([cell])
        if again is None:
            return
        crash = again
    job.store.records.write_failure(Failure.of(cell, error, said=crash))
