"""Generators, which turn raw evaluations into artifacts: their interface, and how to find them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.files.artifact import check_writable
from hpobench_ordered.registry import iter_exports, specs_by_name

GENERATION = "hpobench_ordered.generation"
"""Package whose modules export generators, and entry-point group of other packages' generators."""


class Progress(Protocol):
    """Called with the progress of a long step."""

    def __call__(self, step: str, done: int, total: int) -> None:
        """Report that `done` of `total` parts of a step are finished."""


def silent(step: str, done: int, total: int) -> None:
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
    progress: Progress = silent

    def command(self, *words: str) -> str:
        """The equivalent command: `words`, then the options that affect the result."""
        options = {
            Option.SEED: (self.seed,),
            Option.SIZES: self.sizes,
            Option.CONFIGURATIONS: None if self.configurations is None else (self.configurations,),
            Option.TASKS: self.tasks,
        }
        given = [f"{o.value} {','.join(map(str, v))}" for o, v in options.items() if v is not None]
        return " ".join(["hpobench-ordered generate", *words, *given])


@dataclass(frozen=True, slots=True)
class Source:
    """A source of evaluations of a benchmark, and the options that it takes.

    `generate` writes the artifact, or another result, and returns its path; it needs at least
    `fewest` configurations.
    """

    summary: str
    takes: frozenset[Option]
    generate: Callable[[Request], Path]
    fewest: int = 1


def here() -> Path:
    """The folder `artifacts` in the current folder."""
    return Path("artifacts")


@dataclass(frozen=True, slots=True)
class Generator:
    """Makes a benchmark's artifact in the folder `home()`, from its first source by default."""

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
        """Check the request, then write the artifact, or another result; returns its path.

        Arguments are those of `Request`; an option that the source does not take raises an
        ExperimentError.
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


@dataclass(frozen=True, slots=True)
class GeneratorFamily:
    """Generators of benchmarks whose names follow a `pattern`, None for other names."""

    pattern: str
    generator: Callable[[str], Generator | None]


def generators() -> Mapping[str, Generator]:
    """Generators of artifacts, by the benchmark's name."""
    return specs_by_name(GENERATION, "GENERATORS", Generator)


def generator_families() -> tuple[GeneratorFamily, ...]:
    """All families of generators."""
    return tuple(family for family, _ in iter_exports(GENERATION, "FAMILIES", GeneratorFamily))


def generator(name: str) -> Generator:
    """Find the generator of a benchmark's artifact, else raise an `UnknownNameError`."""
    generator_of_name = generators()
    if name in generator_of_name:
        return generator_of_name[name]
    for family in generator_families():
        member = family.generator(name)
        if member is not None:
            return member
    raise UnknownNameError("benchmark to generate", name, generator_of_name)
