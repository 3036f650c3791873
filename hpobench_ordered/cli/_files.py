"""Files with the user's search space and tables of evaluations."""

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING

from hpobench_ordered.errors import EvaluationsError, InvalidSpaceError
from hpobench_ordered.files.writing import check_file
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.reading import read_space

if TYPE_CHECKING:
    from pandas import DataFrame


def space_of(path: Path) -> SearchSpace:
    """Read a search space from a file."""
    check_file(path)
    try:
        description = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidSpaceError(
            f"no search space in {path}: {error}; --help shows what it holds"
        ) from error
    return read_space(description)


def table_of(path: Path) -> "DataFrame":
    """Read a CSV file with all cells as text; the index "line" has the line numbers."""
    check_file(path)
    import pandas as pd

    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = {reader.line_num: row for reader in [csv.reader(file)] for row in reader}
    except UnicodeDecodeError:
        raise EvaluationsError(
            f"{path} is not a CSV file in UTF-8; for a storage of Optuna use --storage "
            f"sqlite:///{path}"
        ) from None
    except (OSError, csv.Error) as error:
        raise EvaluationsError(f"{path} cannot be read: {error}") from error
    rows = {number: row for number, row in lines.items() if row}
    if not rows:
        raise EvaluationsError(
            f"{path} is empty: its first line must hold the names of the columns"
        )
    header = rows.pop(min(rows))
    if len(header) == 1 and (other := [mark for mark in ";\t|" if mark in header[0]]):
        raise EvaluationsError(
            f"the columns of {path} must be separated by commas, not {other[0]!r}"
        )
    for number, row in rows.items():
        if len(row) != len(header):
            raise EvaluationsError(
                f"line {number} of {path} has {len(row)} values, but its header has {len(header)}"
            )
    lines_named = pd.Index(list(rows), name="line")
    return pd.DataFrame(list(rows.values()), index=lines_named, columns=header, dtype=object)
