"""A clock that stands still while a process imports modules or compiles functions."""

import builtins
import time

import numpy as np
from numba import njit

from hpobench_ordered.runtime import compiling
from hpobench_ordered.runtime.clocks import clock_stopped_by_imports, cpu_clock


def test_clock_stops_while_numba_compiles():
    """The clock does not count compilation, which takes most of a function's first call.

    Python's own clock counts all of the call, and is compared with it.
    """
    # The module that stops the clock is imported, as by any method that compiles.
    assert compiling
    function_to_compile = njit(lambda values: np.exp(values).sum())
    start = cpu_clock()
    start_of_python = time.process_time()

    function_to_compile(np.ones(3))

    elapsed_for_python = time.process_time() - start_of_python
    assert 0 <= cpu_clock() - start < 0.5 * elapsed_for_python


def test_clock_stops_while_module_is_imported(tmp_path, monkeypatch):
    """The clock does not count the import of a module, nor of another one that it imports.

    Each of the two modules computes for 0.1 seconds when it is imported.
    """
    lines = [
        "import time",
        "end = time.process_time() + 0.1",
        "while time.process_time() < end: pass",
    ]
    (tmp_path / "slow_inside.py").write_text("\n".join(lines))
    (tmp_path / "slow_import.py").write_text("\n".join([*lines, "import slow_inside"]))
    monkeypatch.syspath_prepend(tmp_path)
    start = cpu_clock()
    start_of_python = time.process_time()

    with clock_stopped_by_imports():
        __import__("slow_import")

    assert time.process_time() - start_of_python >= 0.2
    assert 0 <= cpu_clock() - start < 0.1


def test_import_statement_is_restored():
    """The clock replaces the function behind `import` only as long as it is stopped."""
    import_before = builtins.__import__
    with clock_stopped_by_imports():
        pass
    assert builtins.__import__ is import_before
