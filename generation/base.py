"""Generators, which turn raw evaluations into artifacts: their interface, and how to find them."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from hpobench_ordered.data.artifact import check_writable
from hpobench_ordered.data.exports import collect_specs, iter_exports
from hpobench_ordered.errors import ExperimentError, UnknownNameError

GENERATION = "hpobench_ordered.generation"
"""Package whose modules export generators, and entry-point group of other packages' generators."""


class Progress(Protocol):
    """Called with the progress of a long step."""

    def __call__(self, step: str, done: int, total: int) -> None:
        """Report that `done` of `total` parts of a step are finished."""


def ignore_progress(step: str, done: int, total: int) -> None:
    """Ignore progress."""


class Option(Enum):
    """Options of sources, by their names on the command line."""

    LOCAL = "--from"
    SEED = "--seed"
    WORKERS = "--workers"
    SIZES = "--sizes"
    CONFIGURATIONS = "--configs"
    TASKS = "--tasks"


@dataclass(frozen=True, slots=True)
class Request:
    """Arguments of a source; None leaves the choice to it.

    The artifact goes to `folder`; `local` is a copy of the raw data, instead of a download. `sizes`
    are training-set sizes, ascending.
    """

    folder: Path
    local: Path | None = None
    seed: int = 0
    workers: int = 1
    sizes: tuple[int, ...] | None = None
    configurations: int | None = None
    tasks: tuple[str, ...] | None = None
    progress: Progress = ignore_progress

    def path_beside(self, suffix: str) -> Path:
        """Return a path beside the artifact's folder: the folder's name, a dash and a suffix."""
        return self.folder.with_name(f"{self.folder.name}-{suffix}")

    def command(self, *words: str) -> str:
        """Return the command that generates the same artifact again.

        It has the given words, then those options of the request that determine the result. Left
        out are the paths of the artifact and of a local copy, and the number of workers.
        """
        command = ["hpobench-ordered generate", *words, f"{Option.SEED.value} {self.seed}"]
        if self.sizes is not None:
            command.append(f"{Option.SIZES.value} {','.join(map(str, self.sizes))}")
        if self.configurations is not None:
            command.append(f"{Option.CONFIGURATIONS.value} {self.configurations}")
        if self.tasks is not None:
            command.append(f"{Option.TASKS.value} {','.join(self.tasks)}")
        return " ".join(command)


@dataclass(frozen=True, slots=True)
class EvaluationSource:
    """A source of evaluations of a benchmark.

    Attributes:
        summary: One line.
        options: The options that it takes.
        generate: Writes the artifact, or another result, and returns its path.
        min_configurations: Smallest number of configurations that it needs.
    """

    summary: str
    options: frozenset[Option]
    generate: Callable[[Request], Path]
    min_configurations: int = 1


def artifacts_folder() -> Path:
    """Return the folder `artifacts` in the current folder."""
    return Path("artifacts")


@dataclass(frozen=True, slots=True)
class Generator:
    """Makes a benchmark's artifact in the folder `home()`, from its first source by default."""

    name: str
    sources: Mapping[str, EvaluationSource]
    home: Callable[[], Path] = artifacts_folder

    def generate(
        self,
        folder: Path,
        *,
        source: str | None = None,
        local: Path | None = None,
        seed: int | None = None,
        workers: int | None = None,
        sizes: Sequence[int] | None = None,
        configurations: int | None = None,
        tasks: Sequence[str] | None = None,
        progress: Progress = ignore_progress,
    ) -> Path:
        """Generate the artifact, or another result, from a source, and return its path.

        Arguments are those of `Request`. None stands for an option that was not stated. The default
        source is the first one.

        Raises:
            UnknownNameError: There is no such source.
            ExperimentError: The source does not take an option that was stated.
        """
        source_name = next(iter(self.sources)) if source is None else source
        value_of_option = {
            Option.LOCAL: local,
            Option.SEED: seed,
            Option.WORKERS: workers,
            Option.SIZES: sizes,
            Option.CONFIGURATIONS: configurations,
            Option.TASKS: tasks,
        }
        stated = {option: value for option, value in value_of_option.items() if value is not None}
        self._check_request(source_name, stated)
        check_writable(folder)
        request = Request(
            folder=folder,
            local=local,
            seed=0 if seed is None else seed,
            workers=1 if workers is None else workers,
            sizes=None if sizes is None else tuple(sorted(set(sizes))),
            configurations=configurations,
            tasks=None if tasks is None else tuple(dict.fromkeys(tasks)),  # without repeats
            progress=progress,
        )
        return self.sources[source_name].generate(request)

    def _check_request(self, source_name: str, stated: Mapping[Option, Any]) -> None:
        """Check that there is a source of this name, and that it takes the stated options.

        Args:
            source_name: Name of the source.
            stated: Values of the options that the user stated.

        Raises:
            UnknownNameError: There is no such source.
            ExperimentError: It does not take an option, or needs more configurations.
        """
        if source_name not in self.sources:
            raise UnknownNameError(f"source of {self.name}", source_name, self.sources)

        source = self.sources[source_name]
        refused_options = stated.keys() - source.options
        if refused_options:
            allowed = ", ".join(_list_flags(source.options)) or "no options"
            raise ExperimentError(
                f"source {source_name!r} of {self.name} does not take "
                f"{', '.join(_list_flags(refused_options))}; it takes {allowed}"
            )

        configurations = stated.get(Option.CONFIGURATIONS)
        if configurations is not None and configurations < source.min_configurations:
            raise ExperimentError(
                f"source {source_name!r} of {self.name} needs at least "
                f"{source.min_configurations} configurations, got {configurations}"
            )


def _list_flags(options: Container[Option]) -> list[str]:
    """List the names of options on the command line, in the order of `Option`."""
    return [option.value for option in Option if option in options]


@dataclass(frozen=True, slots=True)
class GeneratorFamily:
    """Generators of benchmarks whose names follow a pattern.

    Attributes:
        pattern: The pattern, in words.
        generator: The generator of the benchmark of a name; None for other names.
    """

    pattern: str
    generator: Callable[[str], Generator | None]


def generators() -> Mapping[str, Generator]:
    """Return the generators of artifacts, by the benchmark's name."""
    return collect_specs(GENERATION, "GENERATORS", Generator)


def generator_families() -> tuple[GeneratorFamily, ...]:
    """Return all families of generators."""
    return tuple(family for family, _ in iter_exports(GENERATION, "FAMILIES", GeneratorFamily))


def generator(name: str) -> Generator:
    """Find the generator of a benchmark's artifact by the benchmark's name.

    Raises:
        UnknownNameError: There is no such generator.
    """
    generator_of_name = generators()
    if name in generator_of_name:
        return generator_of_name[name]
    # Families make generators for names that are not listed, such as those with a seed.
    for family in generator_families():
        member = family.generator(name)  # None if the name does not follow the family's pattern
        if member is not None:
            return member
    raise UnknownNameError("benchmark to generate", name, generator_of_name)
