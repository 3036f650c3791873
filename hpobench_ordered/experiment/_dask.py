"""Runs cells on the workers of a Dask cluster, each in a child process of the worker.

Results come back to the client, which writes them.
"""

import logging
import pickle
from asyncio import CancelledError
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING

from hpobench_ordered.core.extras import import_extra
from hpobench_ordered.errors import ExperimentError, HPOBenchOrderedError
from hpobench_ordered.experiment.job import CrashedRun, Job, RunReply, perform_in_child
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.runtime.child import CHILDREN, pickle_call
from hpobench_ordered.runtime.machine import package_versions

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_SECONDS = 10  # time limit to connect to a cluster
AHEAD = 2  # cells sent for each thread of the workers, one of them running
NOISY = ("distributed", "tornado", "asyncio")
"""Loggers that print a traceback for every task when the connection is lost."""


def run_on_workers(
    client: "Client", job: Job, cells: Sequence[Cell]
) -> Iterator[tuple[Cell, RunReply | CrashedRun | None]]:
    """Run cells on the workers; yield each when it is over."""
    from distributed import KilledWorker, as_completed

    waiting = iter(cells)
    versions = package_versions()
    sent: dict[Future, Cell] = {}

    def submit_next(count: int) -> "Iterator[Future]":
        for cell in islice(waiting, count):
            request = pickle_call(perform_on_worker, cell.sendable, job.time_limit)
            future = client.submit(run_request, request, versions, pure=False)
            sent[future] = cell
            yield future

    try:
        threads = sum(client.ncores().values())
        finished = as_completed([*submit_next(max(1, AHEAD * threads))], loop=client.loop)
        for future in finished:
            try:
                reply = future.result()
            except KilledWorker:  # several workers died of it
                reply = CrashedRun("several Dask workers died during the run")
            yield sent.pop(future), reply
            finished.update([*submit_next(1)])
    except HPOBenchOrderedError:
        raise
    except (Exception, CancelledError) as error:
        if client.status != "running" or isinstance(error, OSError | CancelledError):
            raise ExperimentError(
                "the connection to the Dask scheduler was lost; finished runs are stored: "
                "start the scheduler and run the same again to continue"
            ) from None
        message = f"a Dask worker cannot run this: {type(error).__name__}: {error}"
        raise ExperimentError(message) from None
    finally:
        with suppress(Exception):
            if client.status == "running":
                client.cancel(list(sent))


def perform_on_worker(cell: Cell, time_limit: float | None) -> RunReply | CrashedRun:
    """Make a run in a child process of a Dask worker."""
    return perform_in_child(cell, time_limit, CHILDREN)


def run_request(request: bytes, versions: Mapping[str, str]) -> RunReply | CrashedRun:
    """Answer a client's request on a worker, whose packages must have the client's versions."""
    here = package_versions()
    different = [name for name in here if versions.get(name, here[name]) != here[name]]
    if different:
        texts = [f"{name} {here[name]} instead of {versions[name]}" for name in different]
        raise ExperimentError(
            f"a Dask worker has {', '.join(texts)}: versions must be the same; stop that worker "
            "and run the same again to continue"
        )
    function, arguments = pickle.loads(request)
    reply: RunReply | CrashedRun = function(*arguments)
    return reply


@contextmanager
def connect(dask: "Client | str") -> Iterator[tuple["Client", Mapping[str, Mapping[str, str]]]]:
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
