"""Charts beside each other, and posteriors of models of a function of one variable."""

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from hpobench_ordered.plotting.theme import (
    GRID,
    PALETTE,
    SEQUENCE,
    by_method,
    configured,
    panel_title,
)

if TYPE_CHECKING:
    import pandas as pd

SIZE = (250, 180)
"""Width and height of a panel, in pixels."""
LOOKS = ("color", "strokeDash", "shape")
"""Channels that tell methods apart."""
TRUTH, BELIEF, EVALUATED = (PALETTE[place].colour for place in (6, 1, 5))


def beside(
    charts: Iterable[Any], *, columns: int, title: str, shared: bool = True
) -> alt.TopLevelMixin:
    """Put finished charts beside each other, `columns` in a row.

    If the methods are the same in all, `shared`, one legend is for all.
    """
    panels = [chart.copy() for chart in charts]
    for panel in panels:
        panel.config = alt.Undefined
    with warnings.catch_warnings():  # one choice in the legend is for all charts
        warnings.filterwarnings("ignore", "Automatically deduplicated", UserWarning)
        # Not rows in a column: Altair tells layers apart by their place in one concatenation.
        whole = alt.concat(*panels, columns=columns)
    if not shared:
        whole = whole.resolve_scale(**dict.fromkeys(LOOKS, "independent"))
    return configured(whole, title=title, description=title)


def times(frame: "pd.DataFrame", *, methods: Sequence[str] = (), title: str) -> alt.TopLevelMixin:
    """Draw the time that methods take, on a logarithmic axis: columns method and milliseconds."""
    order = list(frame["method"])
    looks = by_method(order, methods)
    chart = alt.Chart(frame).mark_point(filled=True, size=70, opacity=1)
    chart = chart.encode(
        x=alt.X(
            "milliseconds:Q",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(title="ms a suggestion", tickCount=4, format="~r"),
        ),
        y=alt.Y("method:N", sort=order, title=None),
        color=looks["color"],
        shape=looks["shape"],
        tooltip=["method:N", alt.Tooltip("milliseconds:Q", format=".3~r")],
    )
    return configured(chart.properties(width=SIZE[0]), title=title, description=title)


def functions(frame: "pd.DataFrame", *, x: str, title: str) -> alt.TopLevelMixin:
    """Draw functions of a variable `x`: columns method (the function's name), x and value."""
    looks = by_method(frame["method"])
    chart = alt.Chart(frame).mark_line(strokeWidth=1.6)
    chart = chart.encode(
        x=alt.X("x:Q", title=x),
        y=alt.Y("value:Q", title="objective"),
        color=looks["color"],
        strokeDash=looks["strokeDash"],
    )
    chart = chart.properties(width=2 * SIZE[0], height=SIZE[1])
    return configured(chart, title=title, description=title)


def posterior(
    belief: "pd.DataFrame", evaluations: "pd.DataFrame", bases: "pd.DataFrame", *, title: str
) -> alt.HConcatChart:
    """Draw a model of a function: on the left its posterior, on the right its basis functions.

    The belief has columns x, truth, mean, low and high; the evaluations that it was fitted to, x
    and y; the bases, basis, x, value and weight, a share of the largest one, between 0 and 1.
    """
    ends = [float(belief["truth"].min()), float(belief["truth"].max())]
    room = 0.4 * (ends[1] - ends[0])
    scale = alt.Scale(domain=[ends[0] - room, ends[1] + room], nice=False)
    x = alt.X("x:Q", title="x")
    base = alt.Chart(belief).encode(x=x)
    y = alt.Y("truth:Q", title="value", scale=scale)
    band = base.mark_area(color=TRUTH, opacity=0.2, clip=True).encode(y=alt.Y("low:Q"), y2="high:Q")
    truth = base.mark_line(color=TRUTH, clip=True).encode(y=y)
    mean = base.mark_line(color=BELIEF, clip=True).encode(y="mean:Q")
    dots = alt.Chart(evaluations).mark_point(filled=True, size=50, opacity=1, color=EVALUATED)
    left = alt.layer(band, truth, mean, dots.encode(x="x:Q", y="y:Q"))
    colours = alt.Scale(range=[GRID, SEQUENCE[0]], domain=[0, 1])
    right = alt.Chart(bases).mark_line(strokeWidth=1.4)
    right = right.encode(
        x=x,
        y=alt.Y("value:Q", title="basis functions"),
        detail="basis:N",
        color=alt.Color("weight:Q", scale=colours, title="weight"),
        order="x:Q",
    )
    parts = (part.properties(width=SIZE[0], height=SIZE[1]) for part in (left, right))
    return alt.hconcat(*parts).properties(title=panel_title(title))
