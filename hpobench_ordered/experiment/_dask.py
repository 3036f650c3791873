"""Runs cells on the workers of a Dask cluster."""

import logging
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from hpobench_ordered.errors import (
    ExperimentError,
    HPOBenchOrderedError,
    MissingExtraError,
    StoreError,
)
from hpobench_ordered.experiment._run_file import package_version
from hpobench_ordered.experiment.session import package_versions
from hpobench_ordered.experiment.store import Store

if TYPE_CHECKING:
    from distributed import Client, Future

    from hpobench_ordered.experiment.plan import Cell

CONNECT_SECONDS = 10
"""Time to reach a cluster."""
AHEAD = 2
"""Cells that are sent for each thread of the workers, of which one is at work."""

Versions = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class DaskCluster:
    """Workers that are ready to run cells.

    Attributes:
        client: The connection to the scheduler.
        machines: What versions of packages the workers have, by their addresses.
    """

    client: "Client"
    machines: Mapping[str, Versions]

    def run(self, job: Callable[["Cell"], None], cells: Sequence["Cell"]) -> Iterator[None]:
        """Make runs; yields each time one is over.

        Args:
            job: Makes one run.
            cells: The runs.

        Raises:
            KilledWorker: A run ended the processes of several workers.
            ExperimentError: The scheduler is gone, or a worker cannot run this.
        """
        from distributed import KilledWorker, as_completed

        waiting = iter(cells)
        known = {tuple(sorted(versions.items())) for versions in self.machines.values()}
        threads = sum(self.client.ncores().values())

        def send() -> "list[Future]":
            chosen = islice(waiting, max(1, AHEAD * threads) if not sent else 1)
            payloads = (_pickled(job, cell) for cell in chosen)
            return [self.client.submit(_call, p, known, pure=False) for p in payloads]

        sent: list[Future] = []
        sent += send()
        finished = as_completed(sent, loop=self.client.loop)
        try:
            for future in finished:
                future.result()
                sent.remove(future)
                yield
                more = send()
                sent += more
                finished.update(more)
        except (KilledWorker, HPOBenchOrderedError):
            raise
        except Exception as error:
            raise self._explained(error) from error
        finally:
            if self.client.status == "running":
                with suppress(Exception):
                    self.client.cancel(sent)

    def _explained(self, error: Exception) -> ExperimentError:
        """What to tell of an error that is no run's."""
        from asyncio import CancelledError

        from distributed.client import FutureCancelledError

        if self.client.status != "running" or isinstance(
            error, OSError | CancelledError | FutureCancelledError
        ):
            return ExperimentError(
                "the connection to the Dask scheduler was lost; finished runs are stored: start "
                "the scheduler and run the same again to continue"
            )
        return ExperimentError(
            f"a Dask worker cannot run this ({type(error).__name__}: {error}): all workers need "
            f"version {package_version()} of this package"
        )


@contextmanager
def connected(dask: "Client | str", store: Store) -> "Iterator[DaskCluster]":
    """Connect to a cluster and check that its workers can run cells.

    Args:
        dask: A client, or the address of a scheduler.
        store: The store, which every worker must see.

    Raises:
        MissingExtraError: Dask is not installed.
        ExperimentError: The cluster cannot be reached, or lacks this package.
        StoreError: A worker does not see the store.
    """
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtraError(
            "distributed", extra="dask", purpose="running on a Dask cluster"
        ) from None
    with _without_tracebacks():
        if isinstance(dask, Client):
            yield DaskCluster(dask, _checked(dask, store))
            return
        try:
            client = Client(dask, timeout=CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise ExperimentError(
                f"no Dask scheduler at {dask!r}: {error or type(error).__name__}; expected an "
                "address such as tcp://host:8786"
            ) from None
        try:
            yield DaskCluster(client, _checked(client, store))
        finally:
            with suppress(Exception):
                client.close(timeout=CONNECT_SECONDS)


@contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Keep Dask from printing a traceback for every task that a lost connection ends."""
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


def _checked(client: "Client", store: Store) -> dict[str, Versions]:
    """Versions of each worker's packages.

    Raises:
        ExperimentError: There are no workers, or one lacks this package or this version of it.
        StoreError: One does not see the store.
    """
    try:
        client.wait_for_workers(1, timeout=CONNECT_SECONDS)
        looked = client.run(_look, str(store.folder))
    except TimeoutError:
        raise ExperimentError("the Dask cluster has no workers") from None
    except ModuleNotFoundError as error:
        raise ExperimentError(f"the Dask workers lack a package: {error}") from None
    for worker, (versions, sees_store) in looked.items():
        there = versions.get("hpobench-ordered")
        if there != package_version():
            raise ExperimentError(
                f"the Dask worker {worker} has version {there} of this package, here it is "
                f"{package_version()}"
            )
        if not sees_store:
            raise StoreError(
                f"the Dask worker {worker} does not see {store.folder}: the folder of the results "
                "must be on a file system that all of them share"
            )
    return {worker: versions for worker, (versions, _) in looked.items()}


def _look(folder: str) -> tuple[dict[str, str], bool]:
    """What a worker has: the versions of its packages, and the store."""
    return package_versions(), Store(Path(folder)).is_prepared


def _pickled(job: Callable[["Cell"], None], cell: "Cell") -> bytes:
    """A job for another process, with the code of what is defined in scripts."""
    from hpobench_ordered.adapters.importing import cloudpickle

    return bytes(cloudpickle().dumps((job, cell)))


def _call(payload: bytes, known: set[tuple[tuple[str, str], ...]]) -> None:
    """Do a job in a worker, if its packages are those of the workers at the start.

    Raises:
        ExperimentError: This worker joined later, with other versions.
    """
    here = package_versions()
    if tuple(sorted(here.items())) not in known:
        other = dict(next(iter(known)))
        different = sorted(name for name in {*here, *other} if here.get(name) != other.get(name))
        said = ", ".join(f"{n} {here.get(n)} instead of {other.get(n)}" for n in different)
        raise ExperimentError(
            f"a Dask worker joined that has {said}: results of several versions are not mixed; "
            "stop that worker and run the same again to continue"
        )
    job, cell = pickle.loads(payload)
    job(cell)
