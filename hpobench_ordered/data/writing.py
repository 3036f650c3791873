"""Atomic writing of files."""

import os
import secrets
from pathlib import Path

from hpobench_ordered.errors import UnknownNameError


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file atomically: after a crash, it has its old content or all of the new one.

    The content is written to a temporary file beside it, which then replaces the file.
    """
    scratch = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        with scratch.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # waits until the content is on the disk
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def check_file(path: Path) -> None:
    """Raise an `UnknownNameError` unless a path is that of a file or a pipe.

    The message suggests files of the same folder whose names end in the same way.
    """
    is_file_or_pipe = path.exists() and not path.is_dir()
    if is_file_or_pipe:
        return
    names_of_others = []
    for other in path.parent.glob(f"*{path.suffix}"):
        if other.is_file():
            names_of_others.append(other.name)
    hint = f" (in {path.parent.absolute()})"
    raise UnknownNameError("file", path.name, names_of_others, hint=hint)
