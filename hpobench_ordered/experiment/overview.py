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

COLUMNS = ("key", *IDENTITY, "state")
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
        counted = self.runs.assign(state=states).groupby([*GROUP, "state"], observed=False)
        table = counted.size().unstack("state", fill_value=0)
        return table[table.sum(axis=1) > 0].rename_axis(columns=None).reset_index()


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

    sessions = store.records.sessions()
    asked = store.records.experiments()
    planned = {key: cell for grid in asked.values() for key, cell in grid.items()}
    finished = store.cells(planned)
    failures = {k: f for k, f in store.records.failures().items() if k not in finished}
    if cells is None:
        failed = {key: _identity(failure) for key, failure in failures.items()}
        everything = {**finished, **failed, **planned}
        known = _latest_versions(everything, asked, sessions)
        superseded = len(everything) - len(known)
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


def _latest_versions(
    cells: Cells, asked: Mapping[str, Cells], sessions: Iterable[Mapping[str, Any]]
) -> Cells:
    """Runs of the versions of methods that were asked for last; by place, clocks go wrong."""
    latest = {str(session.get("experiment")): i for i, session in enumerate(sessions)}
    version: dict[tuple[Any, ...], Any] = {}
    for name in sorted(asked, key=lambda name: (latest.get(name, -1), name)):
        version |= {_group(cell): cell["method_version"] for cell in asked[name].values()}
    return {
        key: cell
        for key, cell in cells.items()
        if version.get(_group(cell)) in (None, cell["method_version"])
    }


def _group(cell: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(cell[name] for name in GROUP)


def _identity(failure: Failure) -> dict[str, Any]:
    return {name: getattr(failure, name) for name in IDENTITY}
