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
    chunks,
    connected,
)
from hpobench_ordered.generation._openml.pages import Pages
from hpobench_ordered.generation._openml.setups import Dropped, MlrSetups, stated_values
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

_Setups = Mapping[int, _Stated | Dropped]
"""Parameters stated by setups, or why they are unknown, by id."""


class FlowRecords(NamedTuple):
    """The evaluations as a table, and the number of the others by reason, all reasons listed."""

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

    One row per evaluation, in the order of `tasks`, runs ascending: `task`, `training` (the setup's
    id), `run`, `config.<hyperparameter>` (native, null where inactive), `value`, and `spread`, the
    standard deviation over folds (null if unknown). `setups` converts a setup to a configuration;
    `progress` gets the number of tasks ("evaluations"), then of setups ("setups"). An interrupted
    download is resumed.
    """
    pages = Pages(folder)
    pages.open(
        {"server": connection.server, "flow": flow_id, "function": FUNCTION, "page_size": page_size}
    )
    with connected(connection) as client:
        asked = {"flow": flow_id}
        defaults = pages.get("flow", "defaults", asked, lambda: client.flow_defaults(flow_id))
        evaluations = {}
        progress("evaluations", 0, len(tasks))
        for done, task in enumerate(tasks, start=1):
            evaluations[task] = _evaluations(client, pages, flow_id, task, page_size)
            progress("evaluations", done, len(tasks))
        required = {row["setup"] for page in evaluations.values() for row in page.rows}
        known = _setups(client, pages, required, progress)
    return _assemble(space, evaluations, known, defaults, setups)


def _evaluations(
    client: Client, pages: Pages, flow: int, task: int, page_size: int
) -> _TaskEvaluations:
    """All pages of a task, up to one with nothing new."""
    kind = f"evaluations-{task}"
    rows: list[dict[str, Any]] = []
    runs: set[int] = set()
    unread = offset = 0
    while True:
        request = {"flow": flow, "task": task, "offset": offset, "size": page_size}
        offsets = range(offset, offset + page_size)
        page = pages.get(kind, f"{offset:08}", request, partial(_page, client, flow, task, offsets))
        rows += page["rows"]
        unread += page["unread"]
        offset += page_size
        new = {row["run"] for row in page["rows"]} - runs
        if not new and not page["unread"]:
            return _TaskEvaluations(rows, unread)
        runs |= new


def _page(client: Client, flow: int, task: int, offsets: range) -> dict[str, Any]:
    read, unread = client.evaluations(flow, task, offsets)
    folds = client.folds([run for run, _, _ in read])
    rows = [
        {
            "run": run,
            "setup": setup,
            "value": _finite(value),
            "folds": [_finite(one) for one in folds.get(run, [])],
        }
        for run, setup, value in read
    ]
    return {"rows": rows, "unread": unread}


def _setups(client: Client, pages: Pages, required: set[int], progress: Progress) -> _Setups:
    known: dict[int, _Stated | Dropped] = {}
    for page in pages.read_all("setups"):
        known |= _setups_of(page)
    missing = sorted(required - known.keys())
    progress("setups", len(required) - len(missing), len(required))
    done = len(required) - len(missing)
    for ids in chunks(missing):
        read, unread = client.setups(ids)
        page = {
            "read": {str(number): stated for number, stated in read.items()},
            "unread": list(unread),
            "unknown": sorted(set(ids) - read.keys() - set(unread)),
        }
        pages.write("setups", f"{ids[0]:010}", {"setups": list(ids)}, page)
        known |= _setups_of(page)
        done += len(ids)
        progress("setups", done, len(required))
    return known


def _setups_of(page: Mapping[str, Any]) -> dict[int, _Stated | Dropped]:
    return (
        {int(number): stated for number, stated in page["read"].items()}
        | dict.fromkeys(page["unread"], Dropped.UNPARSABLE)
        | dict.fromkeys(page["unknown"], Dropped.MISSING_SETUP)
    )


def _assemble(
    space: SearchSpace,
    evaluations: Mapping[int, _TaskEvaluations],
    known: _Setups,
    defaults: _Stated,
    setups: MlrSetups,
) -> FlowRecords:
    dropped = dict.fromkeys(Dropped, 0)
    rows: list[dict[str, Any]] = []
    for task, listed in evaluations.items():
        dropped[Dropped.UNPARSABLE] += listed.unread
        runs: set[int] = set()
        for row in sorted(listed.rows, key=lambda row: int(row["run"])):
            config = _config(row, runs, known, defaults, setups, task)
            runs.add(row["run"])
            if isinstance(config, Dropped):
                dropped[config] += 1
                continue
            spread = _spread(row["folds"])
            rows.append(
                {"task": str(task), "training": row["setup"], "run": row["run"]}
                | name_config_columns(config)
                | {"value": row["value"], "spread": spread}
            )
    return FlowRecords(make_raw_frame(rows, space, {"run": "int64"}), dropped)


def _config(
    row: Mapping[str, Any],
    runs: set[int],
    known: _Setups,
    defaults: _Stated,
    setups: MlrSetups,
    task: int,
) -> Config | Dropped:
    """The configuration of an evaluation, or the reason why it is left out."""
    if row["run"] in runs:
        return Dropped.DUPLICATE
    if row["value"] is None:
        return Dropped.NOT_FINITE
    setup = known[row["setup"]]
    if isinstance(setup, Dropped):
        return setup
    return setups(stated_values(setup, defaults), task)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _spread(folds: Sequence[float | None]) -> float | None:
    """Standard deviation over the folds, unless one is missing."""
    values = [value for value in folds if value is not None]
    return stdev(values) if len(values) == len(folds) >= 2 else None
