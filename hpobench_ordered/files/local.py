"""Where the user's own benchmarks are."""

import os
from pathlib import Path

LOCAL_VARIABLE = "HPOBENCH_ORDERED_BENCHMARKS"


def local_folder() -> Path:
    """Folder of the user's own benchmarks: HPOBENCH_ORDERED_BENCHMARKS, or in the user's data."""
    if folder := os.environ.get(LOCAL_VARIABLE):
        return Path(folder)
    import platformdirs

    return platformdirs.user_data_path("hpobench_ordered") / "benchmarks"
