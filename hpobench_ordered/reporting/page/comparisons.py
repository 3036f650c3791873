"""Comparisons on all benchmarks of a protocol: who beats whom, how surely, and how much faster.

Notation:
    A   number of methods
    n   number of samples: the tasks that count, of all benchmarks
    G   number of budgets
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.analysis.critical_differences import CriticalDifference, critical_difference
from hpobench_ordered.analysis.samples import Resampling, samples_of
from hpobench_ordered.analysis.significance import pairwise_wilcoxon
from hpobench_ordered.analysis.speedup import PAPER_BUDGETS, Speedups, geometric_mean, speedups
from hpobench_ordered.analysis.wins import Wins, count_wins
from hpobench_ordered.protocols import Adjustment
from hpobench_ordered.reporting.labels import protocol_label
from hpobench_ordered.reporting.page.formats import NOTHING, Table
from hpobench_ordered.reporting.scoring import BenchmarkScores
from hpobench_ordered.reporting.style import drawing_order

if TYPE_CHECKING:
    import pandas as pd

MEASURE = "normalised regret"
"""What tests compare: it is on one scale on all tasks."""

SIGNIFICANCE_NOTE = (
    f"A sample is a task that counts, with its mean {MEASURE} over seeds after the last trial. "
    "Tasks of one ordered benchmark resemble each other: p values are too small rather than too "
    "large."
)


@dataclass(frozen=True, slots=True)
class Together:
    """Several benchmarks under one protocol, and the methods compared on all of them.

    Attributes:
        protocol: The protocol, with its settings.
        items: Scores by benchmark.
        methods: Names of the methods, in drawing order, length A.
    """

    protocol: str
    items: tuple[BenchmarkScores, ...]
    methods: tuple[str, ...]

    @classmethod
    def of(cls, items: Sequence[BenchmarkScores]) -> "Together":
        """Benchmarks of one protocol, at least one."""
        common = set(items[0].methods).intersection(*(item.methods for item in items))
        return cls(items[0].protocol, tuple(items), tuple(drawing_order(common)))

    @property
    def about(self) -> str:
        """The benchmarks, in words."""
        return self.items[0].benchmark if len(self.items) == 1 else f"{len(self.items)} benchmarks"

    @property
    def title(self) -> str:
        """The benchmarks and the protocol, which no other has."""
        return f"{self.about}, {protocol_label(self.protocol)}"

    def rows(self, item: BenchmarkScores) -> list[int]:
        """Places of the methods among those of a benchmark."""
        return [item.methods.index(method) for method in self.methods]

    def samples(self) -> FloatArray:
        """Normalised regret after the last trial on every task on which there is one, (n, A)."""
        by_benchmark = [
            samples_of(
                item.measures[MEASURE].values[self.rows(item)][..., -1],
                Resampling.TASKS,
                first_task=item.first_task,
            )
            for item in self.items
        ]
        return np.concatenate(by_benchmark)


def wins_of(together: Together) -> Wins:
    """Wins after the last trial in all runs of the tasks that count, of all benchmarks."""
    counted = [
        count_wins(
            item.losses[together.rows(item)],
            together.methods,
            trial=item.last_trial,
            first_task=item.first_task,
        )
        for item in together.items
    ]
    wins, ties = (
        np.sum([getattr(one, name) for one in counted], axis=0) for name in ("wins", "ties")
    )
    return Wins(together.methods, wins, ties)


def differences_of(together: Together) -> CriticalDifference | None:
    """Critical differences of mean ranks over tasks; None where there is nothing to test."""
    samples = together.samples()
    if len(together.methods) < 2 or not len(samples):
        return None
    return critical_difference(samples, together.methods)


def wins_table(wins: Wins, together: Together, stem: str) -> Table:
    """How often the method of a row beat that of a column: won / tied / lost."""
    rows = [
        (
            method,
            *(
                NOTHING
                if a == b
                else "/".join(str(m[a, b]) for m in (wins.wins, wins.ties, wins.losses))
                for b in range(len(wins.methods))
            ),
        )
        for a, method in enumerate(wins.methods)
    ]
    return Table(
        stem=stem,
        caption=(
            "How often the method of the row was better than, as good as and worse than that of "
            f"the column after the last trial: pairs of runs with the same seed and task, "
            f"{together.about}."
        ),
        header=("won/tied/lost", *wins.methods),
        rows=rows,
        text_columns=1,
        data=_pairs(wins.methods, wins=wins.wins, ties=wins.ties, losses=wins.losses),
        is_folded=True,  # a figure shows the same
    )


def significance_table(together: Together, stem: str) -> Table | None:
    """Wilcoxon's test of every pair of methods; None where there is nothing to test."""
    samples = together.samples()
    if len(together.methods) < 2 or not len(samples):
        return None
    tests = pairwise_wilcoxon(samples, together.methods)
    rows = [
        (method, *(NOTHING if a == b else _p(p) for b, p in enumerate(tests.adjusted[a])))
        for a, method in enumerate(tests.methods)
    ]
    return Table(
        stem=stem,
        caption=(
            "Two-sided p values of Wilcoxon's signed-rank test with Holm's correction for all "
            f"pairs of methods, on {tests.samples} tasks ({together.about})."
        ),
        header=("p (Holm)", *tests.methods),
        rows=rows,
        text_columns=1,
        data=_pairs(tests.methods, p=tests.p_values, p_holm=tests.adjusted),
        note=SIGNIFICANCE_NOTE,
    )


