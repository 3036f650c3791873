"""Thread limits for linear algebra, and a picklable lock."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Lock:
    """A reentrant lock that can be pickled and copied; a copy is a new, open lock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type["Lock"], tuple[()]]:
        return Lock, ()


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit linear algebra to one thread: faster for small matrices, and always the same bits."""
    import scipy.linalg  # noqa: F401  only libraries that are loaded can be limited
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
