"""Description of this machine: versions and processor."""

import os
import platform
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter, process_time  # imported early, as a method may replace them
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hpobench_ordered.runtime.compiling import CompilationTimes

PACKAGE = "hpobench-ordered"
"""Name under which this package is installed."""
PACKAGES = (PACKAGE, "numpy", "scipy", "numba", "scikit-learn", "onnxruntime", "optuna")
"""Packages that results may depend on."""


def describe_machine() -> dict[str, Any]:
    """Describe this machine and its Python, as JSON."""
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _read_processor_name(),
        "cores": os.cpu_count(),
        "packages": package_versions(),
    }


def wall_clock() -> float:
    """Seconds that have passed, without those in which numba compiled.

    Compiling is left out, as only the first run in a process has to wait for it.
    """
    times = _find_compilation_times()
    return perf_counter() - (times.wall_seconds if times else 0.0)


def cpu_clock() -> float:
    """CPU seconds of all threads of this process, without those in which numba compiled.

    Unlike the time that passes, they do not count waiting while other processes use the processor.
    """
    times = _find_compilation_times()
    return process_time() - (times.cpu_seconds if times else 0.0)


def _find_compilation_times() -> "CompilationTimes | None":
    """Times of compiling in this process; None if nothing was compiled."""
    # If the module was not imported so far, nothing was compiled; it imports numba, which is slow.
    compiling = sys.modules.get("hpobench_ordered.runtime.compiling")
    times: CompilationTimes | None = getattr(compiling, "compilation_times", None)
    return times


@cache
def package_versions() -> dict[str, str]:
    """Installed versions of the packages that results may depend on.

    This package is always among them: as `unknown` if it is run from a folder without installation.
    """
    versions = {PACKAGE: "unknown"}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def _read_processor_name() -> str:
    """Name of the processor, on Linux from /proc/cpuinfo."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
