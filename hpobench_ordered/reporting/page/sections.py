"""The parts of the page: one a protocol, and in it one a benchmark."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hpobench_ordered.reporting.drawings.drawing import Drawing, slug
from hpobench_ordered.reporting.drawings.svg import inline_svg
from hpobench_ordered.reporting.labels import protocol_label
from hpobench_ordered.reporting.page.comparisons import (
    Together,
    significance_table,
    speedup_table,
    speedups_of,
    wins_of,
    wins_table,
)
from hpobench_ordered.reporting.page.figures import benchmark_drawings, overall_drawings
from hpobench_ordered.reporting.page.formats import Table
from hpobench_ordered.reporting.scoring import BenchmarkScores, by_protocol
from hpobench_ordered.reporting.tables import (
    best_cells,
    legend,
    mean_table,
    measures_shown,
    plus_minus,
    summary_rows,
)

if TYPE_CHECKING:
    from markupsafe import Markup


Landscapes = Callable[[BenchmarkScores], Drawing | None]

WIDTH = re.compile(rb'<svg [^>]*width="([0-9.]+)')


@dataclass(frozen=True)
class Section:
    """What the page shows of one benchmark under one protocol.

    Attributes:
        id: Its id on the page.
        short: Its name in the contents.
        title: Its heading.
        size: Number of seeds, tasks and trials.
        notes: What a reader must know.
        drawings: Its drawings.
        tables: Its tables.
        is_open: Whether it is open at first.
    """

    id: str
    short: str
    title: str
    size: str
    notes: Sequence[str]
    drawings: Sequence[Drawing]
    tables: Sequence[Table]
    is_open: bool

    @property
    def figures(self) -> "list[Figure]":
        """The drawings as the page shows them."""
        return [Figure(drawing) for drawing in self.drawings]


@dataclass(frozen=True)
class Part:
    """What the page shows of one protocol.

    Attributes:
        id: Its id on the page.
        title: Its heading: the protocol as people read it.
        notes: What a reader must know.
        drawings: The drawings of all benchmarks together.
        tables: The tables of all benchmarks together.
        sections: One a benchmark.
    """

    id: str
    title: str
    notes: Sequence[str]
    drawings: Sequence[Drawing]
    tables: Sequence[Table]
    sections: Sequence[Section]

    @property
    def figures(self) -> "list[Figure]":
        """The drawings as the page shows them."""
        return [Figure(drawing) for drawing in self.drawings]

    def all_drawings(self) -> Iterable[Drawing]:
        """Those of the sections as well."""
        yield from self.drawings
        for section in self.sections:
            yield from section.drawings

    def all_tables(self) -> Iterable[Table]:
        """Those of the sections as well."""
        yield from self.tables
        for section in self.sections:
            yield from section.tables


@dataclass(frozen=True)
class Figure:
    """A drawing as the template shows it.

    Attributes:
        drawing: The drawing.
    """

    drawing: Drawing

    @property
    def stem(self) -> str:
        """Name of its files, and its id."""
        return self.drawing.stem

    @property
    def title(self) -> str:
        """Its title."""
        return self.drawing.title

    @property
    def caption(self) -> str:
        """How to read it."""
        return self.drawing.caption

    @property
    def width(self) -> int:
        """Width in CSS pixels at which its text has its size."""
        found = WIDTH.search(self.drawing.svg)
        return round(float(found.group(1))) if found else 1000

    @property
    def svg(self) -> "Markup":
        """The picture; its encoder escapes all text in it."""
        from markupsafe import Markup

        return Markup(inline_svg(self.drawing))


def make_parts(scored: Sequence[BenchmarkScores], landscapes: Landscapes) -> list[Part]:
    """The parts of the page, that of most benchmarks first.

    Args:
        scored: Scores by benchmark.
        landscapes: Draws the landscape of a benchmark, if there is one.
    """
    parts: list[Part] = []
    for items in by_protocol(scored).values():
        parts.append(_part(items, landscapes, is_first=not parts))
    return parts


def _part(items: Sequence[BenchmarkScores], landscapes: Landscapes, *, is_first: bool) -> Part:
    together = Together.of(items)
    name = slug(together.protocol)
    notes, drawings, tables = [], [], []
    if len(together.methods) > 1:
        drawings = overall_drawings(together)
        tables = _overall_tables(together, name)
    else:
        notes.append(_alone(together))
    return Part(
        id=f"protocol-{name}",
        title=protocol_label(together.protocol),
        notes=notes,
        drawings=drawings,
        tables=tables,
        sections=[
            _section(item, landscapes(item), is_open=is_first and place == 0)
            for place, item in enumerate(items)
        ],
    )


def _alone(together: Together) -> str:
    """Why nothing is compared where there are no two methods to compare."""
    if len(together.items) == 1:
        if not together.items[0].excluded:
            return f"There is nothing to compare: only {together.methods[0]} was run."
        return (
            f"There is nothing to compare with {together.methods[0]}: no other method has finished "
            "half of its planned seeds."
        )
    return (
        "There is no comparison over all benchmarks: no two methods have finished half of their "
        "planned seeds on every one of them."
    )


def _overall_tables(together: Together, name: str) -> list[Table]:
    tables = [wins_table(wins_of(together), together, f"wins-{name}")]
    significance = significance_table(together, f"significance-{name}")
    tables += [] if significance is None else [significance]
    found = speedups_of(together)
    tables += [speedup_table(found, together, f"speedup-{name}")] if found else []
    return tables


def _section(item: BenchmarkScores, landscape: Drawing | None, *, is_open: bool) -> Section:
    stem = slug(f"{item.benchmark} {item.protocol}")
    return Section(
        id=f"benchmark-{stem}",
        short=item.benchmark,
        title=item.benchmark,
        size=item.size,
        notes=item.notes(),
        drawings=benchmark_drawings(item) + ([] if landscape is None else [landscape]),
        tables=[_summary_table(item, f"summary-{stem}"), _task_table(item, f"tasks-{stem}")],
        is_open=is_open,
    )


def _summary_table(item: BenchmarkScores, stem: str) -> Table:
    header, *rows = summary_rows(item)
    return Table(
        stem=stem,
        caption=(
            f"{item.benchmark}: means over the tasks that count, ± two standard errors over seeds."
        ),
        header=header,
        rows=rows,
        text_columns=2,
        data=mean_table([item], only_shown=True),
        note=legend(measures_shown(item))[1],
        best=best_cells(item),
    )


def _task_table(item: BenchmarkScores, stem: str) -> Table:
    """Values by task after the last trial: a row a task, a column a method."""
    import pandas as pd

    values = item.measures["value"]
    mean, errors = values.mean[..., -1], values.two_standard_errors[..., -1]
    rows = [
        (name, *(plus_minus(mean[a, t], errors[a, t]) for a in range(len(item.methods))))
        for t, name in enumerate(item.task_names)
    ]
    index = pd.MultiIndex.from_product([item.methods, item.task_names], names=["method", "task"])
    columns = {"mean": mean.ravel(), "two_standard_errors": errors.ravel()}
    better = "higher" if item.is_maximised else "lower"
    return Table(
        stem=stem,
        caption=(
            f"{item.benchmark}: value by task after trial {item.last_trial}, ± two standard errors "
            f"over seeds; {better} is better."
        ),
        header=("task", *item.methods),
        rows=rows,
        text_columns=1,
        data=pd.DataFrame(columns, index=index).reset_index(),
    )
