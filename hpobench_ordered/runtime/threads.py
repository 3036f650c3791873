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
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type["Lock"], tuple[()]]:
        """What pickle and copy call to make the other lock: the class, without arguments."""
        return Lock, ()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit linear algebra to one thread: faster for small matrices, and always the same bits."""
    import scipy.linalg  # noqa: F401  only libraries that are loaded can be limited

    with find_thread_pools(len(sys.modules)).limit(limits=1):
        yield


@lru_cache(maxsize=1)
def find_thread_pools(number_of_modules: int) -> "ThreadpoolController":
    """Find the thread pools of all loaded libraries.

    A search takes a millisecond, so it is repeated only if modules were imported since: these load
    the libraries. Their number is only the key of the cache.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
