"""Data of a custom benchmark: a file, or one of the data sets that come with scikit-learn.

Notation:
    n   rows
    a   columns of numbers
    b   columns of categories
"""

import hashlib
import zlib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.data.identity import hash_file
from hpobench_ordered.errors import ArtifactError, ExperimentError, UnknownNameError

if TYPE_CHECKING:
    import pandas as pd

SKLEARN_PREFIX = "sklearn:"
"""Prefix of the names of scikit-learn's data sets."""
BUNDLED = ("breast_cancer", "diabetes", "digits", "iris", "wine")
"""scikit-learn's data sets that need no download."""
CATEGORIES_LIMIT = 100
"""A column with more categories is an identifier, text or date."""
MISSING = -1
"""Code of a missing category."""

_UNREADABLE = (OSError, EOFError, ValueError, KeyError, BadZipFile, zlib.error)
"""Errors that pandas and NumPy raise for files that they cannot read."""


@dataclass(frozen=True)
class DataSet:
    """Rows to learn from, as read.

    Attributes:
        name: Name of the data.
        origin: The file or package that they come from.
        numbers: Columns of numbers, (n, a); NaN where missing.
        categories: Codes of columns of categories, (n, b); `MISSING` where missing.
        target: What is predicted, (n,).
    """

    name: str
    origin: str
    numbers: FloatArray
    categories: IntArray
    target: NDArray[Any]

    def __len__(self) -> int:
        return len(self.target)


def read_data(data: str, *, target: str | None = None) -> DataSet:
    """Read a CSV, parquet or npz file, by its ending, or the data set "sklearn:NAME".

    `target` is the column of a CSV or parquet file to be predicted; default: the last one.
    """
    path = Path(data)
    is_bundled = data.startswith(SKLEARN_PREFIX)
    is_npz = path.suffix == ".npz" and not is_bundled
    if target is not None and (is_bundled or is_npz):
        raise ExperimentError(f"{data} has no named columns, so no target {target!r}")

    if is_bundled:
        return _load_bundled(data.removeprefix(SKLEARN_PREFIX))
    if is_npz:
        return _read_npz(path)
    return split_table(path, read_table(path), target)


def _load_bundled(name: str) -> DataSet:
    """Load a data set that comes with scikit-learn; an `UnknownNameError` if there is none."""
    from sklearn import datasets

    if name not in BUNDLED:
        raise UnknownNameError("data set of scikit-learn", name, BUNDLED)
    load = getattr(datasets, f"load_{name}")
    numbers, target = load(return_X_y=True)
    return _make_data_set(
        name, f"scikit-learn's data set {name}", numbers, _no_categories(len(target)), target
    )


