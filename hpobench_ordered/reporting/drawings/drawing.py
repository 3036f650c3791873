"""What a drawing is: the picture, the words around it and the numbers in it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from hpobench_ordered.reporting.drawings.pdf import to_pdf
from hpobench_ordered.reporting.drawings.png import to_png
from hpobench_ordered.reporting.drawings.scene import Scene
from hpobench_ordered.reporting.drawings.svg import to_svg
from hpobench_ordered.reporting.labels import protocol_label

if TYPE_CHECKING:
    import pandas as pd

    from hpobench_ordered.reporting.scoring import BenchmarkScores


IS_NUMBER = re.compile(r"[0-9.]+")
"""Names of tasks that say nothing by themselves."""


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
        """Benchmark and protocol."""
        return f"{self.benchmark}, {protocol_label(self.protocol)}"

    def task_title(self, task: int) -> str:
        """Name of a task by its place, from 0, such as "5%", or "task 56" where it is a number."""
        name = self.task_names[task]
        return f"task {name}" if IS_NUMBER.fullmatch(name) else name

    @property
    def columns(self) -> dict[str, str]:
        """What tables of its numbers say of all rows."""
        return {"benchmark": self.benchmark, "protocol": self.protocol}


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
        scene: What the picture consists of.
    """

    stem: str
    kind: Kind
    title: str
    caption: str
    alt: str
    png: bytes = field(repr=False)
    svg: bytes = field(repr=False)
    data: "pd.DataFrame" = field(repr=False)
    scene: Scene = field(repr=False)

    @property
    def pdf(self) -> bytes:
        """The picture for documents, without background; encoded only where it is asked for."""
        return to_pdf(self.scene)


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
    return Drawing(stem, kind, title, caption, alt, to_png(scene), svg, data, scene)


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
