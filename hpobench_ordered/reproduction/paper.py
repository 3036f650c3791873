"""What the reproduction of a paper consists of: figures, tables, and what the paper says of them.

A figure or table names the comparisons it is drawn from; together they are the experiments that
have to be run, and nothing else is.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.differences import Estimate
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.protocols import Protocol
from hpobench_ordered.reproduction.comparison import Comparison

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    from hpobench_ordered.reproduction.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Finding:
    """What a run says about a claim."""

    subject: str
    measured: str
    holds: bool


Check = Callable[["Evidence", Sequence[Comparison]], Sequence[Finding]]
"""Checks a claim on the comparisons of the figure or table that it belongs to."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Something the paper says that a number can confirm."""

    section: str
    sentence: str
    check: Check
    afterwards: bool = False

    @property
    def text(self) -> str:
        """The sentence, with its mark."""
        return self.sentence + (" (chosen afterwards)" if self.afterwards else "")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure and the numbers in it."""

    figure: "alt.TopLevelMixin"
    data: "pd.DataFrame"


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a paper."""

    number: int
    caption: str
    says: str
    needs: tuple[Comparison, ...]
    draw: Callable[["Evidence", Sequence[Comparison]], Drawing]
    claims: tuple[Claim, ...] = ()

    @property
    def name(self) -> str:
        """Name of its files, such as "figure-5"."""
        return f"figure-{self.number}"

    @property
    def title(self) -> str:
        """What the paper calls it, such as "Figure 5"."""
        return f"Figure {self.number}"


@dataclass(frozen=True, slots=True)
class Entry:
    """One number of a table, next to the published one."""

    row: str
    column: str
    published: Estimate
    measured: Estimate

    @property
    def is_known(self) -> bool:
        """Whether there is a number; of one seed there is no standard error."""
        return not math.isnan(self.measured.value)

    @property
    def is_inside(self) -> bool:
        """Whether our number is inside the paper's interval."""
        return self.published.contains(self.measured.value)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a paper."""

    number: int
    caption: str
    says: str
    needs: tuple[Comparison, ...]
    compute: Callable[["Evidence", Sequence[Comparison]], Sequence[Entry]]
    claims: tuple[Claim, ...] = ()

    @property
    def name(self) -> str:
        """Name of its files, such as "table-4"."""
        return f"table-{self.number}"

    @property
    def title(self) -> str:
        """What the paper calls it, such as "Table 4"."""
        return f"Table {self.number}"


Exhibit = Figure | Table


@dataclass(frozen=True, slots=True)
class Setting:
    """How methods are run on a benchmark."""

    protocol: Protocol
    seeds: tuple[int, ...]
    surrogate: str | None = None


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper whose results can be reproduced.

    Attributes:
        name: Name on the command line.
        citation: Authors, year, title.
        setting: How it ran its experiments.
        exhibits: Its figures and tables, in the order of the paper.
        exceptions: How it ran those on some benchmarks, by name.
        first_task: First task that counts in means over tasks, from 0; 1 leaves out a task without
            history.
        methods: Its methods that are not registered, by name.
        notes: What its scores are, for people.
        evaluated: The configurations that its authors evaluated, coded as values, by benchmark and
            surrogate: where a surrogate knows them, landscapes show these instead of random ones.
        drawn: Benchmarks whose tasks are drawn anew for every seed, see `runs_on`.
        pooled: Whether means are over runs, each a task and a seed, and errors between runs; else
            errors are between seeds.
    """

    name: str
    citation: str
    setting: Setting
    exhibits: tuple[Exhibit, ...]
    notes: str
    exceptions: Mapping[str, Setting] = field(default_factory=dict, hash=False)
    first_task: int = 0
    methods: Mapping[str, MethodSpec] = field(default_factory=dict, hash=False)
    evaluated: Mapping[tuple[str, str], Callable[[], FloatArray]] = field(
        default_factory=dict, hash=False
    )
    drawn: frozenset[str] = frozenset()
    pooled: bool = False

    def runs_on(self, benchmark: str, seeds: Sequence[int]) -> dict[str, tuple[int, ...]]:
        """The benchmarks that runs with some seeds are on, each with its seeds.

        Where tasks are drawn by the seed, seed 0 is on NAME itself and seed S on NAME-seed-S.
        """
        if benchmark not in self.drawn:
            return {benchmark: tuple(seeds)}
        return {f"{benchmark}-seed-{seed}" if seed else benchmark: (seed,) for seed in seeds}

    def setting_of(self, benchmark: str) -> Setting:
        """How methods are run on a benchmark."""
        return self.exceptions.get(benchmark, self.setting)

    @property
    def figures(self) -> tuple[Figure, ...]:
        """Its figures."""
        return tuple(item for item in self.exhibits if isinstance(item, Figure))

    @property
    def tables(self) -> tuple[Table, ...]:
        """Its tables."""
        return tuple(item for item in self.exhibits if isinstance(item, Table))

    def select(
        self, *, figures: Iterable[int] = (), tables: Iterable[int] = ()
    ) -> tuple[Exhibit, ...]:
        """Find figures and tables by their numbers; default: all of them.

        Raises:
            ExperimentError: The paper has no such figure or table, or it shows no result.
        """
        requested = [
            *(_find("figure", number, self.figures) for number in figures),
            *(_find("table", number, self.tables) for number in tables),
        ]
        return tuple(item for item in self.exhibits if not requested or item in requested)


def experiments(exhibits: Iterable[Exhibit]) -> dict[str, tuple[str, ...]]:
    """The methods to run on each benchmark; none where only the benchmark is shown."""
    methods: dict[str, dict[str, None]] = {}
    for comparison in combined(exhibits):
        methods.setdefault(comparison.benchmark, {}).update(dict.fromkeys(comparison.methods))
    return {benchmark: tuple(names) for benchmark, names in methods.items()}


def combined(exhibits: Iterable[Exhibit]) -> tuple[Comparison, ...]:
    """What has to be run: one comparison for each benchmark and protocol, of all methods there."""
    methods: dict[tuple[str, Protocol | None], dict[str, None]] = {}
    for exhibit in exhibits:
        for item in exhibit.needs:
            names = methods.setdefault((item.benchmark, item.protocol), {})
            names.update(dict.fromkeys(item.methods))
    return tuple(Comparison(name, tuple(several), p) for (name, p), several in methods.items())


def _find(kind: str, number: int, exhibits: Sequence[Exhibit]) -> Exhibit:
    for exhibit in exhibits:
        if exhibit.number == number:
            return exhibit
    numbers = ", ".join(str(exhibit.number) for exhibit in exhibits) or "none"
    raise ExperimentError(f"there is no {kind} {number} to reproduce; there are {numbers}")
