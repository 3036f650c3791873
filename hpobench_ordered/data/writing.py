"""Atomic writing of files."""

import os
import secrets
from pathlib import Path

from hpobench_ordered.errors import UnknownNameError


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file atomically: after a crash, it has its old content or all of the new one."""
    scratch = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        with scratch.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def check_file(path: Path) -> None:
    """Raise an `UnknownNameError` unless there is a file (or a pipe)."""
    is_file_or_pipe = path.exists() and not path.is_dir()
    if is_file_or_pipe:
        return
    names = []
    for other in path.parent.glob(f"*{path.suffix}"):
        if other.is_file():
            names.append(other.name)
    hint = f" (in {path.parent.absolute()})"
    raise UnknownNameError("file", path.name, names, hint=hint)
