"""The finished runs of a store, whatever files they are in: found, read, joined and copied."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.errors import StoreError
from hpobench_ordered.experiment._files import listed
from hpobench_ordered.experiment._run_file import (
    SUFFIX,
    Run,
    described_runs,
    encode_packed,
    encode_run,
    key_in_name,
    load_runs,
    read_checked,
)
from hpobench_ordered.files import write_atomically

if TYPE_CHECKING:
    import pyarrow as pa

PACK = 5000
"""Most runs in one file."""
SHOWN = 20
"""Most runs that a message names."""

Cells = Mapping[str, Mapping[str, Any]]
"""What identifies runs, by key."""


class RunFolder:
    """Files of one run, and of many.

    Every method that reads raises FileNotFoundError if somebody else packs runs at the same time:
    looking again finds them. What cannot be read is a `StoreError`, what cannot be written an
    OSError.

    Attributes:
        single: Folder of the files of one run.
        packed: Folder of the files of many runs.
    """

    def __init__(self, folder: Path) -> None:
        self.single, self.packed = folder / "runs", folder / "packed"

    def files(self) -> list[Path]:
        """All files; packed ones last, so that no run is missed that is just being packed."""
        return [*listed(self.single, SUFFIX), *listed(self.packed, SUFFIX)]

    def write(self, key: str, table: "pa.Table") -> None:
        """Write the file of one run."""
        name, data = encode_run(key, table)
        write_atomically(self.single / name, data)

    def places(self) -> dict[str, list[Path]]:
        """The files that hold each run, by key."""
        places = defaultdict(list)
        for path in self.files():
            for key in [key_in_name(path)] if path.parent == self.single else described_runs(path):
                places[key].append(path)
        return places

    def cells(self, known: Cells) -> Cells:
        """What identifies each run, by key.

        Args:
            known: What is known already: files of one run are opened only if they are not in it.
        """
        cells: dict[str, Mapping[str, Any]] = {}
        for path in self.files():
            key = key_in_name(path) if path.parent == self.single else ""
            cells |= {key: known[key]} if key in known else described_runs(path)
        return cells

    def load(
        self, keys: Collection[str] | None = None, columns: Sequence[str] | None = None
    ) -> Iterator[Run]:
        """Read runs, each once, in no particular order.

        Args:
            keys: The runs. Default: all.
            columns: Columns of the trials. Default: all.
        """
        places = self.places()
        if keys is not None:
            places = {key: places[key] for key in keys if key in places}
        twice = {key for key, paths in places.items() if len(paths) > 1}
        in_files = {path for key in twice for path in places[key]}
        copies = (run for path in sorted(in_files) for run in load_runs(path))
        _refuse_different(run for run in copies if run.key in twice)
        chosen = {key: paths[0] for key, paths in places.items()}
        for path in sorted(set(chosen.values())):
            yield from (run for run in load_runs(path, columns) if chosen.get(run.key) == path)

    def compact(self, known: Cells, *, at_least: int) -> int:
        """Join the runs of each benchmark; see `Store.compact`."""
        if len(listed(self.single, SUFFIX)) < at_least:
            return 0
        cells = self.cells(known)
        sources: list[Path] = []
        groups: dict[str, set[str]] = defaultdict(set)
        for path in self.files():
            keys = [key_in_name(path)] if path.parent == self.single else list(described_runs(path))
            if len(keys) < PACK:
                sources.append(path)
                for key in keys:
                    groups[cells[key]["benchmark"]].add(key)
        written = set()
        for keys in map(sorted, groups.values()):
            for start in range(0, len(keys), PACK):
                written |= self._pack(self.load(keys[start : start + PACK]))
        removed = [path for path in sources if path not in written]
        for path in removed:
            path.unlink(missing_ok=True)
        return len(removed)

    def _pack(self, runs: Iterable[Run]) -> set[Path]:
        """Write runs to a file for each set of columns, and read them back."""
        groups: dict[str, list[Run]] = defaultdict(list)
        for run in sorted(runs, key=lambda run: run.key):
            groups[str(run.trials.schema)].append(run)
        written = set()
        for group in groups.values():
            name, data = encode_packed(group)
            path = self.packed / name
            write_atomically(path, data)
            if [run.digest() for run in load_runs(path)] != [run.digest() for run in group]:
                raise StoreError(f"{path} does not hold what was written to it")
            written.add(path)
        return written

    def take(self, other: "RunFolder") -> None:
        """Copy the files of another store that hold runs which are not here."""
        mine, places = self.places(), other.places()
        for path in sorted({paths[0] for key, paths in places.items() if key not in mine}):
            write_atomically(self.single.parent / path.parent.name / path.name, read_checked(path))


def refuse_conflicts(folders: Sequence[RunFolder]) -> None:
    """Check that stores which hold the same runs hold the same results of them."""
    stores_of = Counter(key for folder in folders for key in folder.places())
    shared = {key for key, stores in stores_of.items() if stores > 1}
    _refuse_different(run for folder in folders for run in folder.load(shared))


def _refuse_different(runs: Iterable[Run]) -> None:
    """Check that runs of the same key are the same."""
    digests: dict[str, str] = {}
    different = {}
    for run in runs:
        digest = run.digest()
        if digests.setdefault(run.key, digest) != digest:
            different[run.key] = "{benchmark}, {method}, seed {seed}".format(**run.cell)
    if different:
        named = [f"{what} ({key})" for key, what in list(different.items())[:SHOWN]]
        more = f"; and {len(different) - SHOWN} more" if len(different) > SHOWN else ""
        raise StoreError(
            f"{len(different)} runs have two different results: {'; '.join(named)}{more}. Remove "
            "those that are wrong, their files have these keys in their names"
        )
