"""Makes the reference results: runs what is missing, and stores the best losses so far.

`PARTS` lists what comes with the package: methods, suites, protocols and seeds that fit into
six megabytes and a day of one processor. Methods with networks, which take up to a second for a
suggestion, and those that use training data are left out.
"""

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hpobench_ordered.core.identity import BenchmarkIdentity
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.experiment._reference_file import ReferenceFile
from hpobench_ordered.experiment.api import run
from hpobench_ordered.experiment.overview import State, make_overview
from hpobench_ordered.experiment.plan import Cell, plan
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.files.artifact import Artifact, ArtifactWriter
from hpobench_ordered.protocols import (
    Adjustment,
    LeaveOneOut,
    Ordered,
    Protocol,
    parse_protocol_name,
)
from hpobench_ordered.registry import benchmark_spec, suite

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
"""Methods for changed search spaces, and those without transfer."""

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
"""Methods with suggestions in milliseconds."""

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
"""Methods for tasks without an order, and the best of the others."""

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
        """List the suite's benchmarks whose files are there.

        Leave-one-out ignores the order of tasks, so benchmarks that differ from others only by
        an order are left out then.
        """
        ready = [name for name in suite(self.suite) if benchmark_spec(name).option().is_ready]
        if isinstance(self.protocol, LeaveOneOut):
            return [name for name in ready if not name.endswith("-ordered")]
        return ready

    def plan_cells(self) -> list[Cell]:
        """Plan its runs."""
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


def run_missing(
    folder: Path,
    *,
    methods: Collection[str] = (),
    workers: int,
    dask: "Client | str | None" = None,
) -> None:
    """Run what a folder of results lacks of the reference results; continues after a stop.

    Reference results are runs of methods on suites of benchmarks; `PARTS` lists both.

    Args:
        folder: The results.
        methods: Run only these; default: all.
        workers: Number of processes.
        dask: A Dask client or the address of a scheduler, see `hpobench_ordered.run`.
    """
    for part in _select_parts(methods):
        run(
            benchmarks=part.benchmarks(),
            methods=part.methods,
            seeds=range(part.seeds),
            protocol=part.protocol,
            folder=folder,
            workers=workers,
            dask=dask,
        )


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file of reference results that was written."""

    name: str
    size: int  # bytes
    runs: int
    left_out: int  # runs of seeds that some method has not finished


def write_reference(results: Path, folder: Path) -> list[WrittenFile]:
    """Replace the reference results in a folder by the finished runs of all parts.

    A seed of a part counts on a benchmark only if all methods have run with it, so that all have
    the same seeds.
    """
    import pandas as pd

    store = Store(results)
    planned_runs = pd.concat([_mark_whole_seeds(store, part) for part in PARTS])

    # A run that several parts share counts if its seed is whole in any of them: True comes first.
    planned_runs = planned_runs.sort_values("is_whole", ascending=False).drop_duplicates("key")
    written_files = []
    with ArtifactWriter(folder) as artifact:
        for labels, runs in planned_runs.groupby(["benchmark", "surrogate", "protocol"]):
            is_done = runs["state"] == State.DONE.value
            finished = runs[runs["is_whole"] & is_done]
            if not len(finished):
                continue

            identity, surrogate, protocol = map(str, labels)  # identity: NAME@VERSION
            spec = benchmark_spec(BenchmarkIdentity.parse(identity).id)
            keys = list(finished["key"])
            file = ReferenceFile.of_results(finished, store.read(keys), store.timings(keys), spec)
            content = file.to_bytes()
            name = _name_file(spec.id, surrogate, protocol)
            artifact.write_bytes(name, content)
            written_files.append(
                WrittenFile(
                    name=name,
                    size=len(content),
                    runs=len(finished),
                    left_out=len(runs) - len(finished),
                )
            )
    return written_files


def replace_methods(results: Path, folder: Path, methods: Collection[str]) -> list[WrittenFile]:
    """Replace the reference results of some methods; those of all others stay as they are.

    Args:
        results: Results of these methods, all runs of them that `PARTS` lists.
        folder: The reference results.
        methods: Names of the methods.

    Raises:
        UnknownNameError: No part of the reference results has one of the methods.
        ExperimentError: A run is missing, or there are no results yet on one of the benchmarks.
        ArtifactError: The folder is damaged, or its files are of another version of a benchmark.
    """
    planned_methods = {name for part in PARTS for name in part.methods}
    for method in methods:
        if method not in planned_methods:
            raise UnknownNameError("method of the reference results", method, planned_methods)

    store = Store(results)
    cells = {cell.key: cell for part in _select_parts(methods) for cell in part.plan_cells()}
    runs = make_overview(store, cells.values()).runs
    not_done = runs[runs["state"] != State.DONE.value]
    if len(not_done):
        first = not_done.iloc[0]
        raise ExperimentError(
            f"{len(not_done)} runs are not finished, such as {first['method']} on "
            f"{first['benchmark']}, seed {first['seed']}"
        )

    artifact = Artifact(folder)
    contents = {name: artifact.read(name) for name in artifact.sums()}
    written_files = []
    for labels, finished in runs.groupby(["benchmark", "surrogate", "protocol"]):
        identity, surrogate, protocol = map(str, labels)
        spec = benchmark_spec(BenchmarkIdentity.parse(identity).id)
        name = _name_file(spec.id, surrogate, protocol)
        if name not in contents:
            raise ExperimentError(f"there are no reference results in {name}, so run all methods")

        keys = list(finished["key"])
        new_runs = ReferenceFile.of_results(finished, store.read(keys), store.timings(keys), spec)
        file = ReferenceFile.from_bytes(contents[name], name=name)
        is_kept = ~file.runs["method"].isin(methods).to_numpy()
        file = file.select_runs(is_kept).add_runs(new_runs)
        contents[name] = file.to_bytes()
        written_files.append(
            WrittenFile(name=name, size=len(contents[name]), runs=len(finished), left_out=0)
        )

    with ArtifactWriter(folder) as writer:
        for name, content in contents.items():
            writer.write_bytes(name, content)
    return written_files


def _select_parts(methods: Collection[str]) -> list[Part]:
    """Select the parts with any of these methods, and of their methods only these.

    Without methods, all parts are returned as they are.
    """
    if not methods:
        return list(PARTS)
    parts = []
    for part in PARTS:
        selected = tuple(name for name in part.methods if name in methods)
        if selected:
            parts.append(replace(part, methods=selected))
    return parts


def _name_file(benchmark: str, surrogate: str, protocol: str) -> str:
    """Name of the file of a benchmark's reference results; protocols by their names alone."""
    return f"{benchmark}-{surrogate}-{parse_protocol_name(protocol)}.parquet"


def _mark_whole_seeds(store: Store, part: Part) -> "pd.DataFrame":
    """List the runs of a part, with a column `is_whole`.

    It tells whether all methods have run on the run's benchmark with its seed. Failed runs count,
    too, as they would fail again.
    """
    runs = make_overview(store, part.plan_cells()).runs  # one row per run
    is_over = runs["state"].isin([State.DONE.value, State.FAILED.value])
    is_over_by_seed = is_over.groupby([runs["benchmark"], runs["seed"]])
    return runs.assign(is_whole=is_over_by_seed.transform("all"))
