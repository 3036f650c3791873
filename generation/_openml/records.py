"""OpenML's public evaluation records of a flow: downloaded, and read as evaluations.

The records of a task are stored as soon as they are listed, so that a download continues with the
next task when it is started again:

    FOLDER/flow-<flow>-task-<task>.parquet    run, setup, value, and what the setup states, as JSON

The measure is the area under the ROC curve.
"""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hpobench_ordered._typing import Config
from hpobench_ordered.data.tables import write_table
from hpobench_ordered.errors import StoreError
from hpobench_ordered.generation._openml.client import openml_client
from hpobench_ordered.generation._openml.setups import Dropped, MlrSetups, merge_stated_values
from hpobench_ordered.generation._raw import make_raw_frame, name_config_columns
from hpobench_ordered.generation.base import Progress, ignore_progress
from hpobench_ordered.space import SearchSpace

if TYPE_CHECKING:
    import pandas as pd

FUNCTION = "area_under_roc_curve"
"""OpenML's name of the measure that evaluations are asked for."""
ADVICE = "What is there is stored: start again to continue, or select other tasks (--tasks)."

_FLOW_PREFIX = re.compile(r".*?\(\d+\)_")
"""Beginning of a parameter's full name, such as "mlr.classif.svm(7)_cost": flow and version."""


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
    progress: Progress = ignore_progress,
) -> FlowRecords:
    """Download all evaluations of a flow on some tasks, except of tasks that `folder` has.

    Args:
        flow_id: OpenML's number of the flow.
        tasks: OpenML's numbers of the tasks.
        space: The search space.
        folder: Stores the records of each task.
        setups: Converts a setup to a configuration.
        progress: Is told the number of tasks.

    Returns:
        A table with one row per evaluation, in the order of `tasks`, runs ascending: `task`,
        `training` (the setup's id), `run`, `config.<hyperparameter>` (native, null where inactive),
        `value`, and `spread`, which is null. Beside it, how many evaluations were left out and why.
    """
    import pyarrow as pa

    with openml_client(f"flow {flow_id}", advice=ADVICE) as openml:
        defaults_of_flow = dict(openml.flows.get_flow(flow_id).parameters)

    records_of_task = {}
    for done, task in enumerate(tasks):
        progress("records", done, len(tasks))
        path = folder / f"flow-{flow_id}-task-{task}.parquet"
        if not path.exists():
            write_table(path, pa.Table.from_pandas(_list_evaluations(flow_id, task)))
        records_of_task[task] = _read_parquet(path)
    progress("records", len(tasks), len(tasks))
    return _make_table(space, records_of_task, defaults_of_flow, setups)


def _list_evaluations(flow_id: int, task: int) -> "pd.DataFrame":
    """List OpenML's evaluations of a flow on a task, with the values that their setups state.

    Returns:
        One row per evaluation: `run` and `setup`, OpenML's numbers; `value`, the AUC; and `stated`,
        the setup's parameters as JSON, null if OpenML does not know the setup.
    """
    import pandas as pd

    subject = f"the evaluations of flow {flow_id} on task {task}"
    with openml_client(subject, advice=ADVICE) as openml:
        listing = openml.evaluations.list_evaluations_setups(
            function=FUNCTION, flows=[flow_id], tasks=[task]
        )
    rows = []
    for entry in listing.to_dict("records"):
        is_setup_known = isinstance(entry["parameters"], Mapping)  # otherwise NaN
        stated = _format_stated_values(entry["parameters"]) if is_setup_known else None
        rows.append((entry["run_id"], entry["setup_id"], entry["value"], stated))
    return pd.DataFrame(rows, columns=["run", "setup", "value", "stated"])


def _format_stated_values(parameters: Mapping[str, str | None]) -> str:
    """Format the values that a setup states as JSON, by name of the parameter.

    OpenML's names of parameters begin with the flow and its version, such as
    "mlr.classif.svm(7)_cost". This beginning is removed.
    """
    text_of_name = {}
    for full_name, text in parameters.items():
        name = _FLOW_PREFIX.sub("", full_name, count=1)
        text_of_name[name] = text
    return json.dumps(text_of_name)


def _read_parquet(path: Path) -> "pd.DataFrame":
    """Read a table from a Parquet file; raise a `StoreError` if the file is damaged."""
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except ValueError as error:
        raise StoreError(f"{path} is damaged ({error}); delete it to download it again") from error


def _make_table(
    space: SearchSpace,
    records_of_task: Mapping[int, "pd.DataFrame"],
    defaults_of_flow: Mapping[str, str | None],
    setups: MlrSetups,
) -> FlowRecords:
    """Make the table of all evaluations with a readable configuration, and count the others.

    Args:
        space: The search space.
        records_of_task: Evaluations as they are stored, by task.
        defaults_of_flow: Values that the flow states, by parameter.
        setups: Converts a setup to a configuration.
    """
    dropped = dict.fromkeys(Dropped, 0)
    rows: list[dict[str, Any]] = []
    for task, records in records_of_task.items():
        # Pages of a listing may overlap if evaluations are added to OpenML meanwhile.
        different_records = records.drop_duplicates("run").sort_values("run")
        for record in different_records.to_dict("records"):
            config = _read_config(record, defaults_of_flow, setups, task)
            if isinstance(config, Dropped):
                dropped[config] += 1
                continue
            rows.append(
                {
                    "task": str(task),
                    "training": record["setup"],
                    "run": record["run"],
                    **name_config_columns(config),
                    "value": record["value"],
                    "spread": np.nan,
                }
            )
    frame = make_raw_frame(rows, space, further_types={"run": "int64"})
    return FlowRecords(frame, dropped)


def _read_config(
    record: Mapping[str, Any],
    defaults_of_flow: Mapping[str, str | None],
    setups: MlrSetups,
    task: int,
) -> Config | Dropped:
    """Read the configuration of an evaluation, or return why the evaluation is left out.

    Args:
        record: The evaluation, a row of `_list_evaluations`.
        defaults_of_flow: Values that the flow states, by parameter.
        setups: Converts a setup to a configuration.
        task: OpenML's number of the task.
    """
    has_value = record["value"] is not None and np.isfinite(record["value"])
    if not has_value:
        return Dropped.NOT_FINITE
    is_setup_known = isinstance(record["stated"], str)  # otherwise null
    if not is_setup_known:
        return Dropped.MISSING_SETUP
    stated_by_setup = json.loads(record["stated"])
    return setups.read_config(merge_stated_values(stated_by_setup, defaults_of_flow), task)
