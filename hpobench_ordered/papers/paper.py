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
    """A figure or table of a paper.

    Attributes:
        number: Its number in the paper.
        caption: What our figure or table shows.
        paper_says: What the paper says of its own figure or table, in our own words.
        comparisons: What it is made from; only these methods are run.
        make_content: Draws the figure or computes the table from the results and `comparisons`.
        check: Checks the claims that the paper makes of it.
        kind: `FIGURE` or `TABLE`.
    """

    number: int
    caption: str
    paper_says: str
    comparisons: tuple[MethodComparison, ...]
    make_content: Callable[[Evidence, Comparisons], Content]
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
    surrogate: str | None = None  # default: the benchmark's default surrogate


def run_on_benchmark_itself(benchmark: str, seeds: Sequence[int]) -> dict[str, tuple[int, ...]]:
    """Return the only benchmark that runs are on, which is the given one, with all seeds."""
    return {benchmark: tuple(seeds)}


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper whose results can be reproduced.

    Attributes:
        name: Name of the paper in commands.
        citation: The authors, the year and the title.
        setting: How methods are run.
        exhibits: The figures and tables that can be reproduced.
        notes: Explains the scores to readers of the summary.
        exceptions: The setting of each benchmark where it differs from `setting`.
        methods: Methods that are not registered, by their names in comparisons.
        select_counted: Selects from a quantity, (methods, seeds, tasks, trials), what enters means.
        landscape: Chooses the configurations of a benchmark that landscapes show.
        assign_seeds: Takes a benchmark and seeds, and returns the benchmarks that runs are on, each
            with its seeds: a benchmark may have a copy with other data for each seed.
        with_authors_bo: The same paper with its authors' own Bayesian optimisation; None if that is
            not rebuilt.
    """

    name: str
    citation: str
    setting: Setting
    exhibits: tuple[Exhibit, ...]
    notes: str
    exceptions: Mapping[str, Setting] = field(default_factory=dict, hash=False)
    methods: Mapping[str, MethodSpec] = field(default_factory=dict, hash=False)
    select_counted: Callable[[FloatArray], FloatArray] = count_everything
    landscape: Callable[[Benchmark], Landscape] = Landscape.of
    assign_seeds: Callable[[str, Sequence[int]], dict[str, tuple[int, ...]]] = (
        run_on_benchmark_itself
    )
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
                existing = ", ".join(numbers) or "none"
                raise ExperimentError(
                    f"there is no {kind.lower()} {number} to reproduce, only {existing}"
                )
        # In the order of the paper, each once.
        return tuple(
            exhibit
            for kind_and_number, exhibit in exhibit_of_number.items()
            if kind_and_number in wanted
        )


def experiments(exhibits: Iterable[Exhibit]) -> dict[str, tuple[str, ...]]:
    """List the methods to run on each benchmark that figures or tables need.

    A benchmark that is only shown, as in landscapes, has no methods.
    """
    methods_of_benchmark: dict[str, list[str]] = {}
    for comparison in combine_comparisons(exhibits):
        methods_of_benchmark.setdefault(comparison.benchmark, []).extend(comparison.methods)
    # Several protocols may have the same method.
    return {name: tuple(dict.fromkeys(methods)) for name, methods in methods_of_benchmark.items()}


def combine_comparisons(exhibits: Iterable[Exhibit]) -> tuple[MethodComparison, ...]:
    """Combine the comparisons of figures and tables, so that no method is run twice.

    Returns:
        A comparison for each benchmark and protocol, with all methods that any of them has there.
    """
    methods_of_key: dict[tuple[str, Protocol | None], list[str]] = {}
    for exhibit in exhibits:
        for comparison in exhibit.comparisons:
            key = (comparison.benchmark, comparison.protocol)
            methods_of_key.setdefault(key, []).extend(comparison.methods)
    combined = []
    for (benchmark, protocol), methods in methods_of_key.items():
        each_once = tuple(dict.fromkeys(methods))
        combined.append(MethodComparison(benchmark, each_once, protocol))
    return tuple(combined)
