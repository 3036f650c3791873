"""The parts of a reproduction: figures and tables with what the paper claims, and settings.

A figure or table names the comparisons it is drawn from; together they are the experiments that
have to be run, and nothing else is.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.differences import Estimate
from hpobench_ordered.core.benchmark import Benchmark
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.protocols import Protocol
from hpobench_ordered.reproduction.comparison import Comparison
from hpobench_ordered.reproduction.evidence import Evidence, Landscape, everything

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a claim holds for a subject, such as a benchmark, and what was measured."""

    subject: str
    measured: str
    holds: bool


Check = Callable[[Evidence, Sequence[Comparison]], Sequence[Finding]]
"""Checks a claim on the comparisons of the figure or table that it belongs to."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the paper that can be checked.

    `afterwards` marks claims at a trial that was chosen when the results were known; they are
    counted separately.
    """

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


class _Numbered:
    """A figure or table, named after its class and number."""

    __slots__ = ()
    number: int

    @property
    def name(self) -> str:
        """Name of its files, such as "figure-5"."""
        return f"{type(self).__name__.lower()}-{self.number}"

    @property
    def title(self) -> str:
        """What the paper calls it, such as "Figure 5"."""
        return f"{type(self).__name__} {self.number}"


@dataclass(frozen=True, slots=True)
class Figure(_Numbered):
    """A figure of a paper: `caption` says what ours shows, `says` what the paper says of its own.

    Both are in our own words. It shows the comparisons that it `needs`, and `claims` are checked on
    these.
    """

    number: int
    caption: str
    says: str
    needs: tuple[Comparison, ...]
    draw: Callable[[Evidence, Sequence[Comparison]], Drawing]
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """One number of a table, ours next to the published one; columns are benchmarks."""

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
class Table(_Numbered):
    """A table of a paper; as `Figure`."""

    number: int
    caption: str
    says: str
    needs: tuple[Comparison, ...]
    compute: Callable[[Evidence, Sequence[Comparison]], Sequence[Entry]]
    claims: tuple[Claim, ...] = ()


Exhibit = Figure | Table


@dataclass(frozen=True, slots=True)
class Setting:
    """How methods are run on a benchmark."""

    protocol: Protocol
    seeds: tuple[int, ...]
    surrogate: str | None = None


def on_the_same(benchmark: str, seeds: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Runs with all seeds are on the same benchmark."""
    return {benchmark: tuple(seeds)}


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper whose results can be reproduced.

    What only one paper has is a function in its module: `counted`, `landscape` and `runs_on`.

    Attributes:
        name: Name on the command line.
        citation: Authors, year, title.
        setting: How it ran its experiments.
        exhibits: Its figures and tables, in the order of the paper.
        notes: What its scores are, for people.
        exceptions: How it ran those on some benchmarks, by name.
        methods: Its methods that are not registered, by name.
        counted: Chooses of a quantity, shape (A, S, T, M), the tasks that count in means.
        landscape: The configurations of a benchmark that are shown.
        runs_on: The benchmarks that runs with some seeds are on, each with its seeds.
    """

    name: str
    citation: str
    setting: Setting
    exhibits: tuple[Exhibit, ...]
    notes: str
    exceptions: Mapping[str, Setting] = field(default_factory=dict, hash=False)
    methods: Mapping[str, MethodSpec] = field(default_factory=dict, hash=False)
    counted: Callable[[FloatArray], FloatArray] = everything
    landscape: Callable[[Benchmark], Landscape] = Landscape.of
    runs_on: Callable[[str, Sequence[int]], dict[str, tuple[int, ...]]] = on_the_same

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
    """The comparisons to run: one per benchmark and protocol, of all methods there."""
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
