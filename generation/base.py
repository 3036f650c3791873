"""What every generator offers: raw evaluations in, an artifact out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.files.artifact import check_writable


class Progress(Protocol):
    """Told how far a long step is."""

    def __call__(self, step: str, done: int, total: int) -> None:
        """Say that `done` of `total` parts of a step are finished."""


def silent(step: str, done: int, total: int) -> None:
    """Show no progress."""


class Option(Enum):
    """What a source may take, by its name on the command line."""

    LOCAL = "--from"
    SEED = "--seed"
    WORKERS = "--workers"
    SIZES = "--sizes"
    CONFIGURATIONS = "--configs"
    TASKS = "--tasks"


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a source.

    Attributes:
        folder: Folder the artifact goes to.
        local: Local copy of the raw data, instead of a download.
        seed: Seed of everything random.
        workers: Number of processes.
        sizes: Training-set sizes, ascending; default: the source chooses.
        configurations: Number of configurations; default: the source chooses.
        tasks: Names of tasks; default: all.
        progress: Told how far the work is.
    """

    folder: Path
    local: Path | None = None
    seed: int = 0
    workers: int = 1
    sizes: tuple[int, ...] | None = None
    configurations: int | None = None
    tasks: tuple[str, ...] | None = None
    progress: Progress = silent

    def command(self, *words: str) -> str:
        """The command that asks for the same: `words`, then all options that decide the result."""
        parts = ["hpobench-ordered generate", *words, f"{Option.SEED.value} {self.seed}"]
        if self.sizes is not None:
            parts.append(f"{Option.SIZES.value} {','.join(map(str, self.sizes))}")
        if self.configurations is not None:
            parts.append(f"{Option.CONFIGURATIONS.value} {self.configurations}")
        if self.tasks is not None:
            parts.append(f"{Option.TASKS.value} {','.join(self.tasks)}")
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Source:
    """One way to get a benchmark's evaluations.

    Attributes:
        summary: One line.
        takes: The options it takes.
        generate: Writes the artifact, or what else the source stands for; returns its path.
        fewest: Smallest number of configurations it can work with.
    """

    summary: str
    takes: frozenset[Option]
    generate: Callable[[Request], Path]
    fewest: int = 1


def here() -> Path:
    """The folder `artifacts` where the command is called."""
    return Path("artifacts")


@dataclass(frozen=True, slots=True)
class Generator:
    """Makes one benchmark's artifact.

    Attributes:
        name: Name of the benchmark.
        sources: Sources of evaluations by name; the first is the default.
        home: Tells the folder that artifacts go to unless asked otherwise.
    """

    name: str
    sources: Mapping[str, Source]
    home: Callable[[], Path] = here

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
        progress: Progress = silent,
    ) -> Path:
        """Check what is asked for, then write the artifact, or what else a source stands for.

        Args are those of `Request`; `source` is the first one if omitted. Returns the path of what
        was written.

        Raises:
            UnknownNameError: No such source.
            ExperimentError: The source does not take an option, or too few configurations.
            ArtifactError: The folder cannot be written.
        """
        name = next(iter(self.sources)) if source is None else source
        options = {
            Option.LOCAL: local,
            Option.SEED: seed,
            Option.WORKERS: workers,
            Option.SIZES: sizes,
            Option.CONFIGURATIONS: configurations,
            Option.TASKS: tasks,
        }
        self._check(name, {o: value for o, value in options.items() if value is not None})
        check_writable(folder)
        request = Request(
            folder=folder,
            local=local,
            seed=0 if seed is None else seed,
            workers=1 if workers is None else workers,
            sizes=None if sizes is None else tuple(sorted(set(sizes))),
            configurations=configurations,
            tasks=None if tasks is None else tuple(dict.fromkeys(tasks)),
            progress=progress,
        )
        return self.sources[name].generate(request)

    def _check(self, name: str, options: Mapping[Option, Any]) -> None:
        if name not in self.sources:
            raise UnknownNameError(f"source of {self.name}", name, self.sources)
        source = self.sources[name]
        refused = [option.value for option in Option if option in options.keys() - source.takes]
        if refused:
            allowed = [option.value for option in Option if option in source.takes]
            raise ExperimentError(
                f"source {name!r} of {self.name} does not take {', '.join(refused)}; "
                f"it takes {', '.join(allowed) or 'no options'}"
            )
        if options.get(Option.CONFIGURATIONS, source.fewest) < source.fewest:
            raise ExperimentError(
                f"source {name!r} of {self.name} needs at least {source.fewest} configurations, "
                f"got {options[Option.CONFIGURATIONS]}"
            )


@runtime_checkable
class GeneratorFamily(Protocol):
    """Generators of benchmarks whose names follow a pattern, too many to list."""

    pattern: str
    """The names, for people."""

    def generator(self, name: str) -> Generator | None:
        """The generator of the benchmark of that name; None if it does not follow the pattern."""
        ...
