"""Thread limits for linear algebra, and a picklable lock."""

import ctypes
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

    with find_thread_pools().limit(limits=1):
        yield


def find_thread_pools() -> "ThreadpoolController":
    """Find the thread pools of all loaded libraries.

    A search takes a millisecond, so on Linux it is repeated only if libraries were loaded since.
    Elsewhere that cannot be told, and every call searches.
    """
    if sys.platform.startswith("linux"):
        return _search_thread_pools(*count_library_changes())
    # Without its cache, whose key the arguments are.
    return _search_thread_pools.__wrapped__(0, 0)


@lru_cache(maxsize=1)
def _search_thread_pools(loaded: int, unloaded: int) -> "ThreadpoolController":
    """Search the loaded libraries for thread pools.

    The counts of loaded and unloaded libraries are only the key of the cache: other counts, and the
    libraries are searched again.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


class _LibraryInfo(ctypes.Structure):
    """`struct dl_phdr_info` of `<link.h>`, which the dynamic linker passes for each library."""

    _fields_ = (
        ("address", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("headers", ctypes.c_void_p),
        ("header_count", ctypes.c_uint16),
        ("loaded", ctypes.c_ulonglong),
        ("unloaded", ctypes.c_ulonglong),
    )


def _read_counts(info: "ctypes._Pointer[_LibraryInfo]", size: int, counts: list[int]) -> int:
    """Append how many libraries were loaded and unloaded to `counts`.

    The C function `dl_iterate_phdr` calls this, also with the size of the structure, which is not
    needed.
    """
    counts += [info.contents.loaded, info.contents.unloaded]
    # 1 tells the C function to stop at the first library: the counts are the same for all.
    return 1


_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(_LibraryInfo), ctypes.c_size_t, ctypes.py_object
)(_read_counts)


def count_library_changes() -> tuple[int, int]:
    """How many libraries this process has loaded and unloaded so far (Linux only).

    The C function `dl_iterate_phdr` calls `_CALLBACK`, which appends both numbers to `counts`.
    """
    counts: list[int] = []
    # `pythonapi` keeps the interpreter's lock: a thread that holds it may be loading a library.
    ctypes.pythonapi.dl_iterate_phdr(_CALLBACK, ctypes.py_object(counts))
    loaded, unloaded = counts
    return loaded, unloaded
