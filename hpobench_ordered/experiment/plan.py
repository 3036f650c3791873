"""Plans: deterministic lists of cells, each one run of one method on one benchmark."""

import hashlib
import itertools
import json
import operator
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from hpobench_ordered.adapters import as_method_spec
from hpobench_ordered.adapters.identity import method_version
from hpobench_ordered.benchmark import Benchmark, Definition, TaskDefinition
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.protocols import Protocol
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.specs import CONTENT_MARK, BenchmarkSpec

T = TypeVar("T")

SEED_LIMIT = 2**63
"""Seeds are stored as 64-bit integers."""

CONTENT_SIZE = 256
"""Random configurations whose values, on every task, identify a benchmark in memory."""

IDENTITY = ("benchmark", "surrogate", "method", "method_version", "seed", "protocol")
"""What identifies a run, see `Cell.describe`."""

PROTOCOL_STREAM = 1
"""Tells what a protocol draws from what the method draws."""


@dataclass(frozen=True)
class Cell:
    """One run: one method on one benchmark with one seed under one protocol.

    Attributes:
        source: What the benchmark is loaded by: its name and version, or an artifact's path; or a
            benchmark in memory.
        benchmark: What the benchmark is, wherever it is (`BenchmarkSpec.identity`).
        surrogate: Name of the surrogate.
        method: The method.
        method_version: What tells one version of the method from another: of a registered method
            its spec's version, else the hash of its source.
        seed: Seed of the run.
        protocol: The protocol.
    """

    source: str | Benchmark = field(hash=False, compare=False, repr=False)
    benchmark: str
    surrogate: str
    method: MethodSpec
    method_version: str
    seed: int
    protocol: Protocol = field(hash=False)

    def describe(self) -> dict[str, Any]:
        """What identifies the run, as JSON."""
        settings = ", ".join(f"{name}={x}" for name, x in self.protocol.settings().items())
        return {
            "benchmark": self.benchmark,
            "surrogate": self.surrogate,
            "method": self.method.name,
            "method_version": self.method_version,
            "seed": self.seed,
            "protocol": f"{self.protocol.name}({settings})",
        }

    @property
    def key(self) -> str:
        """Hash of what identifies the run; the name of its file in a store."""
        return key_of(self.describe())

    def rng(self, position: int) -> np.random.Generator:
        """Generator for the assignment at a position.

        It depends on the benchmark's name and version, seed and position, not on the method:
        methods are compared with common random numbers, and all that run the same method on the
        first task start alike.
        """
        return np.random.default_rng([self.seed, self._entropy, position])

    def protocol_rng(self, position: int) -> np.random.Generator:
        """Generator for what the protocol draws at a position, such as a history.

        As `rng` it is the same for all methods; the method's own draws do not depend on it.
        """
        return np.random.default_rng([self.seed, self._entropy, position, PROTOCOL_STREAM])

    @property
    def _entropy(self) -> int:
        """A number made of the benchmark's name and version."""
        name = self.benchmark.partition(CONTENT_MARK)[0]
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])