def _read_npz(path: Path) -> DataSet:
    """Read an npz file with the arrays `data` (or `X`), (n, ...), and `target` (or `y`), (n,).

    Raises:
        ArtifactError: The file has no such arrays.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            inputs = arrays["data"] if "data" in arrays else arrays["X"]
            target = arrays["target"] if "target" in arrays else arrays["y"]
        numbers = inputs.reshape(len(inputs), -1).astype(np.float64)
    except _UNREADABLE as error:
        raise ArtifactError(
            f"{path} is not an npz file with numbers `data` (or `X`) and `target` (or `y`): {error}"
        ) from error
    if target.shape != numbers.shape[:1]:
        raise ArtifactError(f"{path} holds {len(numbers)} rows and a target of {target.shape}")
    return _make_data_set(
        path.stem, _describe_file(path), numbers, _no_categories(len(target)), target
    )


def _no_categories(rows: int) -> IntArray:
    """Codes of categories where no column has any, (rows, 0)."""
    return np.empty((rows, 0), dtype=np.int64)


def split_table(path: Path, frame: "pd.DataFrame", target: str | None) -> DataSet:
    """Split a table into features and target; arguments are those of `read_data`."""
    import pandas as pd

    target_column = frame.columns[-1] if target is None else target
    if target_column not in frame.columns:
        raise UnknownNameError(f"column of {path}", target_column, frame.columns)

    inputs = frame.drop(columns=target_column)
    if inputs.empty:
        raise ArtifactError(
            f"{path} has {len(frame)} rows and, beside the target {target_column!r}, "
            f"{inputs.shape[1]} columns; columns are separated by commas"
        )

    is_number = np.array([pd.api.types.is_numeric_dtype(dtype) for dtype in inputs.dtypes])
    numbers = inputs.loc[:, is_number].to_numpy(dtype=np.float64, na_value=np.nan)
    other_inputs = inputs.loc[:, ~is_number]
    codes_of_columns = []
    for index in range(other_inputs.shape[1]):  # not by name, as names may occur twice
        codes_of_columns.append(_code_categories(path, other_inputs.iloc[:, index]))
    categories = _no_categories(len(frame))
    if codes_of_columns:
        categories = np.stack(codes_of_columns, axis=1)

    number_missing = int(frame[target_column].isna().sum())
    if number_missing > 0:
        raise ArtifactError(
            f"{path}: {number_missing} rows have no {target_column!r}, the target; remove them"
        )
    return _make_data_set(
        path.name.partition(".")[0],  # the stem, also of ".csv.gz"
        f"{_describe_file(path)}, target {target_column}",
        np.ascontiguousarray(numbers),
        categories,
        frame[target_column].to_numpy(),
    )


def read_table(path: Path) -> "pd.DataFrame":
    """Read a CSV or parquet file, by its suffix; names of columns become text."""
    import pandas as pd

    # Question marks for missing values, and blanks after commas, are common in the UCI repository.
    read_csv = partial(pd.read_csv, na_values=["?"], skipinitialspace=True)
    readers = {".csv": read_csv, ".csv.gz": read_csv, ".parquet": pd.read_parquet}
    ending = next((ending for ending in readers if path.name.endswith(ending)), None)
    if ending is None:
        endings = ", ".join([*readers, ".npz"])
        raise ArtifactError(
            f"data are a file that ends in one of {endings}, or {SKLEARN_PREFIX}NAME with one of "
            f"{', '.join(BUNDLED)}; got {str(path)!r}"
        )

    try:
        frame = readers[ending](path)
    except _UNREADABLE as error:
        raise ArtifactError(f"cannot read the data {path}: {error}") from error
    frame.columns = frame.columns.map(str)
    return frame


def _code_categories(path: Path, column: "pd.Series[Any]") -> IntArray:
    """Codes of a column's categories in the order of their names; `MISSING` where missing."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column):
        raise ArtifactError(f"{path}: column {column.name!r} holds dates; turn them into numbers")

    # Missing values of any type become None, which stays None and gets the code -1, `MISSING`.
    values = column.astype(object).where(column.notna(), None)
    texts = values.map(str, na_action="ignore")
    codes, names = pd.factorize(texts, sort=True)
    if len(names) > CATEGORIES_LIMIT:
        raise ArtifactError(
            f"{path}: column {column.name!r} is text with {len(names)} different values; "
            f"categories are at most {CATEGORIES_LIMIT}: remove the column or turn it into numbers"
        )
    category_codes: IntArray = codes.astype(np.int64)
    return category_codes


def _describe_file(path: Path) -> str:
    """Name a file with the hash of its content."""
    return f"{path.name} (SHA-256 {hash_file(path)})"


def _make_data_set(
    name: str, origin: str, numbers: FloatArray, categories: IntArray, target: NDArray[Any]
) -> DataSet:
    """Make a data set, after checking that numbers are finite and no target is missing."""
    if np.isinf(numbers).any():
        raise ArtifactError(f"{origin}: infinite numbers; remove or replace them")
    if target.dtype.kind == "f" and not np.isfinite(target).all():
        raise ArtifactError(f"{origin}: the target has values that are missing or infinite")
    return DataSet(name, origin, numbers, categories, target)


def hash_arrays(*arrays: NDArray[Any]) -> str:
    """SHA-256 of the content, shapes and types of arrays."""
    sha256 = hashlib.sha256()
    for array in arrays:
        sha256.update(f"{array.dtype.str}{array.shape}".encode())
        sha256.update(np.ascontiguousarray(array).tobytes())
    return sha256.hexdigest()
