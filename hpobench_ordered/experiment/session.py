"""What a start of the runner says of itself: when, where and with what versions."""

import os
import platform
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.experiment.records import now

if TYPE_CHECKING:
    from hpobench_ordered.experiment.parallel import Settings
    from hpobench_ordered.experiment.plan import Shard

PACKAGES = ("hpobench-ordered", "numpy", "scipy", "numba", "scikit-learn", "onnxruntime", "optuna")
"""Those that results may depend on."""


def describe_session(
    settings: "Settings", *, experiment: str, shard: "Shard | None"
) -> dict[str, Any]:
    """Describe a start of the runner, as JSON.

    Args:
        settings: How it runs.
        experiment: Name of what is asked for.
        shard: The part that it runs.
    """
    return {
        "started": now(),
        "experiment": experiment,
        "shard": None if shard is None else str(shard),
        "workers": settings.workers,
        "backend": "processes" if settings.dask is None else "dask",
        "time_limit": settings.time_limit,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory": _memory(),
        "packages": package_versions(),
    }


def package_versions() -> dict[str, str]:
    """Versions of the packages, as installed here, that results may depend on."""
    return {name: found for name in PACKAGES if (found := _version(name))}


@cache
def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _processor() -> str:
    """The processor's name, which Linux tells in a file of its own."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def _memory() -> int | None:
    """Bytes of main memory, where the system tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
