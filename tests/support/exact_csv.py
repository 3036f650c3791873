"""Reads CSV files to the last digit, which pandas does by default since version 3.1."""

from pathlib import Path

import pandas as pd

MAJOR, MINOR = map(int, pd.__version__.split(".")[:2])
IS_EXACT_BY_DEFAULT = (MAJOR, MINOR) >= (3, 1)


def read_exactly(path: str | Path) -> pd.DataFrame:
    """Read a table whose numbers are exactly those that were written."""
    if IS_EXACT_BY_DEFAULT:
        return pd.read_csv(path)
    return pd.read_csv(path, float_precision="round_trip")
