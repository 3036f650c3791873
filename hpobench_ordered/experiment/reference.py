"""Reference results: what methods reached, bundled for comparison.

`hpobench-ordered generate reference` makes them; `_reference_file` describes their files. Results
of other versions of a benchmark or method than the installed one are left out. Methods that are not
in the package have submitted their results (`submission`).
"""

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Never

import numpy as np

from hpobench_ordered._wording import join_words
from hpobench_ordered.analysis.labels import is_submitted
from hpobench_ordered.benchmarks.registry import benchmark_spec, suite, suites
from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.errors import (
    ExperimentError,
    HPOBenchOrderedError,
    OutdatedReferenceWarning,
    UnknownNameError,
)
from hpobench_ordered.experiment._reference_file import ReferenceFile
from hpobench_ordered.experiment.protocols import Ordered, Protocol, format_protocol
from hpobench_ordered.experiment.records import TIMING_COLUMNS
from hpobench_ordered.experiment.stored_runs import Cells, StoredRuns
from hpobench_ordered.experiment.submission import (
    SUBMISSIONS_FILE,
    Submission,
    submissions_from_json,
)
from hpobench_ordered.methods.registry import list_methods, method_spec

if TYPE_CHECKING:
    import pandas as pd

REFERENCE_ARTIFACT = Artifact.packaged("reference")

TIMES_FILE = "times.json"
"""File with the CPU time of each method in a few of its runs, drawn at random.

It has the number of `suggestions` that the method made, and the `cpu_seconds` for all of these.
"""

RESULTS_SUFFIX = ".parquet"

BEST_LOSSES_ONLY_MESSAGE = (
    "reference results are the best losses so far, without configurations or other trials: they "
    "allow incumbents(), leaderboard(), plots and reports, and export --what incumbents or "
    "leaderboard, but no frames of all trials or landscapes"
)


class ReferenceRuns(StoredRuns):
    """Runs in reference files."""

    folder = Path("reference")
    has_all_trials = False

    def __init__(
        self,
        files: Sequence[ReferenceFile],
        *,
        times: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
    ) -> None:
        """Keep the content of reference files.

        Args:
            files: The runs, in one item per file.
            times: CPU time of each method, by its name. The time was measured in a few runs, which
                were drawn at random: "suggestions" is how many suggestions the method made in them,
                and "cpu_seconds" how long it took for all of these. Default: no times are known.
        """
        self._files = files
        self._times = times

    def cells(self, planned: Cells | None = None) -> Cells:
        """Return what identifies each run (benchmark, method, seed and so on), by its key.

        `planned` is not used here, as all files have been read. Other stores leave files of planned
        runs unopened.
        """
        cells = {}
        for file in self._files:
            cells.update(file.cells)
        return cells

    def read(self, keys: Iterable[str] | None = None) -> "pd.DataFrame":
        """Tabulate the trials of runs, by default of all, one row per trial.

        The files store only the trials that scores need, such as all that lower the best loss so
        far. Every other trial gets a row with the best loss so far in place of its own loss.

        Args:
            keys: Keys of the runs; None: all.
        """
        import pandas as pd

        trials = pd.concat([file.trials() for file in self._files], ignore_index=True)
        return trials if keys is None else trials[trials["key"].isin(list(keys))]

    def timings(self, keys: Collection[str] | None = None) -> "pd.DataFrame":
        """Tabulate the timings of runs, one row per run.

        CPU times are not those of the run itself: they were measured in a few runs of the method,
        drawn at random, so that all runs of a method have the same. Wall-clock times (`seconds`)
        are missing, as many runs were made at once.
        """
        import pandas as pd

        rows = []
        for key, cell in self.cells().items():
            if keys is not None and key not in keys:
                continue
            time = self._times.get(cell["method"], {})
            rows.append(
                {
                    "key": key,
                    **cell,
                    "suggestions": time.get("suggestions"),
                    "seconds": None,
                    "method_cpu_seconds": time.get("cpu_seconds"),
                    "version": None,
                }
            )
        timings = pd.DataFrame(rows, columns=list(TIMING_COLUMNS))
        return timings.astype({"seconds": float, "method_cpu_seconds": float})

    def configurations(self, keys: Iterable[str]) -> Never:
        """Raise an `ExperimentError`: reference files have no configurations."""
        raise ExperimentError(BEST_LOSSES_ONLY_MESSAGE)


def read_reference(
    names: Iterable[str] = (),
    *,
    methods: Iterable[str] | None = None,
    protocol: Protocol | None = None,
) -> ReferenceRuns:
    """Read reference results, by default all.

    Args:
        names: Suites and benchmarks.
        methods: Names of methods; None: all.
        protocol: The protocol of the runs; None: any. If it is the ordered protocol with fewer
            tasks than the results have, their first tasks are returned.

    Raises:
        UnknownNameError: There is no such suite, benchmark or method.
        ExperimentError: There are no such results.
        ArtifactError: A file is damaged.

    Warns:
        OutdatedReferenceWarning: Results of other versions than the installed ones are left out.
    """
    names = list(names)
    methods = None if methods is None else set(methods)
    _check_methods(methods or ())
    outdated: list[str] = []
    files = []
    for file in _read_files(_list_benchmarks(names)):
        selected, outdated_in_file = _select_installed_versions(file)
        outdated += outdated_in_file
        if protocol is not None:
            selected = _select_protocol(selected, protocol)
        if methods is not None:
            selected = selected.select_runs(selected.runs["method"].isin(methods).to_numpy())
        if len(selected.runs):
            files.append(selected)
    if outdated:
        left_out = join_words(dict.fromkeys(outdated))
        warnings.warn(
            f"reference results of other versions are left out: {left_out}",
            OutdatedReferenceWarning,
            stacklevel=3,
        )
    if not files:
        on_benchmarks = f" of {join_words(names)}" if names else ""
        under = "" if protocol is None else f" under {format_protocol(protocol)}"
        raise ExperimentError(f"there are no reference results{on_benchmarks}{under}")
    return ReferenceRuns(files, times=_read_times())


