"""Finds benchmarks and methods by name.

Every module of `hpobench_ordered.benchmarks` and `hpobench_ordered.methods` may export `SPECS`, a
tuple of specs; benchmark modules may also export `FAMILIES`, for names too many to list. The
user's own benchmarks are artifacts in `local_folder()`, by the name of their folder. Other packages
add theirs through the entry-point groups `hpobench_ordered.benchmarks` and
`hpobench_ordered.methods`, each entry naming a module that exports the same.
"""

import os
import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from hpobench_ordered.artifact import Artifact, is_artifact
from hpobench_ordered.benchmark import HISTORY_SIZE, Benchmark, Definition, Evaluations
from hpobench_ordered.errors import (
    ArtifactError,
    DuplicateNameError,
    HPOBenchOrderedError,
    MissingExtraError,
    NotFetchedError,
    UnknownNameError,
)
from hpobench_ordered.remote import RemoteFile, cache_folder
from hpobench_ordered.surrogates.base import Surrogate

if TYPE_CHECKING:
    from hpobench_ordered.generation.base import Generator
    from hpobench_ordered.methods.base import MethodSpec

LOCAL_VARIABLE = "HPOBENCH_ORDERED_BENCHMARKS"
BENCHMARKS = "hpobench_ordered.benchmarks"
METHODS = "hpobench_ordered.methods"
GENERATION = "hpobench_ordered.generation"


class RegistryError(HPOBenchOrderedError):
    """Another package registers something that cannot be used."""


@dataclass(frozen=True, slots=True)
class Extra:
    """A package that a surrogate needs and that the core install leaves out.

    Attributes:
        name: Name of the extra in this package's metadata, such as "tables".
        package: Name of the package on PyPI.
        module: The module it is imported as.
    """

    name: str
    package: str
    module: str

    @property
    def is_installed(self) -> bool:
        """Whether the module can be found."""
        return find_spec(self.module) is not None


@dataclass(frozen=True, slots=True)
class SurrogateOption:
    """One surrogate a benchmark can be evaluated on.

    Attributes:
        name: Its name, such as "forest".
        summary: One line.
        load: Loads the surrogate and the best known value of each task.
        files: What must be fetched first; nothing for a surrogate that comes with the package.
        extra: What must be installed first; None for a surrogate that needs nothing more.
        generated: Folder of the artifact that must be generated first; None for one that comes
            with the package.

    Examples:
        >>> from hpobench_ordered.registry import benchmark_spec
        >>> option = benchmark_spec("newsvendor").option("table")
        >>> option.is_ready, option.lacks
        (True, '')
    """

    name: str
    summary: str
    load: Callable[[], tuple[Surrogate, Sequence[float | None]]]
    files: tuple[RemoteFile, ...] = ()
    extra: "Extra | None" = None
    generated: Path | None = None

    @property
    def missing(self) -> tuple[RemoteFile, ...]:
        """The files that are still to be fetched."""
        return tuple(file for file in self.files if not file.is_fetched)

    @property
    def is_ready(self) -> bool:
        """Whether it can be loaded without installing, generating or fetching anything."""
        return not self.lacks

    @property
    def lacks(self) -> str:
        """What must be done before it can be loaded, in a word or two; "" if nothing."""
        if self.extra is not None and not self.extra.is_installed:
            return f"install extra {self.extra.name}"
        if self._is_to_be_generated:
            return "generate"
        return "fetch" if self.missing else ""

    @property
    def _is_to_be_generated(self) -> bool:
        return self.generated is not None and not is_artifact(self.generated)

    def check_ready(self, benchmark: str) -> None:
        """Check that it can be loaded at once.

        Args:
            benchmark: Name of the benchmark, for the message.

        Raises:
            MissingExtraError: A package it needs is not installed.
            NotFetchedError: Its files must be fetched, or its artifact generated, first.
        """
        label = f"surrogate {self.name!r} of {benchmark}"
        if self.extra is not None and not self.extra.is_installed:
            raise MissingExtraError(self.extra.package, extra=self.extra.name, purpose=label)
        if self._is_to_be_generated:
            raise NotFetchedError(
                f"{label} is not here yet: there is no artifact in {self.generated}; make it "
                f"with: hpobench-ordered generate {benchmark}"
            )
        if missing := self.missing:
            names = ", ".join(file.name for file in missing)
            raise NotFetchedError(
                f"{label} is not here yet: {len(missing)} of {len(self.files)} files are not in "
                f"the cache {cache_folder()} ({names}); "
                f"get it with: hpobench-ordered fetch {benchmark} --surrogate {self.name}"
            )


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
        is_local: Whether the artifact is the user's own, which may change under the same version.
        previous: The same tasks on the search space before an adjustment; it has surrogates of
            the same names.
        history_size: Random evaluations of a source task that serve as history where none are
            recorded.
        recorded: Loads the raw evaluations of every task; None where they are not at hand.

    Examples:
        >>> from hpobench_ordered.registry import benchmark_spec
        >>> spec = benchmark_spec("xgboost-mnist")
        >>> [option.name for option in spec.surrogates]
        ['forest', 'nearest', 'nearest-log']
        >>> len(spec.define().tasks)  # without loading a surrogate
        28
    """

    name: str
    version: int
    summary: str
    define: Callable[[], Definition]
    surrogates: tuple[SurrogateOption, ...]
    artifact: Artifact | None = None
    is_local: bool = False
    previous: "BenchmarkSpec | None" = None
    history_size: int = HISTORY_SIZE
    recorded: Callable[[], Sequence[Evaluations]] | None = None

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
            definition,
            surrogate=option.name,
            model=model,
            best_values=best_values,
            previous=None if self.previous is None else self.previous.load(option.name),
            history_size=self.history_size,
            recorded=self.recorded,
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
            NotFetchedError: The surrogate must be fetched or generated first.
            MissingExtraError: A package it needs is not installed.
        """
        option = self.option(name)
        option.check_ready(self.name)
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


