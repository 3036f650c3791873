"""Finds benchmarks and methods by name.

Modules of `hpobench_ordered.benchmarks` and `hpobench_ordered.methods` may export `SPECS`, a tuple
of specs; those of benchmarks also `FAMILIES`, for names that follow a pattern, and `SUITES`, pairs
of a suite and a benchmark. The user's own benchmarks are artifacts in `local_folder()`, named by
their folder. Other packages register modules that export the same through the entry-point groups
`hpobench_ordered.benchmarks` and `hpobench_ordered.methods`.
"""

import os
import pkgutil
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hpobench_ordered.core.benchmark import Benchmark
from hpobench_ordered.core.identity import BenchmarkIdentity
from hpobench_ordered.core.specs import BenchmarkFamily, BenchmarkSpec
from hpobench_ordered.errors import BrokenPluginWarning, DuplicateNameError, UnknownNameError
from hpobench_ordered.files.artifact import files_read_once, is_artifact
from hpobench_ordered.files.local import local_folder
from hpobench_ordered.methods.base import MethodSpec

BENCHMARKS = "hpobench_ordered.benchmarks"
METHODS = "hpobench_ordered.methods"
FILES_LACKING = ("generate", "fetch")
"""What `SurrogateOption.lacks` says where a benchmark's files must be made or fetched first."""


def load(name: str | os.PathLike[str], *, surrogate: str | None = None) -> Benchmark:
    """Load a benchmark.

    Args:
        name: Its name, such as "newsvendor", or with a version, such as "newsvendor@1"; or the path
            of an artifact: a `Path`, or a string with a slash, such as "./artifacts/newsvendor".
        surrogate: What to evaluate on, such as "forest" or "nearest"; default: the first one.

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
    with files_read_once():
        return benchmark_spec(name).load(surrogate)


def list_benchmarks(*, ready: bool = False) -> list[str]:
    """Names of all benchmarks, sorted, except of those whose names follow a pattern.

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
def suites() -> Mapping[str, tuple[str, ...]]:
    """Names of the benchmarks of each suite, including those not generated or fetched yet."""
    members: dict[str, list[str]] = {}
    for name, benchmark in (pair for pair, _ in iter_exports(BENCHMARKS, "SUITES", tuple)):
        members.setdefault(name, []).append(benchmark)
    return {name: tuple(names) for name, names in members.items()}


def suite(name: str) -> tuple[str, ...]:
    """Names of the benchmarks of a suite.

    `othpo`: the ten benchmarks of Hellan et al. (2023), section 4.
    `wide`: these, `retrain`, and YAHPO's svm, aknn and glmnet on ten data sets each; xgboost and
    rpart on five and ten once they have been generated, or fetched.
    `retrain`: models trained again every period of a stream.
    `adjustments`: the eight of Stoll et al. (2020), appendix C.
    `openml`: the flows of Perrone et al. (2018), supplement B, that come with the package.
    `distbo`: the seven of Law et al. (2019), whose tasks carry their training data.
    `synthetic`: the function families of Horvath et al. (2021), section 5, and ordered versions.

    Raises:
        UnknownNameError: No such suite.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> hbo.suite("synthetic")
        ('forrester', 'quadratic', 'forrester-ordered', 'quadratic-ordered')
        >>> len(hbo.suite("othpo")), len(hbo.suite("wide")) >= 47
        (10, True)
    """
    names_of_suite = suites()
    if name not in names_of_suite:
        raise UnknownNameError("suite", name, names_of_suite)
    return tuple(
        benchmark
        for benchmark in names_of_suite[name]
        if benchmark_spec(benchmark).option().lacks not in FILES_LACKING
    )


@cache
def benchmark_families() -> tuple[BenchmarkFamily, ...]:
    """All families of benchmarks whose names follow a pattern."""
    return tuple(family for family, _ in iter_exports(BENCHMARKS, "FAMILIES", BenchmarkFamily))


