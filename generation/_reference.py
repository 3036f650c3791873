"""Makes the reference results: runs what a folder of results lacks of them, and keeps the best.

What comes with the package is within `PARTS`: methods, suites, protocols and seeds that fit into
three megabytes and a day of one processor. Methods with networks, which take up to a second for a
suggestion, and those that look at training data are left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hpobench_ordered.core.specs import CONTENT_MARK
from hpobench_ordered.core.suites import suite
from hpobench_ordered.experiment._reference_file import ReferenceFile
from hpobench_ordered.experiment.api import run
from hpobench_ordered.experiment.overview import State, overview
from hpobench_ordered.experiment.plan import Cell, plan
from hpobench_ordered.experiment.reference import END
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.files.writing import write_atomically
from hpobench_ordered.protocols import Adjustment, LeaveOneOut, Ordered, Protocol
from hpobench_ordered.registry import benchmark_spec

if TYPE_CHECKING:
    import pandas as pd
    from distributed import Client

CHANGED_SPACES = (
    "ordered-gp",
    "simple-ordered",
    "simple-previous",
    "best-first",
    "drop-unimportant",
    "gp-best-first",
    "gp-drop-unimportant",
    "gp-only-optimize-new",
    "only-optimize-new",
    "random-search",
    "bo",
    "tpe",
    "transfer-gp",
    "transfer-gp-best-first",
    "transfer-tpe",
    "transfer-tpe-best-first",
)
"""Methods for search spaces that changed, and those without transfer."""

QUICK = (
    *CHANGED_SPACES,
    "bounding-box",
    "cts",
    "dre-ordered",
    "gp-transfer-closest",
    "gp-transfer-subsample",
    "simple-ordered-shuffled",
    "simple-previous-no-bo",
    "transfer-bo",
    "zero-shot",
)
"""Methods that need milliseconds for a suggestion."""

WITHOUT_ORDER = (
    "random-search",
    "bo",
    "tpe",
    "zero-shot",
    "cts",
    "bounding-box",
    "simple-ordered",
    "gp-transfer-closest",
    "gp-transfer-subsample",
    "transfer-bo",
    "transfer-gp-best-first",
    "best-first",
    "ordered-gp",
)
"""Methods on tasks without an order: those that were made for these, and the best of the others."""

SURROGATES_OF_TASKS = ("fsbo", "hyperbo", "meta-tpe", "rgpe", "stacked-gp", "taf-r", "tst-r")
"""Methods with a model of every earlier task, or of all of them: up to a tenth of a second."""

@dataclass(frozen=True)
class Part:
    """Methods on a suite, under a protocol."""

    suite: str
    methods: tuple[str, ...]
    seeds: int
    protocol: Protocol = field(default_factory=Ordered)

    def benchmarks(self) -> list[str]:
        """Those that are there, without fetching or installing anything."""
        return [name for name in suite(self.suite) if benchmark_spec(name).option().is_ready]

    def cells(self) -> list[Cell]:
        """Its runs."""
        return plan(
            benchmarks=self.benchmarks(),
            methods=self.methods,
            seeds=range(self.seeds),
            protocol=self.protocol,
        )


PARTS = (
    Part("othpo", QUICK, 5),
    Part("retrain", QUICK, 5),
    Part("wide", QUICK, 3),
    Part("othpo", SURROGATES_OF_TASKS, 5),
    Part("retrain", SURROGATES_OF_TASKS, 5),
    Part("synthetic", (*WITHOUT_ORDER, *SURROGATES_OF_TASKS), 2, LeaveOneOut(trials=50)),
    Part("openml", (*WITHOUT_ORDER, *SURROGATES_OF_TASKS), 2, LeaveOneOut(trials=50)),
    Part("adjustments", CHANGED_SPACES, 10, Adjustment(trials=40)),
)


def run_missing(folder: Path, *, workers: int, dask: "Client | str | None" = None) -> None:
    """Run what a folder of results lacks of all parts; again after a stop, it continues."""
    for part in PARTS:
        run(
            benchmarks=part.benchmarks(),
            methods=part.methods,
            seeds=range(part.seeds),
            protocol=part.protocol,
            folder=folder,
            workers=workers,
            dask=dask,
        )


def write_reference(results: Path, folder: Path) -> Iterator[tuple[Path, int, int]]:
    """Write the files of what is finished of all parts, in place of those that are there.

    Of a part on a benchmark the seeds count that no run is missing of, so that all methods have the
    same ones.

    Yields:
        Each file with the number of its runs, and of those that are left out.
    """
    import pandas as pd

    store = Store(results)
    asked = pd.concat([_with_whole_seeds(store, part) for part in PARTS])
    asked = asked.sort_values("is_whole", ascending=False).drop_duplicates("key")
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"*{END}"):
        old.unlink()
    for labels, runs in asked.groupby(["benchmark", "surrogate", "protocol"]):
        kept = runs[runs["is_whole"] & (runs["state"] == State.DONE.value)]
        if not len(kept):
            continue
        identity, surrogate, protocol = map(str, labels)
        spec = benchmark_spec(identity.partition(CONTENT_MARK)[0])
        keys = list(kept["key"])
        timings = store.records.timings(keys)
        content = ReferenceFile.of(kept, store.read(keys), timings, spec).to_bytes(spec)
        path = folder / f"{spec.id}-{surrogate}-{protocol.partition('(')[0]}{END}"
        write_atomically(path, content)
        yield path, len(kept), len(runs) - len(kept)


def _with_whole_seeds(store: Store, part: Part) -> "pd.DataFrame":
    """The runs of a part, and whether all of their benchmark and seed are over."""
    runs = overview(store, part.cells()).runs
    is_over = runs["state"].isin([State.DONE.value, State.FAILED.value])
    return runs.assign(is_whole=is_over.groupby([runs["benchmark"], runs["seed"]]).transform("all"))
