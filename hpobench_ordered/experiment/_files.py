"""Files of a store: listed, read and written, with errors that name the file and the remedy."""

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
    """A file of a store is not what it should be."""

    def __init__(self, path: Path, why: object) -> None:
        super().__init__(
            f"{path} is damaged ({why}); delete it and run the experiment again, which makes what "
            "was in it once more"
        )


def listed(folder: Path) -> list[Path]:
    """The files of a folder, sorted by name; hidden ones, half written, are left out."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - ten times faster for many files
    except (FileNotFoundError, NotADirectoryError):  # writing there says what is wrong
        return []
    return [folder / name for name in sorted(names) if name[0] != "."]


def read_bytes(path: Path) -> bytes:
    """Read a file; raises a `FileNotFoundError` as it is, as others may remove files."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None


def content_hash(data: bytes, length: int) -> str:
    """Beginning of the SHA-256 of what a file holds, for its name."""
    return hashlib.sha256(data).hexdigest()[:length]


def read_checked(path: Path) -> bytes:
    """Read a file, and check that its content is what its name, HASH or KEY-HASH, says."""
    data, expected = read_bytes(path), path.stem.rpartition("-")[2]
    if content_hash(data, len(expected)) != expected:
        raise DamagedFileError(path, "its content does not have the hash in its name")
    return data


def parsed(path: Path, data: bytes, make: Callable[[Any], T]) -> T:
    """What is made of the JSON in a file; names the file where it is not what it should be."""
    try:
        return make(json.loads(data))
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise DamagedFileError(path, repr(error)) from None


def text_of(record: Mapping[str, Any]) -> str:
    """A record as one line of JSON, the same for the same."""
    return json.dumps(record, sort_keys=True)


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Append a line of JSON in one piece: several processes may do so at the same time.

    It begins with a line break: a line that a crash broke off ends there.
    """
    line = f"\n{json.dumps(record)}\n".encode()
    with writing(path.parent), path.open("ab", buffering=0) as file:
        if file.write(line) != len(line):
            raise OSError(f"{path.name} could be written in part only: is the disk full?")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects in a file of JSON lines; those that a crash broke off are left out."""
    records = []
    with suppress(FileNotFoundError):
        for line in read_bytes(path).splitlines():
            with suppress(ValueError):
                records.append(json.loads(line))
    return [record for record in records if isinstance(record, dict)]


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Explain why a store cannot be written."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot write results to {folder}: {error.strerror or error}") from None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file that is there as a whole or not at all."""
    with writing(path.parent):
        write_atomically(path, data)
