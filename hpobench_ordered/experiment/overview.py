"""Overview of a store's runs: finished, running, failed and missing."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered.experiment.plan import IDENTITY, Cell
from hpobench_ordered.experiment.records import Failure
from hpobench_ordered.experiment.stored_runs import Cells, StoredRuns

if TYPE_CHECKING:
    import pandas as pd

GROUP = ("benchmark", "surrogate", "protocol", "method")
"""Columns by which versions of a method supersede each other."""
group_of = itemgetter(*GROUP)


class State(Enum):
    """State of a run."""

    DONE = "done"
    RUNNING = "running"
    FAILED = "failed"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Overview:
    """State of every run that was planned or is in a store."""

    runs: "pd.DataFrame"  # columns key, `IDENTITY` and state; one row per run
    superseded: int  # number of runs of older versions of methods, counted nowhere
    failures: tuple[Failure, ...]
    sessions: tuple[Mapping[str, Any], ...]  # starts of the runner: when, where, versions

    def keys(self, state: State) -> list[str]:
        """Keys of the runs in a state."""
        return list(self.runs.loc[self.runs["state"] == state.value, "key"])

    def counts(self) -> "pd.DataFrame":
        """Number of runs in each state, one row per benchmark, surrogate, protocol and method."""
        counts = self.runs.groupby([*GROUP, "state"]).size().unstack(fill_value=0)
        states = [state.value for state in State]
        return counts.reindex(columns=states, fill_value=0).rename_axis(columns=None).reset_index()


def overview(store: StoredRuns, cells: Iterable[Cell] | None = None) -> Overview:
    """State of these cells in a store; `StoreError` if one of its files is damaged.

    Default: of all runs that it holds or that were planned, except those of a version of a method
    that was superseded by a later plan.
    """
    import pandas as pd

    sessions, experiments = store.sessions(), store.experiments()
    requested = {key: cell for runs in experiments.values() for key, cell in runs.items()}
    finished, failures = store.cells(requested), store.failures()
    if cells is None:
        tried = {k: {name: getattr(f, name) for name in IDENTITY} for k, f in failures.items()}
        everything = {**finished, **tried, **requested}
        known = _latest_versions(everything, experiments, sessions)
        superseded = len(everything) - len(known)
    else:
        known, superseded = {cell.key: cell.describe() for cell in cells}, 0
    rows = [{"key": key, **cell} for key, cell in known.items()]
    runs = pd.DataFrame(rows, columns=["key", *IDENTITY])
    running = store.in_progress()
    runs["state"] = np.select(
        [runs["key"].isin(list(keys)) for keys in (finished, failures, running)],
        [State.DONE.value, State.FAILED.value, State.RUNNING.value],
        State.MISSING.value,
    )
    failed = tuple(f for key, f in failures.items() if key in known and key not in finished)
    return Overview(runs, superseded, failed, sessions)


def _latest_versions(
    cells: Cells, experiments: Mapping[str, Cells], sessions: Iterable[Mapping[str, Any]]
) -> Cells:
    """Runs of the methods' last planned versions, by file order, since clocks drift."""
    place = {str(session.get("experiment")): i for i, session in enumerate(sessions)}
    latest: dict[tuple[Any, ...], Any] = {}
    for name in sorted(experiments, key=lambda name: (place.get(name, -1), name)):
        latest |= {group_of(cell): cell["method_version"] for cell in experiments[name].values()}
    return {
        k: c for k, c in cells.items() if latest.get(group_of(c)) in (None, c["method_version"])
    }
