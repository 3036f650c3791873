"""Opens what people bring: tables, files of tables, and studies of Optuna.

A file is known by its first bytes, not by its name.
"""

import csv
import gzip
import io
import os
import re
import sqlite3
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.data.writing import check_file
from hpobench_ordered.errors import EvaluationsError
from hpobench_ordered.tuning.reading.passwords import hide_password
from hpobench_ordered.tuning.reading.rows import OpenedStudy
from hpobench_ordered.tuning.reading.tables import Table

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.study import Study
    from pandas import DataFrame

Source: TypeAlias = (
    "DataFrame | str | os.PathLike[str] | BaseStorage | Study | OpenedStudy | Iterable[Source]"
)
"""What `read_history` reads."""

SQLITE_PREFIX = "sqlite:///"
OTHER_SEPARATORS = ";\t|"
"""Separators of columns that are used instead of a comma, and refused."""
FIRST_BYTES_OF_PARQUET = b"PAR1"
FIRST_BYTES_OF_SQLITE = b"SQLite format 3\0"
FIRST_BYTES_OF_GZIP = b"\x1f\x8b"
JOURNAL_PATTERN = re.compile(rb'\s*\{\s*"op_code"')
"""How the journal file of an Optuna storage begins."""
LENGTH_OF_BEGINNING = 100  # bytes of a file that tell what it is


class FileKind(Enum):
    """What a file holds."""

    CSV = auto()
    PARQUET = auto()
    SQLITE = auto()
    JOURNAL = auto()


STORAGES = (FileKind.SQLITE, FileKind.JOURNAL)
"""Files of Optuna's storages; the others are tables."""
KIND_OF_SUFFIX: Mapping[str, FileKind] = {
    ".csv": FileKind.CSV,
    ".gz": FileKind.CSV,
    ".parquet": FileKind.PARQUET,
    ".log": FileKind.JOURNAL,
    ".journal": FileKind.JOURNAL,
}
"""What a new file will hold; others are of SQLite."""


def open_source(source: Source, pattern: str) -> list[Table | OpenedStudy]:
    """Open a source of earlier evaluations.

    Args:
        source: A DataFrame; a file of a table (CSV, also compressed by gzip, or Parquet) or of an
            Optuna storage (SQLite or journal); the URL of a storage, or a storage; a study; or
            several of these.
        pattern: Pattern of the names of studies in storages, as in a shell.

    Returns:
        The tables and studies, in the order of the sources; the studies of a storage by the start
        of their first trial.

    Raises:
        EvaluationsError: The source is none of these, or cannot be read.
        UnknownNameError: There is no such file, or no study matches the pattern.
    """
    if isinstance(source, str | os.PathLike):
        return _open_url_or_file(os.fspath(source), pattern)
    if isinstance(source, OpenedStudy):
        return [source]
    if _is_of_optuna(source, "study", "Study"):
        return [OpenedStudy(source)]
    if _is_of_optuna(source, "storages", "BaseStorage"):
        return _load_studies(source, pattern, origin="")
    if hasattr(source, "to_pandas"):  # tables of Arrow and Polars
        source = source.to_pandas()
    if _is_frame(source):
        return [Table(source)]
    if isinstance(source, Iterable) and not isinstance(source, Mapping | bytes):
        items = list(source)
        opened: list[Table | OpenedStudy] = []
        for number, item in enumerate(items, start=1):
            if _is_frame(item):
                name = f"table {number}"
                opened.append(Table(item, name, task=name))
            else:
                opened += open_source(item, pattern)
        if items:
            return opened
    raise EvaluationsError(
        "earlier evaluations must be a DataFrame, a file of a table or of an Optuna storage, the "
        f"URL of a storage, a study, or a list of these, but got {_describe(source)}"
    )


def open_table(source: "DataFrame | str | os.PathLike[str]") -> Table:
    """Open a single table: a DataFrame, or a file of CSV or Parquet.

    Raises:
        EvaluationsError: It is something else, or cannot be read.
        UnknownNameError: There is no such file.
    """
    opened = open_source(source, "*")
    if len(opened) == 1 and isinstance(opened[0], Table):
        return opened[0]
    raise EvaluationsError(f"the evaluations must be one table, but got {_describe(source)}")


