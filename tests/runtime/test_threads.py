"""Linear algebra on one thread."""

import ctypes
import shutil
import sys

import pytest
from threadpoolctl import threadpool_info

from hpobench_ordered.runtime.threads import count_library_changes, find_thread_pools, one_thread

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts on Linux only")


def read_thread_counts() -> dict[str, int]:
    """Numbers of threads of the loaded libraries, by their files."""
    return {library["filepath"]: library["num_threads"] for library in threadpool_info()}


def copy_linear_algebra_library(folder) -> str:
    """Copy the file of a loaded library, and return the path of the copy.

    When the copy is loaded, the process takes it for another library.
    """
    library = next(pool for pool in threadpool_info() if pool["internal_api"] == "openblas")
    return shutil.copy(library["filepath"], folder)


def test_every_library_is_on_one_thread():
    with one_thread():
        assert set(read_thread_counts().values()) == {1}


def test_earlier_thread_counts_return():
    """When `one_thread` ends, every library has as many threads as before."""
    counts_before = read_thread_counts()

    with one_thread():
        pass

    assert read_thread_counts() == counts_before


@on_linux
def test_pools_are_searched_once():
    """The search is slow, so its result is kept as long as no other library is loaded."""
    first = find_thread_pools()
    second = find_thread_pools()

    assert second is first


@on_linux
def test_library_loaded_later_is_on_one_thread(tmp_path):
    """Libraries are found at the first `one_thread`, but this one is loaded after it."""
    with one_thread():
        pass
    late_library = copy_linear_algebra_library(tmp_path)
    ctypes.CDLL(late_library)

    with one_thread():
        assert read_thread_counts()[late_library] == 1


@on_linux
def test_loading_a_library_is_counted(tmp_path):
    """The count tells when to search for libraries again, as a new one may have threads."""
    path = copy_linear_algebra_library(tmp_path)
    loaded_before, _ = count_library_changes()

    ctypes.CDLL(path)

    loaded_after, _ = count_library_changes()
    assert loaded_after > loaded_before
