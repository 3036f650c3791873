"""What a drawing is: the picture, the words around it and the numbers in it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING
from zlib import crc32

from hpobench_ordered.reporting.drawings.png import to_png
from hpobench_ordered.reporting.drawings.scene import Scene
from hpobench_ordered.reporting.drawings.svg import to_svg

if TYPE_CHECKING:
    import pandas as pd

    from hpobench_ordered.reporting.scoring import BenchmarkScores


class Kind(Enum):
    """Kinds of drawings, by the name their files begin with."""

    CURVES = "curves"
    RANKS = "ranks"
    CRITICAL_DIFFERENCE = "critical-difference"
    BARS = "bars"
    LANDSCAPE = "landscape"
    ATTAINMENT = "attainment"
    REACH = "reach"
    WINS = "wins"


@dataclass(frozen=True, slots=True)
class Subject:
    """What the numbers of a drawing are about.

    Attributes:
        benchmark: Name of the benchmark, with its surrogate.
        protocol: The protocol, with its settings.
        methods: Names of the methods, length A.
        task_names: Names of the tasks, in order, length T.
        seeds: Number of seeds.
    """

    benchmark: str
    protocol: str
    methods: tuple[str, ...]
    task_names: tuple[str, ...]
    seeds: int

    @classmethod
    def of(cls, item: "BenchmarkScores") -> "Subject":
        """The benchmark that scores are of."""
        return cls(item.benchmark, item.protocol, item.methods, item.task_names, item.seeds)

    @property
    def title(self) -> str:
        """Benchmark and protocol, the latter without its settings."""
        return f"{self.benchmark}, {self.protocol.partition('(')[0]}"

    def task_title(self, task: int) -> str:
        """Number of a task, from 1, and its name where that is no number of its own."""
        name = self.task_names[task]
        return f"task {task + 1}" if name in {str(task), str(task + 1)} else f"{task + 1}: {name}"

    @property
    def columns(self) -> dict[str, str]:
        """What tables of its numbers say of all rows."""
        return {"benchmark": self.benchmark, "protocol": self.protocol}

    @property
    def key(self) -> str:
        """What tells it apart from others in names of files."""
        return f"{self.title} {crc32(self.protocol.encode()) % 16**4:04x}"


@dataclass(frozen=True, slots=True)
class Drawing:
    """A finished picture.

    Attributes:
        stem: Name of its files, without suffix.
        kind: What it shows.
        title: Its title.
        caption: How to read it.
        alt: What it shows, for who does not see it.
        png: The picture on white.
        svg: The same, without background.
        data: The numbers that are drawn.
    """

    stem: str
    kind: Kind
    title: str
    caption: str
    alt: str
    png: bytes = field(repr=False)
    svg: bytes = field(repr=False)
    data: "pd.DataFrame" = field(repr=False)


def finish(
    scene: Scene,
    kind: Kind,
    *,
    about: str,
    title: str,
    caption: str,
    alt: str,
    data: "pd.DataFrame",
) -> Drawing:
    """Encode a scene.

    Args:
        scene: What is drawn.
        kind: What it shows.
        about: What tells its files apart from others of the kind; any text.
        title: As in `Drawing`.
        caption: As in `Drawing`.
        alt: As in `Drawing`.
        data: As in `Drawing`.
    """
    stem = f"{kind.value}-{slug(about)}"
    svg = to_svg(scene, stem=stem, title=title)
    return Drawing(stem, kind, title, caption, alt, to_png(scene), svg, data)


def slug(text: str) -> str:
    """Lower-case letters, digits and hyphens of a text, such as "newsvendor-1-table-ordered"."""
    kept = (char if char.isascii() and char.isalnum() else " " for char in text.lower())
    return "-".join("".join(kept).split())


def count(number: int, noun: str) -> str:
    """A number with its noun, such as "1 seed" or "5 seeds"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def listed(names: Sequence[str]) -> str:
    """Names as part of a sentence."""
    return ", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1]
