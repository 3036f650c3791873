"""What every generator offers: raw evaluations in, an artifact out."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Progress(Protocol):
    """Told how far a long step is."""

    def __call__(self, step: str, done: int, total: int) -> None:
        """Say that `done` of `total` parts of a step are finished."""


def silent(step: str, done: int, total: int) -> None:
    """Show no progress."""


@dataclass(frozen=True, slots=True)
class Request:
    """What the user asks a generator for.

    Attributes:
        folder: Folder the artifact goes to.
        source: Where the evaluations come from: one of the generator's sources.
        local: Local copy of the raw data, instead of a download.
        seed: Seed of everything random.
        workers: Number of processes.
        sizes: Training-set sizes, where the generator trains; all of them without.
        configurations: Number of configurations, where the generator trains or samples.
        progress: Told how far the work is.
    """

    folder: Path
    source: str
    local: Path | None = None
    seed: int = 0
    workers: int = 1
    sizes: Sequence[int] | None = None
    configurations: int | None = None
    progress: Progress = silent


@dataclass(frozen=True, slots=True)
class Generator:
    """Makes one benchmark's artifact.

    Attributes:
        name: Name of the benchmark.
        sources: Names of the sources of evaluations, with one line each; the first is the default.
        generate: Writes the artifact, or what else the source stands for; returns its path.
    """

    name: str
    sources: Mapping[str, str]
    generate: Callable[[Request], Path]
