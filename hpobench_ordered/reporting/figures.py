"""Which figures a report has: charts of `plotting`, of frames of `analysis`."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import vl_convert
from markupsafe import Markup, escape

from hpobench_ordered.analysis.curves import QUARTILES, attained
from hpobench_ordered.analysis.labels import protocol_label
from hpobench_ordered.analysis.leaderboard import ALL
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.analysis.together import Together, Unit, differences_of
from hpobench_ordered.analysis.verdict import FEWEST, TESTS
from hpobench_ordered.plotting import Format, critical_differences, curves, encoded, heatmap
from hpobench_ordered.plotting.landscapes import landscape
from hpobench_ordered.plotting.saving import pdf_of
from hpobench_ordered.plotting.theme import drawing_order
from hpobench_ordered.reporting.chart import follow_theme
from hpobench_ordered.reporting.formats import slug
from hpobench_ordered.reporting.landscapes import Configurations, panels

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

    Draw = Callable[..., alt.TopLevelMixin]

MOST = 10
"""So many methods have curves in figures; the interactive chart has all of them."""

MOST_BANDS = 4
"""With at most so many methods curves have bands."""

MOST_LANDSCAPES = 2
"""So many benchmarks have landscapes, each of another family."""

DOTS_PER_INCH = 150.0
PARTS = re.compile(r' (?:role|aria-[a-z]+)="[^"]*"')
"""What names single marks, which is of no use in a picture with a name and a table beside it."""

IDS = re.compile(r'(id="|url\(#|href="#)(clip|gradient)')


@dataclass(frozen=True)
class Figure:
    """A chart, as the page and as files.

    Attributes:
        stem: Name of its files, without ending, and its id on the page.
        title: What it shows, for those who do not see it.
        caption: How to read it.
        chart: The chart.
    """

    stem: str
    title: str
    caption: str
    chart: "alt.TopLevelMixin"

    @cached_property
    def svg(self) -> str:
        """The chart as SVG, from which all other formats are made."""
        return encoded(self.chart, [Format.SVG])[Format.SVG].decode()

    @property
    def markup(self) -> Markup:
        """The picture on the page, in the page's colours; its encoder escapes all text in it."""
        # All figures of a page share the names of what they refer to.
        text = IDS.sub(rf"\1{self.stem}-\2", follow_theme(PARTS.sub("", self.svg)))
        label = f'<svg role="img" aria-label="{escape(self.title)}" '
        return Markup(text.replace("<svg ", label, 1))

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Its files, by their ending."""
        yield "png", vl_convert.svg_to_png(self.svg, scale=DOTS_PER_INCH / 96, ppi=DOTS_PER_INCH)
        yield "svg", self.svg.encode()
        yield "pdf", pdf_of(self.svg)


@dataclass(frozen=True)
class Material:
    """What the figures of one protocol are made of.

    Attributes:
        group: Scores of its benchmarks.
        board: Their leaderboard, as `analysis.leaderboard.leaderboard` gives.
        runs: All runs, as `Overview.runs`.
        configurations: Gives the configurations of runs by their keys; None: no landscapes.
    """

    group: Together
    board: "pd.DataFrame"
    runs: "pd.DataFrame"
    configurations: Configurations | None

    @cached_property
    def ranked(self) -> list[str]:
        """The methods by mean rank."""
        return [str(method) for method in self.board[self.board["benchmark"] == ALL]["method"]]

    @cached_property
    def best(self) -> list[str]:
        """The methods of lowest mean rank, and random search."""
        return [m for place, m in enumerate(self.ranked) if place < MOST or m == RANDOM_SEARCH]

    def figure(self, stem: str, title: str, caption: str, draw: "Draw") -> Figure:
        """A figure of the protocol."""
        label = protocol_label(self.group.protocol)
        title = f"{title}, {label}"
        return Figure(slug(f"{stem} {label}"), title, caption, draw(title=title))


def _panels(frame: "pd.DataFrame") -> "pd.DataFrame":
    """With the column `panel`: the benchmark, and its surrogate where it has several."""
    several = frame.groupby("benchmark", observed=True)["surrogate"].transform("nunique") > 1
    name, surrogate = frame["benchmark"].astype(str), frame["surrogate"].astype(str)
    return frame.assign(panel=name.where(~several, name + " (" + surrogate + ")"))


def _heat_map(material: Material) -> Iterator[Figure]:
    if len(material.group.methods) < 2:
        return
    rows = _panels(material.board[material.board["benchmark"] != ALL])
    rows = rows[["panel", "method", "rank"]].dropna().set_index("method")
    # Methods stand in rows: there may be forty of them, and a page is longer than wide.
    turned = rows.loc[[m for m in material.ranked if m in rows.index]].reset_index()
    turned = turned.rename(columns={"method": "benchmark", "panel": "method"})
    caption = (
        "Mean rank of every method after the last trial; 1 is best, dark is better. Methods are "
        "in the order of the leaderboard."
    )
    draw = partial(heatmap, turned)
    yield material.figure("heatmap", "Mean rank by benchmark", caption, draw)


def _differences(material: Material) -> Iterator[Figure]:
    group = material.group
    for unit in Unit:
        ranking = differences_of(group, unit=unit)
        if ranking is None or (unit is Unit.BENCHMARKS and ranking.samples < FEWEST):
            continue
        caption = (
            "Bars join methods that cannot be told apart at a level of 5 % by "
            f"{TESTS[ranking.post_hoc]}."
        )
        if unit is Unit.TASKS:
            caption += " A second view: tasks of one benchmark resemble each other."
        title = f"Mean ranks, tested over {ranking.samples} {unit.value}"
        draw = partial(critical_differences, ranking, methods=group.methods)
        yield material.figure(f"differences {unit.value}", title, caption, draw)


def _attainment(material: Material) -> Iterator[Figure]:
    best, methods = material.best, drawing_order(material.group.methods)
    frame = attained(material.group.items)
    frame = _panels(frame[frame["method"].isin(best)])
    labels = ["panel", "method", "trial"]
    levels = frame.pivot(index=labels, columns="fraction", values="level").reset_index()
    levels = levels.rename(columns=dict(zip(QUARTILES, ("low", "mean", "high"), strict=True)))
    if not len(levels) or not levels["mean"].notna().any():
        return
    caption = "What the best quarter, half (the line) and three quarters of the runs attain."
    if len(best) < len(methods):
        caption += f" Of the {MOST} methods of lowest mean rank, and random search."
    draw = partial(
        curves,
        levels.assign(measure="regret"),
        measure="regret",
        facet="panel",
        methods=methods,
        bands=len(best) <= MOST_BANDS,
    )
    yield material.figure("attainment", "Normalised regret that runs attain", caption, draw)


def _landscapes(material: Material) -> Iterator[Figure]:
    group, configurations = material.group, material.configurations
    ranked = [method for method in material.best if method in group.methods]
    if configurations is None or not ranked:
        return
    families = {item.benchmark.partition("-")[0]: item for item in reversed(group.items)}
    chosen = list(reversed(families.values()))[:MOST_LANDSCAPES]
    rows = [panels(item, material.runs, configurations, ranked) for item in chosen]
    rows = [row for row in rows if row]
    if rows:
        caption = (
            "Best value evaluated in each cell of the two hyperparameters that explain most of the "
            f"losses; bright is good, the cross is the best. Points are what {ranked[0]} evaluated "
            "in one run, darker with the trial."
        )
        yield material.figure("landscapes", "Landscapes", caption, partial(landscape, rows))


SECTIONS: "Sequence[tuple[str, str, Callable[[Material], Iterator[Figure]]]]" = (
    ("heatmap", "Methods by benchmark", _heat_map),
    ("differences", "Critical differences", _differences),
    ("attainment", "What runs attain", _attainment),
    ("landscapes", "Landscapes", _landscapes),
)
"""Sections of the page with figures: id, title, and what makes the figures of one protocol."""
