"""Identification of benchmarks that exist only in memory."""

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.benchmark import Benchmark, Definition, Task, TaskDefinition
from hpobench_ordered.data.identity import DIGITS_OF_CONTENT, NEW_AT_EACH_START, BenchmarkIdentity
from hpobench_ordered.data.specs import BenchmarkSpec, SurrogateOption
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.data.task_data import DataSource
from hpobench_ordered.surrogates.base import StoredSurrogate

if TYPE_CHECKING:
    from hashlib import _Hash as Hash


def spec_in_memory(benchmark: Benchmark) -> BenchmarkSpec:
    """Describe a benchmark as if it were registered."""
    definition = Definition(
        benchmark.name,
        benchmark.version,
        benchmark.summary,
        benchmark.space,
        benchmark.objective,
        tuple(TaskDefinition(task.name, task.context) for task in benchmark.tasks),
        benchmark.provenance,
    )
    previous = benchmark.previous
    return BenchmarkSpec(
        name=benchmark.name,
        version=benchmark.version,
        summary=benchmark.summary,
        define=lambda: definition,
        surrogates=(SurrogateOption(benchmark.surrogate, "In memory.", lambda: _load(benchmark)),),
        previous=None if previous is None else spec_in_memory(previous),
        data=DataSource(lambda task: benchmark.tasks[task].data) if has_data(benchmark) else None,
    )


def identify_benchmark(benchmark: Benchmark) -> BenchmarkIdentity:
    """Identify a benchmark in memory so that two are the same only if their values are.

    The content is a hash of all that it is made of, if its surrogates can be stored as arrays or
    have a version; else the benchmark's own random number.
    """
    content = sha256()
    try:
        add_content(content, benchmark)
    except UnidentifiedError:
        return BenchmarkIdentity(
            benchmark.name, benchmark.version, NEW_AT_EACH_START + benchmark.token
        )
    digits = content.hexdigest()[:DIGITS_OF_CONTENT]
    return BenchmarkIdentity(benchmark.name, benchmark.version, digits)


class UnidentifiedError(Exception):
    """A surrogate can neither be stored as arrays nor has it a version."""


def add_content(content: "Hash", benchmark: Benchmark) -> None:
    """Add all that determines the runs on a benchmark in memory to a hash."""
    content.update(json.dumps(describe_tasks(benchmark), default=float).encode())
    if benchmark.model_version:
        content.update(benchmark.model_version.encode())
    else:
        add_surrogates(content, benchmark)
    if benchmark.recorded is not None:
        for evaluations in benchmark.recorded():
            content.update(evaluations.values.tobytes())
            content.update(evaluations.losses.tobytes())
    if benchmark.previous is not None:
        add_content(content, benchmark.previous)


def describe_tasks(benchmark: Benchmark) -> list[Any]:
    """Describe a benchmark without its surrogate and its evaluations, as JSON."""
    objective = benchmark.objective
    tasks: list[Any] = []
    for task in benchmark.tasks:
        data = None if task.data is None else task.data.digest
        tasks.append([task.name, dict(task.context), task.best_value, data])
    return [benchmark.space.to_json(), objective.name, objective.direction.value, tasks]


def add_surrogates(content: "Hash", benchmark: Benchmark) -> None:
    """Add the arrays of every task's surrogate, which tasks may share, to a hash."""
    surrogates = {id(task._surrogate): task._surrogate for task in benchmark.tasks}
    positions = [list(surrogates).index(id(task._surrogate)) for task in benchmark.tasks]
    rows = [task.index for task in benchmark.tasks]
    content.update(json.dumps([positions, rows]).encode())
    for surrogate in surrogates.values():
        if not isinstance(surrogate, StoredSurrogate):
            raise UnidentifiedError
        content.update(surrogate.kind.name.encode())
        for name, array in sorted(surrogate.to_arrays().items()):
            content.update(f"{name} {array.dtype} {array.shape}".encode())
            content.update(np.ascontiguousarray(array).tobytes())


def has_data(benchmark: Benchmark) -> bool:
    """Whether any task has training data."""
    return any(task.data for task in benchmark.tasks)


@dataclass(frozen=True)
class _SurrogateOfTasks:
    """The tasks of a benchmark in memory as one surrogate."""

    tasks: tuple[Task, ...]

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Evaluate configurations (n, d) on a task, to shape (n,)."""
        return self.tasks[task].evaluate_many(values)

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Evaluate one configuration (d,) on a task."""
        return self.tasks[task].evaluate_row(row)


def _load(benchmark: Benchmark) -> tuple[Surrogate, list[float | None]]:
    """The surrogate of a benchmark in memory, and the best known value of each task."""
    return _SurrogateOfTasks(benchmark.tasks), [task.best_value for task in benchmark.tasks]
