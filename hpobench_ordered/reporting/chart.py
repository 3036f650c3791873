"""The interactive chart of the page, and colours that follow the page's theme.

The chart is built once, without data: the page's script gives it the curves that are selected.
"""

import json
from typing import Any

import altair as alt

from hpobench_ordered.reporting.charts.theme import DARK_COLOURS, FAINT, configured, recoloured


def follow_theme(text: str) -> str:
    """Exchange the colours in a specification or an SVG for those that follow the page's theme."""
    theme_colours = {light: f"light-dark({light}, {dark})" for light, dark in DARK_COLOURS.items()}
    return recoloured(text, theme_colours)


def build_specification() -> dict[str, Any]:
    """Build the chart as a specification of Vega, without data.

    The page's script fills three data sets and sets two signals:

    - `curves`, one row per method and trial: method, trial, mean, low, high, colour, dash, and
      whether the method is `chosen`; only chosen methods have their colour and a band.
    - `at`: the trial to mark.
    - `names`, the labels at the ends of curves: trial, mean, colour and name.
    - `hovered`: the method under the pointer.
    - `title`: the title of the chart.
    """
    import vl_convert

    title = alt.TitleParams(alt.ExprRef("title"), anchor="start", fontSize=13, fontWeight="normal")
    chart = configured(_layers(), title=title, description="Curves over trials.")
    chart = chart.properties(width=800, height=360, background="transparent", padding=5)
    light_text = json.dumps(vl_convert.vegalite_to_vega(chart.to_dict()))
    specification: dict[str, Any] = json.loads(follow_theme(light_text))
    return specification


def _layers() -> alt.LayerChart:
    """The layers: the marked trial, curves, bands, and the names at the ends of curves.

    They take their data from the sets that `build_specification` lists. Colours and dashes are
    columns of these, which need no scale.
    """
    hovered = alt.param(name="hovered", value=None)
    title = alt.param(name="title", value=None)

    trial_axis = alt.Axis(tickMinStep=1, format="d")
    x = alt.X("trial:Q", title="trial", scale=alt.Scale(nice=False, zero=False), axis=trial_axis)
    y = alt.Y("mean:Q", title=None, scale=alt.Scale(zero=False))
    colour = alt.Color("colour:N", scale=None, legend=None)
    dashes = alt.StrokeDash("dash:N", scale=None, legend=None)

    marked_trial = alt.Chart(alt.NamedData("at")).mark_rule(stroke=FAINT, strokeDash=[3, 3])

    curves = alt.Chart(alt.NamedData("curves")).encode(x=x, detail="method:N")
    band = curves.mark_area(clip=True).encode(
        y=alt.Y("low:Q", title=None),
        y2="high:Q",
        color=colour,
        opacity=_if_hovered(0.3, otherwise=0.13),
    )
    line = curves.encode(y=y, strokeWidth=_if_hovered(4, otherwise=1.8))
    grey_line = line.mark_line(clip=True, stroke=FAINT)
    grey_line = grey_line.encode(opacity=_if_hovered(1, otherwise=0.3))
    coloured_line = line.mark_line(clip=True).encode(color=colour, strokeDash=dashes)

    ends = alt.Chart(alt.NamedData("names")).encode(x=x, y=y)
    dot = ends.mark_point(filled=True, opacity=1, size=45, xOffset=10, aria=False)
    name = ends.mark_text(align="left", baseline="middle", dx=18, fontSize=11.5, aria=False)

    return alt.layer(
        marked_trial.encode(x=x),
        grey_line.transform_filter("!datum.chosen"),
        band.transform_filter("datum.chosen && datum.low !== null"),
        coloured_line.transform_filter("datum.chosen"),
        dot.encode(color=colour),
        name.encode(text="name:N"),
    ).add_params(hovered, title)


def _if_hovered(value: float, *, otherwise: float) -> Any:
    """Choose a number: `value` for the method under the pointer, `otherwise` for the others."""
    is_hovered = "datum.method === hovered"
    return alt.condition(is_hovered, alt.value(value), alt.value(otherwise))
