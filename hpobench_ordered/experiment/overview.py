"""What a store holds of what was asked for: finished, running, failed and missing runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from hpobench_ordered.experiment.failures import Failure
from hpobench_ordered.experiment.plan import IDENTITY, Cell
from hpobench_ordered.experiment.store import Cells, Store

if TYPE_CHECKING:
    import pandas as pd

GROUP = ("benchmark", "surrogate", "protocol", "method")
"""What a method is known by; runs of its other versions are superseded."""


class State(Enum):
    """What has become of a run."""

    DONE = "done"
    RUNNING = "running"
    FAILED = "failed"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Overview:
    """What has become of every run that was asked for or is there.

    Attributes:
        runs: One row a run: key, benchmark, surrogate, method, method_version, seed, protocol, and
            its state (the value of a `State`).
        superseded: Number of runs of an older version of a method, which count nowhere.
        failures: The failed runs.
        sessions: Each start of the runner: when, where, with what versions.
    """

    runs: "pd.DataFrame"
    superseded: int
    failures: tuple[Failure, ...]
    sessions: tuple[Mapping[str, Any], ...]

    def keys(self, state: State) -> list[str]:
        """Keys of the runs in a state."""
        return list(self.runs.loc[self.runs["state"] == state.value, "key"])

    def counts(self) -> "pd.DataFrame":
        """Number of runs in each state, one row a benchmark, surrogate, protocol and method."""
        import pandas as pd

        states = pd.Categorical(self.runs["state"], [state.value for state in State])
        runs = self.runs[[*GROUP]].assign(state=states)
        table = runs.groupby([*GROUP, "state"], observed=False).size()
        counts = table.unstack("state", fill_value=0)
        return counts[counts.sum(axis=1) > 0].rename_axis(columns=None).reset_index()


def overview(store: Store, cells: Iterable[Cell] | None = None) -> Overview:
    """Look at a store.

    Args:
        store: The store.
        cells: The runs that count. Default: all that are in the store or were asked for, but for
            those of a version of a method of which another version was asked for later.

    Raises:
        StoreError: A file of the store is damaged.
    """
    import pandas as pd

    sessions, planned = store.records.sessions(), store.records.experiments()
    known: Cells = {key: cell for grid in planned.values() for key, cell in grid.items()}
    finished = store.cells(known)
    failures = {k: f for k, f in store.records.failures().items() if k not in finished}
    superseded = 0
    if cells is not None:
        known = {cell.key: cell.describe() for cell in cells}
    else:
        failed = {k: {name: getattr(f, name) for name in IDENTITY} for k, f in failures.items()}
        everything = {**finished, **failed, **known}
        known = _latest_versions(everything, planned, sessions)
        superseded = len(everything) - len(known)
    states = dict.fromkeys(known, State.MISSING)
    running = store.records.in_progress(alive=True)
    later = {State.RUNNING: running, State.FAILED: failures, State.DONE: finished}
    for state, keys in later.items():
        states |= dict.fromkeys(states.keys() & keys, state)
    rows = [{**cell, "key": key, "state": states[key].value} for key, cell in known.items()]
    return Overview(
        runs=pd.DataFrame(rows, columns=["key", *IDENTITY, "state"]),
        superseded=superseded,
        failures=tuple(failure for key, failure in failures.items() if key in known),
        sessions=sessions,
    )


def _latest_versions(
    cells: Cells, planned: Mapping[str, Cells], sessions: Iterable[Mapping[str, Any]]
) -> Cells:
    """Runs of the versions of methods that were asked for last; by place, clocks go wrong."""
    place = {str(session.get("experiment")): i for i, session in enumerate(sessions)}
    latest: dict[tuple[Any, ...], Any] = {}
    for name in sorted(planned, key=lambda name: (place.get(name, -1), name)):
        latest |= {_group(cell): cell["method_version"] for cell in planned[name].values()}
    return {k: c for k, c in cells.items() if latest.get(_group(c)) in (None, c["method_version"])}


def _group(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(cell[name] for name in GROUP)
