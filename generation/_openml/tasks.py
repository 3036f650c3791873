"""Sizes of the data sets of OpenML tasks, downloaded and stored with a flow's records.

    FOLDER/tasks/<task>.json    sizes of one task's data set

Notation:
    n   rows of a data set
    p   its columns without the class
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from hpobench_ordered.benchmarks.openml_flows import CONTEXT
from hpobench_ordered.errors import DownloadError
from hpobench_ordered.generation._openml.client import PUBLIC, Client, Connection, connected
from hpobench_ordered.generation._openml.pages import Pages
from hpobench_ordered.generation._openml.setups import Converter
from hpobench_ordered.generation.base import Progress, silent

_REQUESTS = 4  # by the client, per task


@dataclass(frozen=True, slots=True)
class DataSize:
    """Size of a data set."""

    rows: int
    inputs: int
    majority: int

    @property
    def context(self) -> dict[str, float]:
        """Context of the task."""
        numbers = (float(self.rows), float(self.inputs), self.majority / self.rows)
        return dict(zip(CONTEXT, numbers, strict=True))


def data_sizes(
    tasks: Iterable[int],
    folder: Path,
    *,
    progress: Progress = silent,
    connection: Connection = PUBLIC,
) -> dict[int, DataSize]:
    """Look up the data sets of OpenML's tasks that `folder` does not hold."""
    pages, ids = Pages(folder), list(tasks)
    sizes = {}
    with connected(connection) as client:
        for done, task in enumerate(ids, start=1):
            ask = partial(_ask, client, task)
            sizes[task] = DataSize(**pages.get("tasks", str(task), {"task": task}, ask))
            progress("data sets", done, len(ids))
    return sizes


def _ask(client: Client, task: int) -> dict[str, int]:
    """Fields of a `DataSize`, from OpenML's qualities, which count the class as a feature."""
    import openml

    def call() -> Mapping[str, Any]:
        described = openml.tasks.get_task(task)
        dataset = openml.datasets.get_dataset(
            described.dataset_id, download_data=False, download_qualities=True
        )
        return dict(dataset.qualities)

    what = f"the size of task {task}'s data"
    qualities = client.ask(what, call, requests=_REQUESTS)
    try:
        names = ("NumberOfInstances", "NumberOfFeatures", "MajorityClassSize")
        rows, features, majority = (int(qualities[name]) for name in names)
    except (KeyError, TypeError, ValueError) as error:
        raise DownloadError(f"OpenML does not give {what}: {error!r}") from error
    return {"rows": rows, "inputs": features - 1, "majority": majority}


def svm_converters(sizes: Mapping[int, DataSize]) -> dict[str, Converter]:
    """A kernel's default gamma, 1 / p (e1071: p of its model matrix, a little more at times)."""

    def gamma(number: float | None, task: int) -> float | None:
        return 1.0 / sizes[task].inputs if number is None else number

    return {"gamma": gamma}


def ranger_converters(sizes: Mapping[int, DataSize]) -> dict[str, Converter]:
    """Invert the scales of the random bot, see `benchmarks.openml_flows.ranger_space`.

    mtry = ceil(x * p) becomes the middle of the x that give it.
    """

    def mtry(number: float | None, task: int) -> float | None:
        p = sizes[task].inputs
        columns = math.floor(math.sqrt(p)) if number is None else number
        return max(0.0, (columns - 0.5) / p)

    def min_node_size(number: float | None, task: int) -> float | None:
        return None if number is None else math.log(max(number, 1.0)) / math.log(sizes[task].rows)

    return {"mtry": mtry, "min.node.size": min_node_size}
