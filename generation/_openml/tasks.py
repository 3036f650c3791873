"""Sizes of the data sets of OpenML tasks, on which conversions of hyperparameters depend.

Notation:
    n   rows of a data set
    p   its columns without the class
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hpobench_ordered.benchmarks.openml_flows import CONTEXT
from hpobench_ordered.generation._openml.client import openml_client
from hpobench_ordered.generation._openml.records import ADVICE
from hpobench_ordered.generation._openml.setups import Converter
from hpobench_ordered.generation.base import Progress, ignore_progress


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
        """Context of the task, by name: rows, inputs, and the share of the largest class."""
        majority_share = self.majority / self.rows
        numbers = (float(self.rows), float(self.inputs), majority_share)
        return dict(zip(CONTEXT, numbers, strict=True))


def look_up_data_sizes(
    tasks: Sequence[int], *, progress: Progress = ignore_progress
) -> dict[int, DataSize]:
    """Look up the size of the data set of each OpenML task, by task.

    The client `openml` stores what it reads, so that a second look-up needs no download.
    """
    size_of_task = {}
    for done, task in enumerate(tasks, start=1):
        with openml_client(f"the size of the data of task {task}", advice=ADVICE) as openml:
            dataset_id = openml.tasks.get_task(task).dataset_id
            dataset = openml.datasets.get_dataset(
                dataset_id, download_data=False, download_qualities=True
            )
            qualities = dataset.qualities  # what OpenML measures of a data set, by name
            size_of_task[task] = DataSize(
                rows=int(qualities["NumberOfInstances"]),
                inputs=int(qualities["NumberOfFeatures"]) - 1,  # without the class
                majority=int(qualities["MajorityClassSize"]),
            )
        progress("data sets", done, len(tasks))
    return size_of_task


def make_svm_converters(size_of_task: Mapping[int, DataSize]) -> dict[str, Converter]:
    """Return the converter of an SVM's gamma, which fills in a missing one.

    A kernel's default gamma is 1 / p for p inputs. e1071 counts the columns of its model matrix
    instead, which at times are a few more.
    """

    def convert_gamma(number: float | None, task: int) -> float | None:
        """Return the recorded gamma, or the default 1 / p if none is recorded."""
        p = size_of_task[task].inputs
        return 1.0 / p if number is None else number

    return {"gamma": convert_gamma}


def make_ranger_converters(size_of_task: Mapping[int, DataSize]) -> dict[str, Converter]:
    """Return converters of ranger's recorded numbers to those that were drawn at random.

    OpenML's random bot drew a fraction x, and ran with mtry = ceil(x p) of the p inputs. It drew an
    exponent x, and ran with min.node.size = round(n^x) for n rows. The search space has x in both
    cases (`benchmarks.openml_flows.make_ranger_space`).
    """

    def convert_mtry(number: float | None, task: int) -> float | None:
        """Return the middle of the fractions x with mtry = ceil(x p), for the recorded mtry.

        These are the fractions between (mtry - 1) / p and mtry / p.
        """
        p = size_of_task[task].inputs
        mtry = math.floor(math.sqrt(p)) if number is None else number  # ranger's default
        return max(0.0, (mtry - 0.5) / p)  # not below 0 if 0 is recorded

    def convert_min_node_size(number: float | None, task: int) -> float | None:
        """Return the exponent x with min.node.size = n^x; None if no min.node.size is recorded."""
        if number is None:
            return None
        n = size_of_task[task].rows
        size = max(number, 1.0)  # a smaller one than n^0 cannot have been drawn
        return math.log(size) / math.log(n)

    return {"mtry": convert_mtry, "min.node.size": convert_min_node_size}
