import warnings

from hpobench_ordered.runtime import compiling as _compile


def test_a_missing_cache_is_told_once(monkeypatch):
    def njit(*, cache=False, **_):
        def refuse(function):
            raise RuntimeError("cannot cache function: no locator available")

        return refuse if cache else lambda function: function

    monkeypatch.setattr(_compile, "njit", njit)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        functions = [_compile.compiled(function) for function in (abs, len)]
    assert functions == [abs, len]
    (warning,) = told
    assert "NUMBA_CACHE_DIR" in str(warning.message)
