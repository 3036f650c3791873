"""The figures of a report: charts by `plotting` of frames by `analysis`."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup, Unit, rank_and_compare
from hpobench_ordered.analysis.curves import attainment_curves
from hpobench_ordered.analysis.labels import label_protocol
from hpobench_ordered.analysis.leaderboard import ALL
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.analysis.scoring import BenchmarkScores
from hpobench_ordered.analysis.verdict import FEWEST, TESTS
from hpobench_ordered.plotting import Panel, attainment, critical_differences, heatmap, landscape
from hpobench_ordered.plotting.evaluations import (
    Configurations,
    drawable,
    evaluated,
    evaluations,
    telling_axes,
)
from hpobench_ordered.plotting.saving import pdf_of, png_of, svg_of
from hpobench_ordered.plotting.theme import panel_names
from hpobench_ordered.reporting.chart import themed
from hpobench_ordered.reporting.formats import slug

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

MOST = 5
"""Figures draw curves of at most this many methods; the interactive chart has all of them."""

MOST_PANELS = 12
"""Of more benchmarks, only one of each family is drawn."""

MOST_LANDSCAPES = 2
"""Landscapes are drawn of at most this many benchmarks, each of another family."""

MOST_SEEDS = 3
"""Landscapes show evaluations of at most this many seeds."""

PARTS = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
"""Names of single marks in an SVG, removed since figures have a description and a table."""


@dataclass(frozen=True)
class Figure:
    """A chart, as the page and as files."""

    stem: str
    title: str
    caption: str
    chart: "alt.TopLevelMixin"

    @cached_property
    def svg(self) -> str:
        """The chart as SVG, from which all other formats are made."""
        return svg_of(self.chart, prefix=f"{self.stem}-")

    @property
    def markup(self) -> Markup:
        """The picture on the page, in the page's colours; its encoder escapes all text in it."""
        label = f'<svg role="img" aria-label="{escape(self.title)}" '
        return Markup(themed(PARTS.sub("", self.svg)).replace("<svg ", label, 1))

    @property
    def files(self) -> dict[str, bytes]:
        """Its files, by their ending."""
        return {"png": png_of(self.svg), "svg": self.svg.encode(), "pdf": pdf_of(self.svg)}


@dataclass(frozen=True)
class Material:
    """Scores, leaderboard and runs under one protocol, which figures are made from."""

    group: BenchmarkGroup
    board: "pd.DataFrame"
    runs: "pd.DataFrame"
    configurations: Configurations | None
    is_one_of_several: bool = False

    @cached_property
    def ranked(self) -> list[str]:
        """The methods by mean rank."""
        return [str(method) for method in self.board[self.board["benchmark"] == ALL]["method"]]

    @cached_property
    def best(self) -> list[str]:
        """The methods of lowest mean rank, and random search."""
        return [m for place, m in enumerate(self.ranked) if place < MOST or m == RANDOM_SEARCH]

    @cached_property
    def of_families(self) -> list[BenchmarkScores]:
        """The first benchmark of each family."""
        items = reversed(self.group.items)
        return [*{item.family or item.benchmark: item for item in items}.values()][::-1]

    def name(self, stem: str, title: str) -> tuple[str, str]:
        """Stem and title of one of the protocol's figures; the title says which of several."""
        label = label_protocol(self.group.protocol)
        return slug(f"{stem} {label}"), f"{title}; {label}" if self.is_one_of_several else title


def _heat_map(material: Material) -> Iterator[Figure]:
    if len(material.group.methods) < 2:
        return
    rows = material.board[material.board["benchmark"] != ALL].set_index("method")
    rows = rows.loc[[method for method in material.ranked if method in rows.index]].reset_index()
    caption = "After the last trial; 1 is best. Methods are in the order of the leaderboard."
    is_left_out = ~rows["benchmark"].isin([item.benchmark for item in material.group.items])
    if is_left_out.any():
        rows["benchmark"] = rows["benchmark"].where(~is_left_out, rows["benchmark"] + " *")
        caption += " * Left out of means over benchmarks."
    stem, title = material.name("heatmap", "Mean rank on each benchmark")
    yield Figure(stem, title, caption, heatmap(rows, title=title))


