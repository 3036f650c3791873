"""Folds files of single runs into files of many, without ever losing one.

A folded file takes in files of the same columns that hold no more runs than were gathered before
it, so a run is written again only each time the file it is in at least doubles.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment._segments import (
    Segment,
    describe_segment,
    encode_folded,
    folded_name,
    is_same,
    load_segment,
    run_tables,
)
from hpobench_ordered.files import write_atomically

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 2000
"""Single runs that are folded at once."""
LARGEST = 20_000
"""Runs in one file, beyond which it is not written again."""


def fold(runs: Path, folded: Path, *, at_least: int) -> int:
    """Fold single runs.

    Args:
        runs: Folder of files of one run.
        folded: Folder of files of many.
        at_least: Do nothing while there are fewer single runs.

    Returns:
        The number of single runs that were folded; damaged ones are left where they are.

    Raises:
        OSError: A folder cannot be written.
    """
    loose = sorted(runs.glob("*.parquet"))
    if len(loose) < max(1, at_least):
        return 0
    done = 0
    for start in range(0, len(loose), BATCH):
        for group in _by_columns(_readable(loose[start : start + BATCH])):
            done += len(group.tables)
            _absorb(group, folded)
            _write(group, folded)
    return done


# -- internals -------------------------------------------------------------------------------------


@dataclass
class _Group:
    """Runs with the same columns, and the files they were read from."""

    schema: "pa.Schema"
    tables: "dict[str, pa.Table]" = field(default_factory=dict)
    cells: dict[str, Any] = field(default_factory=dict)
    sources: list[Path] = field(default_factory=list)

    def add(self, segment: Segment, table: "pa.Table") -> None:
        self.tables |= run_tables(segment, table)
        self.cells |= segment.cells
        self.sources.append(segment.path)


def _readable(paths: Iterable[Path]) -> "Iterable[tuple[Segment, pa.Table]]":
    for path in paths:
        try:
            yield load_segment(path)
        except (FileNotFoundError, StoreError):  # folded by somebody else, or damaged
            continue


def _by_columns(loaded: "Iterable[tuple[Segment, pa.Table]]") -> Sequence[_Group]:
    groups: dict[str, _Group] = {}
    for segment, table in loaded:
        schema = table.schema.remove_metadata()
        groups.setdefault(str(schema), _Group(schema)).add(segment, table)
    return list(groups.values())


def _absorb(group: _Group, folded: Path) -> None:
    """Take in folded files of the same columns, the smallest first, that are not larger."""
    described = []
    for path in folded.glob("*.parquet"):
        try:
            described.append(describe_segment(path))
        except (FileNotFoundError, StoreError):
            continue
    for segment in sorted(described, key=lambda s: (len(s.keys), s.path.name)):
        together = len(group.tables) + len(segment.keys)
        if len(segment.keys) > len(group.tables) or together > LARGEST:
            break
        for found, table in _readable([segment.path]):
            if table.schema.remove_metadata() == group.schema:
                group.add(found, table)


def _write(group: _Group, folded: Path) -> None:
    tables = {key: group.tables[key] for key in sorted(group.tables)}
    path = folded / folded_name(tables)
    write_atomically(path, encode_folded(tables, group.cells))
    segment, table = load_segment(path)
    written = run_tables(segment, table)
    if not all(is_same(written[key], run) for key, run in tables.items()):
        raise StoreError(f"{path} is not what was written to it")
    for source in group.sources:
        if source != path:
            source.unlink(missing_ok=True)
