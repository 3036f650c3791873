import warnings

from hpobench_ordered.runtime import compiling as _compile


def test_a_missing_cache_is_told_once(monkeypatch):
    def njit(*, cache=False, **_):
        def refuse(function):
            raise RuntimeError("cannot cache function: no locator available")

        return refuse if cache else lambda function: function

    monkeypatch.setattr(_compile, "njit", njit)
    _compile._warn_of_no_cache.cache_clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        functions = [_compile.compiled(function) for function in (abs, len)]
    assert functions == [abs, len]
    assert [warning.category for warning in told] == [RuntimeWarning]
    assert "NUMBA_CACHE_DIR" in str(told[0].message)
    assert told[0].filename == __file__
    _compile._warn_of_no_cache.cache_clear()