def _differences(material: Material) -> Iterator[Figure]:
    group = material.group
    for unit in Unit:
        ranking = rank_and_compare(group, unit=unit)
        if ranking is None or (unit is Unit.BENCHMARKS and ranking.samples < FEWEST):
            continue
        caption = (
            "Bars join methods that cannot be told apart at a level of 5 % by "
            f"{TESTS[ranking.post_hoc]}."
        )
        if unit is Unit.TASKS:
            caption += " A second view: tasks of one benchmark resemble each other."
        over = f"{ranking.samples} tasks" if unit is Unit.TASKS else group.scope
        what = f"Which mean ranks differ, over {over}"
        stem, title = material.name(f"differences {unit.value}", what)
        chart = critical_differences(ranking, methods=material.ranked, title=title)
        yield Figure(stem, title, caption, chart)


def _attainment(material: Material) -> Iterator[Figure]:
    best, methods = material.best, material.ranked
    is_part = len(material.group.items) > MOST_PANELS
    frame = attainment_curves(material.of_families if is_part else material.group.items)
    frame = frame[frame["method"].isin(best)]
    if not frame["level"].notna().any():
        return
    caption = "The line: half of the runs are at least as good after so many trials. "
    if len(methods) <= MOST:
        caption += "The band: from a quarter to three quarters of them."
    else:
        caption += "The band: from a quarter to three quarters of them, but for random search. "
        caption += f"Of the {MOST} methods of lowest mean rank, and random search."
    if is_part:
        caption += " On one benchmark of each family."
    stem, title = material.name("attainment", "Half of the runs are at least this good")
    frame = frame.assign(name=panel_names(frame))
    chart = attainment(frame, facet="name", methods=methods, title=title)
    yield Figure(stem, title, caption, chart)


def _landscapes(material: Material) -> Iterator[Figure]:
    group = material.group
    ranked = [method for method in material.best if method in group.methods]
    read = material.configurations
    if read is None or not ranked:
        return
    drawn = (_panels(item, material.runs, read, ranked) for item in material.of_families)
    if panels := [*chain.from_iterable(islice(filter(None, drawn), MOST_LANDSCAPES))]:
        caption = (
            "The objective by the two hyperparameters that explain most of the losses, all others "
            "as in the best configuration that any run evaluated, the cross; bright is good. "
            f"Points are what {ranked[0]} evaluated in one run, darker with the trial."
        )
        stem, title = material.name("landscapes", f"Where {ranked[0]} looked")
        yield Figure(stem, title, caption, landscape([panels], title=title))


def _panels(
    item: BenchmarkScores, runs: "pd.DataFrame", read: Configurations, ranked: Sequence[str]
) -> list[Panel]:
    """The first and the last task, with the points of the best method; none without two axes."""
    bench = drawable(item)
    if bench is None:
        return []
    seeds = item.seed_numbers[:MOST_SEEDS]
    tried = evaluations(item, runs, read, methods=ranked, seeds=seeds)
    by_task = {n: tried[tried["task"] == n] for n in (item.tasks[0], item.tasks[-1])}
    axes = telling_axes(bench, list(by_task.values()))
    return [
        evaluated(f"{bench.name}, task {task.name}", task, by_task[n], axes, ranked[0], seeds[0])
        for n, task in enumerate(bench.tasks)
        if axes is not None and n in by_task
    ]


SECTIONS: "Sequence[tuple[str, str, Callable[[Material], Iterator[Figure]]]]" = (
    ("heatmap", "Methods by benchmark", _heat_map),
    ("differences", "Critical differences", _differences),
    ("attainment", "What runs attain", _attainment),
    ("landscapes", "Landscapes", _landscapes),
)
"""Sections of the page with figures: id, title, and the function that makes its figures."""
