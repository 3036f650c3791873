"""Reads the files of a store of unknown origin: bounded, and never outside of its folder.

A store may have been made by somebody else. What is read here is a regular file in the folder
itself, no link and no pipe, of a size that is known to be enough; JSON in it has as few lists and
objects as memory easily holds.
"""

import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hpobench_ordered.errors import StoreError

MAX_RECORD = 2**24
"""Most bytes of a JSON file: 16 MiB, a grid of a million seeds."""
MAX_PARTS = 1_000_000
"""Most lists and objects in a JSON text; each takes up to seventy times its length in memory."""
MAX_REASON = 200
"""Most characters of a message that are shown."""

_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_READ = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | _NO_LINK
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


class DamagedFileError(StoreError):
    """A file of a store is not what it should be.

    Attributes:
        path: The file.
    """

    def __init__(self, path: Path, why: object) -> None:
        super().__init__(f"{printable(path)} is damaged: {one_line(why)}; delete it and run again")
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.path, str(self))


def _restored(path: Path, message: str) -> DamagedFileError:
    error = DamagedFileError(path, "")
    error.args = (message,)
    return error


def printable(text: object) -> str:
    """A text in one line, without anything that a terminal or an encoder might choke on."""
    return _UNPRINTABLE.sub(" ", str(text))


def is_printable(text: str) -> bool:
    """Whether a text is in one line and can be shown as it is."""
    return _UNPRINTABLE.search(text) is None


def one_line(message: object) -> str:
    """What an exception says, as far as it can be shown."""
    return printable(message).strip()[:MAX_REASON]


def unreadable(path: Path, error: OSError) -> StoreError:
    """The error for what may be whole, but is kept from being read."""
    return StoreError(f"{printable(path)} cannot be read: {one_line(error.strerror or error)}")


def listed(folder: Path, suffix: str) -> list[Path]:
    """The files of a folder by their ending, in the order of their names; hidden ones left out.

    Raises:
        StoreError: The folder is a link, no folder, or cannot be read.
    """
    try:
        if folder.is_symlink():
            raise StoreError(f"{printable(folder)} is a link: a store holds its files itself")
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if e.name.endswith(suffix) and e.name[0] != "."]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unreadable(folder, error) from None
    return [folder / name for name in sorted(names)]


def check_regular(path: Path) -> os.stat_result:
    """Check that a file is a regular one in the folder itself.

    Raises:
        FileNotFoundError: It is not there any more.
        DamagedFileError: It is a link, a pipe, a folder or the like.
        StoreError: It cannot be looked at.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(path, error) from None
    if not stat.S_ISREG(found.st_mode):
        raise DamagedFileError(path, "it is not a regular file")
    return found


def read_bytes(path: Path, *, limit: int = MAX_RECORD) -> bytes:
    """Read a regular file.

    Args:
        path: The file.
        limit: Most bytes it may have.

    Raises:
        FileNotFoundError: It is not there any more.
        DamagedFileError: It is larger, or no regular file.
        StoreError: It cannot be read.
    """
    check_regular(path)
    try:
        with os.fdopen(os.open(path, _READ), "rb") as file:
            data = file.read(limit + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(path, error) from None
    if len(data) > limit:
        raise DamagedFileError(path, f"it is larger than the {limit} bytes allowed")
    return data


def read_lines(path: Path, *, limit: int, longest: int) -> Iterator[bytes]:
    """Read a regular file by lines; of one that is not there, none. Overlong lines are left out.

    Args:
        path: The file.
        limit: Most bytes it may have.
        longest: Most bytes of a line.

    Raises:
        DamagedFileError: It is larger, or no regular file.
        StoreError: It cannot be read.
    """
    try:
        if check_regular(path).st_size > limit:
            raise DamagedFileError(path, f"it is larger than the {limit} bytes allowed")
        with os.fdopen(os.open(path, _READ), "rb") as file:
            is_inside = False  # of a line whose beginning was too long
            while line := file.readline(longest + 1):
                is_whole = line.endswith(b"\n") or len(line) <= longest
                if is_whole and not is_inside:
                    yield line
                is_inside = not is_whole
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreadable(path, error) from None


def parse_json(data: bytes) -> Any:
    """Parse JSON that takes a bounded amount of memory.

    Raises:
        ValueError: It is none, or has too many lists and objects.
    """
    if data.count(b"{") + data.count(b"[") > MAX_PARTS:
        raise ValueError(f"it has more than {MAX_PARTS} lists and objects")
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises:
        FileNotFoundError: It is not there any more.
        DamagedFileError: It is no such file.
        StoreError: It cannot be read.
    """
    try:
        return parse_json(read_bytes(path))
    except ValueError as error:
        raise DamagedFileError(path, error) from None
