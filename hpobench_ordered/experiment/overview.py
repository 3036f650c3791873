"""Overview of a store's runs: finished, failed and missing."""

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

GROUP_COLUMNS = ("benchmark", "surrogate", "protocol", "method")
"""Columns by which versions of a method supersede each other."""
group_of = itemgetter(*GROUP_COLUMNS)


class State(Enum):
    """State of a run."""

    DONE = "done"
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
        """Count the runs in each state, with one row per benchmark, surrogate, protocol and method.

        Each state has a column, also one in which there are no runs.
        """
        # The states become columns.
        counts = self.runs.groupby([*GROUP_COLUMNS, "state"]).size().unstack(fill_value=0)
        states = [state.value for state in State]
        all_states = counts.reindex(columns=states, fill_value=0)
        return all_states.rename_axis(columns=None).reset_index()


def make_overview(store: StoredRuns, cells: Iterable[Cell] | None = None) -> Overview:
    """Find the state of runs in a store.

    Args:
        store: The store.
        cells: The runs; default: all that it holds or that were planned, except those of a version
            of a method that was superseded by a later plan.

    Raises:
        StoreError: One of its files is damaged.
    """
    # Runs are mappings: from the run's key to its benchmark, method, seed and so on.
    sessions = store.sessions()
    experiments = store.experiments()
    planned: dict[str, Mapping[str, Any]] = {}
    for experiment in experiments.values():
        planned |= experiment
    finished = store.cells(planned)  # files of runs that were planned need not be opened
    failures = store.failures()

    superseded = 0
    if cells is not None:
        shown: Cells = {cell.key: cell.describe() for cell in cells}
    else:
        failed = {key: _describe_failed_run(failure) for key, failure in failures.items()}
        all_runs = {**finished, **failed, **planned}  # the same key: the same description
        shown = _select_latest_versions(all_runs, experiments, sessions)
        superseded = len(all_runs) - len(shown)

    runs = _list_states(shown, finished, failures)
    shown_failures = []
    for key, failure in failures.items():
        has_finished_since = key in finished  # it was repeated: the failure no longer counts
        if key in shown and not has_finished_since:
            shown_failures.append(failure)
    return Overview(runs, superseded, tuple(shown_failures), sessions)


def _describe_failed_run(failure: Failure) -> dict[str, Any]:
    """Return what identifies the run that failed, by the names of `IDENTITY`."""
    return {name: getattr(failure, name) for name in IDENTITY}


def _list_states(cells: Cells, finished: Container[str], failed: Container[str]) -> "pd.DataFrame":
    """Make a table of runs with their states, one row per run.

    Args:
        cells: What identifies each run, a value for each column of `IDENTITY`, by key.
        finished: Keys of runs that have finished.
        failed: Keys of runs that have failed.
    """
    import pandas as pd

    rows = []
    for key, cell in cells.items():
        if key in finished:
            state = State.DONE
        elif key in failed:
            state = State.FAILED
        else:
            state = State.MISSING
        rows.append({"key": key, **cell, "state": state.value})
    return pd.DataFrame(rows, columns=["key", *IDENTITY, "state"])


def _select_latest_versions(
    cells: Cells, experiments: Mapping[str, Cells], sessions: Sequence[Mapping[str, Any]]
) -> Cells:
    """Select the runs of the last planned version of each method.

    The last version may differ between benchmarks, surrogates and protocols: `group_of` a run are
    these and the method. Runs of which no version was planned stay.

    Args:
        cells: What identifies each run, by key.
        experiments: The planned runs of each experiment, by its name.
        sessions: The sessions, oldest first.
    """
    latest_version_of_group: dict[tuple[Any, ...], Any] = {}
    for name in _sort_experiments(experiments, sessions):
        for cell in experiments[name].values():
            # A later experiment overwrites the version of an earlier one.
            latest_version_of_group[group_of(cell)] = cell["method_version"]

    selected = {}
    for key, cell in cells.items():
        version = cell["method_version"]
        latest_version = latest_version_of_group.get(group_of(cell), version)
        if version == latest_version:
            selected[key] = cell
    return selected


def _sort_experiments(names: Iterable[str], sessions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Sort experiments by when they were started for the last time.

    Args:
        names: The experiments.
        sessions: Starts of the runner, each with an experiment, oldest first: in the order in which
            they were written, which does not depend on clocks.
    """
    last_session_of_experiment = {}
    for number, session in enumerate(sessions):
        last_session_of_experiment[str(session.get("experiment"))] = number
    # Experiments without a session come first; the names make the order the same each time.
    return sorted(names, key=lambda name: (last_session_of_experiment.get(name, -1), name))
