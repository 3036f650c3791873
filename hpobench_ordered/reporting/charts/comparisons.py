"""Charts that compare methods: heat maps, means by task, strips, and differences from the best."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from hpobench_ordered.analysis.leaderboard import DECIMALS
from hpobench_ordered.errors import UnknownNameError
from hpobench_ordered.reporting.charts.axes import title_of
from hpobench_ordered.reporting.charts.theme import (
    FAINT,
    INK,
    ON_DARK,
    ON_LIGHT,
    SEQUENCE,
    by_method,
    configured,
    facetted,
    panel_names,
    value_tips,
)

if TYPE_CHECKING:
    import pandas as pd

# A chart of differences from the leader, in pixels.
DIFFERENCES_WIDTH = 940
METHOD_HEIGHT = 18  # from a method's line to the next

# A table of coloured numbers, in pixels.
CELL_HEIGHT = 24
MIN_CELL_WIDTH = 20
MAX_CELL_WIDTH = 140
TABLE_WIDTH = 980  # which cells fill
MIN_NUMBER_WIDTH = 40
"""Narrower cells are colours alone."""

MAX_DARK_SHARE = 0.35
"""Up to this share of `SEQUENCE`, white text stands out from a cell better than black."""

PALE_ARROW = "#B0B0B0"
"""Colour of an arrow where only the error is above the plotted range."""


def leader_differences(
    frame: "pd.DataFrame", *, title: str = "difference from the leader"
) -> alt.TopLevelMixin:
    """Draw how much lower the leader's mean rank is than that of every other method.

    A row per method: its mean difference with its interval, the point filled where the leader is
    significantly better, and a small dot for each family of benchmarks.

    Args:
        frame: As `analysis.leader_comparison.leader_differences` gives, with at least one row.
        title: Title of the chart.
    """
    methods = list(dict.fromkeys(frame["method"]))
    leader = str(frame["leader"].iloc[0])
    is_first_of_method = ~frame.duplicated("method")
    means = frame[is_first_of_method].assign(zero=0.0)

    # Faint lines lead from the names to the points, which may be far from them.
    y = alt.Y("method:N", sort=methods, title=None, axis=alt.Axis(grid=True, gridDash=[1, 3]))
    axis_title = f"mean rank - that of {leader}"
    families = alt.Chart(frame).mark_point(filled=True, size=14, opacity=0.5, color=INK)
    families = families.encode(
        x=alt.X("difference:Q", title=axis_title), y=y, tooltip=["method:N", "family:N"]
    )
    base = alt.Chart(means).encode(y=y)
    no_difference = base.mark_rule(color=FAINT).encode(x="zero:Q", y=alt.Y())
    intervals = base.mark_rule(color=INK, strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
    white_if_alike = alt.condition("datum.is_worse", alt.value(INK), alt.value("white"))
    tips = [alt.Tooltip(f"{name}:Q", format=".4~r") for name in ("mean_difference", "low", "high")]
    points = base.mark_point(size=50, opacity=1, filled=True, stroke=INK, strokeWidth=1.5)
    points = points.encode(
        x="mean_difference:Q",
        fill=white_if_alike,
        tooltip=["method:N", *tips],
    )
    chart = alt.layer(no_difference, families, intervals, points)
    return configured(
        chart.properties(width=DIFFERENCES_WIDTH, height=METHOD_HEIGHT * len(methods)),
        title=title,
        description=f"Differences in mean rank of {', '.join(methods)} from {leader}.",
    )


def heatmap(
    frame: "pd.DataFrame", *, measure: str = "rank", title: str | None = None
) -> alt.TopLevelMixin:
    """Draw a measure of every method on every benchmark as a table of coloured numbers.

    Args:
        frame: As `analysis.leaderboard` gives: one row per benchmark and method, of one protocol;
            methods and benchmarks are drawn in its order.
        measure: Column of the frame; lower is better.
        title: Title of the chart; default: the measure.

    Raises:
        UnknownNameError: The frame has no such column.
    """
    if measure not in frame.columns:
        raise UnknownNameError("column", measure, list(frame.columns))
    data = frame.assign(panel=panel_names(frame))[["panel", "method", measure]].dropna()
    methods = [str(method) for method in data["method"].unique()]
    panels = [str(panel) for panel in data["panel"].unique()]
    numbers = data[measure].astype(float)
    low = float(numbers.min()) if len(numbers) else 0.0
    high = float(numbers.max()) if len(numbers) else 1.0
    span = (high - low) or 1.0  # all numbers may be the same
    is_dark = numbers < low + MAX_DARK_SHARE * span
    decimals = DECIMALS.get(measure, 2)
    labels = [f"{number:.{decimals}f}" for number in numbers]
    data = data.assign(label=labels, ink=np.where(is_dark, ON_DARK, ON_LIGHT))

    equal_width = TABLE_WIDTH // max(len(panels), 1)
    width = min(max(equal_width, MIN_CELL_WIDTH), MAX_CELL_WIDTH)
    has_numbers = width >= MIN_NUMBER_WIDTH
    width_of_longest_name = 7 * max(map(len, panels), default=0)  # a letter has about 7 pixels
    if width_of_longest_name < width:
        angle = 0
    elif has_numbers:
        angle = -35
    else:
        angle = -60
    axis = alt.Axis(orient="top", labelAngle=angle, domain=False)

    # Methods stand in rows: there may be forty of them, and a page is longer than wide.
    base = alt.Chart(data).encode(
        x=alt.X("panel:N", sort=panels, title=None, axis=axis),
        y=alt.Y("method:N", sort=methods, title=None),
        tooltip=["panel:N", "method:N", f"{measure}:Q"],
    )

    scale = alt.Scale(range=list(SEQUENCE), domain=[low, high])
    height = CELL_HEIGHT * len(methods)
    legend = alt.Legend(title=title_of(measure), gradientLength=min(120, height))
    cells = base.mark_rect().encode(color=alt.Color(f"{measure}:Q", scale=scale, legend=legend))
    layers = [cells]
    if has_numbers:
        ink = alt.Color("ink:N", scale=None)
        layers.append(base.mark_text(fontSize=11).encode(text="label:N", color=ink))
    # Cells and numbers have colours of their own.
    whole = alt.layer(*layers).resolve_scale(color="independent")
    return configured(
        whole.properties(width=max(width * len(panels), 200), height=height),
        title=title or title_of(measure),
        description=f"Table of the {title_of(measure)} of {', '.join(methods)} on "
        f"{', '.join(panels)}.",
    )


def by_task(
    frame: "pd.DataFrame", *, bars: bool, columns: int, size: tuple[float, float], title: str
) -> alt.TopLevelMixin:
    """Draw the mean score of every method on every task with its error.

    A dark arrow says that a mean is above the plotted range, a pale one that its error is.

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
    """Layers of means and of their errors, the upper layer last.

    Errors, and means as points, are left out where the mean is above the plotted range. Bars are
    cut there.

    Args:
        base: Chart with the horizontal axis, of the columns that `_cut_at_top` gives.
        looks: Channels color and shape of the methods.
        bars: Whether means are bars; otherwise they are points.
    """
    y = alt.Y("shown:Q", title="normalised score", scale=alt.Scale(nice=False))
    within_range = base.transform_filter("!datum.is_above")
    errors = within_range.transform_filter("datum.high !== null").encode(y="below:Q", y2="above:Q")
    if bars:
        means = base.mark_bar().encode(y=y, color=looks["color"])
        return [means, errors.mark_rule(color=ON_LIGHT, strokeWidth=0.9)]

    means = within_range.mark_point(filled=True, size=36, opacity=1)
    means = means.encode(y=y, color=looks["color"], shape=looks["shape"])
    return [errors.mark_rule().encode(color=looks["color"]), means]


