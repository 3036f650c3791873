"""Plans: deterministic lists of cells; a cell is one run of one method on one benchmark."""

import itertools
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hpobench_ordered.benchmarks.registry import benchmark_spec
from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.data.identity import BenchmarkIdentity, hash_bytes, hash_json
from hpobench_ordered.data.specs import BenchmarkSpec
from hpobench_ordered.errors import ExperimentError, NotFetchedError, UnknownNameError
from hpobench_ordered.experiment.protocols import Protocol, format_protocol
from hpobench_ordered.experiment.user_methods.identity import MethodIdentity, identify_method
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.wrapping.factory import as_method_spec
from hpobench_ordered.runtime.child import Children

T = TypeVar("T")

KEY_LENGTH = 20  # hexadecimal digits of a run's key
SEED_LIMIT = 2**63  # seeds are stored as 64-bit integers

IDENTITY = ("benchmark", "surrogate", "method", "method_version", "seed", "protocol")
"""What identifies a run, see `Cell.describe`."""

AXES = (("benchmark", "surrogate"), ("method", "method_version"), ("seed",), ("protocol",))
"""Columns of `IDENTITY` that vary together."""

PROTOCOL_STREAM = 1  # stream of the protocol's generators, apart from the method's


@dataclass(frozen=True)
class Cell:
    """One run: one method on one benchmark with one seed under one protocol.

    Attributes:
        source: The name that loads the benchmark, or the benchmark itself if it exists in memory
            only.
        benchmark: What identifies the values of the benchmark, as `BenchmarkSpec.identity` gives.
        surrogate: Name of the surrogate that configurations are evaluated on.
        method: The method.
        identity: What identifies the code of the method.
        seed: The seed.
        protocol: The protocol.
    """

    source: str | Benchmark = field(hash=False, compare=False, repr=False)
    benchmark: str
    surrogate: str
    method: MethodSpec
    identity: MethodIdentity = field(hash=False)
    seed: int
    protocol: Protocol = field(hash=False)

    def describe(self) -> dict[str, Any]:
        """Return what identifies the run, by the names in `IDENTITY`; it can be written as JSON."""
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
        """The key of the run: a hash of what identifies it, used in file names."""
        return key_of(self.describe())

    @property
    def process_group(self) -> str:
        """Name of the group of runs that share processes: "" for all methods of this package.

        A method from outside has a group of its own, named after it. Importing and running it may
        change the process, for example patch numpy, which must not affect other methods.
        """
        # Only methods from outside of this package have a source, from which they are imported.
        is_of_package = self.identity.source is None
        return "" if is_of_package else self.method.name

    @property
    def sendable(self) -> "Cell":
        """The cell in the form in which another process can load its method.

        A method from outside is replaced with its source, which makes the same optimisers when it
        is called.
        """
        source = self.identity.source
        if source is None:  # a method of this package, which every process can import
            return self
        method_from_source = replace(self.method, method=source)
        return replace(self, method=method_from_source)

    def rng(self, position: int, *stream: int) -> np.random.Generator:
        """Make the random number generator of the method on one task.

        It depends on the seed and the benchmark, not on the method: all methods get common random
        numbers, so that they differ by what they do and not by luck.

        Args:
            position: Place of the task in the order in which the protocol runs tasks.
            stream: Numbers that tell several generators at one position apart.
        """
        benchmark_id = BenchmarkIdentity.parse(self.benchmark).id
        # SHA-256, as Python's own `hash` of text differs between processes.
        digest = hash_bytes(benchmark_id.encode())
        benchmark_number = int(digest[:16], 16)  # 64 bits tell benchmarks apart
        return np.random.default_rng([self.seed, benchmark_number, position, *stream])

    def protocol_rng(self, position: int) -> np.random.Generator:
        """Make the protocol's generator on one task, for example to draw a history.

        The position is that of the task, as in `rng`.
        """
        return self.rng(position, PROTOCOL_STREAM)