def speedups_of(together: Together) -> list[Speedups]:
    """Speed-ups by benchmark over the method that ran before the adjustment.

    Empty for other protocols, and where that method is not compared.
    """
    name, _, settings = together.protocol.partition("(")
    if name != Adjustment().name:
        return []
    # A setting stands as "name=value" between commas.
    values = dict(part.split("=", 1) for part in settings.rstrip(")").split(", ") if "=" in part)
    reference = values.get("first_method", Adjustment().first_method)
    if reference not in together.methods:
        return []
    trials = min(item.last_trial for item in together.items)
    budgets = [budget for budget in PAPER_BUDGETS if budget < trials]
    if not budgets:
        return []
    return [
        speedups(
            item.losses[together.rows(item)],
            together.methods,
            reference=reference,
            budgets=budgets,
            first_task=item.first_task,
        )
        for item in together.items
    ]


def speedup_table(found: Sequence[Speedups], together: Together, stem: str) -> Table:
    """Speed-up and failure rate: geometric means over tasks, then over benchmarks."""
    import pandas as pd

    first = found[0]
    mean = geometric_mean(np.stack([one.mean for one in found]), axis=0)
    failures = np.mean([one.mean_failure_rate for one in found], axis=0)
    cells = [
        [f"{mean[a, g]:.2f} ({failures[a, g]:.0%})" for g in range(len(first.budgets))]
        for a in range(len(first.methods))
    ]
    records = [
        {
            "benchmark": item.benchmark,
            "method": method,
            "budget": budget,
            "speedup": one.mean[a, g],
            "failure_rate": one.mean_failure_rate[a, g],
        }
        for item, one in zip(together.items, found, strict=True)
        for a, method in enumerate(one.methods)
        for g, budget in enumerate(one.budgets)
    ]
    return Table(
        stem=stem,
        caption=(
            f"Speed-up over {first.reference}: how many times fewer trials a method needs to get "
            "as far as that on average in so many trials (geometric means over tasks and then "
            "benchmarks), and in brackets the share of its runs that never get there."
        ),
        header=("method", *(f"{budget} trials" for budget in first.budgets)),
        rows=[(method, *row) for method, row in zip(first.methods, cells, strict=True)],
        text_columns=1,
        data=pd.DataFrame(records),
    )


def _p(value: float) -> str:
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _pairs(methods: Sequence[str], **matrices: FloatArray | IntArray) -> "pd.DataFrame":
    """Matrices as a table with a row for each pair of different methods."""
    import pandas as pd

    rows = [
        {"method": one, "other": other} | {name: matrix[a, b] for name, matrix in matrices.items()}
        for a, one in enumerate(methods)
        for b, other in enumerate(methods)
        if a != b
    ]
    return pd.DataFrame(rows)
