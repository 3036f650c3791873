"""The parts of a paper to reproduce: figures and tables with their claims, and settings.

A figure or table lists the comparisons that it is drawn from; only these are run.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.differences import Estimate
from hpobench_ordered.core.benchmark import Benchmark
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.protocols import Protocol
from hpobench_ordered.reproduction.evidence import Comparison, Evidence, Landscape, everything

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

    `afterwards` marks claims about a trial that was chosen when the results were known; they are
    counted separately.
    """

    section: str
    sentence: str
    check: Check
    afterwards: bool = False

    @property
    def text(self) -> str:
        """The statement, marked if it was chosen afterwards."""
        return self.sentence + (" (chosen afterwards)" if self.afterwards else "")


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure and the numbers in it."""

    figure: "alt.TopLevelMixin"
    data: "pd.DataFrame"


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A figure or table of a paper; `claims` are checked on the comparisons that it `needs`.

    `caption` describes ours, `says` what the paper says of its own; both are in our own words.
    """

    number: int
    caption: str
    says: str
    needs: tuple[Comparison, ...]
    make: Callable[[Evidence, Sequence[Comparison]], Any]
    claims: tuple[Claim, ...] = ()

    @property
    def name(self) -> str:
        """Prefix of its file names, such as "figure-5"."""
        return f"{type(self).__name__.lower()}-{self.number}"

    @property
    def title(self) -> str:
        """Its title in the paper, such as "Figure 5"."""
        return f"{type(self).__name__} {self.number}"


@dataclass(frozen=True, slots=True)
class Figure(Exhibit):
    """A figure, which is drawn."""

    make: Callable[[Evidence, Sequence[Comparison]], Drawing]


@dataclass(frozen=True, slots=True)
class Entry:
    """One number of a table, ours and the published one; columns are benchmarks."""

    row: str
    column: str
    published: Estimate
    measured: Estimate

    @property
    def is_known(self) -> bool:
        """Whether our number exists; with one seed there is no standard error."""
        return not math.isnan(self.measured.value)

    @property
    def is_inside(self) -> bool:
        """Whether our number is in the paper's interval."""
        return self.published.contains(self.measured.value)


@dataclass(frozen=True, slots=True)
class Table(Exhibit):
    """A table, whose entries are computed."""

    make: Callable[[Evidence, Sequence[Comparison]], Sequence[Entry]]


@dataclass(frozen=True, slots=True)
class Setting:
    """How methods are run on a benchmark."""

    protocol: Protocol
    seeds: tuple[int, ...]
    surrogate: str | None = None


def on_the_same(benchmark: str, seeds: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Put the runs with all seeds on the same benchmark."""
    return {benchmark: tuple(seeds)}


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper whose results can be reproduced.

    `setting` is how methods are run, `exceptions` by benchmark where it differs; `methods` are
    those that are not registered, `notes` explains the scores in reports. Functions for one paper:
    `counted` selects from a quantity, (A, S, T, M), what enters means, `landscape` the
    configurations of a benchmark to show, and `runs_on` the benchmarks of runs, each with its
    seeds.
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

    def select(
        self, *, figures: Iterable[int] = (), tables: Iterable[int] = ()
    ) -> tuple[Exhibit, ...]:
        """Find figures and tables by their numbers; default: all of them."""
        wanted = {*((Figure, n) for n in figures), *((Table, n) for n in tables)}
        numbers = [(type(item), item.number) for item in self.exhibits]
        for kind, number in sorted(wanted - {*numbers}, key=str):
            given = ", ".join(str(n) for its, n in numbers if its is kind) or "none"
            raise ExperimentError(
                f"there is no {kind.__name__.lower()} {number} to reproduce, only {given}"
            )
        return tuple(
            item
            for item, place in zip(self.exhibits, numbers, strict=True)
            if not wanted or place in wanted
        )


def experiments(exhibits: Iterable[Exhibit]) -> dict[str, tuple[str, ...]]:
    """The methods to run on each benchmark, none if only the benchmark is shown."""
    methods: dict[str, dict[str, None]] = {}
    for comparison in combined(exhibits):
        methods.setdefault(comparison.benchmark, {}).update(dict.fromkeys(comparison.methods))
    return {benchmark: tuple(names) for benchmark, names in methods.items()}


def combined(exhibits: Iterable[Exhibit]) -> tuple[Comparison, ...]:
    """The comparisons to run, one per benchmark and protocol with all methods there."""
    methods: dict[tuple[str, Protocol | None], dict[str, None]] = {}
    for exhibit in exhibits:
        for item in exhibit.needs:
            names = methods.setdefault((item.benchmark, item.protocol), {})
            names.update(dict.fromkeys(item.methods))
    return tuple(Comparison(name, tuple(several), p) for (name, p), several in methods.items())