class BenchmarkToRun(NamedTuple):
    """A benchmark of a plan.

    Attributes:
        spec: Its spec.
        source: The name that loads it, or the benchmark itself if it exists in memory only.
        identity: What identifies its values, as text.
        surrogate: Name of the surrogate that configurations are evaluated on.
    """

    spec: BenchmarkSpec
    source: str | Benchmark
    identity: str
    surrogate: str


def plan(
    *,
    benchmarks: Iterable[str | os.PathLike[str] | Benchmark],
    methods: Iterable[object],
    seeds: Iterable[int],
    protocol: Protocol,
    surrogates: Mapping[str, str] | None = None,
    identify: Callable[[MethodSpec], MethodIdentity] | None = None,
) -> list[Cell]:
    """List the runs of an experiment: every method on every benchmark with every seed.

    They are in the order of benchmarks, then seeds, then methods.

    Args:
        benchmarks: Names, paths or loaded benchmarks.
        methods: Names of methods, or whatever `hpobench_ordered.run` accepts as a method.
        seeds: Whole numbers from 0 to 2^63 - 1.
        protocol: The protocol of all runs.
        surrogates: Names of surrogates by name of benchmark, in place of the default ones.
        identify: Finds the identity of a method, which changes with its code. Default: a method
            from outside of this package is imported in a new process, which ends afterwards.

    Raises:
        ExperimentError: The arguments do not fit together, such as a method that needs more
            history than a benchmark has; more errors are described at `hpobench_ordered.run`.
    """
    _check_protocol(protocol)
    benchmarks_to_run = _resolve_benchmarks(benchmarks, surrogates or {})
    specs = [as_method_spec(method) for method in as_list(methods, "method")]
    _check_methods(specs)
    for benchmark, spec in itertools.product(benchmarks_to_run, specs):
        protocol.check(benchmark.spec, spec)
        _check_training_data(benchmark.spec, spec)
    seed_numbers = _as_seeds(seeds)

    if identify is None:
        with closing(Children()) as children:
            identities = [identify_method(spec, children) for spec in specs]
    else:
        identities = [identify(spec) for spec in specs]

    cells = []
    for benchmark in benchmarks_to_run:
        for seed in seed_numbers:
            for spec, identity in zip(specs, identities, strict=True):
                cell = Cell(
                    source=benchmark.source,
                    benchmark=benchmark.identity,
                    surrogate=benchmark.surrogate,
                    method=spec,
                    identity=identity,
                    seed=seed,
                    protocol=protocol,
                )
                cells.append(cell)
    return cells


def _check_protocol(protocol: object) -> None:
    """Raise an `ExperimentError` unless a protocol is an object, not its class or another thing."""
    is_protocol = hasattr(protocol, "check")  # a method that all protocols have
    if isinstance(protocol, type) or not is_protocol:
        raise ExperimentError(
            "the protocol must be an object such as hpobench_ordered.Ordered(trials=25), "
            f"LeaveOneOut() or Adjustment(), but got {protocol!r}"
        )


def _resolve_benchmarks(
    benchmarks: Iterable[object], surrogates: Mapping[str, str]
) -> list[BenchmarkToRun]:
    """Find the benchmarks of a plan, each once.

    Args:
        benchmarks: Names, paths or loaded benchmarks.
        surrogates: Surrogate by name of benchmark, in place of the default one.

    Raises:
        ExperimentError: A surrogate is chosen for a benchmark that is not among them.
    """
    # Names may lack the version of the benchmark, which an id always has.
    surrogate_of_id = {}
    for name, surrogate in surrogates.items():
        surrogate_of_id[benchmark_spec(name).id] = surrogate

    resolved: dict[tuple[str, str], BenchmarkToRun] = {}
    for benchmark in as_list(benchmarks, "benchmark"):
        to_run = resolve_benchmark(benchmark, surrogate_of_id)
        resolved[to_run.identity, to_run.surrogate] = to_run

    ids_in_plan = {to_run.spec.id for to_run in resolved.values()}
    for benchmark_id in surrogate_of_id:
        if benchmark_id not in ids_in_plan:
            raise ExperimentError(f"a surrogate is given for {benchmark_id}, not in the experiment")
    return list(resolved.values())


