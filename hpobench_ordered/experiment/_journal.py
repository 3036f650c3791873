"""Files of JSON lines that any number of processes may append to."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def append(path: Path, record: Mapping[str, Any]) -> None:
    """Append a record in one piece, so that several processes may do so at the same time.

    It begins with a line break of its own: a line that a crash broke off ends there.

    Raises:
        OSError: The file cannot be written.
    """
    line = f"\n{json.dumps(record)}\n".encode()
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(file, line)
    finally:
        os.close(file)


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Read the records in the order they were appended; damaged lines are left out."""
    if not path.exists():
        return
    for line in path.read_bytes().splitlines():
        try:
            record = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def append_new(path: Path, other: Path) -> None:
    """Append the records of another file that are not there yet.

    Raises:
        OSError: The file cannot be written.
    """
    known = {json.dumps(record, sort_keys=True) for record in records(path)}
    for record in records(other):
        if json.dumps(record, sort_keys=True) not in known:
            append(path, record)
