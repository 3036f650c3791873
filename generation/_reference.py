"""Makes the reference results: runs what is missing, and stores the best losses so far.

`PARTS` lists what comes with the package: methods, suites, protocols and seeds. Results may be made
piece by piece, on several machines: what is there already, in the same versions, is kept.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from hpobench_ordered.benchmarks.registry import benchmark_spec, suite
from hpobench_ordered.data.artifact import Artifact, ArtifactWriter
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.data.protocol_text import parse_protocol_name
from hpobench_ordered.experiment._reference_file import ReferenceFile
from hpobench_ordered.experiment.api import run
from hpobench_ordered.experiment.overview import State, make_overview
from hpobench_ordered.experiment.parallel import run_cells
from hpobench_ordered.experiment.plan import Cell, plan
from hpobench_ordered.experiment.protocols import (
    Adjustment,
    LeaveOneOut,
    Ordered,
    Protocol,
)
from hpobench_ordered.experiment.reference import RESULTS_SUFFIX, TIMES_FILE
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.experiment.submission import (
    SUBMISSIONS_FILE,
    Submission,
    submissions_from_json,
)
from hpobench_ordered.generation._submissions import read_descriptions, read_submitted_files

if TYPE_CHECKING:
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

TIMED_BENCHMARKS = ("yahpo-svm-1220", "retrain-weather-xgboost")
TIMED_TASKS = 4
"""A small draw of runs, with which the CPU time of suggestions is measured: the first tasks."""

NETWORKS = (
    "ablr",
    "ablr-ctx",
    "ablr-embeddings",
    "ablr-lbfgs-fixed",
    "ablr-rks",
    "ablr-sgd-adapt",
    "ablr-sgd-fixed",
    "ablr-transfer",
    "abrac",
    "abrac-fixed",
    "abrac-prior",
    "bohamiann",
    "bohamiann-ctx",
)
"""Methods with networks: up to seconds for a suggestion."""


@dataclass(frozen=True)
class Part:
    """Methods on a suite, under a protocol."""

    suite: str
    methods: tuple[str, ...]
    seeds: int
    protocol: Protocol = field(default_factory=Ordered)

    def benchmarks(self) -> list[str]:
        """List the suite's benchmarks that can be loaded without generating or fetching files."""
        return [name for name in suite(self.suite) if benchmark_spec(name).option().is_ready]

    def plan_cells(self) -> list[Cell]:
        """Plan a run of each method with each seed on each benchmark that can be loaded."""
        return plan(
            benchmarks=self.benchmarks(),
            methods=self.methods,
            seeds=range(self.seeds),
            protocol=self.protocol,
        )


UNORDERED = (*WITHOUT_ORDER, *SURROGATES_OF_TASKS)
"""Methods on tasks without an order."""

PARTS = (
    Part("othpo", QUICK, 10),
    Part("retrain", QUICK, 10),
    Part("othpo", SURROGATES_OF_TASKS, 5),
    Part("retrain", SURROGATES_OF_TASKS, 5),
    Part("othpo", NETWORKS, 3),
    Part("retrain", NETWORKS, 3),
    Part("wide", QUICK, 3),
    Part("wide", SURROGATES_OF_TASKS, 1),
    Part("synthetic-ordered", QUICK, 10),
    Part("synthetic-ordered", SURROGATES_OF_TASKS, 5),
    Part("synthetic", UNORDERED, 10, LeaveOneOut(trials=50)),
    Part("openml", UNORDERED, 10, LeaveOneOut(trials=50)),
    Part("datasets-a", WITHOUT_ORDER, 10, LeaveOneOut(trials=50)),
    Part("datasets-a", SURROGATES_OF_TASKS, 5, LeaveOneOut(trials=50)),
    Part("datasets-b", WITHOUT_ORDER, 10, LeaveOneOut(trials=50)),
    Part("datasets-b", SURROGATES_OF_TASKS, 5, LeaveOneOut(trials=50)),
    Part("tabular", UNORDERED, 10, LeaveOneOut(trials=50)),
    Part("adjustments", CHANGED_SPACES, 10, Adjustment(trials=40)),
)