def local_folder() -> Path:
    """Folder of the user's own benchmarks: HPOBENCH_ORDERED_BENCHMARKS, or in the user's data."""
    given = os.environ.get(LOCAL_VARIABLE)
    if given:
        return Path(given)
    import platformdirs

    return platformdirs.user_data_path("hpobench_ordered") / "benchmarks"


def load(name: str | os.PathLike[str], *, surrogate: str | None = None) -> Benchmark:
    """Load a benchmark.

    Args:
        name: Its name, such as "newsvendor", or with a version, such as "newsvendor@1"; or the path
            of an artifact: a `Path`, or a string with a slash, such as "./artifacts/newsvendor".
        surrogate: What to evaluate on, such as "forest" or "nearest"; the default one without.

    Raises:
        UnknownNameError: No benchmark, version or surrogate of that name.
        NotFetchedError: The surrogate's files must be fetched first.
        MissingExtraError: A package that the surrogate needs is not installed.
        ArtifactError: The benchmark's files are damaged.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> hbo.load("newsvendor@1").id
        'newsvendor@1'
        >>> hbo.load("newsvender")
        Traceback (most recent call last):
            ...
        hpobench_ordered.errors.UnknownNameError: ... did you mean 'newsvendor'? ...
    """
    return benchmark_spec(name).load(surrogate)


def list_benchmarks(*, ready: bool = False) -> list[str]:
    """Names of all benchmarks that are registered one by one and of the user's own, sorted.

    Args:
        ready: Only those whose default surrogate can be loaded at once.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> "newsvendor" in hbo.list_benchmarks(ready=True)
        True
    """
    names = sorted(_benchmarks().keys() | _local_names())
    return [n for n in names if benchmark_spec(n).option().is_ready] if ready else names


def list_methods() -> list[str]:
    """Names of all methods, sorted.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> {"bo", "random-search"} <= set(hbo.list_methods())
        True
    """
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
        raise UnknownNameError("benchmark", name, list_benchmarks(), hint=hint)
    if at and version != str(spec.version):
        raise UnknownNameError("benchmark", name, [spec.id])
    return spec


def _folder_spec(folder: str | os.PathLike[str]) -> BenchmarkSpec:
    from hpobench_ordered.bundle import folder_spec

    return replace(folder_spec(Path(folder)), is_local=True)


def _named_spec(name: str) -> BenchmarkSpec | None:
    spec = _benchmarks().get(name)
    to_generate = spec is None or spec.surrogates[0].generated is not None
    if to_generate and name in _local_names():
        return replace(_folder_spec(local_folder() / name), name=name)
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


def _local_names() -> frozenset[str]:
    """Names of the artifacts in the folder of the user's own benchmarks."""
    folder = local_folder()
    if not folder.is_dir():
        return frozenset()
    return frozenset(path.name for path in folder.iterdir() if is_artifact(path))


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
