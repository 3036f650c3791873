"""The parts of a paper to reproduce: figures and tables with their claims, and settings.

A figure or table lists the comparisons that it is drawn from; only these are run.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.differences import Estimate
from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.protocols import Protocol
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.papers.evidence import (
    Evidence,
    Landscape,
    MethodComparison,
    count_everything,
)

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd


class Outcome(Enum):
    """Whether a claim holds."""

    HOLDS = "holds"
    FAILS = "fails"
    UNDECIDED = "undecided"
    """The difference is within two standard errors: it may be due to the seeds."""

    @classmethod
    def from_truth(cls, is_true: bool) -> "Outcome":
        """Outcome of a claim that is not about a difference with an error."""
        return cls.HOLDS if is_true else cls.FAILS


def decide(difference: float, two_standard_errors: float) -> Outcome:
    """Outcome of a claim that a difference is negative, the same rule for all papers.

    Args:
        difference: Mean over seeds, paired by seed.
        two_standard_errors: Twice its standard error; NaN, with one seed, leaves the claim
            undecided.
    """
    if difference < -two_standard_errors:
        return Outcome.HOLDS
    if difference > two_standard_errors:
        return Outcome.FAILS
    return Outcome.UNDECIDED


def combine_outcomes(outcomes: Iterable[Outcome]) -> Outcome:
    """Outcome of a claim with several parts, of which all must hold."""
    distinct = set(outcomes)
    for outcome in (Outcome.FAILS, Outcome.UNDECIDED):
        if outcome in distinct:
            return outcome
    return Outcome.HOLDS


@dataclass(frozen=True, slots=True)
class Finding:
    """Whether a claim holds for a subject, such as a benchmark, and what was measured."""

    subject: str
    measured: str
    outcome: Outcome


Check = Callable[[Evidence, Sequence[MethodComparison]], Sequence[Finding]]
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

    kind: ClassVar[str]
    """Its kind in the paper, such as "Figure"."""

    number: int
    caption: str
    says: str
    needs: tuple[MethodComparison, ...]
    make: Callable[[Evidence, Sequence[MethodComparison]], Any]
    claims: tuple[Claim, ...] = ()

    @property
    def name(self) -> str:
        """Prefix of its file names, such as "figure-5"."""
        return f"{self.kind.lower()}-{self.number}"

    @property
    def title(self) -> str:
        """Its title in the paper, such as "Figure 5"."""
        return f"{self.kind} {self.number}"


@dataclass(frozen=True, slots=True)
class PaperFigure(Exhibit):
    """A figure, which is drawn."""

    kind: ClassVar[str] = "Figure"

    make: Callable[[Evidence, Sequence[MethodComparison]], Drawing]


@dataclass(frozen=True, slots=True)
class Entry:
    """One number of a table, ours and the published one; columns are benchmarks."""

    row: str
    column: str
    published: Estimate
    measured: Estimate

    @property
    def is_defined(self) -> bool:
        """Whether our number exists; with one seed there is no standard error."""
        return not math.isnan(self.measured.value)

    @property
    def is_inside(self) -> bool:
        """Whether our number is in the paper's interval."""
        return self.published.contains(self.measured.value)


@dataclass(frozen=True, slots=True)
class PaperTable(Exhibit):
    """A table, whose entries are computed."""

    kind: ClassVar[str] = "Table"

    make: Callable[[Evidence, Sequence[MethodComparison]], Sequence[Entry]]


@dataclass(frozen=True, slots=True)
class Setting:
    """How methods are run on a benchmark."""

    protocol: Protocol
    seeds: tuple[int, ...]
    surrogate: str | None = None


def run_on_benchmark_itself(benchmark: str, seeds: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Put the runs with all seeds on the benchmark itself."""
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
    counted: Callable[[FloatArray], FloatArray] = count_everything
    landscape: Callable[[Benchmark], Landscape] = Landscape.of
    runs_on: Callable[[str, Sequence[int]], dict[str, tuple[int, ...]]] = run_on_benchmark_itself

    def setting_of(self, benchmark: str) -> Setting:
        """How methods are run on a benchmark."""
        return self.exceptions.get(benchmark, self.setting)

    def select(
        self, *, figures: Iterable[int] = (), tables: Iterable[int] = ()
    ) -> tuple[Exhibit, ...]:
        """Find figures and tables by their numbers; default: all of them."""
        wanted = [(PaperFigure.kind, number) for number in figures]
        wanted += [(PaperTable.kind, number) for number in tables]
        if not wanted:
            return self.exhibits

        exhibit_of_number = {(exhibit.kind, exhibit.number): exhibit for exhibit in self.exhibits}
        for kind, number in sorted(wanted):
            if (kind, number) not in exhibit_of_number:
                numbers = [str(exhibit.number) for exhibit in self.exhibits if exhibit.kind == kind]
                raise ExperimentError(
                    f"there is no {kind.lower()} {number} to reproduce, only "
                    f"{', '.join(numbers) or 'none'}"
                )
        return tuple(exhibit for place, exhibit in exhibit_of_number.items() if place in wanted)


def experiments(exhibits: Iterable[Exhibit]) -> dict[str, tuple[str, ...]]:
    """The methods to run on each benchmark, none if only the benchmark is shown."""
    methods_of_benchmark: dict[str, list[str]] = {}
    for comparison in combine_comparisons(exhibits):
        methods_of_benchmark.setdefault(comparison.benchmark, []).extend(comparison.methods)
    return {name: tuple(dict.fromkeys(methods)) for name, methods in methods_of_benchmark.items()}


def combine_comparisons(exhibits: Iterable[Exhibit]) -> tuple[MethodComparison, ...]:
    """The comparisons to run, one per benchmark and protocol with all methods there."""
    methods_of_place: dict[tuple[str, Protocol | None], list[str]] = {}
    for exhibit in exhibits:
        for comparison in exhibit.needs:
            place = (comparison.benchmark, comparison.protocol)
            methods_of_place.setdefault(place, []).extend(comparison.methods)
    return tuple(
        MethodComparison(benchmark, tuple(dict.fromkeys(methods)), protocol)
        for (benchmark, protocol), methods in methods_of_place.items()
    )