def read_submissions() -> Mapping[str, Submission]:
    """Read descriptions of the methods whose reference results were submitted.

    They are by the names that the methods have in results.
    """
    if SUBMISSIONS_FILE not in REFERENCE_ARTIFACT.sums():
        return {}
    return submissions_from_json(REFERENCE_ARTIFACT.read_json(SUBMISSIONS_FILE))


def _read_times() -> Mapping[str, Mapping[str, float]]:
    """Read how much CPU time the suggestions of each method took, see `TIMES_FILE`.

    The times are those of a few runs of each method. There may be no file of times.
    """
    if TIMES_FILE not in REFERENCE_ARTIFACT.sums():
        return {}
    times: Mapping[str, Mapping[str, float]] = REFERENCE_ARTIFACT.read_json(TIMES_FILE)
    return times


def _check_methods(names: Iterable[str]) -> None:
    """Raise an `UnknownNameError` unless all methods exist."""
    names = sorted(names)
    if not names:
        return
    all_methods = [*list_methods(), *read_submissions()]
    for name in names:
        if name not in all_methods:
            raise UnknownNameError("method", name, all_methods)


def _list_benchmarks(names: Sequence[str]) -> set[str] | None:
    """Replace names of suites with the names of their benchmarks, and leave out versions.

    Args:
        names: Names of suites and benchmarks.

    Returns:
        Names of benchmarks; None, which stands for all benchmarks, if `names` is empty.
    """
    if not names:
        return None
    benchmarks: set[str] = set()
    for name in names:
        members = suite(name) if name in suites() else [name]  # names of benchmarks
        benchmarks.update(benchmark_spec(member).name for member in members)
    return benchmarks


def _read_files(benchmarks: Collection[str] | None) -> Iterator[ReferenceFile]:
    """Read the bundled files of results on benchmarks, in the order of their names.

    Args:
        benchmarks: Names of benchmarks without versions; None: all.
    """
    checksum_of_file = REFERENCE_ARTIFACT.sums()  # has the names of all files
    for file_name in sorted(checksum_of_file):
        if not file_name.endswith(RESULTS_SUFFIX):
            continue
        benchmark, _, _ = file_name.partition("@")  # a name begins with BENCHMARK@VERSION
        if benchmarks is None or benchmark in benchmarks:
            yield ReferenceFile.from_bytes(REFERENCE_ARTIFACT.read(file_name), name=file_name)


def _select_installed_versions(file: ReferenceFile) -> tuple[ReferenceFile, list[str]]:
    """Select the runs of installed versions of the benchmark and of methods.

    Returns:
        The file with only these runs, and descriptions of the versions that are left out.
    """
    identity = file.where["benchmark"]
    surrogate = file.where["surrogate"]
    try:
        spec = benchmark_spec(BenchmarkIdentity.parse(identity).name)
        is_installed = spec.identity(surrogate) == identity
    except HPOBenchOrderedError:  # it does not exist any more
        is_installed = False
    if not is_installed:
        return _without_runs(file), [f"{identity} ({surrogate})"]

    # A method that is not installed any more has no version here, and equals none in the file.
    version_of_method = {name: str(method_spec(name).version) for name in list_methods()}
    is_current = file.runs["method"].map(version_of_method) == file.runs["method_version"]
    # Submitted methods are not installed: their version says what was run.
    is_current |= file.runs["method"].map(is_submitted)
    outdated = []
    for run in file.runs[~is_current].drop_duplicates("method").itertuples():
        outdated.append(f"{run.method}, version {run.method_version}")
    return file.select_runs(is_current.to_numpy()), outdated


def _select_protocol(file: ReferenceFile, protocol: Protocol) -> ReferenceFile:
    """Return a file if its runs are under a protocol, and otherwise the file without runs.

    All runs of a file are under the same protocol. If the wanted protocol differs from it only in
    that it has fewer tasks, the runs are cut to the first tasks.
    """
    wanted = format_protocol(protocol)
    stored = file.where["protocol"]
    if stored == wanted:
        return file
    if isinstance(protocol, Ordered) and protocol.tasks is not None:
        all_tasks = format_protocol(replace(protocol, tasks=None))
        if stored == all_tasks:  # later tasks do not affect earlier ones
            return file.select_first_tasks(protocol.tasks, wanted)
    return _without_runs(file)


def _without_runs(file: ReferenceFile) -> ReferenceFile:
    """Return a file without any of its runs."""
    is_selected = np.zeros(len(file.runs), dtype=np.bool_)
    return file.select_runs(is_selected)
