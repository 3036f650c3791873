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
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.protocols import Protocol
from hpobench_ordered.registry import benchmark_spec
from hpobench_ordered.specs import BenchmarkSpec, SurrogateOption

T = TypeVar("T")

CONTENT_MARK = "+"
"""Stands between a benchmark's version and the hash of its content."""

SEED_LIMIT = 2**63
"""Seeds are kept as 64-bit integers."""

IDENTITY = ("benchmark", "surrogate", "method", "method_version", "seed", "protocol")
"""What identifies a run, see `Cell.describe`."""

PROTOCOL_STREAM = 1
"""Tells what a protocol draws from what the method draws."""


@dataclass(frozen=True)
class Cell:
    """One run: one method on one benchmark with one seed under one protocol.

    Attributes:
        source: What the benchmark is loaded by: its name and version, or an artifact's path.
        benchmark: What the benchmark is, wherever it is: its name and version, and for a user's
            own artifact the hash of its content.
        surrogate: Name of the surrogate.
        method: The method.
        method_version: What tells one version of the method from another: of a registered method
            its spec's version, else the hash of its source.
        seed: Seed of the run.
        protocol: The protocol.
    """

    source: str
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
    benchmarks: Iterable[str],
    methods: Iterable[object],
    seeds: Iterable[int],
    protocol: Protocol,
    surrogates: Mapping[str, str] | None = None,
) -> list[Cell]:
    """List the runs of an experiment, in a fixed order.

    Args:
        benchmarks: Names of benchmarks.
        methods: Names of methods, or methods of your own, see `as_method_spec`.
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
    specs = list(
        {spec.id: spec for spec in map(_spec, _several(benchmarks, "benchmarks"))}.values()
    )
    options = _options(specs, surrogates or {})
    chosen = [as_method_spec(method) for method in _several(methods, "methods")]
    names = [m.name for m in chosen]
    for name in names:
        if not name or not name.isprintable():
            raise ExperimentError(f"a method's name is one line of text, got {name!r}")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ExperimentError(f"methods of the same name: {', '.join(twice)}")
    numbers = _seeds(seeds)
    for given, what in ((specs, "benchmark"), (chosen, "method"), (numbers, "seed")):
        if not given:
            raise ExperimentError(f"an experiment needs a {what}, none is given")
    if isinstance(protocol, type) or not hasattr(protocol, "check"):
        raise ExperimentError(
            "a protocol is an object such as hpobench_ordered.Ordered(trials=25), LeaveOneOut() or "
            f"Adjustment(); got {protocol!r}"
        )
    for spec in specs:
        for method in chosen:
            protocol.check(spec, method)
    versions = [method_version(method) for method in chosen]
    return [
        Cell(spec.id, _identity(spec), option.name, method, version, seed, protocol)
        for spec, option in zip(specs, options, strict=True)
        for seed in numbers
        for method, version in zip(chosen, versions, strict=True)
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


def _spec(name: object) -> BenchmarkSpec:
    if not isinstance(name, str | os.PathLike):
        raise ExperimentError(
            f"a benchmark is given by its name or path, got {type(name).__name__}"
        )
    return benchmark_spec(name)


def _several(given: "Iterable[T]", what: str) -> "Iterable[T]":
    if isinstance(given, str) or not isinstance(given, Iterable):
        example = f"range({given})" if isinstance(given, int) else f"[{given!r}]"
        raise ExperimentError(f"{what} are given as a list, such as {example}")
    return given


def _options(
    specs: Sequence[BenchmarkSpec], surrogates: Mapping[str, str]
) -> list[SurrogateOption]:
    """The surrogate of each benchmark.

    Raises:
        NotFetchedError: Its files must be fetched first.
        ExperimentError: A surrogate is chosen for a benchmark that is not in the experiment.
    """
    by_id = {benchmark_spec(name).id: surrogate for name, surrogate in surrogates.items()}
    for identity in by_id.keys() - {spec.id for spec in specs}:
        raise ExperimentError(f"a surrogate is chosen for {identity}, not in the experiment")
    return [spec.ready_option(by_id.get(spec.id)) for spec in specs]


def _seeds(given: Iterable[int]) -> list[int]:
    try:
        seeds = list(dict.fromkeys(operator.index(seed) for seed in _several(given, "seeds")))
    except TypeError:
        raise ExperimentError(f"seeds are whole numbers, got {given!r}") from None
    if any(seed < 0 for seed in seeds):
        raise ExperimentError(f"seeds are 0 or larger, got {min(seeds)}")
    if any(seed >= SEED_LIMIT for seed in seeds):
        raise ExperimentError(f"seeds are smaller than 2**63, got {max(seeds)}")
    return seeds


def _identity(spec: BenchmarkSpec) -> str:
    """Name and version; of a user's own artifact those in it, and the hash of its content."""
    if not spec.is_local:
        return spec.id
    defined = spec.define()
    return f"{defined.name}@{defined.version}{CONTENT_MARK}{spec.content[:12]}"
