"""Compiling where numba finds no folder for its cache."""

import warnings
from types import SimpleNamespace

import pytest

from hpobench_ordered.runtime import announcements, compiling


@pytest.fixture
def no_cache(monkeypatch):
    """Replaces numba's compiler by one that fails to cache, as where no folder is writable.

    Without caching it returns the function itself.
    """

    def njit(*, cache=False, **_options):
        """Stand in for numba's compiler: fail if asked to cache, else do not compile."""

        def fail_to_cache(function):
            raise RuntimeError("cannot cache function: no locator available")

        def return_itself(function):
            return function

        return fail_to_cache if cache else return_itself

    monkeypatch.setattr(compiling, "njit", njit)


@pytest.mark.filterwarnings("ignore:compiled code cannot be cached")
def test_functions_compile_without_cache(no_cache):
    """A function whose compiled code cannot be cached is compiled without caching.

    In the place of numba's, the compiler here returns the function itself.
    """
    assert compiling.compiled(abs) is abs


def test_missing_cache_is_warned_of_once(no_cache):
    """One warning, though two functions are compiled, names the variable for another folder."""
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("default")
        compiling.compiled(abs)
        compiling.compiled(len)

    (warning,) = caught_warnings
    assert "NUMBA_CACHE_DIR" in str(warning.message)


@pytest.mark.parametrize(("is_wanted", "number_of_messages"), [(True, 1), (False, 0)])
def test_compiling_is_announced_once(monkeypatch, caplog, is_wanted, number_of_messages):
    """Numba compiles two functions of the package, which is announced once if it is wanted."""
    monkeypatch.setattr(announcements, "announces_compiling", is_wanted)
    announcer = compiling._Announcer()
    # What numba hands to its listeners, with nothing but the module of the function.
    function = SimpleNamespace(__module__="hpobench_ordered.methods.some_kernel")
    dispatcher = SimpleNamespace(py_func=function)
    event_of_start = SimpleNamespace(data={"dispatcher": dispatcher})

    announcer.on_start(event_of_start)
    announcer.on_start(event_of_start)

    assert caplog.text.count("compiling the numerics, once") == number_of_messages
