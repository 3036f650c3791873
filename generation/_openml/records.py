"""OpenML's public evaluation records of a flow: downloaded, and read as evaluations.

Answers are stored in a folder, so that a download continues where it stopped:

    FOLDER/manifest.json                        server, flow, measure, page size
    FOLDER/flow/defaults.json                   default values that the flow states
    FOLDER/evaluations-<task>/<offset>.json     a page of evaluations; the last has nothing new
    FOLDER/setups/<first id>.json               values that setups state

The measure is the area under the ROC curve.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import stdev
from typing import TYPE_CHECKING, Any, NamedTuple

from hpobench_ordered._typing import Config
from hpobench_ordered.generation._openml.client import (
    FUNCTION,
    PUBLIC,
    Client,
    Connection,
    connected,
    split_ids,
)
from hpobench_ordered.generation._openml.pages import Pages
from hpobench_ordered.generation._openml.setups import Dropped, MlrSetups, merge_stated_values
from hpobench_ordered.generation._raw import make_raw_frame, name_config_columns
from hpobench_ordered.generation.base import Progress, silent
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    import pandas as pd

PAGE_SIZE = 1000


class _TaskEvaluations(NamedTuple):
    """Evaluations of a task, and how many more OpenML's client cannot read."""

    rows: list[dict[str, Any]]
    unread: int


_Stated = Mapping[str, str | None]
"""Values as text, by parameter."""

_SetupOfId = Mapping[int, _Stated | Dropped]
"""Parameters stated by setups, or why they are unknown, by id."""


class FlowRecords(NamedTuple):
    """The evaluations as a table, and how many were left out for each reason, 0 included."""

    frame: "pd.DataFrame"
    dropped: Mapping[Dropped, int]


def download_records(
    *,
    flow_id: int,
    tasks: Sequence[int],
    space: SearchSpace,
    folder: Path,
    setups: MlrSetups,
    page_size: int = PAGE_SIZE,
    progress: Progress = silent,
    connection: Connection = PUBLIC,
) -> FlowRecords:
    """Download all evaluations of a flow on some tasks that `folder` does not hold.

    An interrupted download is resumed.

    Args:
        flow_id: OpenML's number of the flow.
        tasks: OpenML's numbers of the tasks.
        space: The search space.
        folder: Stores the answers.
        setups: Converts a setup to a configuration.
        page_size: Evaluations of a request.
        progress: Is told the number of tasks ("evaluations"), then of setups ("setups").
        connection: Settings of the requests.

    Returns:
        A table with one row per evaluation, in the order of `tasks`, runs ascending: `task`,
        `training` (the setup's id), `run`, `config.<hyperparameter>` (native, null where inactive),
        `value`, and `spread`, the standard deviation over folds (null if unknown).
    """
    pages = Pages(folder)
    pages.open(
        {"server": connection.server, "flow": flow_id, "function": FUNCTION, "page_size": page_size}
    )
    with connected(connection) as client:
        defaults = pages.get(
            "flow", "defaults", {"flow": flow_id}, lambda: client.flow_defaults(flow_id)
        )
        evaluations = {}
        progress("evaluations", 0, len(tasks))
        for done, task in enumerate(tasks, start=1):
            evaluations[task] = _download_evaluations(client, pages, flow_id, task, page_size)
            progress("evaluations", done, len(tasks))

        setup_ids: set[int] = set()
        for evaluations_of_task in evaluations.values():
            setup_ids |= {row["setup"] for row in evaluations_of_task.rows}
        setup_of_id = _download_setups(client, pages, setup_ids, progress)
    return _assemble(space, evaluations, setup_of_id, defaults, read_config=setups)


def _download_evaluations(
    client: Client, pages: Pages, flow: int, task: int, page_size: int
) -> _TaskEvaluations:
    """Download all pages of a task's evaluations.

    The first page with nothing new ends the list. A short page need not be the last one: it lacks
    the evaluations that OpenML's client cannot read.
    """
    rows: list[dict[str, Any]] = []
    runs: set[int] = set()  # of the pages so far
    unread = 0  # evaluations that OpenML's client cannot read
    offset = 0
    while True:
        offsets = range(offset, offset + page_size)
        page = pages.get(
            kind=f"evaluations-{task}",
            page=f"{offset:08}",  # with zeros in front, so that pages are sorted by offset
            request={"flow": flow, "task": task, "offset": offset, "size": page_size},
            ask=partial(_ask_for_page, client, flow, task, offsets),
        )
        rows += page["rows"]
        unread += page["unread"]
        offset += page_size

        runs_of_page = {row["run"] for row in page["rows"]}
        # Unreadable evaluations count as new: readable ones may follow them.
        has_something_new = bool(runs_of_page - runs) or page["unread"] > 0
        if not has_something_new:
            return _TaskEvaluations(rows, unread)
        runs |= runs_of_page


def _ask_for_page(client: Client, flow: int, task: int, offsets: range) -> dict[str, Any]:
    """Ask for evaluations at some offsets and their values on the folds; return them as a page.

    JSON has no NaN and no infinity: None stands in for these.
    """
    evaluations, unread = client.evaluations(flow, task, offsets)
    folds_of_run = client.folds([run for run, _, _ in evaluations])
    rows = []
    for run, setup, value in evaluations:
        folds = [_finite_or_none(value_of_fold) for value_of_fold in folds_of_run.get(run, [])]
        rows.append({"run": run, "setup": setup, "value": _finite_or_none(value), "folds": folds})
    return {"rows": rows, "unread": unread}


