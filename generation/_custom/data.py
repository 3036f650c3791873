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
from hpobench_ordered.errors import ArtifactError, ExperimentError, UnknownNameError
from hpobench_ordered.files.writing import file_sha256

if TYPE_CHECKING:
    import pandas as pd

PREFIX = "sklearn:"
"""Prefix of the names of scikit-learn's data sets."""
BUNDLED = ("breast_cancer", "diabetes", "digits", "iris", "wine")
"""scikit-learn's data sets that need no download."""
MOST_CATEGORIES = 100
"""Most categories of a column; with more it is an identifier, text or date."""
MISSING = -1
"""Code of a missing category."""

_UNREADABLE = (OSError, EOFError, ValueError, KeyError, BadZipFile, zlib.error)


@dataclass(frozen=True)
class DataSet:
    """Rows to learn from, as read."""

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
    if data.startswith(PREFIX):
        data_set = _bundled(data.removeprefix(PREFIX))
    elif path.suffix == ".npz":
        data_set = _from_npz(path)
    else:
        return data_set_of(path, read_table(path), target)
    if target is not None:
        raise ExperimentError(f"{data} has no named columns, so no target {target!r}")
    return data_set


def _bundled(name: str) -> DataSet:
    from sklearn import datasets

    if name not in BUNDLED:
        raise UnknownNameError("data set of scikit-learn", name, BUNDLED)
    numbers, target = getattr(datasets, f"load_{name}")(return_X_y=True)
    return _checked(name, f"scikit-learn's data set {name}", numbers, _no_columns(target), target)


def _from_npz(path: Path) -> DataSet:
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
    return _checked(path.stem, _described(path), numbers, _no_columns(target), target)


def _no_columns(target: NDArray[Any]) -> IntArray:
    return np.empty((len(target), 0), dtype=np.int64)


def data_set_of(path: Path, frame: "pd.DataFrame", target: str | None) -> DataSet:
    """Split a table into features and target; arguments are those of `read_data`."""
    import pandas as pd

    chosen = frame.columns[-1] if target is None else target
    if chosen not in frame.columns:
        raise UnknownNameError(f"column of {path}", chosen, frame.columns)
    inputs = frame.drop(columns=chosen)
    if inputs.empty:
        raise ArtifactError(
            f"{path} has {len(frame)} rows and, beside the target {chosen!r}, "
            f"{inputs.shape[1]} columns; columns are separated by commas"
        )
    is_number = np.array([pd.api.types.is_numeric_dtype(kind) for kind in inputs.dtypes])
    numbers = inputs.loc[:, is_number].to_numpy(dtype=np.float64, na_value=np.nan)
    others = inputs.loc[:, ~is_number]
    categories = [_categories(path, others.iloc[:, j]) for j in range(others.shape[1])]
    predicted = frame[chosen]
    if predicted.isna().any():
        missing = int(predicted.isna().sum())
        raise ArtifactError(f"{path}: {missing} rows have no {chosen!r}, the target; remove them")
    return _checked(
        path.name.partition(".")[0],
        f"{_described(path)}, target {chosen}",
        np.ascontiguousarray(numbers),
        np.stack(categories, axis=1) if categories else _no_columns(predicted.to_numpy()),
        predicted.to_numpy(),
    )


def read_table(path: Path) -> "pd.DataFrame":
    """Read a CSV or parquet file, by its suffix; names of columns become text."""
    import pandas as pd

    csv = partial(pd.read_csv, na_values=["?"], skipinitialspace=True)
    readers = {".csv": csv, ".csv.gz": csv, ".parquet": pd.read_parquet}
    reader = next((readers[end] for end in readers if path.name.endswith(end)), None)
    if reader is None:
        endings = ", ".join([*readers, ".npz"])
        raise ArtifactError(
            f"data are a file that ends in one of {endings}, or {PREFIX}NAME with one of "
            f"{', '.join(BUNDLED)}; got {str(path)!r}"
        )
    try:
        frame = reader(path)
    except _UNREADABLE as error:
        raise ArtifactError(f"cannot read the data {path}: {error}") from error
    frame.columns = frame.columns.map(str)
    return frame


def _categories(path: Path, column: "pd.Series[Any]") -> IntArray:
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column):
        raise ArtifactError(f"{path}: column {column.name!r} holds dates; turn them into numbers")
    texts = column.astype(object).where(column.notna(), None)
    factorised = pd.factorize(texts.map(str, na_action="ignore"), sort=True)
    codes: IntArray = factorised[0].astype(np.int64)
    names = factorised[1]
    if len(names) > MOST_CATEGORIES:
        raise ArtifactError(
            f"{path}: column {column.name!r} is text with {len(names)} different values; "
            f"categories are at most {MOST_CATEGORIES}: remove the column or turn it into numbers"
        )
    return codes


def _described(path: Path) -> str:
    return f"{path.name} (SHA-256 {file_sha256(path)})"


def _checked(
    name: str, origin: str, numbers: FloatArray, categories: IntArray, target: NDArray[Any]
) -> DataSet:
    if np.isinf(numbers).any():
        raise ArtifactError(f"{origin}: infinite numbers; remove or replace them")
    if target.dtype.kind == "f" and not np.isfinite(target).all():
        raise ArtifactError(f"{origin}: the target has values that are missing or infinite")
    return DataSet(name, origin, numbers, categories, target)


def digest_of(*arrays: NDArray[Any]) -> str:
    """SHA-256 of the content, shapes and types of arrays."""
    content = hashlib.sha256()
    for array in arrays:
        content.update(f"{array.dtype.str}{array.shape}".encode())
        content.update(np.ascontiguousarray(array).tobytes())
    return content.hexdigest()
