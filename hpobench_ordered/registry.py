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

from hpobench_ordered.data.artifact import files_read_once, is_artifact
from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.data.local import local_folder
from hpobench_ordered.data.specs import BenchmarkFamily, BenchmarkSpec
from hpobench_ordered.errors import BrokenPluginWarning, DuplicateNameError, UnknownNameError
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
    if not ready:
        return names
    return [name for name in names if benchmark_spec(name).option().is_ready]


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
    for (suite_name, benchmark), _ in iter_exports(BENCHMARKS, "SUITES", tuple):
        members.setdefault(suite_name, []).append(benchmark)
    return {suite_name: tuple(benchmarks) for suite_name, benchmarks in members.items()}


def suite(name: str) -> tuple[str, ...]:
    """Names of the benchmarks of a suite.

    `othpo`: the ten benchmarks of Hellan et al. (2023), section 4.
    `wide`: these, `retrain`, and YAHPO's svm, aknn and glmnet on ten data sets each; xgboost and
    rpart on five and ten once they have been generated, or fetched.
    `retrain`: models trained again every period of a stream.
    `adjustments`: the eight of Stoll et al. (2020), appendix C.
    `openml`: the flows of Perrone et al. (2018), supplement B, that come with the package.
    `distbo`: the seven of Law et al. (2019), whose tasks carry their training data.
    `synthetic`: the function families of Horvath et al. (2021), section 5.
    `synthetic-ordered`: the same with coefficients that drift from task to task.
    `tabular`: networks on a few data sets, all configurations of which were trained.

    Raises:
        UnknownNameError: No such suite.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> hbo.suite("synthetic")
        ('forrester', 'quadratic')
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
    """Find a benchmark's spec by name or path as `load` takes them; a `Path` is taken literally."""
    if isinstance(name, os.PathLike):
        return _read_folder_spec(name)
    if not isinstance(name, str):
        raise UnknownNameError("benchmark", name, list_benchmarks())

    identity = BenchmarkIdentity.parse(name)
    if identity.content:  # only results have identities with a content
        identity = BenchmarkIdentity(name, version=None)
    is_path = "/" in identity.name or os.sep in identity.name
    spec = _read_folder_spec(identity.name) if is_path else _find_named_spec(identity.name)

    if spec is None:
        patterns = "; ".join(family.pattern for family in benchmark_families())
        hint = f" (or a name of the form {patterns})" if patterns else ""
        if name in (path.name for path in Path().iterdir() if path.is_dir()):
            hint = f" (the folder of that name is './{name}')"
        raise UnknownNameError("benchmark", name, list_benchmarks(), hint=hint)
    if identity.version not in (None, spec.version):
        raise UnknownNameError("benchmark", name, [spec.id])
    return spec


def _read_folder_spec(folder: str | os.PathLike[str]) -> BenchmarkSpec:
    from hpobench_ordered.surrogates.bundle import folder_spec

    return replace(folder_spec(Path(folder)), is_local=True)


def _find_named_spec(name: str) -> BenchmarkSpec | None:
    """Find a registered benchmark, one of a family, or one of the user's own, in that order."""
    registered = _benchmarks().get(name)
    if registered is not None:
        is_to_be_generated = registered.surrogates[0].generated is not None
        if is_to_be_generated and name in _local_names():
            return _combine_specs(_read_folder_spec(local_folder() / name), registered)
        return registered

    of_family = _find_in_families(name)
    if name not in _local_names():
        return of_family
    local = _read_folder_spec(local_folder() / name)
    return replace(local, name=name) if of_family is None else _combine_specs(local, of_family)


def _find_in_families(name: str) -> BenchmarkSpec | None:
    for family in benchmark_families():
        spec = family.spec(name)
        if spec is not None:
            return spec
    return None


def _combine_specs(local: BenchmarkSpec, registered: BenchmarkSpec) -> BenchmarkSpec:
    """The user's artifact of a registered benchmark, which keeps its published surrogates."""
    published = [option for option in registered.surrogates if option.files]
    return replace(
        local,
        name=registered.name,
        surrogates=(*local.surrogates, *published),
        family=registered.family,
    )


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
    """Yield what modules export in tuples of this name, each item with the package it is of.

    Args:
        package: This package's folder of modules, and the entry-point group of other packages.
        attribute: Name of the tuples.
        kind: Class of their items.

    Yields:
        This package's items with "", then those of other packages with words that name them.
    """
    for item in _iter_own_exports(package, attribute):
        yield item, ""
    yield from _iter_exports_of_others(package, attribute, kind)


def _iter_own_exports(package: str, attribute: str) -> Iterator[Any]:
    """Yield the items of this package's modules that are public."""
    for info in pkgutil.iter_modules(import_module(package).__path__):
        if not info.name.startswith("_"):
            module = import_module(f"{package}.{info.name}")
            yield from getattr(module, attribute, ())


def _iter_exports_of_others(
    package: str, attribute: str, kind: type[Any]
) -> Iterator[tuple[Any, str]]:
    """Yield the items of other packages and their owners; warn of packages that are broken."""
    for entry in sorted(entry_points(group=package)):
        owner = "an unknown package" if entry.dist is None else f"package {entry.dist.name!r}"
        label = f"{owner} registers {entry.name!r} in {package}"
        try:
            items = getattr(entry.load(), attribute, ())
        except Exception as error:  # whatever importing another package's module may raise
            reason = f"cannot be loaded ({type(error).__name__}: {error})"
            _warn_of_plugin(f"{label}, but {entry.value!r} {reason}")
            continue
        if not isinstance(items, tuple) or not all(isinstance(item, kind) for item in items):
            reason = f"{attribute} of {entry.value} is not a tuple of {kind.__name__}"
            _warn_of_plugin(f"{label}, but {reason}")
            continue
        for item in items:
            yield item, owner


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
