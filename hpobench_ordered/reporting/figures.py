"""Which figures a report has: charts of `plotting`, of frames of `analysis`."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from hpobench_ordered.analysis.curves import QUARTILES, attained
from hpobench_ordered.analysis.labels import protocol_label
from hpobench_ordered.analysis.leaderboard import ALL
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.analysis.scoring import BenchmarkScores, by_protocol
from hpobench_ordered.analysis.together import Together, Unit, differences_of
from hpobench_ordered.analysis.verdict import FEWEST, TESTS
from hpobench_ordered.plotting import Format, critical_differences, curves, encoded, heatmap
from hpobench_ordered.plotting.landscapes import landscape
from hpobench_ordered.plotting.saving import pdf_of
from hpobench_ordered.plotting.theme import drawing_order
from hpobench_ordered.reporting.chart import follow_theme
from hpobench_ordered.reporting.formats import csv_bytes, slug
from hpobench_ordered.reporting.landscapes import chosen_benchmarks, panels

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd
    from markupsafe import Markup

    from hpobench_ordered.reporting.landscapes import Configurations
    from hpobench_ordered.reporting.write import ReportInput

MOST = 10
"""So many methods have curves in figures; the interactive chart has all of them."""

MOST_BANDS = 4
"""With at most so many methods curves have bands."""

DOTS_PER_INCH = 200.0
ENDINGS = ("png", "svg", "pdf", "csv")
SIZE = re.compile(r'<svg[^>]*? width="([0-9.]+)')
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
        data: What it shows.
    """

    stem: str
    title: str
    caption: str
    chart: "alt.TopLevelMixin"
    data: "pd.DataFrame"
    endings: Sequence[str] = ENDINGS

    @cached_property
    def svg(self) -> str:
        """The chart as SVG, from which all other formats are made."""
        return encoded(self.chart, [Format.SVG])[Format.SVG].decode()

    @property
    def width(self) -> int:
        """Width in CSS pixels at which its text has its size."""
        found = SIZE.search(self.svg)
        return round(float(found.group(1))) if found else 1000

    @property
    def markup(self) -> "Markup":
        """The picture on the page, in the page's colours; its encoder escapes all text in it."""
        from markupsafe import Markup, escape

        # All figures of a page share the names of what they refer to.
        text = IDS.sub(rf"\1{self.stem}-\2", follow_theme(PARTS.sub("", self.svg)))
        label = f'<svg role="img" aria-label="{escape(self.title)}" '
        return Markup(text.replace("<svg ", label, 1))

    def files(self) -> dict[str, bytes]:
        """Its files by name."""
        import vl_convert

        image = vl_convert.svg_to_png(self.svg, scale=DOTS_PER_INCH / 96, ppi=DOTS_PER_INCH)
        return {
            f"figures/{self.stem}.png": image,
            f"figures/{self.stem}.svg": self.svg.encode(),
            f"figures/{self.stem}.pdf": pdf_of(self.svg),
            f"figures/{self.stem}.csv": csv_bytes(self.data),
        }


Described = tuple[str, str, list[Figure]]


def sections_of(
    content: "ReportInput",
    runs: "pd.DataFrame",
    scored: Sequence[BenchmarkScores],
    means: "pd.DataFrame",
    board: "pd.DataFrame",
) -> Iterator[Described]:
    """The sections of the page with figures: id, title and figures of each.

    Args:
        content: What the report is made of.
        runs: One row a planned run, as `Overview.runs`.
        scored: Scores by benchmark.
        means: Their curves, as `analysis.curves.curves` gives.
        board: As `analysis.leaderboard.leaderboard` gives.
    """
    groups = [Together.of(items) for items in by_protocol(scored).values()]
    compared = [group for group in groups if len(group.methods) > 1]
    best = {group.protocol: _best(board, group) for group in groups}
    found: dict[tuple[str, str], list[Figure | None]] = {
        ("heatmap", "Methods by benchmark"): [_heat_map(board, group) for group in compared],
        ("differences", "Critical differences"): [
            figure for group in compared for figure in _differences(group)
        ],
        ("curves", "Curves by benchmark"): [_curves(means, group, best) for group in groups],
        ("attainment", "What runs attain"): [_attainment(group, best) for group in groups],
        ("landscapes", "Landscapes"): [
            _landscapes(content.configurations, runs, group, best[group.protocol])
            for group in groups[:1]
            if content.configurations is not None
        ],
    }
    for (name, title), figures in found.items():
        yield name, title, [figure for figure in figures if figure is not None]


def _best(board: "pd.DataFrame", group: Together) -> list[str]:
    """The methods of lowest mean rank, and random search."""
    rows = board[(board["protocol"] == group.protocol) & (board["benchmark"] == ALL)]
    ranked = rows.sort_values("rank", kind="stable")["method"].tolist()
    return [m for place, m in enumerate(ranked) if place < MOST or m == RANDOM_SEARCH]


def _title(what: str, group: Together) -> str:
    return f"{what}, {protocol_label(group.protocol)}"


def _panels(frame: "pd.DataFrame") -> "pd.DataFrame":
    """With the column `panel`: the benchmark, and its surrogate where it has several."""
    several = frame.groupby("benchmark", observed=True)["surrogate"].transform("nunique") > 1
    name, surrogate = frame["benchmark"].astype(str), frame["surrogate"].astype(str)
    return frame.assign(panel=name.where(~several, name + " (" + surrogate + ")"))