def run_missing(
    results: Path,
    folder: Path,
    *,
    methods: Collection[str] = (),
    workers: int,
    dask: "Client | str | None" = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Run what is in neither a folder of results nor the reference results.

    Finished runs are stored at once, so that a stopped call continues when it is started again.
    Runs that failed in an earlier call are run again.

    Args:
        results: Folder of the results, in which finished runs are stored.
        folder: Folder of the reference results.
        methods: Run only these; default: all.
        workers: Number of processes.
        dask: A Dask client or the address of a scheduler, see `hpobench_ordered.run`.
        progress: Called with the number of runs that are over and of all runs.
    """
    keys_in_reference = _read_keys(folder)
    cells = [cell for key, cell in _plan_cells(methods).items() if key not in keys_in_reference]
    store = Store(results)
    # A run that took too long on a busy machine, for example, may succeed now.
    store.records.forget_failures(cell.key for cell in cells)
    # This leaves out what the folder of results has already.
    run_cells(cells, store, workers=workers, dask=dask, progress=progress)


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file of reference results that was written."""

    name: str
    size: int  # bytes
    runs: int


def write_reference(
    results: Path,
    folder: Path,
    *,
    submissions: Path | None = None,
    times: Mapping[str, Mapping[str, float]] | None = None,
) -> list[WrittenFile]:
    """Bring reference results up to date with the finished runs in a folder of results.

    Runs that are in the reference already are kept if they are planned and of the installed
    versions. Written piece by piece, from the results of several machines in any order, they are
    the same as if they had been written at once.

    Args:
        results: Folder of the results.
        folder: Folder of the reference results, which is made if there is none.
        submissions: Folder of submitted results, see `_submissions`; None: keep those that are
            there.
        times: What `measure_times` measured; None: keep what is there.

    Raises:
        ArtifactError: The reference results are damaged, or a submission cannot be taken in.
    """
    cells = _plan_cells()
    other_content = _read_other_content(folder)  # descriptions of submissions, and times
    descriptions = submissions_from_json(other_content.pop(SUBMISSIONS_FILE, {}))
    new_files = list(_read_results(Store(results), cells.values()))
    if submissions is not None:
        descriptions = read_descriptions(submissions)
        new_files += read_submitted_files(submissions)

    file_of_name = {}
    for name, file in _read_reference(folder).items():
        file_of_name[name] = _select_current_runs(file, cells, descriptions)
    for new_file in new_files:
        name = _name_file(new_file.where)
        current_file = file_of_name.get(name)
        file_of_name[name] = new_file if current_file is None else current_file.merge(new_file)

    # Descriptions of methods without results are not stored.
    have_results = {method for file in file_of_name.values() for method in file.runs["method"]}
    described = {name: descriptions[name] for name in sorted(descriptions) if name in have_results}
    if described:
        other_content[SUBMISSIONS_FILE] = msgspec.to_builtins(described)
    if times is not None:
        other_content[TIMES_FILE] = times
    return _write_files(folder, file_of_name, other_content)


def _select_current_runs(
    file: ReferenceFile, planned_keys: Container[str], descriptions: Mapping[str, Submission]
) -> ReferenceFile:
    """Select the runs of a file that are planned, or were submitted in the described version.

    The key of a run hashes its versions, so that runs of other versions are not planned.

    Args:
        file: The file.
        planned_keys: Keys of the planned runs.
        descriptions: Descriptions of the submitted methods, by name.
    """
    is_current = []
    for key, cell in file.cells.items():
        submission = descriptions.get(cell["method"])
        is_described = submission is not None and submission.versions == cell["method_version"]
        is_current.append(is_described or key in planned_keys)
    return file.select_runs(np.array(is_current, dtype=np.bool_))


def _write_files(
    folder: Path, file_of_name: Mapping[str, ReferenceFile], other_content: Mapping[str, Any]
) -> list[WrittenFile]:
    """Write the reference results, and return a description of each file of results.

    Args:
        folder: Where to.
        file_of_name: The results, by name of their file; files without runs are not written.
        other_content: Content of the other files, which are JSON, by name of the file.
    """
    written_files = []
    with ArtifactWriter(folder) as writer:
        for name, file in sorted(file_of_name.items()):
            number_of_runs = len(file.runs)
            if number_of_runs > 0:
                content = file.to_bytes()
                writer.write_bytes(name, content)
                written_files.append(WrittenFile(name, len(content), number_of_runs))
        for name, content_of_file in other_content.items():
            writer.write_json(name, content_of_file)
    return written_files


@dataclass(frozen=True, slots=True)
class Progress:
    """How much of a part of the plan the reference results have."""

    part: Part
    planned: int  # number of planned runs
    missing: Mapping[str, int]  # number of missing runs, by method


def find_progress(folder: Path) -> list[Progress]:
    """Count, for each part of the plan, the runs that the reference results in a folder lack."""
    keys_in_reference = _read_keys(folder)
    progress_of_parts = []
    for part in PARTS:
        cells = part.plan_cells()
        methods_of_missing = [
            cell.method.name for cell in cells if cell.key not in keys_in_reference
        ]
        progress_of_parts.append(Progress(part, len(cells), Counter(methods_of_missing)))
    return progress_of_parts


def measure_times() -> dict[str, dict[str, float]]:
    """Measure the CPU time of the suggestions of all methods, one after the other.

    A few runs are made for it, as the reference results are made by many processes at once, which
    slow each other down. The machine should have nothing else to do.

    Returns:
        By method: `suggestions`, their number, and `cpu_seconds`, the time of all of them.
    """
    methods = {method for part in PARTS for method in part.methods}
    times_of_method = {}
    for method in sorted(methods):
        with tempfile.TemporaryDirectory() as folder:
            results = run(
                benchmarks=TIMED_BENCHMARKS,
                methods=[method],
                seeds=[0],
                protocol=Ordered(tasks=TIMED_TASKS),
                folder=folder,
                workers=1,
                progress=False,
            )
            timings = results.timings()
        times_of_method[method] = {
            "suggestions": int(timings["suggestions"].sum()),
            "cpu_seconds": round(float(timings["method_cpu_seconds"].sum()), 4),
        }
    return times_of_method


def _plan_cells(methods: Collection[str] = ()) -> dict[str, Cell]:
    """Plan the runs of all parts of the reference results, by the key that identifies each run.

    A part is some methods on a suite under a protocol. A run may belong to several parts.

    Args:
        methods: Plan only the runs of these; default: of all methods.
    """
    cell_of_key = {}
    for part in PARTS:
        for cell in part.plan_cells():
            if not methods or cell.method.name in methods:
                cell_of_key[cell.key] = cell
    return cell_of_key


def _read_reference(folder: Path) -> dict[str, ReferenceFile]:
    """Read the results in a folder of reference results, by name of the file; none without it."""
    artifact = Artifact(folder)
    if not artifact.exists:
        return {}
    names = [name for name in artifact.sums() if name.endswith(RESULTS_SUFFIX)]
    return {name: ReferenceFile.from_bytes(artifact.read(name), name=name) for name in names}


def _read_keys(folder: Path) -> set[str]:
    """Read the keys of all runs in a folder of reference results; each key identifies a run."""
    keys: set[str] = set()
    for file in _read_reference(folder).values():
        keys.update(file.cells)  # a mapping by key
    return keys


def _read_other_content(folder: Path) -> dict[str, Any]:
    """Read the JSON files in a folder of reference results, by name; none without a folder."""
    artifact = Artifact(folder)
    if not artifact.exists:
        return {}
    names = [name for name in artifact.sums() if not name.endswith(RESULTS_SUFFIX)]
    return {name: artifact.read_json(name) for name in names}


def _read_results(store: Store, cells: Iterable[Cell]) -> Iterator[ReferenceFile]:
    """Read the finished runs of a plan from a folder of results.

    Yields:
        What the reference results store of the runs, for each benchmark, surrogate and protocol.
    """
    runs = make_overview(store, cells).runs
    finished_runs = runs[runs["state"] == State.DONE.value]
    for labels, group in finished_runs.groupby(["benchmark", "surrogate", "protocol"]):
        identity, _, _ = map(str, labels)  # identity: NAME@VERSION
        spec = benchmark_spec(BenchmarkIdentity.parse(identity).id)
        trials = store.read(list(group["key"]))
        yield ReferenceFile.of_results(group, trials, spec)


def _name_file(where: Mapping[str, str]) -> str:
    """Name the file of the results on a benchmark and a surrogate under a protocol.

    A file has the results under all settings of the protocol, such as numbers of trials.
    """
    protocol = parse_protocol_name(where["protocol"])
    return f"{where['benchmark']}-{where['surrogate']}-{protocol}{RESULTS_SUFFIX}"
