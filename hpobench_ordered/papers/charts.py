"""Charts that only papers have: scores by task, strips, functions and posteriors of models."""

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from hpobench_ordered.reporting.charts.theme import (
    FAINT,
    GRID,
    INK,
    ON_LIGHT,
    PALETTE,
    SEQUENCE,
    by_method,
    configured,
    facetted,
    panel_title,
    value_tips,
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

PALE_ARROW = "#B0B0B0"
"""Colour of an arrow where only the error is above the plotted range."""


def arrange(
    charts: Iterable[Any], *, columns: int, title: str, shared: bool = True
) -> alt.TopLevelMixin:
    """Arrange finished charts in rows of `columns` charts each, as one chart.

    Args:
        charts: The charts, in the order of reading.
        columns: Charts in a row.
        title: Title and description of the whole.
        shared: Whether all charts have the same methods, so that they share one legend.
    """
    panels = []
    for chart in charts:
        panel = chart.copy()
        panel.config = alt.Undefined  # Vega-Lite allows a theme of the whole chart alone
        panels.append(panel)

    with warnings.catch_warnings():
        # All charts have a parameter of the same name, the method that is chosen in the legend.
        # Altair merges them into one, as is wanted, and warns that it does so.
        warnings.filterwarnings("ignore", "Automatically deduplicated", UserWarning)
        # One concatenation, not a column of rows: Altair names layers by their place in it, so that
        # layers in different rows would have the same name.
        whole = alt.concat(*panels, columns=columns)

    if not shared:
        whole = whole.resolve_scale(**dict.fromkeys(METHOD_CHANNELS, "independent"))
    return configured(whole, title=title, description=title)


def times(frame: "pd.DataFrame", *, methods: Sequence[str] = (), title: str) -> alt.TopLevelMixin:
    """Draw the time that each method takes for a suggestion as a point on a logarithmic axis.

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
    """Draw functions of one variable as lines.

    Args:
        frame: Columns method, the name of the function; x, the variable; and value.
        x: Name of the variable, the title of the horizontal axis.
        title: Title and description.
    """
    # Functions are told apart by colours and dashes, as methods are.
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
    """Draw the true function, the model's mean and interval, and the evaluations."""
    low = float(belief["truth"].min())
    high = float(belief["truth"].max())
    margin = 0.4 * (high - low)  # intervals that reach further are cut, as they may be very wide
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
    """Draw the basis functions as lines, which are darker the larger the weight is."""
    colours = alt.Scale(range=[GRID, SEQUENCE[0]], domain=[0, 1])
    lines = alt.Chart(bases).mark_line(strokeWidth=1.4)
    return lines.encode(
        x=alt.X("x:Q", title="x"),
        y=alt.Y("value:Q", title="basis functions"),
        detail="basis:N",
        color=alt.Color("weight:Q", scale=colours, title="weight"),
        order="x:Q",
    )


def scores_by_task(
    frame: "pd.DataFrame", *, bars: bool, columns: int, size: tuple[float, float], title: str
) -> alt.TopLevelMixin:
    """Draw the mean score of every method on every task with its error.

    Methods stand beside each other at each task. Where a mean is above the plotted range, a dark
    arrow says so; where only the upper end of its error is, a pale arrow does.

    Args:
        frame: Columns panel, task and method, in the order to draw them; mean, low and high; and
            top, the upper end of the plotted range of the panel.
        bars: Whether means are bars; otherwise they are points.
        columns: Panels in a row.
        size: Width and height of a panel, in pixels.
        title: Title of the chart.
    """
    panels = list(dict.fromkeys(frame["panel"]))
    tasks = list(dict.fromkeys(frame["task"]))
    methods = list(frame["method"].unique())
    labels = alt.Axis(labelAngle=0, labelOverlap=True)
    base = alt.Chart().encode(
        x=alt.X("task:N", sort=tasks, title="task", axis=labels),
        xOffset=alt.XOffset("method:N", sort=methods, scale=alt.Scale(domain=methods)),
        tooltip=value_tips("task:N"),
    )
    layers = [*_mean_layers(base, by_method(methods), bars=bars), _arrow_layer(base)]
    panel = alt.layer(*layers, data=_cut_at_top(frame)).properties(width=size[0], height=size[1])
    whole = facetted(panel, "panel", panels, columns)
    return configured(
        whole.resolve_scale(x="independent", xOffset="independent", y="independent"),
        title=title,
        description=f"Normalised scores of {', '.join(methods)} by task: {', '.join(panels)}.",
    )


def _mean_layers(base: alt.Chart, looks: Mapping[str, Any], *, bars: bool) -> list[alt.Chart]:
    """Make the layers of means and of their errors, from the lowest to the uppermost.

    Where a mean is above the plotted range, its bar ends at the end of the range. A point there,
    and the error of either, is left out.

    Args:
        base: Chart with the horizontal axis, of the columns that `_cut_at_top` gives.
        looks: Channels color and shape of the methods.
        bars: Whether means are bars; otherwise they are points.
    """
    y = alt.Y("shown:Q", title="normalised score", scale=alt.Scale(nice=False))
    within_range = base.transform_filter("!datum.is_above")
    with_error = within_range.transform_filter("datum.high !== null")  # NaN in the data is null
    errors = with_error.encode(y="below:Q", y2="above:Q")
    if bars:
        means = base.mark_bar().encode(y=y, color=looks["color"])
        return [means, errors.mark_rule(color=ON_LIGHT, strokeWidth=0.9)]  # errors stand on bars

    means = within_range.mark_point(filled=True, size=36, opacity=1)
    means = means.encode(y=y, color=looks["color"], shape=looks["shape"])
    return [errors.mark_rule().encode(color=looks["color"]), means]


def _arrow_layer(base: alt.Chart) -> alt.Chart:
    """Make the layer of arrows, which say that something is above the plotted range.

    `base` is a chart of the columns that `_cut_at_top` gives. Of these, `tip` is the height of an
    arrow, and `arrow` is its colour, or "" where there is none.
    """
    arrows = base.mark_point(shape="triangle-up", filled=True, size=22, opacity=1)
    arrows = arrows.encode(y="tip:Q", fill=alt.Fill("arrow:N", scale=None))
    return arrows.transform_filter("datum.arrow")  # "" counts as false


def _cut_at_top(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Cut means and errors at the upper end of the plotted range, the column `top`.

    The new columns are `shown`, the mean; `below` and `above`, the ends of its error; `is_above`,
    whether the mean was cut; `tip`, the height of an arrow; and `arrow`, its colour: dark where the
    mean was cut, pale where only the error was, and "" for no arrow.
    """
    data = frame[["panel", "task", "method", "mean", "low", "high", "top"]].dropna(subset=["mean"])
    top = data["top"].astype(float)
    # The mean of random search ends at 100, apart from rounding errors: with these it may be just
    # above a range that ends at 100, and should have no arrow.
    just_above_top = top * (1 + 1e-9)
    is_above = data["mean"] > just_above_top
    is_error_above = data["high"] > just_above_top
    return data.assign(
        is_above=is_above,
        shown=data["mean"].clip(upper=top),
        below=data["low"].clip(lower=0.0, upper=top),
        above=data["high"].clip(upper=top),
        tip=1.035 * top,
        arrow=np.select([is_above, is_error_above], [INK, PALE_ARROW], ""),
    )


def strips(
    frame: "pd.DataFrame", *, x: str, y: str, log: bool, columns: int, size: tuple[float, float]
) -> alt.TopLevelMixin:
    """Draw every value as a point, and the mean of each method's values as a short line.

    A panel has several groups of points side by side, and a group has a strip for each method.

    Args:
        frame: One row per value: columns panel and group, in the order to draw them; method; value;
            mean, the mean of the method's values in the group and panel; and benchmark or task, if
            there are any, which the tooltip shows.
        x: Title of the axis of groups.
        y: Title of the axis of values, and of the chart.
        log: Whether values are ratios, drawn on a logarithmic axis with a line at 1. Otherwise they
            are shares of a whole, drawn in percent.
        columns: Panels in a row.
        size: Width and height of a panel, in pixels.
    """
    panels = list(dict.fromkeys(frame["panel"]))
    groups = list(dict.fromkeys(frame["group"]))
    methods = list(frame["method"].unique())
    labels = [name for name in ("benchmark", "task") if name in frame]

    data = frame[["panel", "group", "method", "value", "mean", *labels]]
    # The mean is in all rows of a method; it is drawn once.
    is_first_of_method = ~data.duplicated(["panel", "group", "method"])
    data = data.assign(is_mean=is_first_of_method, one=1.0)

    looks = by_method(methods)
    side_by_side = alt.Scale(domain=methods, paddingInner=0.3)
    base = alt.Chart().encode(
        x=alt.X("group:N", sort=groups, title=x, axis=alt.Axis(labelAngle=0)),
        xOffset=alt.XOffset("method:N", sort=methods, scale=side_by_side),
        color=looks["color"],
    )
    value_tip = alt.Tooltip("value:Q", format=".3~r")
    points = base.mark_point(filled=True, size=22, opacity=0.55).encode(
        y=_ratio_axis(data["value"], y) if log else _share_axis(y),
        shape=looks["shape"],
        tooltip=["method:N", *(alt.Tooltip(f"{name}:N") for name in labels), value_tip],
    )
    mean_tip = alt.Tooltip("mean:Q", format=".3~r")
    mean_lines = base.transform_filter("datum.is_mean")
    mean_lines = mean_lines.mark_tick(thickness=2.5, orient="horizontal", opacity=1)
    layers = [points, mean_lines.encode(y="mean:Q", tooltip=["method:N", mean_tip])]
    if log:
        line_at_one = alt.Chart().mark_rule(color=FAINT).encode(y="one:Q")
        layers.insert(0, line_at_one)

    panel = alt.layer(*layers, data=data).properties(width=size[0], height=size[1])
    return configured(
        facetted(panel, "panel", panels, columns),
        title=y,
        description=f"{y} of {', '.join(methods)}: {', '.join(panels)}.",
    )


def _share_axis(title: str) -> alt.Y:
    """Make a linear axis that begins at 0 and has labels in percent."""
    scale = alt.Scale(domainMin=0)
    return alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(format=".0%"))


def _ratio_axis(values: "pd.Series[float]", title: str) -> alt.Y:
    """Make a logarithmic axis of ratios with ticks at powers of two.

    It contains all values, and at least the range from 1/2 to 2.
    """
    # A margin of 5 % keeps points off the ends.
    low = min(values.min(), 0.5) / 1.05
    high = max(values.max(), 2.0) * 1.05
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    exponents = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    axis = alt.Axis(values=[2.0**exponent for exponent in exponents], format="~r")
    return alt.Y("value:Q", title=title, scale=scale, axis=axis)
