"""Clocks that stand still while a process imports modules or compiles functions."""

import builtins
import time

import numpy as np
import pytest
from numba import njit

from hpobench_ordered.runtime import compiling
from hpobench_ordered.runtime.clocks import clocks_stopped_by_imports, cpu_clock, wall_clock

each_clock = pytest.mark.parametrize(
    ("clock", "clock_that_goes_on"),
    [(wall_clock, time.perf_counter), (cpu_clock, time.process_time)],
    ids=["wall", "cpu"],
)


@each_clock
def test_clock_stops_while_numba_compiles(clock, clock_that_goes_on):
    """The package's clock leaves out compilation, beside a clock of Python that goes on.

    A function is called for the first time, of which compilation takes nearly all of the time.
    """
    # The module that stops the clock is imported, as by any method that compiles.
    assert compiling
    function_to_compile = njit(lambda values: np.exp(values).sum())
    start = clock()
    start_that_goes_on = clock_that_goes_on()

    function_to_compile(np.ones(3))

    elapsed_that_goes_on = clock_that_goes_on() - start_that_goes_on
    elapsed = clock() - start
    assert 0 <= elapsed < 0.5 * elapsed_that_goes_on


@each_clock
def test_clock_stops_while_module_is_imported(clock, clock_that_goes_on, tmp_path, monkeypatch):
    """The module computes for 0.1 seconds, and imports another one that does so, too."""
    lines = [
        "import time",
        "end = time.process_time() + 0.1",
        "while time.process_time() < end: pass",
    ]
    name = f"slow_{clock.__name__}"  # another one for each clock, as it is imported once
    (tmp_path / f"{name}_inside.py").write_text("\n".join(lines))
    (tmp_path / f"{name}.py").write_text("\n".join([*lines, f"import {name}_inside"]))
    monkeypatch.syspath_prepend(tmp_path)
    start = clock()
    start_that_goes_on = clock_that_goes_on()

    with clocks_stopped_by_imports():
        __import__(name)

    assert clock_that_goes_on() - start_that_goes_on >= 0.2
    assert 0 <= clock() - start < 0.1


def test_import_statement_is_restored():
    import_before = builtins.__import__
    with clocks_stopped_by_imports():
        pass
    assert builtins.__import__ is import_before
