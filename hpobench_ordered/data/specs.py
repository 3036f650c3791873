"""What is known of benchmarks before they are loaded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from hpobench_ordered.data.artifact import Artifact
from hpobench_ordered.data.benchmark import HISTORY_SIZE, Benchmark, Definition, TaskDefinition
from hpobench_ordered.data.extras import Extra
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.data.identity import (
    DIGITS_OF_CONTENT,
    BenchmarkIdentity,
    hash_bytes,
    hash_json,
)
from hpobench_ordered.data.remote import RemoteFile
from hpobench_ordered.data.surrogate import Surrogate
from hpobench_ordered.data.task_data import DataSource
from hpobench_ordered.errors import ArtifactError, NotFetchedError, UnknownNameError


@dataclass(frozen=True, slots=True)
class SurrogateOption:
    """A surrogate that a benchmark can be evaluated on.

    Attributes:
        name: Its name, such as "forest".
        summary: One line.
        load: Loads the surrogate and the best known value of each task.
        files: What must be fetched first; empty for a surrogate that comes with the package.
        extra: What must be installed first; None for a surrogate that needs nothing more.
        generated: The artifact that must be generated first; None for one that comes with the
            package.
        interpolated: Names of the tasks whose values are interpolated between those of others.
        stand_in: Whether it models a substitute, such as another release of a network, because
            what defines the benchmark is not available.
        left_out: Why means over benchmarks leave it out, one or more sentences; "" if they do not.
        trains: Whether a model is trained for every value, which takes milliseconds or longer.
        costs: Loads what predicts the seconds that an evaluation takes; None if they are unknown.

    Examples:
        >>> from hpobench_ordered.benchmarks.registry import benchmark_spec
        >>> option = benchmark_spec("newsvendor").option("table")
        >>> option.is_ready, option.lacks
        (True, '')
    """

    name: str
    summary: str
    load: Callable[[], tuple[Surrogate, Sequence[float | None]]]
    files: tuple[RemoteFile, ...] = ()
    extra: Extra | None = None
    generated: Artifact | None = None
    interpolated: frozenset[str] = frozenset()
    stand_in: bool = False
    left_out: str = ""
    trains: bool = False
    costs: Callable[[], Surrogate] | None = None

    @property
    def content(self) -> str:
        """Hash of the fetched files whose publisher states no hash; empty if there are none.

        Files with a stated hash cannot change under the same version of the benchmark, so this hash
        and the version determine the surrogate's values.
        """
        names_and_hashes = []
        for file in self.files:
            if file.first_hash:  # empty for a file with a stated hash
                names_and_hashes.append((file.name, file.first_hash))
        return hash_json(names_and_hashes) if names_and_hashes else ""

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
        """What must be done before the surrogate can be loaded, such as "fetch"; "" if nothing.

        Files come before packages, so that a suite leaves out what must be fetched or generated
        whether its package is installed or not.
        """
        if self.generated is not None and not self.generated.exists:
            return "generate"
        if self.missing:
            return "fetch"
        if self.extra is not None and not self.extra.is_installed:
            return f"install extra {self.extra.name}"
        return ""

    def check_ready(self, benchmark: str) -> None:
        """Check that the surrogate can be loaded without installing, generating or fetching.

        Args:
            benchmark: Name of the benchmark, for the message.

        Raises:
            MissingExtraError: A package that the surrogate needs is not installed.
            NotFetchedError: Its files must be fetched, or its artifact generated, first.
        """
        label = f"surrogate {self.name!r} of {benchmark}"
        if self.extra is not None:
            self.extra.check(label)
        if self.generated is not None and not self.generated.exists:
            raise NotFetchedError(
                f"{label} must be generated first: there is no artifact in "
                f"{self.generated.folder}; generate it with: hpobench-ordered generate {benchmark}"
            )
        if self.missing:
            names = ", ".join(file.name for file in self.missing)
            raise NotFetchedError(
                f"{label} must be fetched first: {len(self.missing)} of {len(self.files)} files "
                f"are not in the cache {self.missing[0].cache} ({names}); "
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
        recorded: Loads the raw evaluations of every task; None where they are not available.
        data: Where the training data of its tasks are; None if there are none.
        family: Benchmarks of one family resemble each other, and count once together in means over
            benchmarks; "" if it is its own family.

    Examples:
        >>> from hpobench_ordered.benchmarks.registry import benchmark_spec
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
    data: DataSource | None = None
    family: str = ""

    @classmethod
    def of_benchmark(cls, benchmark: Benchmark) -> "BenchmarkSpec":
        """Make the spec of a benchmark in memory.

        It lists no surrogates, as these are what could be loaded, and the benchmark is loaded.
        """
        definition = Definition(
            benchmark.name,
            benchmark.version,
            benchmark.summary,
            benchmark.space,
            benchmark.objective,
            tuple(TaskDefinition(task.name, task.context) for task in benchmark.tasks),
            benchmark.provenance,
        )
        previous = None if benchmark.previous is None else cls.of_benchmark(benchmark.previous)
        data = benchmark.data
        if data is None and any(task.data for task in benchmark.tasks):  # they are in memory
            data = DataSource(lambda index: benchmark.tasks[index].data)
        return cls(
            name=benchmark.name,
            version=benchmark.version,
            summary=benchmark.summary,
            define=lambda: definition,
            surrogates=(),
            previous=previous,
            data=data,
        )

    @property
    def id(self) -> str:
        """Name and version; `load` takes it."""
        return BenchmarkIdentity(self.name, self.version).id

    @property
    def content(self) -> str:
        """Hash of all files of the artifact (`Artifact.digest`); empty if it has none."""
        return "" if self.artifact is None else self.artifact.digest

    @property
    def interpolated(self) -> frozenset[str]:
        """Names of the tasks whose values are interpolated on the default surrogate."""
        return self.surrogates[0].interpolated

    @property
    def files(self) -> tuple[RemoteFile, ...]:
        """All published files that its surrogates and training data need."""
        files: list[RemoteFile] = []
        for option in self.surrogates:
            files += option.files
        if self.data is not None:
            files += self.data.files
        return tuple(dict.fromkeys(files))  # several surrogates may need the same file

    def identity(self, surrogate: str | None = None) -> str:
        """Return the text that identifies the values of the benchmark, wherever it is loaded from.

        Args:
            surrogate: Name of the surrogate; default: the first one.

        Returns:
            Name and version. If these do not determine the values, "+" and a hash follow: of the
            content of the user's own artifact, or of fetched files without a stated hash.
        """
        option = self.option(surrogate)
        # Values of a surrogate of fetched files do not depend on the user's own artifact. If models
        # are trained on fetched data, however, the artifact holds the history.
        depends_on_own_artifact = self.is_local and (option.trains or not option.files)
        if depends_on_own_artifact:
            # The name of the spec may be a path; the definition has the benchmark's own name.
            definition = self.define()
            identity = BenchmarkIdentity(definition.name, definition.version)
            contents = [self.content, option.content]
        else:
            identity = BenchmarkIdentity(self.name, self.version)
            contents = [option.content]

        hashes = [content for content in contents if content]  # without empty ones
        if not hashes:
            return str(identity)
        if len(hashes) == 1:
            (content,) = hashes
        else:
            content = hash_bytes("".join(hashes).encode())
        return str(replace(identity, content=content[:DIGITS_OF_CONTENT]))

    def load(self, surrogate: str | None = None) -> Benchmark:
        """Load the benchmark on a surrogate; default: the first one.

        Raises:
            UnknownNameError: It has no such surrogate.
            MissingExtraError: A package that the surrogate needs is not installed.
            NotFetchedError: Files must be fetched, or an artifact generated, first.
            ArtifactError: The surrogate does not fit the tasks or the search space.
        """
        option = self.ready_option(surrogate)
        model, best_values = option.load()
        definition = self.define()
        self._check_fits(option, model, best_values, definition)

        built = Benchmark.build(
            definition,
            surrogate=option.name,
            model=model,
            best_values=best_values,
            data=None if self.data is None else self.data.load,
            costs=None if option.costs is None else option.costs(),
        )
        # The same tasks before an adjustment are loaded on the surrogate of the same name.
        previous = None if self.previous is None else self.previous.load(option.name)
        loaded = replace(
            built,
            previous=previous,
            history_size=self.history_size,
            recorded=self.recorded,
            trains=option.trains,
            data=self.data,
        )
        # Only a benchmark as it was loaded has these; it is frozen, so they are set in this way.
        object.__setattr__(loaded, "source", self.id)
        object.__setattr__(loaded, "identity", self.identity(option.name))
        return loaded

    def _check_fits(
        self,
        option: SurrogateOption,
        model: Surrogate,
        best_values: Sequence[float | None],
        definition: Definition,
    ) -> None:
        """Raise an `ArtifactError` unless a surrogate fits the tasks and the search space.

        Args:
            option: The surrogate, which names it in the message.
            model: The loaded surrogate.
            best_values: Its best known value of each task.
            definition: The benchmark's tasks and search space.
        """
        n_tasks = len(definition.tasks)
        if len(best_values) != n_tasks:
            raise ArtifactError(
                f"surrogate {option.name!r} of {self.name} must have {n_tasks} best values, one "
                f"per task, but got {len(best_values)}"
            )
        dimension = definition.space.dimension
        # A surrogate that does not state its number of hyperparameters is taken to fit.
        dimension_of_model = getattr(model, "dimension", dimension)
        if dimension_of_model != dimension:
            raise ArtifactError(
                f"surrogate {option.name!r} of {self.name} does not fit the search space's "
                f"{dimension} hyperparameters"
            )

    def option(self, name: str | None = None) -> SurrogateOption:
        """Find a surrogate by name; if omitted, the default one.

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
        """Find a surrogate by name, or the default one, and check that it can be loaded at once.

        Raises:
            UnknownNameError: The benchmark has no such surrogate.
            MissingExtraError: A package that it needs is not installed.
            NotFetchedError: Its files must be fetched, or its artifact generated, first.
        """
        option = self.option(name)
        option.check_ready(self.name)
        return option


@runtime_checkable
class BenchmarkFamily(Protocol):
    """Benchmarks whose names follow a pattern, too many to list."""

    pattern: str
    """The pattern as messages show it, such as "yahpo-SCENARIO-INSTANCE"."""

    def spec(self, name: str) -> BenchmarkSpec | None:
        """Make the spec of the benchmark of a name; None if it does not follow the pattern."""
        ...

    def files(self) -> Sequence[RemoteFile]:
        """List all published files that benchmarks of the family may need, fetched or not."""
        ...
