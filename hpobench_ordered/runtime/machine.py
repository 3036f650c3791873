"""Description of this machine: versions and processor."""

import os
import platform
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter  # imported early: a method may replace time.perf_counter
from typing import Any

PACKAGES = ("hpobench-ordered", "numpy", "scipy", "numba", "scikit-learn", "onnxruntime", "optuna")
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


def clock() -> float:
    """Seconds of a clock that stops while numba compiles, which happens once for all runs."""
    compiling = sys.modules.get("hpobench_ordered.runtime.compiling")  # slow to import
    if compiling is None:  # nothing was compiled
        return perf_counter()
    seconds_stopped: float = compiling.seconds_compiling()
    return perf_counter() - seconds_stopped


@cache
def package_versions() -> dict[str, str]:
    """Installed versions of the packages that results may depend on."""
    versions = {}
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