def plan(
    *,
    benchmarks: Iterable[str | os.PathLike[str] | Benchmark],
    methods: Iterable[object],
    seeds: Iterable[int],
    protocol: Protocol,
    surrogates: Mapping[str, str] | None = None,
) -> list[Cell]:
    """List the runs of an experiment, in a fixed order.

    Args:
        benchmarks: Names or paths of benchmarks, or loaded benchmarks.
        methods: Names of methods, or other methods, see `adapters.as_method_spec`.
        seeds: Seeds, 0 or larger.
        protocol: The protocol.
        surrogates: Surrogate by name of benchmark, where it is not the default one.

    Returns:
        One cell for each benchmark, method and seed.

    Raises:
        UnknownNameError: An unknown benchmark, method or surrogate.
        NotFetchedError: A surrogate's files must be fetched first.
        ExperimentError: Nothing to run, a negative seed, two methods of the same name, or a method
            that cannot run on a benchmark under the protocol.
    """
    sources = _sources(_several(benchmarks, "benchmarks"), surrogates or {})
    specs = [as_method_spec(method) for method in _several(methods, "methods")]
    names = [spec.name for spec in specs]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise ExperimentError(f"methods of the same name: {', '.join(duplicates)}")
    numbers = _seeds(seeds)
    for values, what in ((sources, "benchmark"), (specs, "method"), (numbers, "seed")):
        if not values:
            raise ExperimentError(f"an experiment needs a {what}, none is given")
    if isinstance(protocol, type) or not hasattr(protocol, "check"):
        raise ExperimentError(
            "a protocol is an object such as hpobench_ordered.Ordered(trials=25), LeaveOneOut() or "
            f"Adjustment(); got {protocol!r}"
        )
    for source in sources:
        for spec in specs:
            protocol.check(source.spec, spec)
    versions = [method_version(spec) for spec in specs]
    return [
        Cell(source.source, source.identity, source.surrogate, spec, version, seed, protocol)
        for source in sources
        for seed in numbers
        for spec, version in zip(specs, versions, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Shard:
    """One of several parts of a plan, for machines that share the work.

    Attributes:
        index: Which part, from 0.
        count: How many parts there are.

    Raises:
        ExperimentError: There is no such part.
    """

    index: int
    count: int

    def __post_init__(self) -> None:
        if not 0 <= self.index < self.count:
            raise ExperimentError(
                f"shard {self.index}/{self.count}: the first number is at least 0 and below the "
                "second"
            )

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"

    def of(self, cells: Sequence[Cell]) -> list[Cell]:
        """The cells of this part, in their order; every cell is in one part, whatever the order.

        Parts are of one size, and mix benchmarks and methods, which take differently long.
        """
        chosen = set(sorted(cell.key for cell in cells)[self.index :: self.count])
        return [cell for cell in cells if cell.key in chosen]


def grid(cells: Sequence[Cell]) -> dict[str, Any]:
    """What the cells of one `plan` are, in short: every combination is one run.

    Returns:
        JSON that `grid_cells` reads.
    """
    described = [cell.describe() for cell in cells]

    def distinct(*names: str) -> list[dict[str, Any]]:
        found = {tuple(cell[name] for name in names): None for cell in described}
        return [dict(zip(names, values, strict=True)) for values in found]

    return {
        "benchmarks": distinct("benchmark", "surrogate"),
        "methods": distinct("method", "method_version"),
        "seeds": [entry["seed"] for entry in distinct("seed")],
        "protocols": distinct("protocol"),
    }


def grid_cells(entries: Mapping[str, Any]) -> "dict[str, dict[str, Any]]":
    """What identifies each run of a grid, by key.

    Raises:
        ExperimentError: It is none.
    """
    try:
        combined = [
            {**benchmark, **method, **protocol, "seed": operator.index(seed)}
            for benchmark, seed, method, protocol in itertools.product(
                entries["benchmarks"], entries["seeds"], entries["methods"], entries["protocols"]
            )
        ]
    except (KeyError, TypeError) as error:
        raise ExperimentError(f"not the record of an experiment: {error!r}") from None
    return {key_of(cell): cell for cell in combined}


def key_of(described: Mapping[str, Any]) -> str:
    """Hash of what identifies a run, as `Cell.describe` gives it."""
    text = json.dumps(described, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _several(values: "Iterable[T]", what: str) -> "Iterable[T]":
    if isinstance(values, str) or not isinstance(values, Iterable):
        example = f"range({values})" if isinstance(values, int) else f"[{values!r}]"
        raise ExperimentError(f"{what} are given as a list, such as {example}")
    return values


@dataclass(frozen=True, slots=True)
class _Source:
    """A benchmark of an experiment: what is known of it, loads it and identifies it."""

    spec: BenchmarkSpec
    source: str | Benchmark
    identity: str
    surrogate: str


def _sources(
    benchmarks: Iterable[str | os.PathLike[str] | Benchmark], surrogates: Mapping[str, str]
) -> list[_Source]:
    """The benchmarks, each once.

    Raises:
        NotFetchedError: A surrogate's files must be fetched first.
        ExperimentError: A surrogate is chosen for a benchmark that is not in the experiment.
    """
    by_id = {benchmark_spec(name).id: surrogate for name, surrogate in surrogates.items()}
    sources = [_source(benchmark, by_id) for benchmark in benchmarks]
    for identity in by_id.keys() - {source.spec.id for source in sources}:
        raise ExperimentError(f"a surrogate is chosen for {identity}, not in the experiment")
    return list({(source.identity, source.surrogate): source for source in sources}.values())


def _source(benchmark: object, surrogates: Mapping[str, str]) -> _Source:
    surrogate = None
    if isinstance(benchmark, Benchmark):
        if not benchmark.source:
            spec = _spec_in_memory(benchmark)
            identity = f"{spec.id}{CONTENT_MARK}{_content(benchmark)[:12]}"
            return _Source(spec, benchmark, identity, benchmark.surrogate)
        surrogate, benchmark = benchmark.surrogate, benchmark.source
    if not isinstance(benchmark, str | os.PathLike):
        raise ExperimentError(
            "a benchmark is a name, a path or what hpobench_ordered.load returns; got "
            f"{type(benchmark).__name__}"
        )
    spec = benchmark_spec(benchmark)
    option = spec.ready_option(surrogate or surrogates.get(spec.id))
    return _Source(spec, spec.id, spec.identity(option.name), option.name)


def _spec_in_memory(benchmark: Benchmark) -> BenchmarkSpec:
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
        previous=None if previous is None else _spec_in_memory(previous),
    )


def _content(benchmark: Benchmark) -> str:
    """Hash of what a benchmark in memory gives: its tasks, recorded evaluations and values."""
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
    if benchmark.previous is not None:
        content.update(_content(benchmark.previous).encode())
    return content.hexdigest()


def _seeds(seeds: Iterable[int]) -> list[int]:
    try:
        numbers = list(dict.fromkeys(operator.index(seed) for seed in _several(seeds, "seeds")))
    except TypeError:
        raise ExperimentError(f"seeds are whole numbers, got {seeds!r}") from None
    if any(seed < 0 for seed in numbers):
        raise ExperimentError(f"seeds are 0 or larger, got {min(numbers)}")
    if any(seed >= SEED_LIMIT for seed in numbers):
        raise ExperimentError(f"seeds are smaller than 2**63, got {max(numbers)}")
    return numbers
