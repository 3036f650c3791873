"""Files of JSON lines that any number of processes may append to."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from hpobench_ordered.experiment._files import parse_json, read_lines

MAX_JOURNAL = 2**28
"""Most bytes of a file: 256 MiB, near a million timings."""
MAX_LINE = 2**16
"""Most bytes of a line that counts."""

_APPEND = os.O_WRONLY | os.O_APPEND | os.O_CREAT
# A link would lead elsewhere, and a pipe without a reader is waited for.
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def append(path: Path, record: Mapping[str, Any]) -> None:
    """Append a record in one piece, so that several processes may do so at the same time.

    It begins with a line break of its own: a line that a crash broke off ends there.

    Raises:
        OSError: The file cannot be written.
    """
    line = f"\n{json.dumps(record)}\n".encode()
    file = os.open(path, _APPEND | _SAFELY, 0o666)
    try:
        os.write(file, line)
    finally:
        os.close(file)


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Read the records in the order they were appended; damaged lines are left out.

    Raises:
        StoreError: The file is too large, no regular file, or cannot be read.
    """
    for line in read_lines(path, limit=MAX_JOURNAL, longest=MAX_LINE):
        try:
            record = parse_json(line)
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def append_new(path: Path, records_of_other: Iterable[Mapping[str, Any]]) -> None:
    """Append records that are not there yet.

    Raises:
        OSError: The file cannot be written.
        StoreError: It cannot be read.
    """
    known = {json.dumps(record, sort_keys=True) for record in records(path)}
    for record in records_of_other:
        if json.dumps(record, sort_keys=True) not in known:
            append(path, record)
