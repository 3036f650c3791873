"""Runs cells on the workers of a Dask cluster, each in a child process of the worker."""

import logging
import pickle
from asyncio import CancelledError
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING

from hpobench_ordered.core.extras import import_extra
from hpobench_ordered.errors import ExperimentError, HPOBenchOrderedError, StoreError
from hpobench_ordered.experiment.job import Job
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.runtime.child import CHILDREN, pickled
from hpobench_ordered.runtime.machine import package_versions

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_SECONDS = 10  # time limit to connect to a cluster
AHEAD = 2  # cells sent for each thread of the workers, one of them running
NOISY = ("distributed", "tornado", "asyncio")
"""Loggers that print a traceback for every task when the connection is lost."""


def on_workers(
    client: "Client", job: Job, cells: Sequence[Cell]
) -> Iterator[tuple[Cell, str | None]]:
    """Run cells; yield each when it is over, with the crash report if its process died."""
    from distributed import KilledWorker, as_completed

    waiting, versions = iter(cells), package_versions()
    sent: dict[Future, Cell] = {}

    def send(count: int) -> "Iterator[Future]":
        for cell in islice(waiting, count):
            future = client.submit(make, pickled(job, cell), versions, pure=False)
            sent[future] = cell
            yield future

    try:
        threads = sum(client.ncores().values())
        finished = as_completed([*send(max(1, AHEAD * threads))], loop=client.loop)
        for future in finished:
            try:
                said = future.result()
            except KilledWorker:  # several workers died of it
                said = ""
            yield sent.pop(future), said
            finished.update([*send(1)])
    except HPOBenchOrderedError:
        raise
    except (Exception, CancelledError) as error:
        if client.status != "running" or isinstance(error, OSError | CancelledError):
            raise ExperimentError(
                "the connection to the Dask scheduler was lost; finished runs are stored: "
                "start the scheduler and run the same again to continue"
            ) from None
        said = f"{type(error).__name__}: {error}"
        raise ExperimentError(f"a Dask worker cannot run this: {said}") from None
    finally:
        with suppress(Exception):
            if client.status == "running":
                client.cancel(list(sent))


@contextmanager
def connected(dask: "Client | str") -> Iterator[tuple["Client", Mapping[str, Mapping[str, str]]]]:
    """Connect to a cluster: its client, closed at the end unless the user's, and its versions."""
    distributed = import_extra("distributed", package="distributed", extra="dask", purpose="Dask")
    with ExitStack() as stack:
        for name in (*NOISY, *logging.root.manager.loggerDict):
            if name.partition(".")[0] in NOISY:
                logger = logging.getLogger(name)
                stack.callback(logger.setLevel, logger.level)
                logger.setLevel(logging.CRITICAL + 1)
        if not isinstance(dask, distributed.Client):
            try:
                dask = distributed.Client(dask, timeout=CONNECT_SECONDS, set_as_default=False)
            except (OSError, ValueError) as error:
                raise ExperimentError(
                    f"no Dask scheduler at {dask!r}: {error or type(error).__name__}; the address "
                    "must be like tcp://host:8786"
                ) from None
            stack.callback(_close, dask)
        try:
            dask.wait_for_workers(1, timeout=CONNECT_SECONDS)
            machines = dict(dask.run(package_versions))
        except TimeoutError:
            raise ExperimentError("the Dask cluster has no workers") from None
        except ModuleNotFoundError as error:
            raise ExperimentError(f"the Dask workers lack a package: {error}") from None
        yield dask, machines


def _close(client: "Client") -> None:
    with suppress(Exception):  # the scheduler may be gone
        client.close(timeout=CONNECT_SECONDS)


def make(payload: bytes, versions: Mapping[str, str]) -> str | None:
    """Run a cell on a worker that has the same versions and sees the store, see `Job.made`."""
    here = package_versions()
    different = [name for name in here if versions.get(name, here[name]) != here[name]]
    if different:
        said = ", ".join(f"{name} {here[name]} instead of {versions[name]}" for name in different)
        raise ExperimentError(
            f"a Dask worker has {said}: versions must be the same; stop that worker and run the "
            "same again to continue"
        )
    job, (cell,), _ = pickle.loads(payload)
    if not job.store.is_prepared:
        raise StoreError(
            f"a Dask worker does not see {job.store.folder}: the folder of the results must be on "
            "a file system that all workers share"
        )
    report: str | None = job.made(cell, CHILDREN)
    return report
