"""Plans: deterministic lists of cells; a cell is one run of one method on one benchmark."""

import hashlib
import itertools
import json
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from hpobench_ordered.core.benchmark import Benchmark
from hpobench_ordered.core.identity import BenchmarkIdentity
from hpobench_ordered.core.specs import BenchmarkSpec
from hpobench_ordered.errors import ExperimentError, NotFetchedError
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.protocols import Protocol, format_protocol
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.runtime.child import Children
from hpobench_ordered.user_benchmarks.in_memory import identify_benchmark, spec_in_memory
from hpobench_ordered.user_methods.factory import as_method_spec
from hpobench_ordered.user_methods.identity import MethodIdentity, identify_method

T = TypeVar("T")

SEED_LIMIT = 2**63  # seeds are stored as 64-bit integers

IDENTITY = ("benchmark", "surrogate", "method", "method_version", "seed", "protocol")
"""What identifies a run, see `Cell.describe`."""

AXES = (("benchmark", "surrogate"), ("method", "method_version"), ("seed",), ("protocol",))
"""Columns of `IDENTITY` that vary together."""

PROTOCOL_STREAM = 1  # stream of the protocol's generators, apart from the method's


@dataclass(frozen=True)
class Cell:
    """One run: one method on one benchmark with one seed under one protocol.

    `source` is a benchmark, or loads it; `benchmark` (`BenchmarkSpec.identity`) and `identity` say
    exactly what is run.
    """

    source: str | Benchmark = field(hash=False, compare=False, repr=False)
    benchmark: str
    surrogate: str
    method: MethodSpec
    identity: MethodIdentity = field(hash=False)
    seed: int
    protocol: Protocol = field(hash=False)

    def describe(self) -> dict[str, Any]:
        """What identifies the run, as JSON."""
        return {
            "benchmark": self.benchmark,
            "surrogate": self.surrogate,
            "method": self.method.name,
            "method_version": self.identity.version,
            "seed": self.seed,
            "protocol": format_protocol(self.protocol),
        }

    @property
    def key(self) -> str:
        """Hash of what identifies the run, used in file names."""
        return key_of(self.describe())

    @property
    def process_group(self) -> str:
        """Name of a method that gets processes of its own; "" for methods of this package."""
        return "" if self.identity.source is None else self.method.name

    @property
    def sendable(self) -> "Cell":
        """The cell in the form in which another process can load its method."""
        source = self.identity.source
        if source is None:
            return self
        return replace(self, method=replace(self.method, method=source))

    def rng(self, position: int, *stream: int) -> np.random.Generator:
        """Generator of the method at a position: common random numbers for all methods."""
        name = BenchmarkIdentity.parse(self.benchmark).id
        entropy = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8])
        return np.random.default_rng([self.seed, entropy, position, *stream])

    def protocol_rng(self, position: int) -> np.random.Generator:
        """Generator of the protocol at a position, for example to draw a history."""
        return self.rng(position, PROTOCOL_STREAM)


def plan(
    *,
    benchmarks: Iterable[str | os.PathLike[str] | Benchmark],
    methods: Iterable[object],
    seeds: Iterable[int],
    protocol: Protocol,
    surrogates: Mapping[str, str] | None = None,
    identify: Callable[[MethodSpec], MethodIdentity] | None = None,
) -> list[Cell]:
    """The runs of an experiment by benchmark, seed and method; arguments and errors as of `run`.

    `identify` identifies a method, by default in a process that ends afterwards.
    """
    by_id = {benchmark_spec(name).id: chosen for name, chosen in (surrogates or {}).items()}
    sources = [source_of(benchmark, by_id) for benchmark in several_of(benchmarks, "benchmark")]
    for unused in by_id.keys() - {source[0].id for source in sources}:
        raise ExperimentError(f"a surrogate is given for {unused}, not in the experiment")
    specs = [as_method_spec(method) for method in several_of(methods, "method")]
    for spec in specs:
        spec.check_installed()
    names = [spec.name for spec in specs]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise ExperimentError(f"methods of the same name: {', '.join(duplicates)}")
    if isinstance(protocol, type) or not hasattr(protocol, "check"):
        raise ExperimentError(
            "the protocol must be an object such as hpobench_ordered.Ordered(trials=25), "
            f"LeaveOneOut() or Adjustment(), but got {protocol!r}"
        )
    for source, spec in itertools.product(sources, specs):
        protocol.check(source[0], spec)
        _check_data(source[0], spec)
    numbers = _seeds(seeds)
    if identify is None:
        with closing(Children()) as children:
            identities = [identify_method(spec, children) for spec in specs]
    else:
        identities = [identify(spec) for spec in specs]
    return [
        Cell(*source, spec, identity, seed, protocol)
        for source in {source[2:]: source[1:] for source in sources}.values()
        for seed in numbers
        for spec, identity in zip(specs, identities, strict=True)
    ]


