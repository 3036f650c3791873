"""What became of the planned runs: counts by benchmark and method, and every failure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpobench_ordered.reporting.labels import protocol_label
from hpobench_ordered.reporting.page.formats import Table
from hpobench_ordered.reporting.scoring import GROUP
from hpobench_ordered.reporting.style import drawing_order

if TYPE_CHECKING:
    import pandas as pd

STATES = ("done", "failed", "running", "missing")


@dataclass(frozen=True)
class Counts:
    """What became of the runs of one method on one benchmark.

    Attributes:
        states: Number of runs by state.
    """

    states: Mapping[str, int]

    @property
    def planned(self) -> int:
        """Number of runs."""
        return sum(self.states.values())

    @property
    def is_complete(self) -> bool:
        """Whether all are finished."""
        return self.states["done"] == self.planned

    @property
    def others(self) -> str:
        """What is not finished, such as "1 failed, 1 missing"."""
        return ", ".join(f"{self.states[s]} {s}" for s in STATES[1:] if self.states[s])

    def __str__(self) -> str:
        """Such as "5" or "3 of 5: 1 failed, 1 missing"."""
        if self.is_complete:
            return str(self.planned)
        return f"{self.states['done']} of {self.planned}: {self.others}"


@dataclass(frozen=True)
class Coverage:
    """What became of the planned runs.

    Attributes:
        methods: All methods, in drawing order.
        rows: By benchmark with its surrogate, and protocol: counts by method, only of those that
            were planned there.
        totals: Number of runs by state.
    """

    methods: Sequence[str]
    rows: Mapping[tuple[str, str], Mapping[str, Counts]]
    totals: Counts

    @property
    def is_complete(self) -> bool:
        """Whether every planned run is finished."""
        return self.totals.is_complete

    def of(self, benchmark: str, protocol: str) -> Mapping[str, Counts]:
        """Counts by method on one benchmark."""
        return self.rows.get((benchmark, protocol), {})


def coverage(runs: "pd.DataFrame") -> Coverage:
    """Count the runs by benchmark, method and state.

    Args:
        runs: One row a run: benchmark, surrogate, protocol, method and state.
    """
    counted = runs.groupby([*GROUP, "method", "state"], observed=True).size()
    rows: dict[tuple[str, str], dict[str, dict[str, int]]] = {}
    for (benchmark, surrogate, protocol, method, state), count in counted.items():
        row = rows.setdefault((f"{benchmark} ({surrogate})", str(protocol)), {})
        row.setdefault(str(method), dict.fromkeys(STATES, 0))[str(state)] = int(count)
    totals = {s: sum(n[s] for row in rows.values() for n in row.values()) for s in STATES}
    return Coverage(
        methods=drawing_order({method for row in rows.values() for method in row}),
        rows={
            key: {method: Counts(states) for method, states in row.items()}
            for key, row in rows.items()
        },
        totals=Counts(totals),
    )


def coverage_table(found: Coverage) -> Table:
    """The counts as a table: a row a benchmark and protocol, a column a method."""
    import pandas as pd

    rows, records = [], []
    for (benchmark, protocol), row in found.rows.items():
        cells = (str(row[method]) if method in row else "-" for method in found.methods)
        rows.append((benchmark, protocol_label(protocol), *cells))
        records += [
            {"benchmark": benchmark, "protocol": protocol, "method": method, **counts.states}
            for method, counts in row.items()
        ]
    return Table(
        stem="coverage",
        caption="Finished runs by benchmark and method; what is not finished is named.",
        header=("benchmark", "protocol", *found.methods),
        rows=rows,
        text_columns=2,
        data=pd.DataFrame(records),
    )
