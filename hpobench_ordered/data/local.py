"""Where the user's own benchmarks are."""

import os
from pathlib import Path

LOCAL_VARIABLE = "HPOBENCH_ORDERED_BENCHMARKS"


def local_folder() -> Path:
    """Return the folder of benchmarks that users generate.

    The environment variable HPOBENCH_ORDERED_BENCHMARKS names it; otherwise it is a folder in the
    user's data directory.
    """
    folder = os.environ.get(LOCAL_VARIABLE)
    if folder:
        return Path(folder)
    import platformdirs

    return platformdirs.user_data_path("hpobench_ordered") / "benchmarks"
