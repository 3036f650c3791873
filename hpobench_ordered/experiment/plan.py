"""Plans: deterministic lists of cells, each one run of one method on one benchmark."""

import hashlib
import inspect
import json
import operator
import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods.base import Method, MethodSpec
from hpobench_ordered.protocols import Protocol
from hpobench_ordered.registry import (
    BenchmarkSpec,
    SurrogateOption,
    benchmark_spec,
    list_methods,
    method_spec,
)

T = TypeVar("T")

CONTENT_MARK = "+"
"""Stands between a benchmark's version and the hash of its content."""

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
        code: Hash of the method's source, where it is no registered method.
        seed: Seed of the run.
        protocol: The protocol.
    """

    source: str
    benchmark: str
    surrogate: str
    method: MethodSpec
    code: str
    seed: int
    protocol: Protocol = field(hash=False)

    def describe(self) -> dict[str, Any]:
        """What identifies the run, as JSON."""
        settings = ", ".join(f"{name}={x}" for name, x in self.protocol.settings().items())
        return {
            "benchmark": self.benchmark,
            "surrogate": self.surrogate,
            "method": self.method.name,
            "code": self.code,
            "seed": self.seed,
            "protocol": f"{self.protocol.name}({settings})",
        }

    @property
    def key(self) -> str:
        """Hash of what identifies the run; the name of its file in a store."""
        text = json.dumps(self.describe(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

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
    if len(set(names)) < len(names):
        raise ExperimentError(f"methods of the same name: {names}")
    numbers = _seeds(seeds)
    if not (specs and chosen and numbers):
        raise ExperimentError("an experiment needs a benchmark, a method and a seed")
    if isinstance(protocol, type) or not hasattr(protocol, "check"):
        raise ExperimentError(
            "a protocol is an object such as hpobench_ordered.Ordered(trials=25), LeaveOneOut() or "
            f"Adjustment(); got {protocol!r}"
        )
    for spec in specs:
        for method in chosen:
            protocol.check(spec, method)
    codes = [_code(method) for method in chosen]
    return [
        Cell(spec.id, _identity(spec), option.name, method, code, seed, protocol)
        for spec, option in zip(specs, options, strict=True)
        for seed in numbers
        for method, code in zip(chosen, codes, strict=True)
    ]


def as_method_spec(given: str | type[Method] | MethodSpec) -> MethodSpec:
    """Find a method by name, or describe a class of the user's own.

    Raises:
        UnknownNameError: No method of that name.
        ExperimentError: Neither a name nor a subclass of `Method`.
    """
    if isinstance(given, MethodSpec):
        if given.name in list_methods() and method_spec(given.name) != given:
            raise ExperimentError(f"{given.name!r} is the name of a registered method")
        return given
    if isinstance(given, str):
        return method_spec(given)
    if not (isinstance(given, type) and issubclass(given, Method)):
        raise ExperimentError(
            f"a method is a name, a subclass of hpobench_ordered.Method or a MethodSpec; "
            f"got {given!r}"
        )
    summary = (given.__doc__ or "").strip().partition("\n")[0]
    in_script = given.__module__ == "__main__"
    name = given.__qualname__ if in_script else f"{given.__module__}.{given.__qualname__}"
    return MethodSpec(name=name, method=given, summary=summary, source="user")


def select(cells: Sequence[Cell], done: frozenset[str]) -> list[Cell]:
    """The cells whose key is not among the finished ones."""
    return [cell for cell in cells if cell.key not in done]


# -- internals -------------------------------------------------------------------------------------


def _spec(name: object) -> BenchmarkSpec:
    if not isinstance(name, str | os.PathLike):
        raise ExperimentError(
            f"a benchmark is given by its name or path, got {type(name).__name__}"
        )
    return benchmark_spec(name)


def _several(given: "Iterable[T]", what: str) -> "Iterable[T]":
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ExperimentError(f"{what} are given as a list, such as [{given!r}]")
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
    return seeds


def _identity(spec: BenchmarkSpec) -> str:
    """Name and version; of a user's own artifact those in it, and the hash of its content."""
    if not spec.is_local:
        return spec.id
    defined = spec.define()
    return f"{defined.name}@{defined.version}{CONTENT_MARK}{spec.content[:12]}"


def _code(method: MethodSpec) -> str:
    """Hash of the source of a method that is not registered; of none, a number used once.

    Results of a class are taken up again only while its source is the same.
    """
    if method.name in list_methods():
        return ""
    try:
        source = inspect.getsource(method.method)
    except (OSError, TypeError):
        source = secrets.token_hex()
    return hashlib.sha256(source.encode()).hexdigest()[:12]
