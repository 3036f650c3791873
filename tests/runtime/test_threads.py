"""Linear algebra on one thread."""

import importlib
import shutil
import sys

from threadpoolctl import threadpool_info

from hpobench_ordered.runtime.threads import find_thread_pools, one_thread


def read_thread_counts() -> dict[str, int]:
    """Numbers of threads of the loaded libraries, by their files."""
    return {library["filepath"]: library["num_threads"] for library in threadpool_info()}


def test_every_library_is_on_one_thread():
    """Within `one_thread`, every loaded library of linear algebra has a single thread."""
    with one_thread():
        assert set(read_thread_counts().values()) == {1}


def test_earlier_thread_counts_return():
    """When `one_thread` ends, every library has as many threads as before."""
    counts_before = read_thread_counts()

    with one_thread():
        pass

    assert read_thread_counts() == counts_before


def test_pools_are_searched_once():
    """The list of libraries with threads is kept as long as the number of modules is the same.

    To search for them is slow, and only an import can load another one.
    """
    first = find_thread_pools(len(sys.modules))
    second = find_thread_pools(len(sys.modules))

    assert second is first


def test_library_loaded_later_is_on_one_thread(tmp_path, monkeypatch):
    """A library that a module loads after the first `one_thread` gets a single thread, too.

    The process takes a copy of the library of linear algebra for another one.
    """
    with one_thread():
        pass  # the libraries that are loaded by now are found
    library = next(pool for pool in threadpool_info() if pool["internal_api"] == "openblas")
    copy = shutil.copy(library["filepath"], tmp_path)
    (tmp_path / "late_module.py").write_text(f"import ctypes\nctypes.CDLL({copy!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("late_module")

    with one_thread():
        assert read_thread_counts()[copy] == 1
