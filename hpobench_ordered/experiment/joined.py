"""Comparison with the runs of another store: a folder of results, or the reference results."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hpobench_ordered.analysis.labels import listed, protocol_label
from hpobench_ordered.core.identity import BenchmarkIdentity
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.overview import Overview, State, overview
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.reference import reference_store
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.protocols import Protocol, format_protocol, parse_protocol

if TYPE_CHECKING:
    import pandas as pd

REFERENCE = "reference"  # given instead of a folder, means the reference results

WHERE = ["benchmark", "surrogate"]


class JoinedStore(Store):
    """A read-only store of the runs of two stores."""

    def __init__(self, own: Store, other: Store) -> None:
        self.folder, self.records, self._both = own.folder, own.records, (own, other)
        self.has_all_trials = own.has_all_trials and other.has_all_trials

    def read(self, keys: Iterable[str] | None = None) -> "pd.DataFrame":
        """Read runs, see `Store.read`; runs that both stores hold are read from the first."""
        return _concatenated(store.read(part) for store, part in self._parts(keys))

    def configurations(self, keys: Iterable[str]) -> "pd.DataFrame":
        """Read configurations of runs on one benchmark, see `Store.configurations`."""
        return _concatenated(store.configurations(part) for store, part in self._parts(keys))

    def timings(self, keys: Collection[str] | None = None) -> "pd.DataFrame":
        """Timings of runs, see `Store.timings`."""
        return _concatenated(store.timings(part) for store, part in self._parts(keys))

    def _parts(self, keys: Iterable[str] | None) -> list[tuple[Store, list[str]]]:
        own, other = self._both
        held, others = own.keys(), other.cells().keys()
        chosen = held | others if keys is None else set(keys)
        parts = [(own, sorted(chosen & held)), (other, sorted(chosen - held & others))]
        return [(store, part) for store, part in parts if part] or parts[:1]


def _concatenated(frames: Iterable["pd.DataFrame"]) -> "pd.DataFrame":
    """Concatenate frames without empty ones, whose columns have no types."""
    import pandas as pd

    every = list(frames)
    return pd.concat([frame for frame in every if len(frame)] or every[:1], ignore_index=True)


def joined(own: Overview, other: Overview) -> Overview:
    """Add finished runs of other methods on the same benchmarks, protocols and seeds."""
    import pandas as pd

    conditions = [*WHERE, "protocol", "seed"]
    done = other.runs[other.runs["state"] == State.DONE.value]
    alike = done.merge(own.runs[conditions].drop_duplicates())
    others = alike[~alike["method"].isin(own.runs["method"])]
    return replace(own, runs=pd.concat([own.runs, others], ignore_index=True))


def store_to_compare(
    against: str | Path, cells: Sequence[Cell], protocol: Protocol | None = None
) -> Store:
    """The store in a folder, or the reference results on the benchmarks of a plan."""
    if against == REFERENCE:
        return _reference_on([cell.benchmark for cell in cells], protocol)
    return Store.there(against, hint=f"; {REFERENCE!r} means the bundled one")


def with_reference_results(store: Store) -> Store:
    """Reference results on a store's benchmarks under its protocol, else `ExperimentError`."""
    runs = overview(store).runs
    texts = runs["protocol"].unique()
    return _reference_on(runs["benchmark"], parse_protocol(texts[0]) if len(texts) == 1 else None)


def _reference_on(benchmarks: Iterable[str], protocol: Protocol | None) -> Store:
    names = {BenchmarkIdentity.parse(text).name for text in benchmarks}
    return reference_store(sorted(names), protocol=protocol)


def terms(
    store: Store, cells: Sequence[Cell], protocol: Protocol | None
) -> tuple[Protocol, list[int]]:
    """Protocol and seeds with which the plan's runs can be compared on all benchmarks."""
    import pandas as pd

    runs = overview(store).runs
    runs = runs[runs["state"] == State.DONE.value]
    asked = pd.DataFrame([cell.describe() for cell in cells])[WHERE].drop_duplicates()
    runs = runs.merge(asked)
    most = next(iter(runs["protocol"].value_counts().index), "")
    text = format_protocol(protocol) if protocol else str(most)
    runs = runs[runs["protocol"] == text]
    seeds = {name: set(part["seed"]) for name, part in runs.groupby("benchmark")}
    if lacking := [name for name in asked["benchmark"] if name not in seeds]:
        under = f" under {protocol_label(text)}" if text else ""
        raise ExperimentError(
            f"nothing to compare with on {listed(lacking)}{under}: no such runs in {store.folder}"
        )
    return protocol or parse_protocol(text), sorted(map(int, set.intersection(*seeds.values())))
