"""Reference results: what the package's methods reached, bundled for comparison.

`hpobench-ordered generate reference` makes them; `_reference_file` describes their files. Results
of other versions of a benchmark or method than the installed one are left out.
"""

import warnings
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Never

import numpy as np

from hpobench_ordered._wording import join_words
from hpobench_ordered.core.identity import BenchmarkIdentity
from hpobench_ordered.errors import (
    ExperimentError,
    HPOBenchOrderedError,
    OutdatedReferenceWarning,
    UnknownNameError,
)
from hpobench_ordered.experiment._reference_file import ReferenceFile
from hpobench_ordered.experiment.stored_runs import Cells, StoredRuns
from hpobench_ordered.files.artifact import Artifact
from hpobench_ordered.protocols import Ordered, Protocol, format_protocol
from hpobench_ordered.registry import benchmark_spec, list_methods, method_spec, suite, suites

if TYPE_CHECKING:
    import pandas as pd

REFERENCE_ARTIFACT = Artifact.packaged("reference")

BEST_LOSSES_ONLY_MESSAGE = (
    "reference results are the best losses so far, without configurations or other trials: they "
    "allow leaderboard(), plot and report, but no frames, exports or landscapes"
)


class ReferenceRuns(StoredRuns):
    """Runs in reference files."""

    folder = Path("reference")
    has_all_trials = False

    def __init__(self, files: Sequence[ReferenceFile]) -> None:
        self._files = files

    def cells(self, planned: Cells | None = None) -> Cells:
        """What identifies each run (its cell: benchmark, method, seed and so on), by key.

        `planned` is part of the interface, for stores in which files need not be opened for runs
        that are known already. Not needed here: all files have been read.
        """
        cells = {}
        for file in self._files:
            cells.update(file.cells)
        return cells

    def read(self, keys: Iterable[str] | None = None) -> "pd.DataFrame":
        """Trials of runs, by default of all, one row per trial.

        The files store only the trials that scores need, such as all that lower the best loss so
        far. Each of the others has a row, too, with the best loss so far in place of its own loss.

        Args:
            keys: Keys of the runs; None: all.
        """
        import pandas as pd

        trials = pd.concat([file.trials() for file in self._files], ignore_index=True)
        return trials if keys is None else trials[trials["key"].isin(list(keys))]

    def timings(self, keys: Collection[str] | None = None) -> "pd.DataFrame":
        """Timings of runs, one row per run."""
        import pandas as pd

        timings = pd.concat([file.timings() for file in self._files], ignore_index=True)
        return timings if keys is None else timings[timings["key"].isin(list(keys))]

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
        protocol: The protocol of the runs; None: any. An ordered one of fewer tasks than there are
            results of gets the first tasks of these.

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
    for file in _read_files(_benchmarks_in(names)):
        selected = _select_installed_versions(file, outdated)
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
    return ReferenceRuns(files)


def _check_methods(names: Iterable[str]) -> None:
    """Raise an `UnknownNameError` unless all methods exist."""
    installed = list_methods()
    for name in sorted(names):
        if name not in installed:
            raise UnknownNameError("method", name, installed)


def _benchmarks_in(names: Sequence[str]) -> set[str] | None:
    """Names of the benchmarks in suites, and of those named themselves, without versions.

    Args:
        names: Names of suites and benchmarks.

    Returns:
        The names; None, which stands for all benchmarks, if `names` is empty.
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
        benchmark, _, _ = file_name.partition("@")  # a name begins with BENCHMARK@VERSION
        if benchmarks is None or benchmark in benchmarks:
            yield ReferenceFile.from_bytes(REFERENCE_ARTIFACT.read(file_name), name=file_name)


def _select_installed_versions(file: ReferenceFile, outdated: list[str]) -> ReferenceFile:
    """The file with only the runs of installed versions of the benchmark and of methods.

    Args:
        file: The file.
        outdated: To this list, descriptions of the versions that are left out are appended.
    """
    identity = file.where["benchmark"]
    surrogate = file.where["surrogate"]
    try:
        spec = benchmark_spec(BenchmarkIdentity.parse(identity).name)
        is_installed = spec.identity(surrogate) == identity
    except HPOBenchOrderedError:  # it does not exist any more
        is_installed = False
    if not is_installed:
        outdated.append(f"{identity} ({surrogate})")
        return _without_runs(file)

    # A method that is not installed any more has no version here, so that its runs are not current.
    version_of_method = {name: str(method_spec(name).version) for name in list_methods()}
    is_current = file.runs["method"].map(version_of_method) == file.runs["method_version"]
    for run in file.runs[~is_current].drop_duplicates("method").itertuples():
        outdated.append(f"{run.method}, version {run.method_version}")
    return file.select_runs(is_current.to_numpy())


def _select_protocol(file: ReferenceFile, protocol: Protocol) -> ReferenceFile:
    """The file with only the runs under a protocol; without runs if it has others.

    A file has runs under one protocol. If the wanted one differs only in that it has fewer tasks,
    the runs are cut to the first tasks.
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
    """The file without any of its runs."""
    is_selected = np.zeros(len(file.runs), dtype=np.bool_)
    return file.select_runs(is_selected)
