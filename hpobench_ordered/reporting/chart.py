"""The interactive chart of the page, and colours that follow the page's theme.

The chart is made once, without data: the page's script gives it the curves of what is selected.
"""

import json
from typing import Any

import altair as alt

from hpobench_ordered.plotting.theme import DARK_COLOURS, FAINT, configured, recoloured


def themed(text: str) -> str:
    """Exchange the colours in a specification or an SVG for those that follow the page's theme."""
    both = {light: f"light-dark({light}, {dark})" for light, dark in DARK_COLOURS.items()}
    return recoloured(text, both)


def interactive_specification() -> dict[str, Any]:
    """The chart as a specification of Vega.

    Its data set `curves` has one row per method and trial: method, trial, mean, low, high, colour,
    dash, and whether the method is `chosen`, which gives it its colour and its band. Its data set
    `at` is the trial to mark; `names` has the trial, mean, colour and name of what is written at
    the ends of curves. Its signals are `hovered`, a method, and `title`.
    """
    import vl_convert

    title = alt.TitleParams(alt.ExprRef("title"), anchor="start", fontSize=13, fontWeight="normal")
    chart = configured(_layers(), title=title, description="Curves over trials.")
    chart = chart.properties(width=800, height=360, background="transparent", padding=5)
    spec = vl_convert.vegalite_to_vega(chart.to_dict())
    followed: dict[str, Any] = json.loads(themed(json.dumps(spec)))
    return followed


def _layers() -> Any:
    hovered, title = (alt.param(name=name, value=None) for name in ("hovered", "title"))
    scale = alt.Scale(nice=False, zero=False)
    x = alt.X("trial:Q", title="trial", scale=scale, axis=alt.Axis(tickMinStep=1, format="d"))
    y = alt.Y("mean:Q", title=None, scale=alt.Scale(zero=False))
    base = alt.Chart(alt.NamedData("curves")).encode(x=x, detail="method:N")

    def when_hovered(hovered: float, otherwise: float) -> Any:
        test = "datum.method === hovered"
        return alt.condition(test, alt.value(hovered), alt.value(otherwise))

    colour = alt.Color("colour:N", scale=None, legend=None)
    line = base.encode(y=y, strokeWidth=when_hovered(4, 1.8))
    dash = alt.StrokeDash("dash:N", scale=None, legend=None)
    band = base.mark_area(clip=True).encode(
        y=alt.Y("low:Q", title=None), y2="high:Q", color=colour, opacity=when_hovered(0.3, 0.13)
    )
    rule = alt.Chart(alt.NamedData("at")).mark_rule(stroke=FAINT, strokeDash=[3, 3]).encode(x=x)
    others = line.mark_line(clip=True, stroke=FAINT).encode(opacity=when_hovered(1, 0.3))
    chosen = line.mark_line(clip=True).encode(color=colour, strokeDash=dash)
    end = alt.Chart(alt.NamedData("names")).encode(x=x, y=y)
    dot = end.mark_point(filled=True, opacity=1, size=45, xOffset=10, aria=False)
    name = end.mark_text(align="left", baseline="middle", dx=18, fontSize=11.5, aria=False)
    return alt.layer(
        rule,
        others.transform_filter("!datum.chosen"),
        band.transform_filter("datum.chosen && datum.low !== null"),
        chosen.transform_filter("datum.chosen"),
        dot.encode(color=colour),
        name.encode(text="name:N"),
    ).add_params(hovered, title)