def _check_data(benchmark: BenchmarkSpec, method: MethodSpec) -> None:
    """Check that training data are there if a method needs them."""
    if not method.uses_data:
        return
    if benchmark.data is None:
        raise ExperimentError(
            f"{method.name} needs the training data of the tasks, but {benchmark.name} has none; "
            "`hpobench-ordered info NAME` says which benchmarks have them"
        )
    if missing := benchmark.data.missing:
        raise NotFetchedError(
            f"{method.name} needs the training data of the tasks, but for {benchmark.name} "
            f"{', '.join(file.name for file in missing)} are not in the cache; get them with: "
            f"hpobench-ordered fetch {benchmark.name}"
        )


def part_of(cells: Sequence[Cell], shard: tuple[int, int]) -> list[Cell]:
    """Part i, from 0, of n equally large parts of a plan, each with a mix of cells."""
    index, count = shard
    if not 0 <= index < count:
        raise ExperimentError(f"shard {index}/{count}: the part must be from 0 to {count - 1}")
    for cell in cells:
        if cell.identity.is_new_at_each_start:
            raise ExperimentError(
                f"{cell.method.name} has no file that identifies it and would be another method in "
                "each part: define it in a file, outside of functions"
            )
        benchmark = BenchmarkIdentity.parse(cell.benchmark)
        if benchmark.is_new_at_each_start:
            raise ExperimentError(
                f"{benchmark.id} exists in memory only and would be another one in each part: "
                "give it a `model_version`, or save it and give the path"
            )
    chosen = set(sorted(cell.key for cell in cells)[index::count])
    return [cell for cell in cells if cell.key in chosen]


def grid(cells: Sequence[Cell]) -> dict[str, Any]:
    """The distinct values of each of `AXES`, as JSON; every combination is one run."""
    described = [cell.describe() for cell in cells]
    return {
        " ".join(axis): [*dict.fromkeys(tuple(map(cell.get, axis)) for cell in described)]
        for axis in AXES
    }


def grid_cells(axes: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Inverse of `grid`: what identifies each run, by key."""
    names, chain = [*itertools.chain(*AXES)], itertools.chain.from_iterable
    values = itertools.product(*(axes[" ".join(axis)] for axis in AXES))
    cells = (dict(zip(names, chain(combined), strict=True)) for combined in values)
    return {key_of(cell): cell for cell in cells}


def key_of(described: Mapping[str, Any]) -> str:
    """Hash of what identifies a run, see `Cell.describe`."""
    return hashlib.sha256(json.dumps(described, sort_keys=True).encode()).hexdigest()[:20]


def several_of(values: "Iterable[T]", what: str) -> "list[T]":
    """The values of an argument as a list, not empty."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        example = f"range({values})" if isinstance(values, int) else f"[{values!r}]"
        raise ExperimentError(f"{what}s must be given as a list, such as {example}")
    if not (several := list(values)):
        raise ExperimentError(f"an experiment needs at least one {what}, but got none")
    return several


def source_of(
    benchmark: object, surrogates: Mapping[str, str]
) -> tuple[BenchmarkSpec, str | Benchmark, str, str]:
    """Spec, source, identity and surrogate of a benchmark given by name, path or itself."""
    surrogate = None
    if isinstance(benchmark, Benchmark):
        if not benchmark.source:
            identity = str(identify_benchmark(benchmark))
            return spec_in_memory(benchmark), benchmark, identity, benchmark.surrogate
        surrogate, benchmark = benchmark.surrogate, benchmark.source
    if not isinstance(benchmark, str | os.PathLike):
        raise ExperimentError(
            "a benchmark must be a name, a path or what hpobench_ordered.load returns, but got "
            f"{type(benchmark).__name__}"
        )
    spec = benchmark_spec(benchmark)
    option = spec.ready_option(surrogate or surrogates.get(spec.id))
    spec.check_artifact()
    return spec, spec.id, spec.identity(option.name), option.name


def _seeds(seeds: Iterable[int]) -> list[int]:
    several = several_of(seeds, "seed")
    try:
        numbers = list(dict.fromkeys(map(operator.index, several)))
    except TypeError:
        raise ExperimentError(f"seeds must be whole numbers, but got {several!r}") from None
    if not all(0 <= seed < SEED_LIMIT for seed in numbers):
        raise ExperimentError(
            f"seeds must be from 0 to 2**63 - 1, but got {min(numbers)} to {max(numbers)}"
        )
    return numbers
