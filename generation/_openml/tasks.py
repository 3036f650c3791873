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

REQUESTS_PER_TASK = 4  # that the client makes


@dataclass(frozen=True, slots=True)
class DataSize:
    """Size of a data set.

    Attributes:
        rows: Number of rows, n.
        inputs: Number of columns without the class, p.
        majority: Number of rows of the largest class.
    """

    rows: int
    inputs: int
    majority: int

    @property
    def context(self) -> dict[str, float]:
        """Context of the task: rows, inputs and the share of the largest class."""
        numbers = (float(self.rows), float(self.inputs), self.majority / self.rows)
        return dict(zip(CONTEXT, numbers, strict=True))  # `CONTEXT` are the names of the three


def look_up_data_sizes(
    tasks: Iterable[int],
    folder: Path,
    *,
    progress: Progress = silent,
    connection: Connection = PUBLIC,
) -> dict[int, DataSize]:
    """Look up the sizes of the data sets of OpenML's tasks, by task; `folder` stores them."""
    pages = Pages(folder)
    task_ids = list(tasks)
    sizes = {}
    with connected(connection) as client:
        for done, task in enumerate(task_ids, start=1):
            fields = pages.get(
                kind="tasks",
                page=str(task),
                request={"task": task},
                ask=partial(_ask_for_size, client, task),
            )
            sizes[task] = DataSize(**fields)
            progress("data sets", done, len(task_ids))
    return sizes


def _ask_for_size(client: Client, task: int) -> dict[str, int]:
    """Fields of a `DataSize`, from OpenML's qualities, which count the class as a feature."""
    import openml

    def get_qualities() -> Mapping[str, Any]:
        """Ask for the qualities of the task's data set: numbers that describe it, by name."""
        openml_task = openml.tasks.get_task(task)
        dataset = openml.datasets.get_dataset(
            openml_task.dataset_id, download_data=False, download_qualities=True
        )
        return dict(dataset.qualities)

    subject = f"the size of task {task}'s data"
    # The number of requests that the call makes keeps the pace.
    qualities = client.ask(subject, get_qualities, requests=REQUESTS_PER_TASK)
    try:
        return {
            "rows": int(qualities["NumberOfInstances"]),
            "inputs": int(qualities["NumberOfFeatures"]) - 1,
            "majority": int(qualities["MajorityClassSize"]),
        }
    except (KeyError, TypeError, ValueError) as error:
        raise DownloadError(f"OpenML does not give {subject}: {error!r}") from error


def svm_converters(sizes: Mapping[int, DataSize]) -> dict[str, Converter]:
    """Return a converter that fills in the default of a kernel's gamma, 1 / p for p inputs.

    e1071 counts the columns of its model matrix instead, which at times are a few more.
    """

    def convert_gamma(number: float | None, task: int) -> float | None:
        """Return a recorded gamma; the default if none is recorded."""
        return 1.0 / sizes[task].inputs if number is None else number

    return {"gamma": convert_gamma}


def ranger_converters(sizes: Mapping[int, DataSize]) -> dict[str, Converter]:
    """Return converters of ranger's recorded numbers to those that were drawn at random.

    OpenML's random bot drew a fraction x, and ran with mtry = ceil(x p); of all x that give an
    mtry, the middle one is returned. It drew an exponent x, and ran with min.node.size = n^x.
    See `benchmarks.openml_flows.ranger_space`.
    """

    def convert_mtry(number: float | None, task: int) -> float | None:
        """Convert mtry, a number of the p inputs, to the middle of the fractions that give it.

        These are (mtry - 1) / p to mtry / p, as the random bot drew x and ran with ceil(x p).
        """
        p = sizes[task].inputs
        mtry = math.floor(math.sqrt(p)) if number is None else number  # ranger's default
        return max(0.0, (mtry - 0.5) / p)  # not below 0 if 0 is recorded

    def convert_min_node_size(number: float | None, task: int) -> float | None:
        """Convert min.node.size = n^x, with n the rows of the task's data, to the exponent x."""
        if number is None:
            return None
        n = sizes[task].rows
        size = max(number, 1.0)  # a smaller one than n^0 cannot have been drawn
        return math.log(size) / math.log(n)

    return {"mtry": convert_mtry, "min.node.size": convert_min_node_size}