def _download_setups(
    client: Client, pages: Pages, setup_ids: set[int], progress: Progress
) -> _SetupOfId:
    """Return the setups with these ids by id, after downloading those that the folder lacks.

    A setup is OpenML's record of a configuration: the values that it states by parameter. If one
    cannot be read or is not known, the reason stands in its place.
    """
    setup_of_id: dict[int, _Stated | Dropped] = {}
    for page in pages.read_all("setups"):  # stored by earlier downloads
        setup_of_id |= _read_setups(page)

    missing = sorted(setup_ids - setup_of_id.keys())
    done = len(setup_ids) - len(missing)
    progress("setups", done, len(setup_ids))
    for ids in split_ids(missing):
        stated_of_id, unread = client.setups(ids)
        page = {  # as JSON, where keys are texts
            "read": {str(number): stated for number, stated in stated_of_id.items()},
            "unread": list(unread),
            "unknown": sorted(set(ids) - stated_of_id.keys() - set(unread)),
        }
        page_name = f"{ids[0]:010}"  # the first id, with zeros in front
        pages.write("setups", page_name, {"setups": list(ids)}, page)
        setup_of_id |= _read_setups(page)
        done += len(ids)
        progress("setups", done, len(setup_ids))
    return setup_of_id


def _read_setups(page: Mapping[str, Any]) -> dict[int, _Stated | Dropped]:
    """Read the setups of a page: by id, the values that each states, or why these are unknown.

    A page, as it was stored as JSON, has three parts: "read", values by id, as text; "unread", ids
    of setups that the client could not parse; and "unknown", ids that OpenML does not know.
    """
    setup_of_id: dict[int, _Stated | Dropped] = {}
    for number, stated in page["read"].items():
        setup_of_id[int(number)] = stated
    for number in page["unread"]:
        setup_of_id[number] = Dropped.UNPARSABLE
    for number in page["unknown"]:
        setup_of_id[number] = Dropped.MISSING_SETUP
    return setup_of_id


def _assemble(
    space: SearchSpace,
    evaluations: Mapping[int, _TaskEvaluations],
    setup_of_id: _SetupOfId,
    defaults: _Stated,
    read_config: MlrSetups,
) -> FlowRecords:
    """Make the table of all evaluations with a configuration, and count the others.

    Args:
        space: The search space.
        evaluations: Evaluations of each task.
        setup_of_id: Values that setups state, or why they are unknown.
        defaults: Values that the flow states.
        read_config: Turns stated values into a configuration.
    """
    dropped = dict.fromkeys(Dropped, 0)
    rows: list[dict[str, Any]] = []
    for task, evaluations_of_task in evaluations.items():
        dropped[Dropped.UNPARSABLE] += evaluations_of_task.unread
        earlier_runs: set[int] = set()  # the first of several evaluations of a run counts
        for row in sorted(evaluations_of_task.rows, key=lambda row: int(row["run"])):
            config = _find_config(row, earlier_runs, setup_of_id, defaults, read_config, task)
            earlier_runs.add(row["run"])
            if isinstance(config, Dropped):
                dropped[config] += 1
                continue
            rows.append(
                {
                    "task": str(task),
                    "training": row["setup"],
                    "run": row["run"],
                    **name_config_columns(config),
                    "value": row["value"],
                    "spread": _compute_spread(row["folds"]),
                }
            )
    frame = make_raw_frame(rows, space, further_types={"run": "int64"})
    return FlowRecords(frame, dropped)


def _find_config(
    row: Mapping[str, Any],
    earlier_runs: set[int],
    setup_of_id: _SetupOfId,
    defaults: _Stated,
    read_config: MlrSetups,
    task: int,
) -> Config | Dropped:
    """Find the configuration of an evaluation, or the reason why it is left out.

    Args:
        row: The evaluation: its run, its setup and its value, None if that is not finite.
        earlier_runs: Runs of the task that were read before.
        setup_of_id: Values that setups state, or why they are unknown.
        defaults: Values that the flow states.
        read_config: Turns stated values into a configuration.
        task: OpenML's number of the task.
    """
    if row["run"] in earlier_runs:
        return Dropped.DUPLICATE
    if row["value"] is None:
        return Dropped.NOT_FINITE
    setup = setup_of_id[row["setup"]]
    if isinstance(setup, Dropped):
        return setup
    return read_config(merge_stated_values(setup, defaults), task)


def _finite_or_none(value: float | None) -> float | None:
    """Return a finite value, else None: JSON has no NaN."""
    return value if value is not None and math.isfinite(value) else None


def _compute_spread(folds: Sequence[float | None]) -> float | None:
    """Standard deviation over the folds; None if a fold is missing, or there are fewer than two."""
    values = [value for value in folds if value is not None]
    is_complete = len(values) == len(folds)
    if not is_complete or len(values) < 2:
        return None
    return stdev(values)
