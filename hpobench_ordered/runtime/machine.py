"""Description of this machine: versions and processor."""

import os
import platform
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

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


@cache
def package_versions() -> dict[str, str]:
    """Return the versions of those packages of `PACKAGES` that are installed, by name.

    This package is always among them; its version is "unknown" if it is run without installation.
    """
    versions = {PACKAGE: "unknown"}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions


def _read_processor_name() -> str:
    """Return the name of the processor, on Linux from /proc/cpuinfo.

    Other systems, and some processors, have no name there. Python's own is then returned.
    """
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.startswith("model name"):
                return value.strip()
    return platform.processor() or platform.machine()
