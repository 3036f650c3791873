"""Where the user's own benchmarks are."""

import os
from pathlib import Path

LOCAL_VARIABLE = "HPOBENCH_ORDERED_BENCHMARKS"


def local_folder() -> Path:
    """HPOBENCH_ORDERED_BENCHMARKS, or a folder of the user's data directory."""
    if folder := os.environ.get(LOCAL_VARIABLE):
        return Path(folder)
    import platformdirs

    return platformdirs.user_data_path("hpobench_ordered") / "benchmarks"
