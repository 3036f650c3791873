"""Charts that compare methods: heat maps, and differences from the best."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

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
    configured,
    panel_names,
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


def leader_differences(
    frame: "pd.DataFrame", *, title: str = "difference from the leader"
) -> alt.TopLevelMixin:
    """Draw how much lower the leader's mean rank is than that of every other method.

    Each method has a row with its mean difference, a point, and the interval of the mean, a line.
    The point is filled if the leader is significantly better. A small dot is the difference on one
    family of benchmarks.

    Args:
        frame: As `analysis.leader_comparison.leader_differences` gives, with at least one row. It
            has a row per method and family; what is of a method alone is the same in all its rows.
        title: Title of the chart.
    """
    methods = list(dict.fromkeys(frame["method"]))
    leader = str(frame["leader"].iloc[0])
    is_first_of_method = ~frame.duplicated("method")
    means = frame[is_first_of_method].assign(zero=0.0)  # `zero` is where the vertical line is

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
    low, high = 0.0, 1.0  # where there are no numbers
    if len(numbers):
        low = float(numbers.min())
        high = float(numbers.max())
    span = (high - low) or 1.0  # all numbers may be the same
    # The colours go from dark, at the lowest number, to light.
    is_dark = numbers < low + MAX_DARK_SHARE * span
    decimals = DECIMALS.get(measure, 2)
    labels = [f"{number:.{decimals}f}" for number in numbers]
    data = data.assign(label=labels, ink=np.where(is_dark, ON_DARK, ON_LIGHT))

    equal_width = TABLE_WIDTH // max(len(panels), 1)
    width = min(max(equal_width, MIN_CELL_WIDTH), MAX_CELL_WIDTH)
    has_numbers = width >= MIN_NUMBER_WIDTH
    angle = _choose_label_angle(panels, width)
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


def _choose_label_angle(names: Sequence[str], width: int) -> int:
    """Choose the angle, in degrees, of the names above the columns of a table.

    Names that fit above their columns are horizontal. Others are slanted, the more steeply the
    narrower the columns are, so that they do not overlap.

    Args:
        names: The names.
        width: Width of a column, in pixels.
    """
    width_of_longest_name = 7 * max(map(len, names), default=0)  # a letter has about 7 pixels
    if width_of_longest_name < width:
        return 0
    return -35 if width >= MIN_NUMBER_WIDTH else -60
