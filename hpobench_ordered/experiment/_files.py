"""Files of a store: their names, reading and writing them, with errors that name the file.

The name of a file tells its content: KEY is the run's, HASH the beginning of the content's SHA-256.
"""

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hpobench_ordered.data.writing import write_atomically
from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment._parquet import CONTROL_CHARACTERS

T = TypeVar("T")

KEY_LENGTH = 20
KEY_PATTERN = f"[0-9a-f]{{{KEY_LENGTH}}}"
HASH_LENGTH = 16
EXPERIMENT_HASH_LENGTH = 20

MAX_FILE_SIZE = 2**31
"""Most bytes of a file."""

MAX_REASON_LENGTH = 300
"""Most characters of why a file is damaged."""

DEFAULT_REMEDY = "delete it and run the experiment again, which repeats its runs"


class DamagedFileError(StoreError):
    """A file of a store is malformed."""

    def __init__(self, path: Path, reason: object, remedy: str = DEFAULT_REMEDY) -> None:
        """Say which file is damaged and why, and what the user can do about it (`remedy`)."""
        short_reason = str(reason)[:MAX_REASON_LENGTH]
        problem = make_printable(f"{path} is damaged ({short_reason})")
        super().__init__(f"{problem}; {remedy}")


def make_printable(text: str) -> str:
    """Replace what would end the line of a message or change the terminal."""
    return "".join(char if char.isprintable() else " " for char in text)


class FileKind:
    """Files of a folder of a store, all named by one pattern."""

    def __init__(self, folder: str, pattern: str) -> None:
        """Describe a kind: its folder in the store, and a regular expression of its file names."""
        self.folder = folder
        self.pattern = re.compile(pattern, re.ASCII)


KEY_GROUP = f"(?P<key>{KEY_PATTERN})"
HASH_GROUP = f"(?P<hash>[0-9a-f]{{{HASH_LENGTH}}})"

RUN_FILES = FileKind("runs", rf"{KEY_GROUP}-{HASH_GROUP}\.parquet")
PACKED_FILES = FileKind("packed", rf"{HASH_GROUP}\.parquet")
FAILURE_FILES = FileKind("failures", rf"{KEY_GROUP}(-{HASH_GROUP})?\.json")  # format 5: no hash
EXPERIMENT_FILES = FileKind("experiments", rf"(?P<hash>[0-9a-f]{{{EXPERIMENT_HASH_LENGTH}}})\.json")
RUNNING_FILES = FileKind("running", rf"{KEY_GROUP}\.json")


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a store whose name fits."""

    path: Path
    key: str | None  # that of the run, if it is in the name
    content_hash: str | None  # if it is in the name

    def read(self) -> bytes:
        """Read the content.

        Raises:
            DamagedFileError: The file's name has a hash, and the content has another one.
        """
        data = read_bytes(self.path)
        expected = self.content_hash  # the hash's first characters, as they are in the name
        if expected is not None and hash_content(data, len(expected)) != expected:
            raise DamagedFileError(self.path, "its content does not have the hash in its name")
        return data


def list_paths(folder: Path) -> list[Path]:
    """List what is in a folder and not hidden, sorted by name; nothing if there is no folder."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - ten times faster for many files
    except (FileNotFoundError, NotADirectoryError):  # writing there will raise an error
        return []
    except OSError as error:
        raise StoreError(f"{folder} cannot be read: {error.strerror}") from None
    return [folder / name for name in sorted(names) if name[0] != "."]


def list_files(store: Path, kind: FileKind) -> list[StoredFile]:
    """Files of a kind, sorted by name; a `DamagedFileError` if something else is among them."""
    return [parse_name(path, kind) for path in list_paths(store / kind.folder)]


def parse_name(path: Path, kind: FileKind) -> StoredFile:
    """Take the run's key and the content's hash from a file's name; None where it has none.

    Raises:
        DamagedFileError: The file is not named like those of this kind.
    """
    match = kind.pattern.fullmatch(path.name)
    if match is None:
        raise DamagedFileError(
            path, "no file of a store has such a name", "move it to another folder"
        )
    groups = match.groupdict()
    return StoredFile(path, groups.get("key"), groups.get("hash"))


def has_named_files(store: Path, kinds: tuple[FileKind, ...]) -> bool:
    """Whether a folder has a file of one of these kinds, named as in a store."""
    for kind in kinds:
        for path in list_paths(store / kind.folder):
            if kind.pattern.fullmatch(path.name):
                return True
    return False


def read_bytes(path: Path) -> bytes:
    """Read a file of a store.

    Raises:
        FileNotFoundError: There is none; callers handle it, as other processes may remove files.
        DamagedFileError: It is no regular file, or too large.
        StoreError: It cannot be read.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # reading a device or pipe might never end
            raise DamagedFileError(path, "it is not a regular file", "move it to another folder")
        if status.st_size > MAX_FILE_SIZE:
            raise DamagedFileError(path, f"it has more than {MAX_FILE_SIZE:,} bytes")
        return path.read_bytes()
    except FileNotFoundError:  # an `OSError`, too, but callers handle this one
        raise
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}") from None


def hash_content(data: bytes, length: int) -> str:
    """Beginning of the SHA-256 of a file's content, for its name."""
    return hashlib.sha256(data).hexdigest()[:length]


def decode_json(path: Path, data: bytes, content: type[T]) -> T:
    """Decode the JSON of a file into a type.

    Raises:
        DamagedFileError: It does not fit the type, or has control characters.
    """
    try:
        decoded = msgspec.json.decode(data, type=content)
        check_texts(msgspec.to_builtins(decoded))
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise DamagedFileError(path, error) from None
    return decoded


def check_texts(value: object) -> None:
    """Raise a `ValueError` if any text in a JSON value has control characters.

    Such characters would change the terminal on which the text is shown.
    """
    if isinstance(value, str):
        if CONTROL_CHARACTERS.search(value):
            raise ValueError("a text has control characters")
    elif isinstance(value, Mapping):
        for part in value.values():
            check_texts(part)
    elif isinstance(value, list | tuple):
        for part in value:
            check_texts(part)


def encode_json(record: Mapping[str, Any]) -> bytes:
    """Encode a record as one line of JSON with sorted keys."""
    return json.dumps(record, sort_keys=True).encode()


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Append a line of JSON in a single write, as several processes may append at the same time.

    What is written starts with a line break, too: it ends a line that a crash left incomplete.
    """
    line = f"\n{json.dumps(record)}\n".encode()
    # Without a buffer, `write` is one call of the system, and returns how many bytes it wrote.
    with writing(path.parent), path.open("ab", buffering=0) as file:
        if file.write(line) != len(line):
            raise OSError(f"{path.name} could only be written in part: is the disk full?")


def read_lines(path: Path, line_type: type) -> list[dict[str, Any]]:
    """Read the objects in a file of JSON lines that fit a type; none if there is no file.

    Lines that do not fit are left out: a crash may have left a line incomplete, and no result
    depends on these files.
    """
    records = []
    with suppress(FileNotFoundError):
        for line in read_bytes(path).splitlines():
            with suppress(msgspec.MsgspecError, RecursionError, ValueError):
                msgspec.json.decode(line, type=line_type)  # only to raise if the line does not fit
                records.append(json.loads(line))  # with all its fields, also those not in the type
    return records


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn an `OSError` of a block that writes to a folder into a `StoreError` that names it."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot write results to {folder}: {error.strerror or error}") from None


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically."""
    with writing(path.parent):
        write_atomically(path, data)
