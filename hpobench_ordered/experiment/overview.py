"""Overview of a store's runs: finished, running, failed and missing."""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from operator import itemgetter
from typing import TYPE_CHECKING, Any

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


def make_overview(store: StoredRuns, cells: Iterable[Cell] | None = None) -> Overview:
    """State of these cells in a store; `StoreError` if one of its files is damaged.

    Default: of all runs that it holds or that were planned, except those of a version of a method
    that was superseded by a later plan.
    """
    sessions, experiments = store.sessions(), store.experiments()
    planned: dict[str, Mapping[str, Any]] = {}
    for experiment in experiments.values():
        planned |= experiment
    finished, failures = store.cells(planned), store.failures()

    if cells is not None:
        shown: Cells = {cell.key: cell.describe() for cell in cells}
        superseded = 0
    else:
        failed = {key: _identify(failure) for key, failure in failures.items()}
        everything = {**finished, **failed, **planned}
        shown = _select_latest_versions(everything, experiments, sessions)
        superseded = len(everything) - len(shown)

    runs = _list_states(shown, finished, failures, store.in_progress())
    unfinished_failures = [
        failure for key, failure in failures.items() if key in shown and key not in finished
    ]
    return Overview(runs, superseded, tuple(unfinished_failures), sessions)


def _identify(failure: Failure) -> dict[str, Any]:
    return {name: getattr(failure, name) for name in IDENTITY}


def _list_states(
    cells: Cells, finished: Container[str], failed: Container[str], running: Container[str]
) -> "pd.DataFrame":
    """One row per run, with its state; the arguments after the first hold keys."""
    import pandas as pd

    rows = []
    for key, cell in cells.items():
        if key in finished:
            state = State.DONE
        elif key in failed:
            state = State.FAILED
        elif key in running:
            state = State.RUNNING
        else:
            state = State.MISSING
        rows.append({"key": key, **cell, "state": state.value})
    return pd.DataFrame(rows, columns=["key", *IDENTITY, "state"])


def _select_latest_versions(
    cells: Cells, experiments: Mapping[str, Cells], sessions: Sequence[Mapping[str, Any]]
) -> Cells:
    """Runs of the methods' last planned versions; the order of sessions counts, as clocks drift."""
    session_of_experiment = {
        str(session.get("experiment")): number for number, session in enumerate(sessions)
    }
    in_order = sorted(experiments, key=lambda name: (session_of_experiment.get(name, -1), name))
    latest_version: dict[tuple[Any, ...], Any] = {}
    for name in in_order:
        for cell in experiments[name].values():
            latest_version[group_of(cell)] = cell["method_version"]

    selected = {}
    for key, cell in cells.items():
        version = cell["method_version"]
        if latest_version.get(group_of(cell), version) == version:
            selected[key] = cell
    return selected