def open_storage(place: str | os.PathLike[str], *, purpose: str) -> "str | BaseStorage":
    """Return the URL of an Optuna storage, or the opened storage if it is a journal file.

    A file that does not exist yet becomes a journal if its name ends in ".log" or ".journal". It
    becomes an SQLite database otherwise.

    Args:
        place: The URL, or the file, which need not exist yet.
        purpose: What needs Optuna, for a message.

    Raises:
        EvaluationsError: The file is something else.
        MissingExtraError: Optuna is not installed.
    """
    import_extra("optuna", package="optuna", extra="optuna", purpose=purpose)
    text = os.fspath(place)
    if "://" in text:
        return text
    path = Path(text)
    kind = _find_kind(path)
    if kind is FileKind.JOURNAL:
        return _open_journal(path)
    if kind is FileKind.SQLITE:
        is_new = not path.exists() or path.stat().st_size == 0
        if not is_new:
            _check_has_studies(path)
        return f"{SQLITE_PREFIX}{path}"
    raise EvaluationsError(
        f"{path} is no storage of Optuna; evaluations are recorded in one, such as tuning.db, and "
        "tables are only read"
    )


def is_storage(source: object) -> bool:
    """Whether a source is an Optuna storage, the URL of one, or a file that holds one.

    A file that does not exist yet counts, too, unless its suffix is that of a table.
    """
    if not isinstance(source, str | os.PathLike):
        return _is_of_optuna(source, "storages", "BaseStorage")
    text = os.fspath(source)
    return "://" in text or _find_kind(Path(text)) in STORAGES


def _open_url_or_file(url_or_path: str, pattern: str) -> list[Table | OpenedStudy]:
    """Open the URL of a storage, the file of a storage, or the file of a table.

    Args:
        url_or_path: The URL or the path. The URL of an SQLite storage is treated as its file.
        pattern: Pattern of the names of the studies to load from a storage, as in a shell.

    Returns:
        The studies of the storage whose names match; or a list with the one table of the file.
    """
    is_url = "://" in url_or_path
    is_on_server = is_url and not url_or_path.startswith(SQLITE_PREFIX)
    if is_on_server:
        return _load_studies(url_or_path, pattern, origin=hide_password(url_or_path))

    path_and_options = url_or_path.removeprefix(SQLITE_PREFIX)
    path_text, _, _ = path_and_options.partition("?")  # a URL may have options after "?"
    path = Path(path_text)
    check_file(path)
    kind = _find_kind(path)
    if kind is FileKind.SQLITE:
        _check_has_studies(path)
        url = url_or_path if is_url else f"{SQLITE_PREFIX}{path}"
        return _load_studies(url, pattern, origin=str(path))
    if kind is FileKind.JOURNAL:
        return _load_studies(_open_journal(path), pattern, origin=str(path))
    frame = _read_parquet(path) if kind is FileKind.PARQUET else _read_csv(path)
    return [Table(frame, str(path), _name_task(path))]


def _check_has_studies(path: Path) -> None:
    """Raise an `EvaluationsError` if an SQLite database has no table of Optuna's studies.

    Without this check, Optuna would create its tables in a database of another program.
    """
    query = "SELECT 1 FROM sqlite_master WHERE name = 'studies'"
    # A database that cannot be read causes no error here, as Optuna reports it later.
    lacks_table = False
    with suppress(sqlite3.Error), closing(sqlite3.connect(path)) as database:
        lacks_table = database.execute(query).fetchone() is None
    if lacks_table:
        raise EvaluationsError(f"{path} has no studies of Optuna")


def _name_task(path: Path) -> str:
    """Derive the name of a task from the name of its file, by removing the suffixes.

    This name is used if a table has no column that names the tasks.
    """
    name = path.name
    for suffix in (".gz", ".csv", ".parquet"):
        name = name.removesuffix(suffix)
    return name


def _find_kind(path: Path) -> FileKind:
    """Find out what a file holds from its first bytes.

    The suffix decides for a file that is empty or does not exist yet.

    Raises:
        EvaluationsError: The file cannot be read.
    """
    try:
        with path.open("rb") as file:
            beginning = file.read(LENGTH_OF_BEGINNING)
    except FileNotFoundError:
        beginning = b""
    except OSError as error:
        raise EvaluationsError(f"{path} cannot be read: {error}") from error
    if not beginning:
        return KIND_OF_SUFFIX.get(path.suffix, FileKind.SQLITE)
    if beginning.startswith(FIRST_BYTES_OF_SQLITE):
        return FileKind.SQLITE
    if beginning.startswith(FIRST_BYTES_OF_PARQUET):
        return FileKind.PARQUET
    return FileKind.JOURNAL if JOURNAL_PATTERN.match(beginning) else FileKind.CSV


