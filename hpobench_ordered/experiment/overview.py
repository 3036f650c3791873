"""What a store holds of what was asked for: finished, running, failed and missing runs."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from hpobench_ordered.experiment.failures import Failure
from hpobench_ordered.experiment.plan import Cell, grid_cells
from hpobench_ordered.experiment.store import Store

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("key", "benchmark", "surrogate", "protocol", "method", "method_version", "seed", "state")
GROUP = ("benchmark", "surrogate", "protocol", "method")
"""What a method is known by; runs of another version of the same are superseded."""


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
        runs: One row a run: key, benchmark, surrogate, protocol, method, method_version, seed,
            and its state (the value of a `State`).
        superseded: Number of runs of an older version of a method of the same name, which count
            nowhere.
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
        counted = self.runs.assign(state=states).groupby([*GROUP, "state"], observed=False)
        table = counted.size().unstack("state", fill_value=0)
        return table[table.sum(axis=1) > 0].rename_axis(columns=None).reset_index()


def overview(store: Store, cells: Iterable[Cell] | None = None) -> Overview:
    """Look at a store.

    Args:
        store: The store.
        cells: The runs that count; all that are in the store or were asked for without. Of these
            the ones whose method was asked for later in another version are superseded.

    Raises:
        StoreError: A file of the store is damaged.
    """
    import pandas as pd

    sessions = store.records.sessions()
    failures = store.failures()
    finished = store.cells()
    if cells is None:
        known, superseded = _all_known(store, finished, failures, sessions)
    else:
        known, superseded = {cell.key: cell.describe() for cell in cells}, 0
    running = store.records.in_progress(alive=True)

    def state(key: str) -> State:
        if key in finished:
            return State.DONE
        if key in failures:
            return State.FAILED
        return State.RUNNING if key in running else State.MISSING

    rows = [{**cell, "key": key, "state": state(key).value} for key, cell in known.items()]
    return Overview(
        runs=pd.DataFrame(rows, columns=list(COLUMNS)),
        superseded=superseded,
        failures=tuple(failure for key, failure in failures.items() if key in known),
        sessions=sessions,
    )


# -- internals -------------------------------------------------------------------------------------


def _all_known(
    store: Store,
    finished: Mapping[str, Mapping[str, Any]],
    failures: Mapping[str, Failure],
    sessions: Iterable[Mapping[str, Any]],
) -> tuple[dict[str, Mapping[str, Any]], int]:
    """Every run that is there or was asked for, by key, without the superseded; their number."""
    asked = store.records.experiments()
    latest = {str(s.get("experiment")): i for i, s in enumerate(sessions)}
    known: dict[str, Mapping[str, Any]] = dict(finished)
    known |= {key: _identity(failure) for key, failure in failures.items()}
    version: dict[tuple[Any, ...], Any] = {}
    # The last version that was asked for counts.
    for name in sorted(asked, key=lambda name: latest.get(name, -1)):
        planned = grid_cells(asked[name])
        known |= planned
        version |= {_group(cell): cell["method_version"] for cell in planned.values()}
    kept = {
        k: cell
        for k, cell in known.items()
        if version.get(_group(cell), cell["method_version"]) == cell["method_version"]
    }
    return kept, len(known) - len(kept)


def _group(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(cell[name] for name in GROUP)


def _identity(failure: Failure) -> dict[str, Any]:
    return {name: getattr(failure, name) for name in COLUMNS if name not in ("key", "state")}
