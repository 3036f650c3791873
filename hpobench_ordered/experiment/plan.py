"""Plans: deterministic lists of cells, each one run of one method on one benchmark."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.protocols import Protocol
from hpobench_ordered.registry import benchmark_spec, method_spec


@dataclass(frozen=True)
class Cell:
    """One run: one method on one benchmark with one seed under one protocol.

    Attributes:
        benchmark: Benchmark's name and version, or an artifact's path.
        surrogate: Name of the surrogate.
        method: The method.
        seed: Seed of the run.
        protocol: The protocol.
    """

    benchmark: str
    surrogate: str
    method: MethodSpec
    seed: int
    protocol: Protocol = field(hash=False)

    def describe(self) -> dict[str, Any]:
        """What identifies the run, as JSON."""
        return {
            "benchmark": self.benchmark,
            "surrogate": self.surrogate,
            "method": self.method.name,
            "seed": self.seed,
            "protocol": self.protocol.name,
            **self.protocol.settings(),
        }

    @property
    def key(self) -> str:
        """Hash of what identifies the run; the name of its file in a store."""
        text = json.dumps(self.describe(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def rng(self, position: int) -> np.random.Generator:
        """Generator for the assignment at a position.

        It depends on benchmark, seed and position, not on the method: methods are compared with
        common random numbers, and all that run the same method on the first task start alike.
        """
        name = hashlib.sha256(self.benchmark.encode()).digest()[:8]
        return np.random.default_rng([self.seed, int.from_bytes(name), position])


def plan(
    *,
    benchmarks: Iterable[str],
    methods: Iterable[str | type[Method] | MethodSpec],
    seeds: Iterable[int],
    protocol: Protocol,
    surrogates: Mapping[str, str] | None = None,
) -> list[Cell]:
    """List the runs of an experiment, in a fixed order.

    Args:
        benchmarks: Names of benchmarks.
        methods: Names of methods, or classes of your own.
        seeds: Seeds, 0 or larger.
        protocol: The protocol.
        surrogates: Surrogate by name of benchmark, where it is not the default one.

    Returns:
        One cell for each benchmark, method and seed.

    Raises:
        UnknownNameError: An unknown benchmark, method or surrogate.
        ExperimentError: Nothing to run, a negative seed, or two methods of the same name.
    """
    surrogates = surrogates or {}
    specs = [benchmark_spec(name) for name in dict.fromkeys(benchmarks)]
    for name in surrogates.keys() - {s.name for s in specs}:
        raise ExperimentError(f"a surrogate is chosen for {name!r}, which is not in the experiment")
    chosen = [as_method_spec(method) for method in methods]
    names = [m.name for m in chosen]
    if len(set(names)) < len(names):
        raise ExperimentError(f"methods of the same name: {names}")
    seeds = list(dict.fromkeys(seeds))
    if any(seed < 0 for seed in seeds):
        raise ExperimentError(f"seeds are 0 or larger, got {min(seeds)}")
    if not (specs and chosen and seeds):
        raise ExperimentError("an experiment needs a benchmark, a method and a seed")
    return [
        Cell(spec.id, spec.option(surrogates.get(spec.name)).name, method, seed, protocol)
        for spec in specs
        for seed in seeds
        for method in chosen
    ]


def as_method_spec(given: str | type[Method] | MethodSpec) -> MethodSpec:
    """Find a method by name, or describe a class of the user's own.

    Raises:
        UnknownNameError: No method of that name.
        ExperimentError: Neither a name nor a subclass of `Method`.
    """
    if isinstance(given, MethodSpec):
        return given
    if isinstance(given, str):
        return method_spec(given)
    if not (isinstance(given, type) and issubclass(given, Method)):
        raise ExperimentError(
            f"a method is a name, a subclass of hpobench_ordered.Method or a MethodSpec; "
            f"got {given!r}"
        )
    summary = (given.__doc__ or "").strip().partition("\n")[0]
    name = f"{given.__module__}.{given.__qualname__}"
    return MethodSpec(name=name, method=given, summary=summary, source="user")


def select(cells: Sequence[Cell], done: frozenset[str]) -> list[Cell]:
    """The cells whose key is not among the finished ones."""
    return [cell for cell in cells if cell.key not in done]
