"""Reads CSV files to the last digit, which pandas does by default since version 3.1."""

from pathlib import Path
from typing import Any

import pandas as pd

IS_DEFAULT = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)


def read_exactly(path: str | Path) -> pd.DataFrame:
    """Read a table whose numbers are those that were written."""
    precision: Any = {} if IS_DEFAULT else {"float_precision": "round_trip"}
    return pd.read_csv(path, **precision)