def _open_journal(path: Path) -> "BaseStorage":
    """Open a journal storage of Optuna."""
    backends = import_extra(
        "optuna.storages.journal", package="optuna", extra="optuna", purpose="a journal of Optuna"
    )
    from optuna.storages import JournalStorage

    return JournalStorage(backends.JournalFileBackend(str(path)))


def _load_studies(storage: Any, pattern: str, *, origin: str) -> list[Table | OpenedStudy]:
    """Load the studies of a storage whose names match a pattern.

    `origin` names the storage in messages. Optuna is imported only here, as it may not be
    installed.
    """
    import_extra("optuna", package="optuna", extra="optuna", purpose="a storage of Optuna")
    from hpobench_ordered.tuning.reading.studies import load_studies

    return [OpenedStudy(study, origin) for study in load_studies(storage, pattern)]


def _is_of_optuna(source: object, module: str, name: str) -> bool:
    """Whether an object is an instance of the class `name` in the module `module` of Optuna.

    Optuna is not imported for this check: if the object is an instance, Optuna has been imported.
    """
    optuna_module = sys.modules.get(f"optuna.{module}")
    return optuna_module is not None and isinstance(source, getattr(optuna_module, name))


def _is_frame(source: object) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(source, pandas.DataFrame)


def _describe(source: object) -> str:
    """Describe a source for a message: a text is quoted, anything else is named by its type."""
    if isinstance(source, str | os.PathLike):
        return repr(os.fspath(source))
    return f"a {type(source).__name__}"


def _read_parquet(path: Path) -> "DataFrame":
    """Read a Parquet file; a column of integers becomes one of floats if cells are missing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path).to_pandas()
    except (OSError, pa.ArrowException) as error:
        raise EvaluationsError(f"{path} cannot be read: {error}") from None


def _read_csv(path: Path) -> "DataFrame":
    """Read a CSV file into a table whose cells are all text.

    The index of the table is named "line" and holds the line numbers in the file, for messages.
    """
    import pandas as pd

    rows = _read_rows(path)
    if not rows:
        raise EvaluationsError(
            f"{path} is empty: its first line must hold the names of the columns"
        )
    first_line = min(rows)  # `rows` has no empty lines
    header = rows.pop(first_line)
    _check_rows(path, header, rows)
    line_numbers = pd.Index(list(rows), name="line")
    return pd.DataFrame(list(rows.values()), index=line_numbers, columns=header, dtype=object)


def _read_rows(path: Path) -> dict[int, list[str]]:
    """Read the cells of every row that is not empty; the keys are line numbers.

    If a cell contains line breaks, its row has the number of the row's last line.
    """
    rows = {}
    try:
        content = path.read_bytes()
        if content.startswith(FIRST_BYTES_OF_GZIP):
            content = gzip.decompress(content)
        reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
        for row in reader:
            if row:
                rows[reader.line_num] = row
    except UnicodeDecodeError:
        raise EvaluationsError(
            f"{path} is neither a table (CSV in UTF-8, Parquet) nor a storage of Optuna"
        ) from None
    except (OSError, EOFError, csv.Error) as error:
        raise EvaluationsError(f"{path} cannot be read: {error}") from error
    return rows


def _check_rows(path: Path, header: Sequence[str], rows: Mapping[int, Sequence[str]]) -> None:
    """Raise an `EvaluationsError` unless commas separate columns and rows match the header.

    `rows` are the rows after the header; the keys are line numbers.
    """
    # A header of one column that contains another separator was probably not split.
    if len(header) == 1:
        for separator in OTHER_SEPARATORS:
            if separator in header[0]:
                raise EvaluationsError(
                    f"the columns of {path} must be separated by commas, not {separator!r}"
                )
    for line_number, row in rows.items():
        if len(row) != len(header):
            raise EvaluationsError(
                f"line {line_number} of {path} has {len(row)} values, but its header has "
                f"{len(header)}"
            )
