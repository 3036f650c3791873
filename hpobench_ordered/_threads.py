"""How many threads linear algebra uses."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra on one thread.

    The matrices are small: with two threads a suggestion takes several times longer, and the last
    bits of its numbers may differ.
    """
    import scipy.linalg  # noqa: F401  only what is loaded by now can be limited
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
