"""The result of a reproduction."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.papers.claims import Claim
from hpobench_ordered.papers.paper import (
    TABLE,
    Exhibit,
    Paper,
    Setting,
)

if TYPE_CHECKING:
    import pandas as pd

RESULTS = "results"
"""Folder of the store, inside that of the reproduction."""

SUMMARY = "summary.md"
GALLERY = "figures.md"
CLAIMS = "claims.csv"


@dataclass(frozen=True, slots=True)
class Setup:
    """What is reproduced, and in which setting."""

    paper: Paper
    exhibits: tuple[Exhibit, ...]  # the figures and tables that are reproduced
    settings: Mapping[str, Setting]  # how methods are run, by benchmark
    folder: Path  # where files and runs go

    @property
    def surrogates(self) -> dict[str, str]:
        """The name of each benchmark's surrogate, by the benchmark's name."""
        return {name: str(setting.surrogate) for name, setting in self.settings.items()}

    def assign_seeds(self, benchmark: str) -> dict[str, tuple[int, ...]]:
        """Return the benchmarks that runs are on, each with its seeds; see `Paper.assign_seeds`."""
        return self.paper.assign_seeds(benchmark, self.settings[benchmark].seeds)

    @property
    def store(self) -> Store:
        """The store of the runs."""
        return Store(self.folder / RESULTS)

    @property
    def files(self) -> tuple[Path, ...]:
        """Paths of all files of the reproduction besides the stored runs."""
        names = [SUMMARY, GALLERY, CLAIMS]
        for exhibit in self.exhibits:
            suffixes = ("csv",) if exhibit.kind == TABLE else ("png", "svg", "csv")
            names += [f"{exhibit.name}.{suffix}" for suffix in suffixes]
        return tuple(self.folder / name for name in names)


@dataclass(frozen=True)
class Reproduction:
    """The result of a reproduction.

    Attributes:
        setup: What was reproduced, and in which setting.
        cells: All runs.
        fallbacks: Number of suggestions that were random because a model failed, by method.
        claims: The claims about each figure or table, by its name, such as "figure-5".
        data: The numbers of each figure or table, by its name.
    """

    setup: Setup
    cells: tuple[Cell, ...] = field(repr=False)
    fallbacks: Mapping[str, int]
    claims: Mapping[str, tuple[Claim, ...]] = field(repr=False)
    data: Mapping[str, "pd.DataFrame"] = field(repr=False)
