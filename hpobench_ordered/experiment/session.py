"""What a start of the runner says of itself: when, where and with what versions."""

import os
import platform
from contextlib import suppress
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
    """Describe a start of the runner on a part of a planned experiment, as JSON."""
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


@cache
def package_versions() -> dict[str, str]:
    """Versions of the packages, as installed here, that results may depend on."""
    found = {}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def _processor() -> str:
    """The processor's name, which Linux tells in a file of its own."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> int | None:
    """Bytes of main memory, where the system tells."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None
