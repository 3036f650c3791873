"""Thread limits for linear algebra, and a picklable lock."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


class Lock:
    """A reentrant lock that can be pickled and copied; a copy is a new, open lock."""

    def __init__(self) -> None:
        """Make an open lock."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        """Wait until no other thread has the lock, and take it."""
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        """Release the lock."""
        self._lock.release()

    def __reduce__(self) -> tuple[type["Lock"], tuple[()]]:
        """Pickle and copy no state: unpickling calls the class, which makes an open lock."""
        return Lock, ()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit linear algebra to one thread within a block.

    One thread is faster for small matrices. It also gives the same bits on every machine, as the
    order of sums depends on the number of threads.
    """
    # Only libraries that are loaded can be limited. This import loads that of scipy.
    import scipy.linalg  # noqa: F401

    thread_pools = find_thread_pools(len(sys.modules))  # searched again after further imports
    with thread_pools.limit(limits=1):
        yield


@lru_cache(maxsize=1)
def find_thread_pools(number_of_modules: int) -> "ThreadpoolController":
    """Find the thread pools of all loaded libraries.

    A search takes a millisecond, so its result is cached. Importing a module may load a library, so
    the search is repeated when the number of modules has changed.

    Args:
        number_of_modules: Number of imported modules. It is used by the cache alone.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
