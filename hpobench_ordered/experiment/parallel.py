"""Runs many cells: in this process, in several, or on a Dask cluster; a failed run fails alone."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.errors import (
    DamagedFilesWarning,
    ExperimentError,
    MethodError,
    ProcessDiedError,
    SuggestionTimeoutError,
    check_count,
)
from hpobench_ordered.experiment._dask import connected, on_workers
from hpobench_ordered.experiment.job import Job
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.records import Failure
from hpobench_ordered.experiment.store import MANY, Store
from hpobench_ordered.experiment.watchdog import ENDED, can_interrupt
from hpobench_ordered.runtime.child import Children

if TYPE_CHECKING:
    from distributed import Client

TIME_LIMIT = 300.0
"""Seconds that one call into a method may take."""
DEATHS_ALONE = 3
"""How often a process must die, with one run alone, for that to be the run's failure."""


def run_cells(
    cells: Sequence[Cell],
    store: Store,
    *,
    workers: int = 1,
    time_limit: float | None = TIME_LIMIT,
    dask: "Client | str | None" = None,
    session: Mapping[str, Any] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Run what the store has neither finished nor recorded as failed.

    Each run is written when it is finished; stopping at any moment loses those in flight alone,
    and calling this again continues. A run whose method raises, takes too long or suggests
    nonsense, or whose process dies, is recorded as failed; the others go on.

    `workers`, `time_limit` and `dask` are those of `hpobench_ordered.run`: they change no results.
    `session` is recorded, with the versions of Dask's workers; `progress` is called with the
    number of runs that are over and of all runs.

    Raises:
        StoreError: The store cannot be written.
        ExperimentError: There is no worker or no time, or the Dask cluster is not there or lost.
    """
    check_count("worker", workers)
    if time_limit is not None and not time_limit > 0:
        raise ExperimentError(f"a time limit is longer than 0 s, got {time_limit}")
    # A relative path means something else in a worker of another machine or folder.
    store = Store(Path(store.folder).absolute())
    store.prepare()
    if moved := store.set_aside_damaged():
        warnings.warn(
            f"{len(moved)} damaged files were moved to {moved[0].parent}, such as {moved[0].name}; "
            "what was in them is run again",
            DamagedFilesWarning,
            stacklevel=3,
        )
    over = store.keys() | store.records.failures().keys()
    left = [cell for cell in cells if cell.key not in over]
    if workers > 1 or dask is not None:
        left.sort(key=lambda cell: cell.apart)  # fewer processes are started
    report = progress or (lambda done, total: None)
    report(len(cells) - len(left), len(cells))
    died = {}
    job = Job(store, time_limit)
    with _pool(job, workers, dask) as (pool, machines):
        if session is not None:
            store.records.write_session({**session, **machines})
        for done, (cell, last_words) in enumerate(pool(left), start=len(cells) - len(left) + 1):
            if last_words is not None:
                died[cell] = last_words
            report(done, len(cells))
        for cell, last_words in died.items():
            _settle(cell, last_words, pool, job)
    store.compact(at_least=MANY)


Pool = Callable[[Sequence[Cell]], Iterator[tuple[Cell, str | None]]]
"""Makes runs; yields each that is over, and if its process died, what it said."""


@contextmanager
def _pool(
    job: Job, workers: int, dask: "Client | str | None"
) -> Iterator[tuple[Pool, Mapping[str, Any]]]:
    """Where runs are made, and what a session records of the machines there."""
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


def _settle(cell: Cell, last_words: str, pool: Pool, job: Job) -> None:
    """Find out whether a run ends its process, whenever it is made, or that was killed."""
    name = cell.method.name
    error: MethodError = ProcessDiedError(f"{name}: its process crashed or was killed")
    for _ in range(DEATHS_ALONE):
        if last_words.startswith(ENDED):
            error = SuggestionTimeoutError(f"{name}: took longer than {job.time_limit:g} s")
            break
        ((_, said),) = pool([cell])
        if said is None:
            return
        last_words = said
    job.store.records.write_failure(Failure.of(cell, error, said=last_words))
