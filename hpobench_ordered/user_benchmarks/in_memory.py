"""Identification of benchmarks that exist only in memory."""

import hashlib
import json

import numpy as np

from hpobench_ordered.core.benchmark import Benchmark, Definition, TaskDefinition
from hpobench_ordered.core.data import DataSource
from hpobench_ordered.core.identity import DIGITS_OF_CONTENT
from hpobench_ordered.core.specs import BenchmarkSpec

CONTENT_SIZE = 256  # number of random configurations whose values enter the content hash


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
        surrogates=(),
        previous=None if previous is None else spec_in_memory(previous),
        data=DataSource(lambda task: benchmark.tasks[task].data) if _data(benchmark) else None,
    )


def content_hash(benchmark: Benchmark) -> str:
    """Hash of the tasks, recorded evaluations and values of a benchmark in memory."""
    tasks = [(t.name, dict(t.context), t.best_value) for t in benchmark.tasks]
    objective = benchmark.objective
    described = [benchmark.space.to_json(), objective.name, objective.direction.value, tasks]
    content = hashlib.sha256(json.dumps(described, default=float).encode())
    unit = benchmark.space.sample_unit(np.random.default_rng(0), CONTENT_SIZE)
    values = benchmark.space.decode(unit)
    for task in benchmark.tasks:
        content.update(task.evaluate_many(values).tobytes())
    for recorded in benchmark.recorded() if benchmark.recorded is not None else ():
        content.update(recorded.values.tobytes() + recorded.losses.tobytes())
    content.update(" ".join(_data(benchmark)).encode())
    if benchmark.previous is not None:
        content.update(content_hash(benchmark.previous).encode())
    return content.hexdigest()[:DIGITS_OF_CONTENT]


def _data(benchmark: Benchmark) -> list[str]:
    """Hashes of the tasks' training data; empty if they have none."""
    known = [task.data for task in benchmark.tasks]
    return ["-" if one is None else one.digest for one in known] if any(known) else []
