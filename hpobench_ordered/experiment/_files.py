"""Reading and writing the files of a store, with errors that name the file."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.errors import StoreError

T = TypeVar("T")

MAX_REASON_LENGTH = 300
"""Most characters of why a file is damaged."""

DEFAULT_REMEDY = "delete it and run the experiment again, which repeats its runs"


class DamagedFileError(StoreError):
    """A file of a store is malformed."""

    def __init__(self, path: Path, reason: object, remedy: str = DEFAULT_REMEDY) -> None:
        """Say which file is damaged and why, and what the user can do about it (`remedy`)."""
        problem = f"{path} is damaged ({str(reason)[:MAX_REASON_LENGTH]})"
        # The reason may quote the file, so it may have line breaks and other odd characters.
        printable = "".join(char if char.isprintable() else " " for char in problem)
        super().__init__(f"{printable}; {remedy}")


def read_bytes(path: Path) -> bytes:
    """Read a file of a store; a `StoreError` if that fails."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None


def read_json(path: Path, content: type[T], remedy: str = DEFAULT_REMEDY) -> T:
    """Read a file of JSON that must fit a type.

    Args:
        path: The file.
        content: The type.
        remedy: What the user can do if the file is damaged, for the message.

    Raises:
        DamagedFileError: It does not fit the type.
    """
    try:
        return msgspec.json.decode(read_bytes(path), type=content)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamagedFileError(path, error, remedy) from None


def encode_json(record: Mapping[str, Any]) -> bytes:
    """Encode a record as one line of JSON with sorted keys."""
    return json.dumps(record, sort_keys=True).encode()


def read_lines(path: Path, line_type: type[T]) -> list[T]:
    """Read the lines of JSON in a file that fit a type; none if there is no file.

    Other lines are left out: a crash may have left a line incomplete, and no result depends on
    these files.
    """
    records = []
    if path.exists():
        for line in read_bytes(path).splitlines():
            with suppress(msgspec.MsgspecError, ValueError, RecursionError):
                records.append(msgspec.json.decode(line, type=line_type))
    return records


def append_lines(path: Path, lines: bytes) -> None:
    """Append lines in a single write, as several processes may append at the same time.

    What is written starts with a line break, too: it ends a line that a crash left incomplete.
    """
    with writing(path.parent), path.open("ab", buffering=0) as file:
        file.write(b"\n" + lines + b"\n")


def write_file(path: Path, content: bytes) -> None:
    """Write a file of a store atomically; a `StoreError` if that fails."""
    with writing(path.parent):
        write_atomically(path, content)


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an `OSError` of a block that writes to a folder into a `StoreError` that names it."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot write results to {folder}: {error.strerror or error}") from None
