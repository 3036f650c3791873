"""Reads tables of trials from parquet of unknown origin: bounded, and checked.

What a file announces is looked at before anything is unpacked, so that a small file that unpacks
to a large one is refused. Texts are read as numbers of a dictionary: one long text, repeated, is
no large table.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.experiment._files import DamagedFileError, check_regular, one_line, unreadable
from hpobench_ordered.experiment._identity import MAX_TEXT

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_FOOTER = 64 * 2**20
"""Most bytes of metadata: several times what the largest folded file has."""
MAX_PARTS = 1000
"""Most columns, and most row groups."""
FREE_VALUES = 2**26
"""Values that a file of any size may announce: 512 MiB of numbers."""
VALUES_PER_BYTE = 20
"""Further ones for each byte of the file; those of actual runs are one or two."""

KEY = "key"
CONFIG_PREFIX = "config."
TRIAL_TYPES = {
    "task": "int32",
    "task_name": "string",
    "trial": "int32",
    "value": "double",
    "loss": "double",
    "regret": "double",
    "fallbacks": "int32",
    "optimiser": "string",
}
TRIAL_TEXTS = [name for name, kind in TRIAL_TYPES.items() if kind == "string"]
CONFIG_TYPES = ("int64", "double", "string")
MAY_BE_NULL = "regret"
"""Beside the hyperparameters."""


@dataclass(frozen=True)
class Trials:
    """What a file of runs holds, as read.

    Attributes:
        metadata: Metadata of the schema.
        num_rows: Number of trials.
    """

    metadata: Mapping[bytes, bytes]
    num_rows: int


def describe_trials(path: Path) -> Trials:
    """Read what a file says of itself.

    Raises:
        FileNotFoundError: The file is not there any more.
        StoreError: It is damaged, or has other columns.
    """
    with _opened(path) as file:
        return Trials(file.schema_arrow.metadata or {}, file.metadata.num_rows)


def read_trials(path: Path, columns: Sequence[str] | None) -> "tuple[Trials, pa.Table]":
    """Read a file of runs.

    Args:
        path: The file.
        columns: The columns to read; all but the key without.

    Returns:
        What it says of itself, and the columns without metadata.

    Raises:
        FileNotFoundError: The file is not there any more.
        StoreError: It is damaged, or has other columns.
    """
    with _opened(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
        wanted = list(columns or [name for name in schema.names if name != KEY])
        texts = [name for name in wanted if _is_text(schema.field(name))]
        with _with_coded(file, path, texts) as coded:
            table = coded.read(wanted, use_threads=False).replace_schema_metadata()
        most_bytes = 8 * _most_values(path.stat().st_size)
        table = _checked(table, metadata.num_rows, most_bytes)
    return Trials(schema.metadata or {}, metadata.num_rows), table


# -- internals -------------------------------------------------------------------------------------

_OPTIONS: dict[str, Any] = {
    "thrift_string_size_limit": MAX_FOOTER,
    "thrift_container_size_limit": MAX_PARTS,
    "page_checksum_verification": True,
    "arrow_extensions_enabled": False,
}
_CODED = "dictionary<values=string, indices=int32, ordered=0>"
_KINDS = {name: (_CODED if name in TRIAL_TEXTS else kind,) for name, kind in TRIAL_TYPES.items()}
_UNSHOWN = r"[\x00-\x1f\x7f-\x{9f}\x{2028}\x{2029}]"
_TAIL = 8
"""Bytes at the end that say how long the metadata before them are."""


@contextmanager
def _opened(path: Path) -> "Iterator[pq.ParquetFile]":
    """Open a file, with what it announces checked; anything wrong with it is one error."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = check_regular(path).st_size
    try:
        _check_footer(path, size)
        # For small files this is several times faster than `read_table`.
        with pq.ParquetFile(path, **_OPTIONS, read_dictionary=TRIAL_TEXTS) as file:
            _check_announced(file.metadata, size)
            _check_schema(file.schema_arrow)
            yield file
    except FileNotFoundError:
        raise
    except PermissionError as error:
        raise unreadable(path, error) from None
    except KeyError:  # of the columns that are read as numbers
        raise DamagedFileError(path, "it is not a run: it lacks a column") from None
    except (OSError, ValueError, pa.ArrowException) as error:
        raise DamagedFileError(path, error) from None


