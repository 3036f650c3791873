"""The parts of a paper to reproduce: figures and tables with their claims, and settings.

A figure or table lists the comparisons that it is drawn from; only these are run.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.benchmark import Benchmark
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.experiment.protocols import Protocol
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.papers.claims import Claim
from hpobench_ordered.papers.evidence import (
    Comparisons,
    Evidence,
    Landscape,
    MethodComparison,
    count_everything,
)

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

FIGURE = "Figure"
TABLE = "Table"
"""Kinds of exhibits, as papers name them."""


@dataclass(frozen=True, slots=True)
class Content:
    """What is shown in a figure or table: its numbers and, in a figure, the chart."""

    data: "pd.DataFrame"
    chart: "alt.TopLevelMixin | None" = None


Check = Callable[[Evidence, Comparisons], Iterable[Claim]]
"""Checks the claims that a paper makes of a figure or table."""


def claim_nothing(_: Evidence, __: Comparisons) -> Iterable[Claim]:
    """Return no claims: the paper says nothing of the figure that can be checked."""
    return ()


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A figure or table of a paper, made from the comparisons that it `comparisons`.

    `caption` describes ours, `says` what the paper says of its own; both are in our own words.
    """

    number: int
    caption: str
    says: str
    comparisons: tuple[MethodComparison, ...]
    make: Callable[[Evidence, Comparisons], Content]
    check: Check = claim_nothing
    kind: str = FIGURE

    @property
    def name(self) -> str:
        """Prefix of its file names, such as "figure-5"."""
        return f"{self.kind.lower()}-{self.number}"

    @property
    def title(self) -> str:
        """Its title in the paper, such as "Figure 5"."""
        return f"{self.kind} {self.number}"


@dataclass(frozen=True, slots=True)
class Setting:
    """How methods are run on a benchmark."""

    protocol: Protocol
    seeds: tuple[int, ...]
    surrogate: str | None = None


def run_on_benchmark_itself(benchmark: str, seeds: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return the benchmark itself as the only one that is run on, with all seeds."""
    return {benchmark: tuple(seeds)}


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper whose results can be reproduced.

    `setting` is how methods are run, `exceptions` by benchmark where it differs; `methods` are
    those that are not registered, by their names in comparisons, `notes` explains the scores in
    reports. Functions for one paper: `counted` selects from a quantity, (A, S, T, M), what enters
    means, `landscape` the configurations of a benchmark to show, and `runs_on` the benchmarks of
    runs, each with its seeds. `with_authors_bo` is the same paper with its authors' own Bayesian
    optimisation, if that is rebuilt.
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
    with_authors_bo: "Paper | None" = None

    def setting_of(self, benchmark: str) -> Setting:
        """Return how methods are run on a benchmark: its exception, or else the paper's setting."""
        return self.exceptions.get(benchmark, self.setting)

    def require_authors_bo(self) -> "Paper":
        """Return the paper with its authors' Bayesian optimisation.

        Raises:
            ExperimentError: It is not rebuilt for this paper.
        """
        if self.with_authors_bo is None:
            raise ExperimentError(f"the Bayesian optimisation of {self.name} is not rebuilt")
        return self.with_authors_bo

    def select(
        self, *, figures: Iterable[int] = (), tables: Iterable[int] = ()
    ) -> tuple[Exhibit, ...]:
        """Select figures and tables by their numbers; without any number, select all.

        Raises:
            ExperimentError: The paper has no such figure or table.
        """
        wanted = [(FIGURE, number) for number in figures]
        wanted += [(TABLE, number) for number in tables]
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
    """List the methods to run on each benchmark, none if only the benchmark is shown."""
    methods_of_benchmark: dict[str, list[str]] = {}
    for comparison in combine_comparisons(exhibits):
        methods_of_benchmark.setdefault(comparison.benchmark, []).extend(comparison.methods)
    return {name: tuple(dict.fromkeys(methods)) for name, methods in methods_of_benchmark.items()}


def combine_comparisons(exhibits: Iterable[Exhibit]) -> tuple[MethodComparison, ...]:
    """Combine the comparisons of figures and tables, so that no method is run twice.

    Returns:
        A comparison for each benchmark and protocol, with all methods that any of them has there.
    """
    methods_of_place: dict[tuple[str, Protocol | None], list[str]] = {}
    for exhibit in exhibits:
        for comparison in exhibit.comparisons:
            place = (comparison.benchmark, comparison.protocol)
            methods_of_place.setdefault(place, []).extend(comparison.methods)
    return tuple(
        MethodComparison(benchmark, tuple(dict.fromkeys(methods)), protocol)
        for (benchmark, protocol), methods in methods_of_place.items()
    )
