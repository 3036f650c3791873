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
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from hpobench_ordered.artifact import Artifact
from hpobench_ordered.benchmark import Benchmark, Definition
from hpobench_ordered.errors import (
    ArtifactError,
    DuplicateNameError,
    HPOBenchOrderedError,
    NotFetchedError,
    UnknownNameError,
)
from hpobench_ordered.remote import RemoteFile, cache_folder
from hpobench_ordered.surrogates.base import Surrogate

if TYPE_CHECKING:
    from hpobench_ordered.generation.base import Generator
    from hpobench_ordered.methods.base import MethodSpec

BENCHMARKS = "hpobench_ordered.benchmarks"
METHODS = "hpobench_ordered.methods"
GENERATION = "hpobench_ordered.generation"


class RegistryError(HPOBenchOrderedError):
    """Another package registers something that cannot be used."""


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
    def missing(self) -> tuple[RemoteFile, ...]:
        """The files that are still to be fetched."""
        return tuple(file for file in self.files if not file.is_fetched)

    @property
    def is_ready(self) -> bool:
        """Whether it can be loaded without fetching anything."""
        return not self.missing


@dataclass(frozen=True, slots=True)
class BenchmarkSpec:
    """What the registry knows of a benchmark before it is loaded.

    Attributes:
        name: Name in the registry; for an artifact elsewhere on disk, its absolute path.
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
        """Name and version; `load` takes it."""
        return f"{self.name}@{self.version}"

    @property
    def content(self) -> str:
        """Hash of all files of the artifact (`Artifact.digest`); empty if it has none.

        Raises:
            ArtifactError: The artifact's list of hashes is missing or malformed.
        """
        return "" if self.artifact is None else self.artifact.digest

    def load(self, surrogate: str | None = None) -> Benchmark:
        """Load the benchmark; see the function `load`."""
        option = self.ready_option(surrogate)
        model, best_values = option.load()
        definition = self.define()
        tasks, dimension = len(definition.tasks), definition.space.dimension
        if len(best_values) != tasks:
            raise ArtifactError(
                f"surrogate {option.name!r} of {self.name} has {len(best_values)} best values, "
                f"for {tasks} tasks"
            )
        # Not every surrogate knows its dimension.
        if getattr(model, "dimension", dimension) != dimension:
            raise ArtifactError(
                f"surrogate {option.name!r} of {self.name} does not fit the search space's "
                f"{dimension} hyperparameters"
            )
        return Benchmark.build(
            definition, surrogate=option.name, model=model, best_values=best_values
        )

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

    def ready_option(self, name: str | None = None) -> SurrogateOption:
        """Find a surrogate by name that can be loaded at once; the default one without.

        Raises:
            UnknownNameError: The benchmark has no such surrogate.
            NotFetchedError: The surrogate's files must be fetched first.
        """
        option = self.option(name)
        if missing := option.missing:
            names = ", ".join(file.name for file in missing)
            raise NotFetchedError(
                f"surrogate {option.name!r} of {self.name} is not here yet: {len(missing)} of "
                f"{len(option.files)} files are not in the cache {cache_folder()} ({names}); "
                f"get it with: hpobench-ordered fetch {self.name} --surrogate {option.name}"
            )
        return option


@runtime_checkable
class BenchmarkFamily(Protocol):
    """Benchmarks whose names follow a pattern, too many to list."""

    pattern: str
    """The names, for people: such as "yahpo-SCENARIO-INSTANCE"."""

    def spec(self, name: str) -> BenchmarkSpec | None:
        """The benchmark of that name; None if the name does not follow the pattern."""
        ...

    def files(self) -> Sequence[RemoteFile]:
        """All published files that its benchmarks may need, fetched or not."""
        ...


# -- public ----------------------------------------------------------------------------------------


def load(name: str | os.PathLike[str], *, surrogate: str | None = None) -> Benchmark:
    """Load a benchmark.

    Args:
        name: Its name, such as "newsvendor", or with a version, such as "newsvendor@1"; or the path
            of an artifact: a `Path`, or a string with a slash, such as "./artifacts/newsvendor".
        surrogate: What to evaluate on, such as "forest" or "nearest"; the default one without.

    Raises:
        UnknownNameError: No benchmark, version or surrogate of that name.
        NotFetchedError: The surrogate's files must be fetched first.
        ArtifactError: The benchmark's files are damaged.
    """
    return benchmark_spec(name).load(surrogate)


def list_benchmarks() -> list[str]:
    """Names of all benchmarks that are registered one by one, sorted."""
    return sorted(_benchmarks())


def list_methods() -> list[str]:
    """Names of all methods, sorted."""
    return sorted(_methods())


@cache
def benchmark_families() -> tuple[BenchmarkFamily, ...]:
    """All families of benchmarks."""
    return tuple(_exported(BENCHMARKS, "FAMILIES", BenchmarkFamily))


def benchmark_spec(name: str | os.PathLike[str]) -> BenchmarkSpec:
    """Find a benchmark's spec by its name or an artifact's path.

    Args:
        name: As `load` takes it. "@" and digits at the end of a string are a version, of paths too;
            a `Path` is taken as it is.

    Raises:
        UnknownNameError: No such benchmark, or not in that version.
        ArtifactError: The artifact at that path is missing or damaged.
    """
    if not isinstance(name, str):
        return _folder_spec(name)
    stem, at, version = name.rpartition("@")
    if not (at and version.isdecimal()):
        stem, at, version = name, "", ""
    spec = _folder_spec(stem) if "/" in stem or os.sep in stem else _named_spec(stem)
    if spec is None:
        patterns = ", ".join(family.pattern for family in benchmark_families())
        hint = f" (or one of the pattern {patterns})" if patterns else ""
        raise UnknownNameError("benchmark", name, _benchmarks(), hint=hint)
    if at and version != str(spec.version):
        raise UnknownNameError("benchmark", name, [spec.id])
    return spec


def _folder_spec(folder: str | os.PathLike[str]) -> BenchmarkSpec:
    from hpobench_ordered.bundle import folder_spec

    return folder_spec(Path(folder))


def _named_spec(name: str) -> BenchmarkSpec | None:
    spec = _benchmarks().get(name)
    for family in benchmark_families() if spec is None else ():
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
    from hpobench_ordered.generation.base import Generator

    return specs_by_name(GENERATION, "GENERATORS", Generator)


# -- discovery -------------------------------------------------------------------------------------


def _modules(package: str) -> Iterator[ModuleType]:
    """The package's own modules, then those that other packages register.

    Raises:
        RegistryError: A module of another package cannot be imported.
    """
    root = import_module(package)
    for module in pkgutil.iter_modules(root.__path__):
        if not module.name.startswith("_"):
            yield import_module(f"{package}.{module.name}")
    for entry in sorted(entry_points(group=package)):
        try:
            module = entry.load()
        except Exception as error:  # whatever importing another package's module may raise
            owner = "an unknown package" if entry.dist is None else f"package {entry.dist.name!r}"
            raise RegistryError(
                f"{owner} registers {entry.name!r} in {package}, but {entry.value!r} cannot be "
                f"loaded ({type(error).__name__}: {error}); repair or uninstall that package"
            ) from error
        yield module


def _exported(package: str, attribute: str, kind: type[Any]) -> Iterator[Any]:
    """What all modules export in tuples of that name.

    Raises:
        RegistryError: A module exports something else.
    """
    for module in _modules(package):
        specs = getattr(module, attribute, ())
        if not (isinstance(specs, tuple) and all(isinstance(spec, kind) for spec in specs)):
            raise RegistryError(
                f"{module.__name__}, registered in {package}, exports as {attribute} no tuple of "
                f"{kind.__name__}"
            )
        yield from specs


def specs_by_name(package: str, attribute: str, kind: type[Any]) -> Mapping[str, Any]:
    """All specs of a kind, by name.

    Raises:
        DuplicateNameError: Two specs have the same name.
    """
    specs: dict[str, Any] = {}
    for spec in _exported(package, attribute, kind):
        if specs.setdefault(spec.name, spec) is not spec:
            raise DuplicateNameError(f"{spec.name!r} is registered twice in {package}")
    return MappingProxyType(specs)


@cache
def _benchmarks() -> Mapping[str, BenchmarkSpec]:
    return specs_by_name(BENCHMARKS, "SPECS", BenchmarkSpec)


@cache
def _methods() -> "Mapping[str, MethodSpec]":
    from hpobench_ordered.methods.base import MethodSpec

    return specs_by_name(METHODS, "SPECS", MethodSpec)