def benchmark_spec(name: str | os.PathLike[str]) -> BenchmarkSpec:
    """The spec of a benchmark by name or path as `load` takes them; a `Path` is taken literally."""
    if isinstance(name, os.PathLike):
        return _folder_spec(name)
    if not isinstance(name, str):
        raise UnknownNameError("benchmark", name, list_benchmarks())
    identity = BenchmarkIdentity.parse(name)
    if identity.content:  # only results have identities with a content
        identity = BenchmarkIdentity(name, version=None)
    is_path = "/" in identity.name or os.sep in identity.name
    spec = _folder_spec(identity.name) if is_path else _named_spec(identity.name)
    if spec is None:
        patterns = "; ".join(family.pattern for family in benchmark_families())
        hint = f" (or a name of the form {patterns})" if patterns else ""
        raise UnknownNameError("benchmark", name, list_benchmarks(), hint=hint)
    if identity.version not in (None, spec.version):
        raise UnknownNameError("benchmark", name, [spec.id])
    return spec


def _folder_spec(folder: str | os.PathLike[str]) -> BenchmarkSpec:
    from hpobench_ordered.surrogates.bundle import folder_spec

    return replace(folder_spec(Path(folder)), is_local=True)


def _named_spec(name: str) -> BenchmarkSpec | None:
    spec = _benchmarks().get(name)
    to_generate = spec is None or spec.surrogates[0].generated is not None
    for family in benchmark_families() if spec is None else ():
        spec = spec or family.spec(name)
    if to_generate and name in _local_names():
        local = _folder_spec(local_folder() / name)
        # A generated benchmark keeps its surrogates that are published files.
        published = () if spec is None else tuple(one for one in spec.surrogates if one.files)
        return replace(
            local,
            name=name,
            surrogates=(*local.surrogates, *published),
            family="" if spec is None else spec.family,
        )
    return spec


def method_spec(name: str) -> MethodSpec:
    """Find a method's spec by name, else raise an `UnknownNameError`."""
    try:
        return _methods()[name]
    except KeyError:
        raise UnknownNameError("method", name, _methods()) from None


def _local_names() -> frozenset[str]:
    """Names of the artifacts in the folder of the user's own benchmarks."""
    folder = local_folder()
    if not folder.is_dir():
        return frozenset()
    return frozenset(path.name for path in folder.iterdir() if is_artifact(path))


def iter_exports(package: str, attribute: str, kind: type[Any]) -> Iterator[tuple[Any, str]]:
    """What modules export in tuples of this name, this package's first, each with its package."""
    for info in pkgutil.iter_modules(import_module(package).__path__):
        if not info.name.startswith("_"):
            module = import_module(f"{package}.{info.name}")
            for spec in getattr(module, attribute, ()):
                yield spec, ""
    for entry in sorted(entry_points(group=package)):
        owner = "an unknown package" if entry.dist is None else f"package {entry.dist.name!r}"
        try:
            specs = getattr(entry.load(), attribute, ())
        except Exception as error:  # whatever importing another package's module may raise
            what = f"{entry.value!r} cannot be loaded ({type(error).__name__}: {error})"
            _warn_of_plugin(f"{owner} registers {entry.name!r} in {package}, but {what}")
            continue
        if isinstance(specs, tuple) and all(isinstance(spec, kind) for spec in specs):
            yield from ((spec, owner) for spec in specs)
        else:
            what = f"{attribute} of {entry.value} is not a tuple of {kind.__name__}"
            _warn_of_plugin(f"{owner} registers {entry.name!r} in {package}, but {what}")


def _warn_of_plugin(problem: str) -> None:
    message = f"{problem}; it is left out: repair or uninstall that package"
    warnings.warn(message, BrokenPluginWarning, stacklevel=2)


def specs_by_name(package: str, attribute: str, kind: type[Any]) -> Mapping[str, Any]:
    """All specs of a kind by name; two of one name are an error, or left out if from elsewhere."""
    specs: dict[str, Any] = {}
    for spec, owner in iter_exports(package, attribute, kind):
        if specs.setdefault(spec.name, spec) is spec:
            continue
        problem = f"{spec.name!r} is registered twice in {package}"
        if not owner:
            raise DuplicateNameError(problem)
        _warn_of_plugin(f"{problem}, the second time by {owner}")
    return MappingProxyType(specs)


@cache
def _benchmarks() -> Mapping[str, BenchmarkSpec]:
    return specs_by_name(BENCHMARKS, "SPECS", BenchmarkSpec)


@cache
def _methods() -> Mapping[str, MethodSpec]:
    return specs_by_name(METHODS, "SPECS", MethodSpec)
