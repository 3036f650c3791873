"""Which figures a report has: charts of `plotting`, of frames of `analysis`."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hpobench_ordered.analysis.labels import protocol_label
from hpobench_ordered.analysis.leaderboard import ALL
from hpobench_ordered.analysis.scores import RANDOM_SEARCH
from hpobench_ordered.plotting import Format, curves, encoded
from hpobench_ordered.reporting.chart import follow_theme
from hpobench_ordered.reporting.formats import csv_bytes, slug

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd
    from markupsafe import Markup

MOST = 10
"""So many methods have curves in figures; the interactive chart has all of them."""

DOTS_PER_INCH = 200.0
ENDINGS = ("png", "svg", "pdf", "csv")
SIZE = re.compile(r'<svg[^>]*? width="([0-9.]+)')
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
        text = IDS.sub(rf"\1{self.stem}-\2", follow_theme(self.svg))
        label = f'<svg role="img" aria-label="{escape(self.title)}" '
        return Markup(text.replace("<svg ", label, 1))

    def files(self) -> dict[str, bytes]:
        """Its files by name."""
        import vl_convert

        image = vl_convert.svg_to_png(self.svg, scale=DOTS_PER_INCH / 96, ppi=DOTS_PER_INCH)
        return {
            f"figures/{self.stem}.png": image,
            f"figures/{self.stem}.svg": self.svg.encode(),
            f"figures/{self.stem}.pdf": vl_convert.svg_to_pdf(self.svg),
            f"figures/{self.stem}.csv": csv_bytes(self.data),
        }


Described = tuple[str, str, str, list[Figure]]


def sections_of(
    content: Any,
    runs: "pd.DataFrame",
    scored: Sequence[Any],
    means: "pd.DataFrame",
    board: "pd.DataFrame",
) -> Iterator[Described]:
    """The sections of the page with figures: id, title, lead and figures of each."""
    yield "curves", "Curves by benchmark", "", list(_curves(means, board))


def _curves(means: "pd.DataFrame", board: "pd.DataFrame") -> Iterator[Figure]:
    """The normalised regret on each benchmark, and the mean ranks over all."""
    for protocol, part in means.groupby("protocol", observed=True, sort=False):
        methods = [str(name) for name in dict.fromkeys(part["method"])]
        best = best_methods(board[board["protocol"] == protocol])
        shown = part[part["method"].isin(best) & (part["benchmark"] != ALL)]
        shown = shown[shown["measure"] == "regret"]
        if not shown["mean"].notna().any():
            continue
        title = f"Normalised regret over trials, {protocol_label(str(protocol))}"
        chart = curves(shown, measure="regret", methods=methods, bands=len(best) <= 4, title=title)
        few = "" if len(best) == len(methods) else f" The {len(best)} methods of lowest mean rank."
        yield Figure(
            slug(f"curves {protocol}"),
            title,
            f"Means over tasks and seeds.{few}",
            chart,
            shown,
        )


def best_methods(board: "pd.DataFrame") -> list[str]:
    """The methods of lowest mean rank, and random search."""
    overall = board[board["benchmark"] == board["benchmark"].iloc[0]]
    ranked = overall.sort_values("rank", kind="stable")["method"].tolist()
    return [m for place, m in enumerate(ranked) if place < MOST or m == RANDOM_SEARCH]
