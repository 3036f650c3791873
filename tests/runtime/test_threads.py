"""Linear algebra on one thread."""

import ctypes
import shutil
import sys

import pytest
from threadpoolctl import threadpool_info

from hpobench_ordered.runtime.threads import count_library_changes, find_thread_pools, one_thread

on_linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts on Linux only")


def thread_counts() -> dict[str, int]:
    """Numbers of threads of the loaded libraries, by their files."""
    return {library["filepath"]: library["num_threads"] for library in threadpool_info()}


def copy_linear_algebra_library(folder) -> str:
    """Copy the file of a loaded library: the process takes the copy for another library."""
    library = next(pool for pool in threadpool_info() if pool["internal_api"] == "openblas")
    return shutil.copy(library["filepath"], folder)


def test_every_library_is_on_one_thread():
    with one_thread():
        assert set(thread_counts().values()) == {1}


def test_earlier_thread_counts_return():
    before = thread_counts()
    with one_thread():
        pass
    assert thread_counts() == before


@on_linux
def test_pools_are_searched_once():
    assert find_thread_pools() is find_thread_pools()


@on_linux
def test_library_loaded_later_is_on_one_thread(tmp_path):
    with one_thread():
        pass
    # A library that was not there when threads were limited first.
    path = copy_linear_algebra_library(tmp_path)
    ctypes.CDLL(path)
    with one_thread():
        assert thread_counts()[path] == 1


@on_linux
def test_loading_a_library_is_counted(tmp_path):
    before, _ = count_library_changes()
    ctypes.CDLL(copy_linear_algebra_library(tmp_path))
    after, _ = count_library_changes()
    assert after > before
