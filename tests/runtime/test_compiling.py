"""Compiling where numba finds no folder for its cache."""

import warnings
from types import SimpleNamespace

import pytest

from hpobench_ordered.runtime import announcements, compiling


@pytest.fixture
def no_cache(monkeypatch):
    """Let numba refuse to cache, as where no folder is writable; compiling changes nothing."""

    def njit(*, cache=False, **_):
        def refuse(function):
            raise RuntimeError("cannot cache function: no locator available")

        def leave(function):
            return function

        return refuse if cache else leave

    monkeypatch.setattr(compiling, "njit", njit)


@pytest.mark.filterwarnings("ignore:compiled code cannot be cached")
def test_functions_compile_without_cache(no_cache):
    """What stands for the compiler here returns the function itself."""
    assert compiling.compiled(abs) is abs


def test_missing_cache_is_warned_of_once(no_cache):
    """Where numba finds no folder for its cache, though two functions are compiled."""
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("default")
        compiling.compiled(abs)
        compiling.compiled(len)

    (warning,) = caught_warnings
    assert "NUMBA_CACHE_DIR" in str(warning.message)


@pytest.mark.parametrize(("is_wanted", "number_of_messages"), [(True, 1), (False, 0)])
def test_compiling_is_announced_once(monkeypatch, caplog, is_wanted, number_of_messages):
    """If it is wanted; numba tells the announcer of two functions of the package."""
    monkeypatch.setattr(announcements, "announces_compiling", is_wanted)
    announcer = compiling._Announcer()
    dispatcher_of_package = SimpleNamespace(
        py_func=SimpleNamespace(__module__="hpobench_ordered.methods.some_kernel")
    )
    start_of_compilation = SimpleNamespace(data={"dispatcher": dispatcher_of_package})

    announcer.on_start(start_of_compilation)
    announcer.on_start(start_of_compilation)

    assert caplog.text.count("compiling the numerics, once") == number_of_messages