def _check_methods(specs: Sequence[MethodSpec]) -> None:
    """Check that methods have different names, and that what they need is installed.

    Raises:
        ExperimentError: Two have the same name.
        MissingExtraError: An optional dependency is missing.
    """
    for spec in specs:
        spec.check_installed()
    names = [spec.name for spec in specs]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise ExperimentError(f"methods of the same name: {', '.join(duplicates)}")


def _check_training_data(benchmark: BenchmarkSpec, method: MethodSpec) -> None:
    """Check that a benchmark has training data, and they are fetched, if a method needs them.

    Raises:
        ExperimentError: The benchmark has none.
        NotFetchedError: Some of their files are not in the cache.
    """
    if not method.uses_data:
        return
    if benchmark.data is None:
        raise ExperimentError(
            f"{method.name} needs the training data of the tasks, but {benchmark.name} has none; "
            "`hpobench-ordered info NAME` says which benchmarks have them"
        )
    missing = benchmark.data.missing
    if missing:
        raise NotFetchedError(
            f"{method.name} needs the training data of the tasks, but for {benchmark.name} "
            f"{', '.join(file.name for file in missing)} are not in the cache; get them with: "
            f"hpobench-ordered fetch {benchmark.name}"
        )


def select_shard(cells: Sequence[Cell], shard: tuple[int, int]) -> list[Cell]:
    """Select one of n parts of a plan, which are as equal in size as possible.

    Part i, counted from 0, has every n-th of the sorted keys, from the i-th on. Keys are hashes of
    what identifies a run, so each part is a mix of benchmarks and methods, and the same on every
    machine.

    Args:
        cells: The plan.
        shard: The part i, and the number of parts n.

    Raises:
        ExperimentError: There is no such part, or other machines would not find the same cells.
    """
    index, count = shard
    if not 0 <= index < count:
        raise ExperimentError(f"shard {index}/{count}: the part must be from 0 to {count - 1}")
    for cell in cells:
        _check_same_elsewhere(cell)
    keys_in_shard = set(sorted(cell.key for cell in cells)[index::count])
    return [cell for cell in cells if cell.key in keys_in_shard]


def _check_same_elsewhere(cell: Cell) -> None:
    """Raise an `ExperimentError` unless a cell has the same key on other machines.

    A method that exists in memory only is identified anew at each start, so it has another key
    there.
    """
    if cell.identity.is_new_at_each_start:
        raise ExperimentError(
            f"{cell.method.name} has no file that identifies it and would be another method in "
            "each part: define it in a file, outside of functions"
        )


def grid_of_cells(cells: Sequence[Cell]) -> dict[str, Any]:
    """List the different values of each axis of an experiment; every combination is one run.

    The axes are benchmarks (each with its surrogate), methods (with version), seeds and protocols.
    The result can be written as JSON. Its keys are the names of an axis' columns, joined by spaces,
    such as "benchmark surrogate".
    """
    descriptions = [cell.describe() for cell in cells]
    grid = {}
    for axis in AXES:
        # Such as ("newsvendor@1", "table") for the axis of benchmarks and their surrogates
        values = [tuple(description[name] for name in axis) for description in descriptions]
        grid[" ".join(axis)] = [*dict.fromkeys(values)]  # each once, in their order
    return grid


