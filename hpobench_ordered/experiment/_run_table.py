"""What a finished run is in a store: one row a trial."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmark import Benchmark
from hpobench_ordered.experiment._run_file import run_metadata
from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.store import CONFIG_PREFIX
from hpobench_ordered.space.parameters import Kind, Parameter

if TYPE_CHECKING:
    import pyarrow as pa

    from hpobench_ordered.experiment.outcome import Outcome


def run_table(cell: Cell, benchmark: Benchmark, outcomes: "Sequence[Outcome]") -> "pa.Table":
    """Arrange the recorded outcomes of a run as a table; its metadata identify the run."""
    import pyarrow as pa

    lengths = [len(o.losses) for o in outcomes]
    tasks = [benchmark.tasks[o.task] for o in outcomes]
    regrets = [
        np.full(n, np.nan) if task.best_value is None else task.regret(o.objective)
        for task, o, n in zip(tasks, outcomes, lengths, strict=True)
    ]
    columns: dict[str, pa.Array] = {
        "task": pa.array(np.repeat([o.task for o in outcomes], lengths), pa.int32()),
        "task_name": pa.array(np.repeat([o.task_name for o in outcomes], lengths).tolist()),
        "trial": pa.array(np.concatenate([np.arange(1, n + 1) for n in lengths]), pa.int32()),
        "value": pa.array(np.concatenate([o.objective for o in outcomes])),
        "loss": pa.array(np.concatenate([o.losses for o in outcomes])),
        "regret": pa.array(np.concatenate(regrets), from_pandas=True),  # unknown ones are null
        "fallbacks": pa.array(np.concatenate([o.fallbacks for o in outcomes]), pa.int32()),
        "optimiser": pa.array(np.repeat([o.optimiser for o in outcomes], lengths).tolist()),
    }
    values = np.concatenate([o.values for o in outcomes])
    for parameter, coded in zip(benchmark.space.parameters, values.T, strict=True):
        columns[CONFIG_PREFIX + parameter.name] = _native(parameter, coded)
    return pa.table(columns).replace_schema_metadata(run_metadata(cell.describe()))


def _native(parameter: Parameter, coded: FloatArray) -> "pa.Array":
    """Native values of a hyperparameter, choices as text; null where it is inactive, shape (n,)."""
    import pyarrow as pa

    active = pa.array(coded, mask=np.isnan(coded))
    if parameter.choices:
        return pa.array(list(map(str, parameter.choices))).take(active.cast(pa.int32()))
    return active.cast(pa.int64()) if parameter.kind is Kind.INTEGER else active