def _heat_map(board: "pd.DataFrame", group: Together) -> Figure:
    rows = _panels(board[(board["protocol"] == group.protocol) & (board["benchmark"] != ALL)])
    order = board[(board["protocol"] == group.protocol) & (board["benchmark"] == ALL)]["method"]
    data = rows[["panel", "method", "rank"]].dropna()
    data = data.set_index("method").loc[[m for m in order if m in set(data["method"])]]
    data = data.reset_index()
    # Methods stand in rows: there may be forty of them, and a page is longer than wide.
    turned = data.rename(columns={"method": "benchmark", "panel": "method"})
    title = _title("Mean rank by benchmark", group)
    chart = heatmap(turned, measure="rank", rows="benchmark", title=title)
    caption = (
        "Mean rank of every method after the last trial; 1 is best, dark is better. Methods are "
        "in the order of the leaderboard."
    )
    return Figure(slug(f"heatmap {group.protocol}"), title, caption, chart, data)


def _differences(group: Together) -> Iterator[Figure]:
    import pandas as pd

    for unit in Unit:
        ranking = differences_of(group, unit=unit)
        if ranking is None or (unit is Unit.BENCHMARKS and ranking.samples < FEWEST):
            continue
        title = _title(f"Mean ranks, tested over {ranking.samples} {unit.value}", group)
        caption = (
            "Bars join methods that cannot be told apart at a level of 5 % by "
            f"{TESTS[ranking.post_hoc]}."
        )
        if unit is Unit.TASKS:
            caption += " A second view: tasks of one benchmark resemble each other."
        places = range(len(ranking.methods))
        groups = [[n for n, (a, b) in enumerate(ranking.groups) if a <= p <= b] for p in places]
        columns = {
            "method": ranking.methods,
            "mean_rank": ranking.mean_ranks,
            "groups": [" ".join(map(str, numbers)) for numbers in groups],
        }
        chart = critical_differences(ranking, methods=group.methods, title=title)
        stem = slug(f"differences {unit.value} {group.protocol}")
        yield Figure(stem, title, caption, chart, pd.DataFrame(columns))


def _curves(
    means: "pd.DataFrame", group: Together, best: Mapping[str, Sequence[str]]
) -> Figure | None:
    """The normalised regret on each benchmark."""
    part = means[(means["protocol"] == group.protocol) & (means["benchmark"] != ALL)]
    return _multiples(
        part[part["measure"] == "regret"],
        group,
        best[group.protocol],
        what="Normalised regret over trials",
        stem="curves",
        caption="Means over tasks and seeds.",
    )


def _attainment(group: Together, best: Mapping[str, Sequence[str]]) -> Figure | None:
    """The normalised regret that a half of the runs attains, with quartiles."""
    frame = attained(group.items)
    frame = frame[frame["method"].isin(best[group.protocol])]
    labels = ["protocol", "benchmark", "surrogate", "method", "trial"]
    levels = frame.pivot(index=labels, columns="fraction", values="level").reset_index()
    names = dict(zip(QUARTILES, ("low", "mean", "high"), strict=True))
    return _multiples(
        levels.rename(columns=names).assign(measure="regret"),
        group,
        best[group.protocol],
        what="Normalised regret that runs attain",
        stem="attainment",
        caption="What the best quarter, half (the line) and three quarters of the runs attain on "
        "all tasks.",
    )


def _landscapes(
    configurations: "Configurations", runs: "pd.DataFrame", group: Together, best: Sequence[str]
) -> Figure | None:
    import pandas as pd

    ranked = [method for method in best if method in group.methods]
    if not ranked:
        return None
    rows = [panels(item, runs, configurations, ranked) for item in chosen_benchmarks(group.items)]
    rows = [row for row in rows if row]
    if not rows:
        return None
    title = _title("Landscapes", group)
    frames = [
        panel.values.assign(panel=panel.title)
        for row in rows
        for panel in row
        if panel.values is not None
    ]
    return Figure(
        slug(f"landscapes {group.protocol}"),
        title,
        "Best value evaluated in each cell of the two hyperparameters that explain most of the "
        f"losses; bright is good, the cross is the best. Points are what {ranked[0]} evaluated in "
        "one run, darker with the trial.",
        landscape(rows, title=title),
        pd.concat(frames, ignore_index=True),
    )


def _multiples(
    frame: "pd.DataFrame",
    group: Together,
    best: Sequence[str],
    *,
    what: str,
    stem: str,
    caption: str,
) -> Figure | None:
    """Curves of the best methods, one panel a benchmark; None where there is nothing to draw."""
    shown = _panels(frame[frame["method"].isin(best)])
    if not shown["mean"].notna().any():
        return None
    if len(best) < len(group.methods):
        caption += f" Of the {MOST} methods of lowest mean rank, and random search."
    title = _title(what, group)
    chart = curves(
        shown,
        measure="regret",
        facet="panel",
        methods=drawing_order(group.methods),
        bands=len(best) <= MOST_BANDS,
        title=title,
    )
    return Figure(slug(f"{stem} {group.protocol}"), title, caption, chart, shown)