def cells_of_grid(grid: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what identifies each run of a grid, by the key of the run.

    This is the inverse of `grid_of_cells`.

    `AXES` has the columns of each axis, such as ("benchmark", "surrogate"), which vary together.
    """
    names = [*itertools.chain.from_iterable(AXES)]
    # An axis is named by its columns. It has a list of tuples, one value for each column.
    values_of_axes = [grid[" ".join(axis)] for axis in AXES]
    cell_of_key = {}
    for combination in itertools.product(*values_of_axes):
        values = itertools.chain.from_iterable(combination)
        cell = dict(zip(names, values, strict=True))
        cell_of_key[key_of(cell)] = cell
    return cell_of_key


def key_of(description: Mapping[str, Any]) -> str:
    """Return the key of a run: a hash of what identifies it, as `Cell.describe` gives it."""
    return hash_json(description, sort_keys=True)[:KEY_LENGTH]


def as_list(values: "Iterable[T]", noun: str) -> "list[T]":
    """Make a list of the values of an argument.

    Args:
        values: The values.
        noun: What one value is, for the message, such as "seed".

    Raises:
        ExperimentError: They are one value, such as a text, or there are none.
    """
    if isinstance(values, str) or not isinstance(values, Iterable):
        example = f"range({values})" if isinstance(values, int) else f"[{values!r}]"
        raise ExperimentError(f"{noun}s must be given as a list, such as {example}")
    several = list(values)
    if not several:
        raise ExperimentError(f"there must be at least one {noun}, but got none")
    return several


def resolve_benchmark(benchmark: object, surrogates: Mapping[str, str]) -> BenchmarkToRun:
    """Find a benchmark, its surrogate, and the identity that tells runs on it from other runs.

    A benchmark by name or path is loaded in each process that makes runs, and is identified by its
    definition and the files of its surrogate. So is one that was loaded before, if its name or path
    still leads to it. Any other benchmark exists in memory only: it is sent to the processes, and
    is identified by values of its objective.

    Args:
        benchmark: Name, path, or the benchmark itself.
        surrogates: Surrogates by name and version of benchmarks, in place of the default. A loaded
            benchmark keeps the surrogate that it was loaded with.

    Raises:
        ExperimentError: The benchmark is none of these.
        NotFetchedError: Its surrogate must be fetched first.
    """
    if isinstance(benchmark, str | os.PathLike):
        spec = benchmark_spec(benchmark)
        surrogate = surrogates.get(spec.id)  # None: the default one
        return _resolve_loadable(spec, surrogate)
    if not isinstance(benchmark, Benchmark):
        raise ExperimentError(
            "a benchmark must be a name, a path or what hpobench_ordered.load returns, but got "
            f"{type(benchmark).__name__}"
        )
    if _can_be_loaded_again(benchmark):
        return _resolve_loadable(benchmark_spec(benchmark.source), benchmark.surrogate)

    spec_in_memory = BenchmarkSpec.of_benchmark(benchmark)
    identity = benchmark.identify_by_values()
    return BenchmarkToRun(spec_in_memory, benchmark, identity, benchmark.surrogate)


def _resolve_loadable(spec: BenchmarkSpec, surrogate: str | None) -> BenchmarkToRun:
    """Describe a benchmark that every process can load by the name and version in its spec.

    Args:
        spec: The spec.
        surrogate: Name of the surrogate; None: the default one.

    Raises:
        NotFetchedError: The surrogate must be fetched first.
    """
    option = spec.ready_option(surrogate)
    name_to_load = spec.id
    return BenchmarkToRun(spec, name_to_load, spec.identity(option.name), option.name)


def _can_be_loaded_again(benchmark: Benchmark) -> bool:
    """Whether the name or path that a benchmark was loaded from still leads to the same one."""
    if not benchmark.source:
        return False
    try:
        spec = benchmark_spec(benchmark.source)
        return spec.identity(benchmark.surrogate) == benchmark.identity
    except UnknownNameError:
        return False


def _as_seeds(seeds: Iterable[int]) -> list[int]:
    """Convert seeds to whole numbers, and leave out repeated ones.

    Raises:
        ExperimentError: They are no list, no whole numbers, or out of range.
    """
    seed_list = as_list(seeds, "seed")
    try:
        # `operator.index` takes whole numbers of any type, such as numpy's, but no 1.0.
        numbers = list(dict.fromkeys(map(operator.index, seed_list)))
    except TypeError:
        raise ExperimentError(f"seeds must be whole numbers, but got {seed_list!r}") from None
    if not all(0 <= seed < SEED_LIMIT for seed in numbers):
        raise ExperimentError(
            f"seeds must be from 0 to 2**63 - 1, but got {min(numbers)} to {max(numbers)}"
        )
    return numbers
