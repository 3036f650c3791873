"""Files of a store: reading and writing them, with errors that name the file and the remedy."""

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from hpobench_ordered.errors import StoreError
from hpobench_ordered.files.writing import write_atomically

T = TypeVar("T")


class DamagedFileError(StoreError):
    """A file of a store is malformed."""

    def __init__(self, path: Path, why: object) -> None:
        super().__init__(
            f"{path} is damaged ({why}); delete it and run the experiment again, which repeats its "
            "runs"
        )


def listed(folder: Path) -> list[Path]:
    """Complete files of a folder (not hidden), sorted by name; none without a folder."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - ten times faster for many files
    except (FileNotFoundError, NotADirectoryError):  # an error is raised when writing there
        return []
    return [folder / name for name in sorted(names) if name[0] != "."]


def read_bytes(path: Path) -> bytes:
    """Read a file; a `FileNotFoundError` stays, as other processes may remove files."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None


def content_hash(data: bytes, length: int) -> str:
    """Beginning of the SHA-256 of a file's content, for its name."""
    return hashlib.sha256(data).hexdigest()[:length]


def read_checked(path: Path) -> bytes:
    """Read a file and check its content against the hash in its name, HASH or KEY-HASH."""
    data, expected = read_bytes(path), path.stem.rpartition("-")[2]
    if content_hash(data, len(expected)) != expected:
        raise DamagedFileError(path, "its content does not have the hash in its name")
    return data


def parsed(path: Path, data: bytes, make: Callable[[Any], T]) -> T:
    """Parse JSON and convert it by `make`, naming the file if either fails."""
    try:
        return make(json.loads(data))
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise DamagedFileError(path, repr(error)) from None


def text_of(record: Mapping[str, Any]) -> str:
    """A record as one line of JSON with sorted keys."""
    return json.dumps(record, sort_keys=True)


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Append a line of JSON in a single write, as several processes may append at the same time.

    It starts with a line break, which ends a line that a crash left incomplete.
    """
    line = f"\n{json.dumps(record)}\n".encode()
    with writing(path.parent), path.open("ab", buffering=0) as file:
        if file.write(line) != len(line):
            raise OSError(f"{path.name} could only be written in part: is the disk full?")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects in a file of JSON lines, without incomplete lines."""
    records = []
    with suppress(FileNotFoundError):
        for line in read_bytes(path).splitlines():
            with suppress(ValueError):
                records.append(json.loads(line))
    return [record for record in records if isinstance(record, dict)]


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an `OSError` into a `StoreError` that names the folder."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot write results to {folder}: {error.strerror or error}") from None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    with writing(path.parent):
        write_atomically(path, data)
