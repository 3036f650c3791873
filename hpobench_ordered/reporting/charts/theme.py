"""How charts look: the first eight methods in colour, random search in black, the others grey.

Charts name methods in the order of what they show, such as that of the leaderboard, and those that
come first have the colours. Any two of these stay 15 or more apart in CIELAB for readers with any
of the three kinds of colour blindness, on white and on dark pages, and have a contrast of at least
3:1; dashes and markers tell methods apart without colour.

A chart is made with the colours of a white page; a report's page exchanges each for its
counterpart where readers prefer a dark one.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt

from hpobench_ordered.analysis.scores import RANDOM_SEARCH

if TYPE_CHECKING:
    import pandas as pd

INK, FAINT, GRID, PAGE = "#1A1A1B", "#6B6B6C", "#DEDEDF", "#FFFFFE"
"""Colours of text and axes, of minor text, of grid lines, and of the page."""

ON_LIGHT, ON_DARK = "#111111", "#FFFFFF"
"""Colours of text on light and on dark cells; the same on every page."""

SEQUENCE = ("#123A63", "#1F5F8B", "#3B86A8", "#6FAFBF", "#A9D0CC", "#DCE9D5", "#F7F6E6")
"""Colours from good to bad, lighter at every step, so that the order shows in grey, too."""

TRIALS = ("#FFFFFF", "#FFE6CC", "#FFCC99", "#FFAE66", "#F98B36", "#E4660F", "#B84A00", "#7F3000")
"""Colours of points, from the first trial to the last; they differ from `SEQUENCE` in hue."""

Dashes = tuple[float, ...]

DASHES: Mapping[str, Dashes] = {
    "solid": (1, 0),
    "dashed": (5, 2.5),
    "dash-dot": (6, 2, 1.5, 2),
    "dotted": (1.5, 1.8),
    "long": (12, 3),
    "dash-dot-dot": (6, 2, 1.5, 2, 1.5, 2),
    "wide gaps": (4, 5),
    "dash-dash-dot": (6, 2, 6, 2, 1.5, 2),
    "wide dots": (1.5, 4.5),
    "dash-dots": (6, 2, 1.5, 2, 1.5, 2, 1.5, 2),
    "short": (2.8, 1.4),
    "long-dot": (12, 2, 1.5, 2),
}
CROSS = "M-.9,-.5L-.5,-.9L0,-.4L.5,-.9L.9,-.5L.4,0L.9,.5L.5,.9L0,.4L-.5,.9L-.9,.5L-.4,0Z"
STAR = "M0,-1L.25,-.35L.95,-.3L.4,.13L.6,.8L0,.43L-.6,.8L-.4,.13L-.95,-.3L-.25,-.35Z"
PENTAGON = "M0,-.9L.86,-.28L.53,.73L-.53,.73L-.86,-.28Z"
HEXAGON = "M-.45,-.78L.45,-.78L.9,0L.45,.78L-.45,.78L-.9,0Z"
THIN = "M0,-1L.55,0L0,1L-.55,0Z"


MAX_NAMES_IN_LEGEND_ROW = 5


@dataclass(frozen=True, slots=True)
class Style:
    """How a method is drawn: colours on a light and a dark page, dashes and marker."""

    colour: str
    dark: str
    dashes: Dashes
    marker: str


def _style(colour: str, dark: str, dashes: str, marker: str) -> Style:
    """Make a style from the name of its dashes; `dark` is its colour on a dark page."""
    return Style(colour, dark, DASHES[dashes], marker)


PALETTE = (
    _style("#0134F7", "#2E68F5", "solid", "circle"),
    _style("#D77B05", "#FEC53A", "dashed", "diamond"),
    _style("#B63390", "#BE5C93", "dash-dot", PENTAGON),
    _style("#007553", "#37A36D", "long", "triangle-up"),
    _style("#7819AD", "#9450B0", "dash-dot-dot", "triangle-down"),
    _style("#B53F0C", "#E98335", "short", CROSS),
    _style("#1C99CD", "#58C6F9", "long-dot", HEXAGON),
    _style("#75974F", "#B6DC8C", "wide gaps", "triangle-left"),
)
"""Styles of the first methods."""

REFERENCE = _style(INK, "#EBEBEC", "dotted", "square")
"""The style of random search, which the others are measured by."""

GREY = "#8A8A8B"

DARK_COLOURS: Mapping[str, str] = {
    **{style.colour: style.dark for style in (*PALETTE, REFERENCE)},
    GREY: "#8A8A8C",
    FAINT: "#A9A9AA",
    GRID: "#3C3F45",
    PAGE: "#1B1D22",
}
"""Each colour of a chart and its counterpart on a dark page."""


def styles(methods: Iterable[str]) -> dict[str, Style]:
    """Choose the style of each method: the first eight are in colour, others grey.

    The methods are in the order of what is shown. Random search always has the same style.
    """
    style_of_method = {RANDOM_SEARCH: REFERENCE}
    others = [method for method in dict.fromkeys(methods) if method != RANDOM_SEARCH]
    for number, method in enumerate(others):
        has_colour = number < len(PALETTE)
        style_of_method[method] = PALETTE[number] if has_colour else _grey_style(number)
    return style_of_method


def _grey_style(number: int) -> Style:
    """Make a style without colour; neighbouring numbers have different dashes and markers."""
    all_dashes = list(DASHES.values())
    markers = (THIN, STAR, "triangle-right")
    return Style(
        colour=GREY,
        dark=DARK_COLOURS[GREY],
        dashes=all_dashes[number % len(all_dashes)],
        marker=markers[number % len(markers)],
    )


def by_method(shown: Iterable[str], methods: Iterable[str] = ()) -> dict[str, Any]:
    """Make Altair's channels that tell methods apart: color, strokeDash and shape, with a legend.

    Args:
        shown: Names of the methods that a chart shows.
        methods: All methods of the experiment, whose order decides the colours; default: those
            shown.
    """
    shown = list(dict.fromkeys(shown))
    style_of_method = styles([*methods, *shown])
    names = [name for name in style_of_method if name in shown]  # random search first
    looks = [style_of_method[name] for name in names]
    # The legend is below the chart, in rows of about the same length.
    n_rows = math.ceil(len(names) / MAX_NAMES_IN_LEGEND_ROW)
    n_columns = math.ceil(len(names) / max(n_rows, 1))
    # Colour and shape have the same legend, so that Vega draws it once. Its markers have no
    # outlines, which would be dashed as the lines are.
    legend = alt.Legend(
        title=None, orient="bottom", columns=n_columns, symbolSize=90, symbolStrokeWidth=0
    )
    colours = alt.Scale(domain=names, range=[look.colour for look in looks])
    dashes = alt.Scale(domain=names, range=[list(look.dashes) for look in looks])
    markers = alt.Scale(domain=names, range=[look.marker for look in looks])
    return {
        "color": alt.Color("method:N", scale=colours, legend=legend),
        "strokeDash": alt.StrokeDash("method:N", scale=dashes, legend=None),
        "shape": alt.Shape("method:N", scale=markers, legend=legend),
    }


def value_tips(*columns: str) -> list[Any]:
    """List the tooltips of a chart: the method, the given columns, the mean and its interval."""
    means = (alt.Tooltip(f"{name}:Q", format=".4~r") for name in ("mean", "low", "high"))
    return ["method:N", *columns, *means]


def panel_title(text: str) -> alt.TitleParams:
    """Make the title of one of several panels; it may have several lines."""
    return alt.TitleParams(text.split("\n"), fontSize=12, anchor="start")


def panel_names(frame: "pd.DataFrame") -> "pd.Series[str]":
    """Name the panel of every row after its benchmark, as in "newsvendor@1".

    The surrogate is added, as in "newsvendor@1 (table)", if the frame has the benchmark on several.
    """
    n_surrogates = frame.groupby("benchmark", observed=True)["surrogate"].transform("nunique")
    benchmark = frame["benchmark"].astype(str)
    with_surrogate = benchmark + " (" + frame["surrogate"].astype(str) + ")"
    is_on_several = n_surrogates > 1
    return benchmark.mask(is_on_several, with_surrogate)


def facetted(chart: Any, column: str, panels: Sequence[str], columns: int) -> alt.FacetChart:
    """Draw a chart once for each panel.

    Args:
        chart: The chart, with its data.
        column: Column of the data that names the panel of each row.
        panels: Names of the panels, in the order in which they are drawn.
        columns: Number of panels in a row.
    """
    header = alt.Header(title=None, labelAnchor="start")
    whole = chart.facet(alt.Facet(f"{column}:N", sort=list(panels), header=header), columns=columns)
    # Panels share the horizontal axis below the last row. If that row is not full, the panels above
    # its empty places would have none: each panel then has its own axis.
    is_ragged = len(panels) > columns and len(panels) % columns > 0
    return whole.resolve_axis(x="independent") if is_ragged else whole


def configured(chart: Any, *, title: Any, description: str) -> alt.TopLevelMixin:
    """Give a finished chart the theme, a title, and a description for screen readers."""
    text = {"labelColor": INK, "titleColor": INK, "titleFontSize": 12}
    plain = {**text, "labelFontSize": 11, "titleFontWeight": "normal"}
    config = {
        "background": PAGE,
        "padding": 8,
        "font": "sans-serif",
        "view": {"stroke": None},
        "axis": {
            **plain, "tickColor": FAINT, "domainColor": FAINT, "gridColor": GRID, "labelLimit": 200,
        },
        "legend": {**plain, "labelLimit": 0, "symbolStrokeWidth": 1.8, "symbolOpacity": 1},
        "header": {**text, "labelFontSize": 12, "labelLimit": 400},
        "title": {
            "color": INK, "fontSize": 14, "fontWeight": "normal", "anchor": "start",
            "subtitleColor": FAINT,
        },
        "text": {"color": INK},
    }  # fmt: skip
    # Attributes are set directly: `properties` and `configure` would each copy all of the chart.
    themed: alt.TopLevelMixin = chart.copy(deep=False)
    themed.title = title
    themed.description = description
    themed.config = alt.Config(**config)
    return themed


def recoloured(text: str, colours: Mapping[str, str]) -> str:
    """Replace colours in the text of a chart's specification or SVG.

    Args:
        text: The text, with colours in double quotes.
        colours: The new colour for each old one.
    """
    for colour, counterpart in colours.items():
        text = text.replace(f'"{colour}"', f'"{counterpart}"')
    return text
