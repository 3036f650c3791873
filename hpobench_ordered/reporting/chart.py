"""The interactive chart of the page, and colours that follow the page's theme.

The chart is made once, without data: the page's script gives it the curves of what is selected.
"""

import json
from typing import Any

import altair as alt

from hpobench_ordered.plotting.theme import DARK_COLOURS, FAINT, GRID, INK

BAND_OPACITY = 0.13


def variable(colour: str) -> str:
    """The CSS custom property that stands for a colour of charts on the page."""
    return f"var(--c{colour.removeprefix('#')})"


def colour_properties(*, dark: bool) -> str:
    """Definitions of the custom properties of all colours of charts."""
    pairs = DARK_COLOURS.items()
    return " ".join(f"--c{k.removeprefix('#')}: {v if dark else k};" for k, v in pairs)


def follow_theme(text: str) -> str:
    """Exchange the colours in a specification or an SVG for the page's custom properties."""
    for colour in DARK_COLOURS:
        text = text.replace(f'"{colour}"', f'"{variable(colour)}"')
    return text


def interactive_specification() -> dict[str, Any]:
    """The chart as a specification of Vega.

    Its data set `curves` has one row a method and trial: method, trial, mean, low, high, colour,
    dash, and whether the method is `chosen`, which gives it its colour and its band. Its data set
    `at` is the trial to mark. Its signals are `hovered`, a method, `title`, and `most`, where the
    vertical axis ends at the latest.
    """
    import vl_convert

    chart = _layers().properties(width=800, height=360, background="transparent")
    chart = chart.add_params(
        alt.param(name="title", value=""), alt.param(name="most", value=None)
    ).configure_view(stroke=None)
    chart = chart.configure_axis(
        labelColor=INK, titleColor=INK, tickColor=FAINT, domainColor=FAINT, gridColor=GRID,
        labelFontSize=12, titleFontSize=13, titleFontWeight="normal", format="~g",
    )  # fmt: skip
    spec = vl_convert.vegalite_to_vega(chart.to_dict())
    # Vega-Lite has no titles that change.
    axis = next(a for a in spec["axes"] if a["scale"] == "y" and not a["grid"])
    axis["title"] = {"signal": "title"}
    themed: dict[str, Any] = json.loads(follow_theme(json.dumps(spec)))
    return themed


def _layers() -> Any:
    hovered = alt.param(name="hovered", value=None)
    x = alt.X(
        "trial:Q",
        title="trial",
        scale=alt.Scale(nice=False, zero=False),
        axis=alt.Axis(tickMinStep=1),
    )
    y = alt.Y(
        "mean:Q",
        title=None,
        scale=alt.Scale(zero=False, domainMax=alt.ExprRef("most")),
    )
    base = alt.Chart(alt.NamedData("curves")).encode(x=x, detail="method:N")
    wide = alt.condition("datum.method === hovered", alt.value(4), alt.value(1.8))
    own = alt.Color("colour:N", scale=None, legend=None)
    line = base.encode(y=y, strokeWidth=wide)
    others = line.mark_line(clip=True, stroke=FAINT).encode(
        opacity=alt.condition("datum.method === hovered", alt.value(1), alt.value(0.3))
    )
    chosen = line.mark_line(clip=True).encode(
        color=own, strokeDash=alt.StrokeDash("dash:N", scale=None, legend=None)
    )
    band = base.mark_area(clip=True).encode(
        y=alt.Y("low:Q", title=None),
        y2="high:Q",
        color=own,
        opacity=alt.condition("datum.method === hovered", alt.value(0.3), alt.value(BAND_OPACITY)),
    )
    rule = alt.Chart(alt.NamedData("at")).mark_rule(stroke=FAINT, strokeDash=[3, 3])
    is_chosen, has_band = "datum.chosen", "datum.chosen && datum.low !== null"
    return alt.layer(
        rule.encode(x=x),
        others.transform_filter(f"!{is_chosen}"),
        band.transform_filter(has_band),
        chosen.transform_filter(is_chosen),
    ).add_params(hovered)
