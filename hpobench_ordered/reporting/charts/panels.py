"""Charts beside each other, and posteriors of models of a function of one variable."""

import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from hpobench_ordered.reporting.charts.theme import (
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
METHOD_CHANNELS = ("color", "strokeDash", "shape")
"""Channels that tell methods apart."""

TRUTH_COLOUR = PALETTE[6].colour
MODEL_COLOUR = PALETTE[1].colour
EVALUATION_COLOUR = PALETTE[5].colour


def beside(
    charts: Iterable[Any], *, columns: int, title: str, shared: bool = True
) -> alt.TopLevelMixin:
    """Put finished charts beside each other, `columns` in a row.

    Args:
        charts: The charts, in the order of reading.
        columns: Charts in a row.
        title: Title and description of the whole.
        shared: Whether all charts have the same methods, so that they share one legend.
    """
    panels = []
    for chart in charts:
        panel = chart.copy()
        panel.config = alt.Undefined  # only the whole may have a theme
        panels.append(panel)

    with warnings.catch_warnings():
        # Charts share one parameter, so that a choice in the legend is for all of them.
        warnings.filterwarnings("ignore", "Automatically deduplicated", UserWarning)
        # Not rows in a column: Altair tells layers apart by their place in one concatenation.
        whole = alt.concat(*panels, columns=columns)

    if not shared:
        whole = whole.resolve_scale(**dict.fromkeys(METHOD_CHANNELS, "independent"))
    return configured(whole, title=title, description=title)


def times(frame: "pd.DataFrame", *, methods: Sequence[str] = (), title: str) -> alt.TopLevelMixin:
    """Draw the time that each method takes for a suggestion, on a logarithmic axis.

    Args:
        frame: One row per method, from top to bottom: columns method and milliseconds.
        methods: All methods of the experiment, which decide the colours; default: those shown.
        title: Title and description.
    """
    shown = list(frame["method"])
    looks = by_method(shown, methods)
    time_axis = alt.Axis(title="ms a suggestion", tickCount=4, format="~r")
    chart = alt.Chart(frame).mark_point(filled=True, size=70, opacity=1)
    chart = chart.encode(
        x=alt.X("milliseconds:Q", scale=alt.Scale(type="log"), axis=time_axis),
        y=alt.Y("method:N", sort=shown, title=None),
        color=looks["color"],
        shape=looks["shape"],
        tooltip=["method:N", alt.Tooltip("milliseconds:Q", format=".3~r")],
    )
    return configured(chart.properties(width=SIZE[0]), title=title, description=title)


def functions(frame: "pd.DataFrame", *, x: str, title: str) -> alt.TopLevelMixin:
    """Draw functions of one variable, whose name is `x`.

    The frame has columns method (the function's name), x and value.
    """
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

    Args:
        belief: The function and the model's posterior: columns x, truth, mean, low and high.
        evaluations: What the model was fitted to: columns x and y.
        bases: Basis functions: columns basis (its name), x, value and weight, relative to the
            largest weight, between 0 and 1.
        title: Title of both panels.
    """
    model_panel = _draw_posterior(belief, evaluations)
    bases_panel = _draw_bases(bases)
    panels = [
        panel.properties(width=SIZE[0], height=SIZE[1]) for panel in (model_panel, bases_panel)
    ]
    return alt.hconcat(*panels).properties(title=panel_title(title))


def _draw_posterior(belief: "pd.DataFrame", evaluations: "pd.DataFrame") -> alt.LayerChart:
    """The true function, the mean and interval of the model, and the evaluations."""
    low = float(belief["truth"].min())
    high = float(belief["truth"].max())
    margin = 0.4 * (high - low)  # intervals that go further are cut
    scale = alt.Scale(domain=[low - margin, high + margin], nice=False)
    y = alt.Y("truth:Q", title="value", scale=scale)

    base = alt.Chart(belief).encode(x=alt.X("x:Q", title="x"))
    band = base.mark_area(color=TRUTH_COLOUR, opacity=0.2, clip=True)
    truth = base.mark_line(color=TRUTH_COLOUR, clip=True)
    mean = base.mark_line(color=MODEL_COLOUR, clip=True)
    dots = alt.Chart(evaluations).mark_point(
        filled=True, size=50, opacity=1, color=EVALUATION_COLOUR
    )
    return alt.layer(
        band.encode(y=alt.Y("low:Q"), y2="high:Q"),
        truth.encode(y=y),
        mean.encode(y="mean:Q"),
        dots.encode(x="x:Q", y="y:Q"),
    )


def _draw_bases(bases: "pd.DataFrame") -> alt.Chart:
    """Basis functions; the larger its weight, the darker a line."""
    colours = alt.Scale(range=[GRID, SEQUENCE[0]], domain=[0, 1])
    lines = alt.Chart(bases).mark_line(strokeWidth=1.4)
    return lines.encode(
        x=alt.X("x:Q", title="x"),
        y=alt.Y("value:Q", title="basis functions"),
        detail="basis:N",
        color=alt.Color("weight:Q", scale=colours, title="weight"),
        order="x:Q",
    )
