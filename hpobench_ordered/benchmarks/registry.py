"""Finds benchmarks by name.

Modules of `hpobench_ordered.benchmarks` may export `SPECS`, a tuple of specs; `FAMILIES`, for names
that follow a pattern; and `SUITES`, pairs of a suite and a benchmark. So may modules that other
packages register in the entry-point group `hpobench_ordered.benchmarks`. The user's own benchmarks
are artifacts in `local_folder()`, named by their folder.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

from hpobench_ordered._wording import suggest_nearest
from hpobench_ordered.data.artifact import is_artifact
from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.data.exports import collect_specs, iter_exports
from hpobench_ordered.data.identity import BenchmarkIdentity
from hpobench_ordered.data.local import local_folder
from hpobench_ordered.data.specs import BenchmarkFamily, BenchmarkSpec
from hpobench_ordered.errors import UnknownNameError

BENCHMARKS = "hpobench_ordered.benchmarks"
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
    return benchmark_spec(name).load(surrogate)


def list_benchmarks(*, ready: bool = False) -> list[str]:
    """List the names of all benchmarks, sorted, except of those whose names follow a pattern.

    Args:
        ready: Only those whose default surrogate can be loaded at once.

    Examples:
        >>> import hpobench_ordered as hbo
        >>> "newsvendor" in hbo.list_benchmarks(ready=True)
        True
    """
    names = sorted(_find_registered_specs().keys() | _find_local_names())
    if not ready:
        return names
    return [name for name in names if benchmark_spec(name).option().is_ready]


@cache
def suites() -> Mapping[str, tuple[str, ...]]:
    """Return the benchmarks of each suite by name, even those still to be generated or fetched."""
    benchmarks_of_suite: dict[str, list[str]] = {}
    for (suite_name, benchmark), _ in iter_exports(BENCHMARKS, "SUITES", tuple):
        benchmarks_of_suite.setdefault(suite_name, []).append(benchmark)
    return {name: tuple(benchmarks) for name, benchmarks in benchmarks_of_suite.items()}


def suite(name: str) -> tuple[str, ...]:
    """Names of the benchmarks of a suite.

    `othpo`: the ten benchmarks of Hellan et al. (2023), section 4.
    `wide`: these, `retrain`, and YAHPO's svm, aknn and glmnet on ten data sets each; xgboost and
    rpart on five and ten once they have been generated, or fetched.
    `retrain`: models trained again every period of a stream.
    `adjustments`: the eight of Stoll et al. (2020), appendix C.
    `openml`: the flows of Perrone et al. (2018), supplement B, that come with the package.
    `datasets`: ten learners on real data sets. `datasets-a` and `datasets-b`, five of these each,
    share no data set: methods may be chosen on the first, and the second judges finished ones.
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
        hint = f" ({name!r} is a benchmark)" if name in list_benchmarks() else ""
        raise UnknownNameError("suite", name, names_of_suite, hint=hint)
    return tuple(
        benchmark
        for benchmark in names_of_suite[name]
        if benchmark_spec(benchmark).option().lacks not in FILES_LACKING
    )


@cache
def benchmark_families() -> tuple[BenchmarkFamily, ...]:
    """Return all families of benchmarks whose names follow a pattern."""
    return tuple(family for family, _ in iter_exports(BENCHMARKS, "FAMILIES", BenchmarkFamily))


def benchmark_spec(name: str | os.PathLike[str]) -> BenchmarkSpec:
    """Find the spec of a benchmark.

    Args:
        name: A name as `load` takes it, perhaps with a version; a string with a slash, which is the
            path of an artifact; or a `Path`, which is always taken for the path of an artifact.

    Raises:
        UnknownNameError: There is no such benchmark, or not in this version.
    """
    if isinstance(name, os.PathLike):
        return _read_folder_spec(name)
    if not isinstance(name, str):
        raise UnknownNameError("benchmark", name, list_benchmarks())

    identity = BenchmarkIdentity.parse(name)
    # The identity of results may end with a hash; as a name such a text is that of no benchmark.
    if identity.content:
        identity = BenchmarkIdentity(name, version=None)
    is_path = "/" in identity.name or os.sep in identity.name
    spec = _read_folder_spec(identity.name) if is_path else _find_named_spec(identity.name)

    if spec is None:
        hint = _hint_at_other_names(name)
        raise UnknownNameError("benchmark", name, list_benchmarks(), hint=hint)
    if identity.version not in (None, spec.version):
        raise UnknownNameError("benchmark", name, [spec.id])
    return spec


def _hint_at_other_names(name: str) -> str:
    """End the message on an unknown name with what else it could be: a folder, suite or pattern."""
    folders = [path.name for path in Path().iterdir() if path.is_dir()]
    if name in folders:
        return f" (the folder of that name is './{name}')"
    if name in suites():
        return f" ({name!r} is a suite)"
    near_suite = suggest_nearest(name, suites())
    if near_suite and not suggest_nearest(name, list_benchmarks()):
        return f" (or a suite{near_suite})"
    patterns = "; ".join(family.pattern for family in benchmark_families())
    return f" (or a name of the form {patterns})" if patterns else ""


def _read_folder_spec(folder: str | os.PathLike[str]) -> BenchmarkSpec:
    """Read the spec of the user's own benchmark from the folder of its artifact."""
    # Imported here, as most benchmarks are found without reading an artifact.
    from hpobench_ordered.surrogates.bundle import folder_spec

    return replace(folder_spec(Path(folder)), is_local=True)


def _find_named_spec(name: str) -> BenchmarkSpec | None:
    """Find the spec of a benchmark by its name without a version; None if there is none.

    A registered benchmark comes first, then one of a family, and then one of the user's own. If the
    user has generated the artifact of one of the first two, the spec combines both.
    """
    registered = _find_registered_specs().get(name)
    if registered is not None:
        is_to_be_generated = registered.surrogates[0].generated is not None
        if is_to_be_generated and name in _find_local_names():
            return _combine_specs(_read_folder_spec(local_folder() / name), registered)
        return registered

    of_family = _find_in_families(name)
    if name not in _find_local_names():
        return of_family
    local = _read_folder_spec(local_folder() / name)
    return replace(local, name=name) if of_family is None else _combine_specs(local, of_family)


def _find_in_families(name: str) -> BenchmarkSpec | None:
    """Find the spec of a benchmark by the first family whose pattern its name follows."""
    for family in benchmark_families():
        spec = family.spec(name)
        if spec is not None:
            return spec
    return None


def _combine_specs(local: BenchmarkSpec, registered: BenchmarkSpec) -> BenchmarkSpec:
    """Add the published surrogates of a registered benchmark to the user's artifact of it.

    Args:
        local: Spec of the artifact that the user generated, whose surrogates come first.
        registered: Spec of the benchmark under this name.
    """
    published = [option for option in registered.surrogates if option.files]
    return replace(
        local,
        name=registered.name,
        surrogates=(*local.surrogates, *published),
        family=registered.family,
    )


def _find_local_names() -> frozenset[str]:
    """Find the names of the artifacts in the folder of the user's own benchmarks."""
    folder = local_folder()
    if not folder.is_dir():
        return frozenset()
    return frozenset(path.name for path in folder.iterdir() if is_artifact(path))


@cache
def _find_registered_specs() -> Mapping[str, BenchmarkSpec]:
    """Find the specs that the modules of benchmarks and other packages export, by name."""
    return collect_specs(BENCHMARKS, "SPECS", BenchmarkSpec)
