"""Reference results: what the package's methods reached, bundled for comparison.

`hpobench-ordered generate reference` makes them; `_reference_file` describes their files. Results
of other versions of a benchmark or method than the installed one are left out.
"""

import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from importlib import resources
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Never

from hpobench_ordered.core.identity import BenchmarkIdentity
from hpobench_ordered.core.suites import suite
from hpobench_ordered.errors import (
    ExperimentError,
    HPOBenchOrderedError,
    OutdatedReferenceWarning,
    UnknownNameError,
    enumerated,
)
from hpobench_ordered.experiment._reference_file import ReferenceFile
from hpobench_ordered.experiment.records import Records
from hpobench_ordered.experiment.store import Cells, Store
from hpobench_ordered.protocols import Ordered, Protocol, format_protocol
from hpobench_ordered.registry import benchmark_spec, list_methods, method_spec, suites

if TYPE_CHECKING:
    import pandas as pd

FOLDER = resources.files("hpobench_ordered") / "artifacts" / "reference"
END = ".npz"

BEST_ONLY = (
    "reference results are the best losses so far, without configurations or other trials: they "
    "allow leaderboard(), plot and report, but no frames, exports or landscapes"
)


class ReferenceStore(Store):
    """Reference results as a read-only store."""

    has_all_trials = False

    def __init__(self, files: Sequence[ReferenceFile]) -> None:
        self.folder = Path("reference")
        self.records = Records(self.folder)
        self._files = files

    def keys(self) -> frozenset[str]:
        """Keys of the runs."""
        return frozenset(self.cells())

    def cells(self, known: Cells | None = None) -> Cells:
        """What identifies each run, by key."""
        return {key: cell for file in self._files for key, cell in file.cells.items()}

    def read(self, keys: Iterable[str] | None = None) -> "pd.DataFrame":
        """One row per trial, see `Store.read`; trials that were not kept repeat the best before."""
        import pandas as pd

        trials = pd.concat([file.trials() for file in self._files], ignore_index=True)
        return trials if keys is None else trials[trials["key"].isin(list(keys))]

    def timings(self, keys: Collection[str] | None = None) -> "pd.DataFrame":
        """Timings of runs, see `Store.timings`."""
        import pandas as pd

        timings = pd.concat([file.timings() for file in self._files], ignore_index=True)
        return timings if keys is None else timings[timings["key"].isin(list(keys))]

    def configurations(self, keys: Iterable[str]) -> Never:
        """Raise an `ExperimentError`: configurations are not kept."""
        raise ExperimentError(BEST_ONLY)


def reference_store(
    names: Iterable[str] = (),
    *,
    methods: Iterable[str] | None = None,
    protocol: Protocol | None = None,
) -> ReferenceStore:
    """Read reference results, by default all.

    `names` are suites and benchmarks. An ordered protocol of fewer tasks gets their first tasks.
    Raises an `UnknownNameError` for unknown names, an `ExperimentError` if nothing is left, and an
    `ArtifactError` for a damaged file; warns (`OutdatedReferenceWarning`) of outdated results.
    """
    names, wanted = list(names), None if methods is None else set(methods)
    for unknown in sorted((wanted or set()) - {*list_methods()}):
        raise UnknownNameError("method", unknown, list_methods())
    chosen = (one for name in names for one in (suite(name) if name in suites() else [name]))
    benchmarks = {benchmark_spec(one).name for one in chosen}
    files, outdated = list[ReferenceFile](), list[str]()
    for path in sorted(FOLDER.iterdir() if FOLDER.is_dir() else (), key=attrgetter("name")):
        if path.name.endswith(END) and (not names or path.name.partition("@")[0] in benchmarks):
            file = ReferenceFile.from_bytes(path.read_bytes(), name=path.name)
            found = _cut(_current(file, outdated), protocol)
            if found is not None and wanted is not None:
                found = found.chosen(found.runs["method"].isin(wanted).to_numpy())
            if found is not None and len(found.runs):
                files.append(found)
    if outdated:
        left_out = enumerated(dict.fromkeys(outdated))
        warnings.warn(
            f"reference results of other versions are left out: {left_out}",
            OutdatedReferenceWarning,
            stacklevel=3,
        )
    if not files:
        of = f" of {enumerated(names)}" if names else ""
        under = "" if protocol is None else f" under {format_protocol(protocol)}"
        raise ExperimentError(f"there are no reference results{of}{under}")
    return ReferenceStore(files)


def _current(file: ReferenceFile, outdated: list[str]) -> ReferenceFile | None:
    """The runs in a file with installed versions; the others are added to `outdated`."""
    identity, surrogate = file.cell["benchmark"], file.cell["surrogate"]
    try:
        spec = benchmark_spec(BenchmarkIdentity.parse(identity).name)
        is_current = spec.identity(surrogate) == identity
    except HPOBenchOrderedError:  # it does not exist any more
        is_current = False
    if not is_current:
        outdated.append(f"{identity} ({surrogate})")
        return None
    installed = {name: str(method_spec(name).version) for name in list_methods()}
    fits = file.runs["method"].map(installed) == file.runs["method_version"]
    for run in file.runs[~fits].drop_duplicates("method").itertuples():
        outdated.append(f"{run.method}, version {run.method_version}")
    return file.chosen(fits.to_numpy())


def _cut(file: ReferenceFile | None, protocol: Protocol | None) -> ReferenceFile | None:
    """What of a file is under a protocol, by default all."""
    if file is None or protocol is None:
        return file
    text = format_protocol(protocol)
    if isinstance(protocol, Ordered) and protocol.tasks is not None:
        whole = replace(protocol, tasks=None)
        # Later tasks do not affect earlier ones.
        if file.cell["protocol"] == format_protocol(whole):
            return file.first_tasks(protocol.tasks, text)
    return file if file.cell["protocol"] == text else None
