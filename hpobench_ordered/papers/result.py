"""The result of a reproduction."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hpobench_ordered.experiment.plan import Cell
from hpobench_ordered.experiment.store import Store
from hpobench_ordered.papers.paper import (
    Claim,
    Entry,
    Exhibit,
    Finding,
    Outcome,
    Paper,
    PaperTable,
    Setting,
    combine_outcomes,
)

RESULTS = "results"
"""Folder of the store, inside that of the reproduction."""

SUMMARY = "summary.md"
GALLERY = "figures.md"
CLAIMS = "claims.csv"


@dataclass(frozen=True, slots=True)
class Setup:
    """What is reproduced, and in which setting."""

    paper: Paper
    exhibits: tuple[Exhibit, ...]
    settings: Mapping[str, Setting]
    folder: Path

    @property
    def surrogates(self) -> dict[str, str]:
        """Surrogate of each benchmark."""
        return {name: str(setting.surrogate) for name, setting in self.settings.items()}

    def runs_on(self, benchmark: str) -> dict[str, tuple[int, ...]]:
        """The benchmarks of the runs, with their seeds; see `Paper.runs_on`."""
        return self.paper.runs_on(benchmark, self.settings[benchmark].seeds)

    @property
    def store(self) -> Store:
        """Where the runs are."""
        return Store(self.folder / RESULTS)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are written, except for runs."""
        names = [SUMMARY, GALLERY, CLAIMS]
        for exhibit in self.exhibits:
            suffixes = ("csv",) if isinstance(exhibit, PaperTable) else ("png", "svg", "csv")
            names += [f"{exhibit.name}.{suffix}" for suffix in suffixes]
        return tuple(self.folder / name for name in names)


@dataclass(frozen=True, slots=True)
class CheckedClaim:
    """A claim and whether it holds."""

    exhibit: Exhibit
    claim: Claim
    findings: tuple[Finding, ...]

    @property
    def verdict(self) -> str:
        """Whether it holds, by the findings: "fails", or such as "2 of 3 hold, 1 is undecided"."""
        outcomes = [finding.outcome for finding in self.findings]
        if len(set(outcomes)) == 1:
            return outcomes[0].value

        text = f"{outcomes.count(Outcome.HOLDS)} of {len(outcomes)} hold"
        n_undecided = outcomes.count(Outcome.UNDECIDED)
        if n_undecided:
            text += f", {n_undecided} {'is' if n_undecided == 1 else 'are'} undecided"
        return text

    @property
    def outcome(self) -> Outcome:
        """Whether it holds everywhere: it fails if any finding does."""
        return combine_outcomes(finding.outcome for finding in self.findings)


@dataclass(frozen=True)
class Reproduction:
    """The result of a reproduction: its runs, checked claims, and entries by table.

    `fallbacks` counts by method the suggestions that were random because a model failed.
    """

    setup: Setup
    cells: tuple[Cell, ...] = field(repr=False)
    fallbacks: Mapping[str, int]
    claims: tuple[CheckedClaim, ...] = field(repr=False)
    entries: Mapping[str, tuple[Entry, ...]] = field(repr=False)
