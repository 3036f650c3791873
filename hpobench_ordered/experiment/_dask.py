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

from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.errors import (
    ExperimentError,
    HPOBenchOrderedError,
    WaitingWarning,
    warn_user,
)
from hpobench_ordered.experiment.job import CrashedRun, Job, RunReply, perform_in_child
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.runtime.child import CHILDREN, pickle_value
from hpobench_ordered.runtime.machine import package_versions

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_SECONDS = 10  # time limit to connect to a cluster
CELLS_PER_THREAD = 2  # sent to the workers at a time, one of them running
FEWEST_CELLS = 32  # sent at a time, so that an adaptive cluster sees that more workers would help
PACKAGES_TO_SILENCE = ("distributed", "tornado", "asyncio")
"""Packages whose loggers print a traceback for every task when the connection is lost."""


def run_on_workers(
    client: "Client", job: Job, cells: Sequence[Cell]
) -> Iterator[tuple[Cell, RunReply | CrashedRun | None]]:
    """Run cells, one run of a method each, on the workers; yield each with its reply when over.

    Only a few cells are sent at a time: others follow as runs finish. They are sent as pickles,
    which the worker unpickles only after it has compared versions.

    Raises:
        ExperimentError: The connection was lost, or a worker cannot run them.
    """
    from distributed import KilledWorker, as_completed

    unsent = iter(cells)
    versions = package_versions()
    cell_of_future: dict[Future, Cell] = {}

    def submit_next() -> "list[Future]":
        """Send as many of the next cells as the workers that there are now may have at a time."""
        threads = sum(client.ncores().values())
        most_cells = max(FEWEST_CELLS, CELLS_PER_THREAD * threads)
        futures = []
        for cell in islice(unsent, most_cells - len(cell_of_future)):
            # `sendable` is the cell in the form in which a worker can load its method.
            pickled_cell = pickle_value(cell.sendable)
            # Not pure: a run that is repeated after a crash must not get the earlier result.
            future = client.submit(
                perform_on_worker, pickled_cell, job.time_limit, versions, pure=False
            )
            cell_of_future[future] = cell
            futures.append(future)
        return futures

    try:
        finished = as_completed(submit_next(), loop=client.loop)
        for future in finished:
            try:
                reply = future.result()
            except KilledWorker:  # several workers died of it
                reply = CrashedRun("several Dask workers died during the run")
            yield cell_of_future.pop(future), reply
            finished.update(submit_next())
    except HPOBenchOrderedError:  # its message tells the user what to do
        raise
    except (Exception, CancelledError) as error:
        is_lost = client.status != "running" or isinstance(error, OSError | CancelledError)
        if is_lost:
            raise ExperimentError(
                "the connection to the Dask scheduler was lost; finished runs are stored: "
                "start the scheduler and run the same again to continue"
            ) from None
        message = f"a Dask worker cannot run this: {type(error).__name__}: {error}"
        raise ExperimentError(message) from None
    finally:
        with suppress(Exception):  # the connection may be lost at any moment
            if client.status == "running":
                client.cancel(list(cell_of_future))  # those that are not over


def perform_on_worker(
    pickled_cell: bytes, time_limit: float | None, versions: Mapping[str, str]
) -> RunReply | CrashedRun:
    """Make a run in a child process of this Dask worker, if it has the client's packages.

    Args:
        pickled_cell: The run, a pickled `Cell`.
        time_limit: Seconds that one call into the method may take; None: no limit.
        versions: The client's versions of packages, by name.

    Returns:
        The result of the run, or the error of its method; or a `CrashedRun` if the child process
        died during the run.

    Raises:
        ExperimentError: The worker has other versions of these packages.
    """
    differences = []
    for name, own_version in package_versions().items():
        if name not in versions:  # a package that only the worker has is fine
            continue
        if own_version != versions[name]:
            differences.append(f"{name} {own_version} instead of {versions[name]}")
    if differences:
        raise ExperimentError(
            f"a Dask worker has {', '.join(differences)}: versions must be the same; stop that "
            "worker and run the same again to continue"
        )

    cell = pickle.loads(pickled_cell)  # only now: other versions might not unpickle it
    # Runs of one group share child processes. On a worker, these stay alive after the experiment,
    # with the method's code in memory. If the user changes the method, its next experiment must not
    # find the old code: a user's method, which has a group name, has one group for each version.
    group = cell.process_group
    if group:
        group = f"{group} {cell.identity.version}"
    return perform_in_child(cell, time_limit, CHILDREN, group=group)


@contextmanager
def connect(dask: "Client | str") -> Iterator[tuple["Client", Mapping[str, Mapping[str, str]]]]:
    """Connect to a cluster; yield a client of it, and the packages' versions on each worker.

    Args:
        dask: The user's client, which stays open; or the address of a scheduler, to which a new
            client is opened and closed at the end.

    Raises:
        ExperimentError: There is no scheduler, or a worker lacks a package.

    Warns:
        WaitingWarning: There is no worker yet.
    """
    # Raises an error that names the package's extra if Dask is not installed.
    distributed = import_extra("distributed", package="distributed", extra="dask", purpose="Dask")
    with ExitStack() as stack:
        stack.enter_context(_silence_loggers())
        if isinstance(dask, distributed.Client):
            client = dask
        else:
            client = _open_client(dask)
            stack.callback(_close, client)
        yield client, _read_versions(client)


@contextmanager
def _silence_loggers() -> Iterator[None]:
    """Silence Dask's loggers while the context is open.

    They would print a traceback for an error that this package reports in one line.
    """
    # Loggers below that of a package, such as "distributed.core", may have a level of their own.
    existing_loggers = list(logging.root.manager.loggerDict)
    names = set(PACKAGES_TO_SILENCE)
    names.update(name for name in existing_loggers if name.split(".")[0] in PACKAGES_TO_SILENCE)

    level_before = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # above the highest: no output
    try:
        yield
    finally:
        for name, level in level_before.items():
            logging.getLogger(name).setLevel(level)


def _open_client(address: str) -> "Client":
    """Connect to the scheduler at an address."""
    from distributed import Client

    # The client is not the default one: that would change what the user's own Dask code uses.
    try:
        return Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ExperimentError(
            f"no Dask scheduler at {address!r}: {error}; the address must be like tcp://host:8786"
        ) from None


def _read_versions(client: "Client") -> dict[str, Mapping[str, str]]:
    """Ask each worker, by its address, for the versions of its packages, by their names.

    If there is no worker, this waits for the first one.

    Raises:
        ExperimentError: A worker lacks this package or what it needs.
    """
    # An adaptive cluster only starts a worker if there is something to do. Not pure: the result of
    # an earlier call would need no worker.
    future = client.submit(package_versions, pure=False)
    try:
        try:
            future.result(timeout=CONNECT_SECONDS)
        except TimeoutError:
            warn_user(
                "the Dask cluster has no workers yet: waiting for the first one", WaitingWarning
            )
            future.result()
        return dict(client.run(package_versions))  # `run` calls the function on every worker
    except ModuleNotFoundError as error:
        raise ExperimentError(f"the Dask workers lack a package: {error}") from None


def _close(client: "Client") -> None:
    """Close the connection, if it still exists."""
    with suppress(Exception):  # the scheduler may be gone
        client.close(timeout=CONNECT_SECONDS)