def _arrow_layer(base: alt.Chart) -> alt.Chart:
    """Arrows at the upper end of the plotted range, where a mean or an error goes beyond it.

    `base` is a chart of the columns that `_cut_at_top` gives; `arrow` is the colour of an arrow, or
    "" where there is none.
    """
    arrows = base.mark_point(shape="triangle-up", filled=True, size=22, opacity=1)
    arrows = arrows.encode(y="tip:Q", fill=alt.Fill("arrow:N", scale=None))
    return arrows.transform_filter("datum.arrow")


def _cut_at_top(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Cut means and errors at the upper end of the plotted range, the column `top`.

    Columns of the result that are drawn: `shown`, the mean; `below` and `above`, the ends of its
    error; and at the height `tip` an arrow in the colour `arrow`, where a mean or an error was cut.
    """
    data = frame[["panel", "task", "method", "mean", "low", "high", "top"]].dropna(subset=["mean"])
    top = data["top"].astype(float)
    # Random search ends at 100 but for rounding errors, which are not beyond a range up to 100.
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
    """Draw every value as a point and the means as lines, with methods beside each other.

    Args:
        frame: One row per value: columns panel and group, in the order to draw them; method;
            benchmark and, if there are any, task, which the tooltip shows; value; and mean, that of
            the method in the group and panel.
        x: Title of the axis of groups.
        y: Title of the axis of values, and of the chart.
        log: Whether values are ratios, drawn on a logarithmic axis with a line at 1; otherwise they
            are shares.
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
    """A linear axis from 0, in percent."""
    scale = alt.Scale(domainMin=0)
    return alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(format=".0%"))


def _ratio_axis(values: "pd.Series[float]", title: str) -> alt.Y:
    """A logarithmic axis of ratios, at least from 1/2 to 2, with ticks at powers of two."""
    low = min(values.min(), 0.5) / 1.05
    high = max(values.max(), 2.0) * 1.05
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    exponents = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    axis = alt.Axis(values=[2.0**exponent for exponent in exponents], format="~r")
    return alt.Y("value:Q", title=title, scale=scale, axis=axis)
