"""Finds benchmarks and methods by name.

Every module of `hpobench_ordered.benchmarks` and `hpobench_ordered.methods` may export `SPECS`, a
tuple of specs; benchmark modules may also export `FAMILIES`, for names too many to list. Other
packages add theirs through the entry-point groups `hpobench_ordered.benchmarks` and
`hpobench_ordered.methods`, each entry naming a module that exports the same.
"""

import os
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from hpobench_ordered.artifact import Artifact
from hpobench_ordered.benchmark import Benchmark, Definition
from hpobench_ordered.errors import DuplicateNameError, NotFetchedError, UnknownNameError
from hpobench_ordered.remote import RemoteFile
from hpobench_ordered.surrogates.base import Surrogate

if TYPE_CHECKING:
    from hpobench_ordered.generation.base import Generator
    from hpobench_ordered.methods.base import MethodSpec

BENCHMARKS = "hpobench_ordered.benchmarks"
METHODS = "hpobench_ordered.methods"
GENERATION = "hpobench_ordered.generation"


@dataclass(frozen=True, slots=True)
class SurrogateOption:
    """One surrogate a benchmark can be evaluated on.

    Attributes:
        name: Its name, such as "forest".
        summary: One line.
        load: Loads the surrogate and the best known value of each task.
        files: What must be fetched first; nothing for a surrogate that comes with the package.
    """

    name: str
    summary: str
    load: Callable[[], tuple[Surrogate, Sequence[float | None]]]
    files: tuple[RemoteFile, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Whether it can be loaded without fetching anything."""
        return all(file.is_fetched for file in self.files)


@dataclass(frozen=True, slots=True)
class BenchmarkSpec:
    """What the registry knows of a benchmark before it is loaded.

    Attributes:
        name: Name in the registry.
        version: Version of its values.
        summary: One line.
        define: Reads the search space, objective and tasks.
        surrogates: What it can be evaluated on; the first is the default.
        artifact: The artifact with its card; None if it has none.
    """

    name: str
    version: int
    summary: str
    define: Callable[[], Definition]
    surrogates: tuple[SurrogateOption, ...]
    artifact: Artifact | None = None

    @property
    def id(self) -> str:
        """Name and version."""
        return f"{self.name}@{self.version}"

    def option(self, name: str | None = None) -> SurrogateOption:
        """Find a surrogate by name; the default one without.

        Raises:
            UnknownNameError: The benchmark has no such surrogate.
        """
        if name is None:
            return self.surrogates[0]
        for option in self.surrogates:
            if option.name == name:
                return option
        names = [option.name for option in self.surrogates]
        raise UnknownNameError(f"surrogate of {self.name}", name, names)


class BenchmarkFamily(Protocol):
    """Benchmarks whose names follow a pattern, too many to list."""

    pattern: str
    """The names, for people: such as "yahpo-SCENARIO-INSTANCE"."""

    def spec(self, name: str) -> BenchmarkSpec | None:
        """The benchmark of that name; None if the name does not follow the pattern."""
        ...


# -- public ----------------------------------------------------------------------------------------


def load(name: str, *, surrogate: str | None = None) -> Benchmark:
    """Load a benchmark.

    Args:
        name: Its name, such as "newsvendor", or with a version, such as "newsvendor@1"; or the path
            of an artifact, such as "./artifacts/newsvendor".
        surrogate: What to evaluate on, such as "forest" or "nearest"; the default one without.

    Raises:
        UnknownNameError: No benchmark, version or surrogate of that name.
        NotFetchedError: The surrogate's files must be fetched first.
        ArtifactError: The benchmark's files are damaged.
    """
    spec = benchmark_spec(name)
    option = spec.option(surrogate)
    if not option.is_ready:
        raise NotFetchedError(
            f"surrogate {option.name!r} of {spec.name} is not here yet; get it with: "
            f"hpobench-ordered fetch {spec.name} --surrogate {option.name}"
        )
    model, best_values = option.load()
    return Benchmark.build(
        spec.define(), surrogate=option.name, model=model, best_values=best_values
    )


def list_benchmarks() -> list[str]:
    """Names of all benchmarks that are registered one by one, sorted."""
    return sorted(_benchmarks())


def list_methods() -> list[str]:
    """Names of all methods, sorted."""
    return sorted(_methods())


def benchmark_spec(name: str) -> BenchmarkSpec:
    """Find a benchmark's spec by its name, with or without a version, or by an artifact's path.

    Raises:
        UnknownNameError: No such benchmark, or not in that version.
        ArtifactError: The artifact at that path is missing or damaged.
    """
    stem, at, version = str(name).rpartition("@")
    if not (at and version.isdecimal()):
        stem, at, version = str(name), "", ""
    spec = _find(stem)
    if spec is None:
        patterns = ", ".join(family.pattern for family in _families())
        hint = f" (or one of the pattern {patterns})" if patterns else ""
        raise UnknownNameError("benchmark", name, _benchmarks(), hint=hint)
    if at and version != str(spec.version):
        raise UnknownNameError("benchmark", name, [spec.id])
    return spec


def _find(name: str) -> BenchmarkSpec | None:
    if os.sep in name:
        from hpobench_ordered.bundle import folder_spec

        return folder_spec(Path(name))
    spec = _benchmarks().get(name)
    for family in _families() if spec is None else ():
        spec = spec or family.spec(name)
    return spec


def method_spec(name: str) -> "MethodSpec":
    """Find a method's spec by name.

    Raises:
        UnknownNameError: No such method.
    """
    try:
        return _methods()[name]
    except KeyError:
        raise UnknownNameError("method", name, _methods()) from None


def generators() -> "Mapping[str, Generator]":
    """What can regenerate an artifact, by the benchmark's name."""
    return _index(GENERATION, "GENERATORS")


# -- discovery -------------------------------------------------------------------------------------


def _modules(package: str) -> Iterator[ModuleType]:
    """The package's own modules, then those that other packages register."""
    root = import_module(package)
    for module in pkgutil.iter_modules(root.__path__):
        if not module.name.startswith("_"):
            yield import_module(f"{package}.{module.name}")
    for entry in sorted(entry_points(group=package)):
        yield entry.load()


def _index(package: str, attribute: str) -> Mapping[str, Any]:
    """All specs of a kind, by name.

    Raises:
        DuplicateNameError: Two specs have the same name.
    """
    specs: dict[str, Any] = {}
    for module in _modules(package):
        for spec in getattr(module, attribute, ()):
            if specs.setdefault(spec.name, spec) is not spec:
                raise DuplicateNameError(f"{spec.name!r} is registered twice in {package}")
    return MappingProxyType(specs)


@cache
def _benchmarks() -> Mapping[str, BenchmarkSpec]:
    return _index(BENCHMARKS, "SPECS")


@cache
def _families() -> tuple[BenchmarkFamily, ...]:
    return tuple(f for module in _modules(BENCHMARKS) for f in getattr(module, "FAMILIES", ()))


@cache
def _methods() -> "Mapping[str, MethodSpec]":
    return _index(METHODS, "SPECS")