def _with_coded(
    file: "pq.ParquetFile", path: Path, texts: Sequence[str]
) -> "AbstractContextManager[pq.ParquetFile]":
    """The file, set to read further columns as numbers of dictionaries."""
    import pyarrow.parquet as pq

    if not texts:
        return nullcontext(file)
    options = _OPTIONS | {"read_dictionary": [*TRIAL_TEXTS, *texts], "metadata": file.metadata}
    coded: AbstractContextManager[pq.ParquetFile] = pq.ParquetFile(path, **options)
    return coded


def _most_values(size: int) -> int:
    """How many values a file of so many bytes may announce."""
    return FREE_VALUES + VALUES_PER_BYTE * size


def _check_footer(path: Path, size: int) -> None:
    """Check how long the metadata are, which would be parsed before anything can be asked."""
    with path.open("rb") as file:
        file.seek(max(0, size - _TAIL))
        tail = file.read(_TAIL)
    if len(tail) < _TAIL or not tail.endswith(b"PAR1"):
        raise ValueError("it is cut off, or no parquet file")
    if int.from_bytes(tail[:4], "little") > min(size, MAX_FOOTER):
        raise ValueError(f"its metadata are larger than the {MAX_FOOTER} bytes allowed")


def _check_schema(schema: "pa.Schema") -> None:
    names = list(schema.names)
    trial_names = [n for n in names if n != KEY and not n.startswith(CONFIG_PREFIX)]
    if trial_names != list(TRIAL_TYPES) or len(set(names)) < len(names):
        missing = [name for name in TRIAL_TYPES if name not in names]
        what = f"no column {missing[0]!r}" if missing else "other columns than a run"
        raise ValueError(f"it is not a run: it has {what}")
    for field in schema:
        kinds = CONFIG_TYPES if field.name.startswith(CONFIG_PREFIX) else _KINDS.get(field.name)
        if kinds and str(field.type) not in kinds:
            raise ValueError(f"its column {field.name!r} has the type {one_line(field.type)}")


def _is_text(field: "pa.Field") -> bool:
    return str(field.type) == "string"


def _check_announced(metadata: "pq.FileMetaData", size: int) -> None:
    """Check that the file does not unpack to much more than it is."""
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    chunks = [(g.num_rows, g.column(i)) for g in groups for i in range(g.num_columns)]
    most = _most_values(size)
    if metadata.num_rows < 0 or sum(g.num_rows for g in groups) != metadata.num_rows:
        raise ValueError("its row groups do not add up")
    if metadata.num_rows * metadata.num_columns > most:
        raise ValueError(f"it announces {metadata.num_rows} trials, in a file of {size} bytes")
    if any(chunk.num_values != rows for rows, chunk in chunks):
        raise ValueError("its columns are not of one length")
    if sum(max(0, chunk.total_uncompressed_size) for _, chunk in chunks) > 8 * most:
        raise ValueError(f"it unpacks to too much for a file of {size} bytes")


def _checked(table: "pa.Table", num_rows: int, most_bytes: int) -> "pa.Table":
    """The table with texts as texts, and nothing missing where nothing may be."""
    import pyarrow as pa

    if table.num_rows != num_rows:
        raise ValueError("it does not hold the trials it says")
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        is_config = name.startswith(CONFIG_PREFIX)
        if column.null_count and name != MAY_BE_NULL and not is_config:
            raise ValueError(f"its column {name!r} has no value somewhere")
        is_coded = pa.types.is_dictionary(column.type)
        if is_coded:
            column.validate(full=True)
            _check_texts(name, column, most_bytes, is_shown=not is_config)
        columns.append(column.cast(pa.string()) if is_coded else column)
    return pa.Table.from_arrays(columns, table.column_names)


def _check_texts(name: str, column: "pa.ChunkedArray", most_bytes: int, *, is_shown: bool) -> None:
    """Check a column of texts that are numbers of dictionaries."""
    import pyarrow.compute as pc

    for texts in (chunk.dictionary for chunk in column.chunks if len(chunk.dictionary)):
        longest = pc.max(pc.binary_length(texts)).as_py() or 0
        if longest > MAX_TEXT or longest * len(column) > most_bytes:
            raise ValueError(f"its column {name!r} has a text that is too long")
        if is_shown and pc.any(pc.match_substring_regex(texts, _UNSHOWN)).as_py():
            raise ValueError(f"its column {name!r} has a text of more than one line")
