"""Comparison with the runs of another store: a folder of results, or the reference results."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpobench_ordered.analysis.labels import join_names, label_protocol
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.overview import Overview, State, make_overview
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.protocols import Protocol, format_protocol, parse_protocol
from hpobench_ordered.experiment.records import Failure
from hpobench_ordered.experiment.reference import read_reference
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.experiment.stored_runs import Cells, StoredRuns

if TYPE_CHECKING:
    import pandas as pd

REFERENCE = "reference"
"""Means the reference results, where the folder of a store may be given."""


class JoinedRuns(StoredRuns):
    """The finished runs of two stores, and what the first one records besides."""

    def __init__(self, own: StoredRuns, other: StoredRuns) -> None:
        """Join the user's own store with another one; the former has precedence."""
        self.folder = own.folder
        self.has_all_trials = own.has_all_trials and other.has_all_trials
        self._own = own
        self._other = other

    def cells(self, planned: Cells | None = None) -> Cells:
        """What identifies each finished run of either store, by key."""
        return {**self._other.cells(planned), **self._own.cells(planned)}

    def read(self, keys: Iterable[str] | None = None) -> "pd.DataFrame":
        """Trials of runs; those of runs in both stores are read from the first."""
        return _concatenate(runs.read(part) for runs, part in self._split(keys))

    def configurations(self, keys: Iterable[str]) -> "pd.DataFrame":
        """Configurations of runs on one benchmark."""
        return _concatenate(runs.configurations(part) for runs, part in self._split(keys))

    def timings(self, keys: Collection[str] | None = None) -> "pd.DataFrame":
        """Timings of runs, one row per run."""
        return _concatenate(runs.timings(part) for runs, part in self._split(keys))

    def experiments(self) -> Mapping[str, Cells]:
        """What the first store planned, by experiment and key."""
        return self._own.experiments()

    def failures(self) -> Mapping[str, Failure]:
        """Failed runs of the first store, by key."""
        return self._own.failures()

    def sessions(self) -> tuple[Mapping[str, Any], ...]:
        """Starts of the runner in the first store."""
        return self._own.sessions()

    def _split(self, keys: Iterable[str] | None) -> Iterator[tuple[StoredRuns, list[str]]]:
        """Yield the stores to read, with the keys to read from each.

        Runs that both stores have are read from the first. Where no run is to be read, the first
        store is yielded without keys, so that the caller gets a frame without rows, but with
        columns.

        Args:
            keys: Keys of the runs to read; None: all.
        """
        own_keys = self._own.keys()
        other_keys = self._other.keys() - own_keys  # those that the first store lacks
        wanted = own_keys | other_keys if keys is None else set(keys)
        own_part = sorted(wanted & own_keys)
        other_part = sorted(wanted & other_keys)
        if own_part or not other_part:
            yield self._own, own_part
        if other_part:
            yield self._other, other_part


def _concatenate(frames: Iterable["pd.DataFrame"]) -> "pd.DataFrame":
    """Concatenate the frames that have rows, or return the first one if none has.

    Frames without rows have columns without types, which would change the types of others.
    """
    import pandas as pd

    frames = list(frames)
    filled = [frame for frame in frames if len(frame)]
    return pd.concat(filled or frames[:1], ignore_index=True)


def join_overviews(own: Overview, other: Overview) -> Overview:
    """Add to `own` the finished runs in `other` on the same benchmarks, protocols and seeds.

    Methods that `own` has, too, are left out: its runs replace those of the same name in `other`.
    """
    import pandas as pd

    conditions = ["benchmark", "surrogate", "protocol", "seed"]
    finished = _select_finished(other)
    # Runs whose conditions are those of any of our own runs.
    comparable = finished.merge(own.runs[conditions].drop_duplicates())
    is_own_method = comparable["method"].isin(own.runs["method"])
    runs = pd.concat([own.runs, comparable[~is_own_method]], ignore_index=True)
    return replace(own, runs=runs)


def open_runs_to_compare(
    against: str | Path, cells: Sequence[Cell], protocol: Protocol | None = None
) -> StoredRuns:
    """Open the store in a folder, or read the reference results.

    Args:
        against: The folder, or "reference" (`REFERENCE`) for the reference results.
        cells: The plan, on whose benchmarks reference results are read.
        protocol: The protocol of reference results; None: all protocols.
    """
    if against == REFERENCE:
        return _read_reference_on([cell.benchmark for cell in cells], protocol)
    # The hint ends the message if the folder is no store.
    return Store.open(against, hint=f"; {REFERENCE!r} means the bundled one")


def read_reference_for(store: StoredRuns) -> StoredRuns:
    """Read the reference results on a store's benchmarks, under its protocol if it has only one."""
    runs = make_overview(store).runs
    protocols = runs["protocol"].unique()
    protocol = parse_protocol(protocols[0]) if len(protocols) == 1 else None
    return _read_reference_on(runs["benchmark"], protocol)


def _read_reference_on(benchmarks: Iterable[str], protocol: Protocol | None) -> StoredRuns:
    """Read the reference results on benchmarks.

    Args:
        benchmarks: Identities of the benchmarks. Their versions are ignored, as there are reference
            results on the installed versions only.
        protocol: The protocol of the runs; None: all protocols.
    """
    names = {BenchmarkIdentity.parse(text).name for text in benchmarks}
    return read_reference(sorted(names), protocol=protocol)


def choose_protocol_and_seeds(
    store: StoredRuns, cells: Sequence[Cell], protocol: Protocol | None
) -> tuple[Protocol, list[int]]:
    """Choose protocol and seeds of a plan so that a store has runs to compare it with.

    Args:
        store: The store.
        cells: The plan, of which only the benchmarks count.
        protocol: The protocol; None: that of most finished runs on these benchmarks.

    Returns:
        The protocol, and the seeds for which there are finished runs on each of the benchmarks.

    Raises:
        ExperimentError: The store has no such runs on one of the benchmarks.
    """
    import pandas as pd

    finished = _select_finished(make_overview(store))
    plan = pd.DataFrame([cell.describe() for cell in cells])
    benchmarks = plan[["benchmark", "surrogate"]].drop_duplicates()
    runs = finished.merge(benchmarks)  # those on the plan's benchmarks
    if protocol is not None:
        protocol_text = format_protocol(protocol)
    else:
        protocols = runs["protocol"].value_counts().index  # the most frequent one first
        protocol_text = str(protocols[0]) if len(protocols) else ""  # "": there are no runs
    runs = runs[runs["protocol"] == protocol_text]
    seeds_of_benchmark = {name: set(part["seed"]) for name, part in runs.groupby("benchmark")}
    lacking = [name for name in benchmarks["benchmark"] if name not in seeds_of_benchmark]
    if lacking:
        under = f" under {label_protocol(protocol_text)}" if protocol_text else ""
        raise ExperimentError(
            f"nothing to compare with on {join_names(lacking)}{under}: "
            f"no such runs in {store.folder}"
        )
    common_seeds = set.intersection(*seeds_of_benchmark.values())
    chosen_protocol = protocol or parse_protocol(protocol_text)
    return chosen_protocol, sorted(map(int, common_seeds))


def _select_finished(overview: Overview) -> "pd.DataFrame":
    """Select the finished runs, one per row, with the columns of `Overview.runs`."""
    return overview.runs[overview.runs["state"] == State.DONE.value]
