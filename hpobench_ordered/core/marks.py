"""Marks of benchmarks on which methods hardly differ: plateaus, and those that copying solves.

Both are computed from random configurations on the default surrogate, by the command
`hpobench-ordered generate marks`, and stored in `marks.json`: among the artifacts, or in the folder
of the user's own benchmarks. A mark is only used for the content (hash) that it was computed from.

Notation:
    n   configurations
    T   tasks
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.copying import copying, near_best, scale
from hpobench_ordered.core.benchmark import Benchmark
from hpobench_ordered.core.identity import BenchmarkIdentity
from hpobench_ordered.errors import ArtifactError
from hpobench_ordered.files.local import local_folder
from hpobench_ordered.files.writing import write_atomically

FILE = "marks.json"
DRAWS = 4000  # n, the same for all tasks
SEED = 0
MOST = Fraction(2, 3)  # share of the tasks on which a mark must hold
PLATEAU = 0.1  # a larger `near_best` is a plateau
COPYING = 0.05  # copying suffices with a smaller `copying`
DIGITS = 4
ROUNDING = 10 * 10.0**-DIGITS


@dataclass(frozen=True, slots=True)
class Marks:
    """Figures of random configurations on a benchmark.

    Both are relative to the distance from the median to the best known value: `near_best` is the
    share of configurations within 5 % of the best, which two thirds of the tasks reach; `copying`
    the regret of copying the best configuration from the task before, which two thirds of the tasks
    do not exceed.
    """

    near_best: float
    copying: float | None  # None for a single task

    @classmethod
    def of(cls, benchmark: Benchmark) -> "Marks":
        """Evaluate random configurations on every task."""
        best, losses = scale(benchmark, DRAWS)
        shares = copying(losses, best=best)
        shares = shares[~np.isnan(shares)]
        return cls(
            near_best=-_at_most(-near_best(losses, best=best)),
            copying=_at_most(shares) if len(shares) else None,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Its marks: "plateau", "copying", or both."""
        holds = {
            "plateau": self.near_best > PLATEAU,
            "copying": self.copying is not None and self.copying < COPYING,
        }
        return tuple(name for name, held in holds.items() if held)

    def check(self, computed: "Marks") -> None:
        """Raise an `ArtifactError` unless these are the recomputed marks, up to rounding."""
        mine, its = (
            [np.nan if figure is None else figure for figure in (one.near_best, one.copying)]
            for one in (self, computed)
        )
        if not np.allclose(mine, its, rtol=0, atol=ROUNDING, equal_nan=True):
            raise ArtifactError(f"marks must be {computed} (recomputed), but got {self}")

    def describe(self) -> str:
        """The marks and their figures in plain text."""
        figures = f"{self.near_best:.1%} of random configurations are near the best"
        if self.copying is not None:
            figures += f", copying from the task before leaves {self.copying:.1%}"
        return f"{', '.join(self.names) or 'none'} ({figures})"


class Marked(NamedTuple):
    """The benchmark, surrogate and content that marks were computed from."""

    id: str
    surrogate: str
    content: str


def stored_marks(marked: Marked) -> Marks | None:
    """Stored marks of a benchmark with exactly this content; None if there are none."""
    for path in (resources.files("hpobench_ordered") / "artifacts" / FILE, local_folder() / FILE):
        entry = _entries(path.read_bytes(), str(path)).get(marked.id) if path.is_file() else None
        if entry and (entry["surrogate"], entry["content"]) == marked[1:]:
            return Marks(near_best=entry["near_best"], copying=entry["copying"])
    return None


def write_marks(path: Path, marks: Sequence[tuple[Marked, Marks]], *, command: str) -> None:
    """Write marks and the command that computed them; others in the file are kept."""
    from hpobench_ordered.surrogates.card import versions_of

    versions = versions_of("hpobench-ordered", "numpy")
    entries = dict(_entries(path.read_bytes(), str(path))) if path.is_file() else {}
    names = {BenchmarkIdentity.parse(marked.id).name for marked, _ in marks}
    entries = {
        key: entry
        for key, entry in entries.items()
        if BenchmarkIdentity.parse(key).name not in names
    }
    for marked, one in marks:
        made_of = {"surrogate": marked.surrogate, "content": marked.content}
        entries[marked.id] = made_of | {"near_best": one.near_best, "copying": one.copying}
    content = {
        "command": command,
        "versions": versions,
        "configurations": DRAWS,
        "seed": SEED,
        "benchmarks": dict(sorted(entries.items())),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, (json.dumps(content, indent=1) + "\n").encode())


def _entries(content: bytes, path: str) -> Mapping[str, Any]:
    """Entries of a file of marks by benchmark ID."""
    try:
        entries: Mapping[str, Any] = json.loads(content)["benchmarks"]
        for entry in entries.values():
            _ = entry["surrogate"], entry["content"]
            _ = float(entry["near_best"]), float(entry["copying"] or 0.0)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{path} holds no marks: {error!r}") from None
    return entries


def _at_most(figures: FloatArray) -> float:
    """The lowest number that the figures of a share `MOST` of the tasks do not exceed."""
    return round(float(np.sort(figures)[math.ceil(MOST * len(figures)) - 1]), DIGITS)
