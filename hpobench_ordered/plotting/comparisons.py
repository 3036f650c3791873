"""Charts that compare methods: critical differences, heat maps, means by task, and strips."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import altair as alt
import numpy as np

from hpobench_ordered.analysis.leaderboard import DECIMALS
from hpobench_ordered.analysis.significance import CriticalDifference
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.plotting.axes import title_of
from hpobench_ordered.plotting.theme import (
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

AXIS_WIDTH, ROW, BAR_GAP = 420, 18, 8
"""Of a diagram of critical differences: width, height of a method's line, distance of bars."""

REACH = 26
"""How far the lines of methods go beyond the ends of the axis, in pixels."""

CELL_HEIGHT, NARROWEST, WIDEST, TABLE_WIDTH = 24, 20, 140, 980
"""Of a table of coloured numbers: height and widths of a cell, and width to fill."""

NUMBER_WIDTH = 40
"""Narrower cells are colours alone."""

DARK_CELL = 0.35
"""Below this share of `SEQUENCE`, white text stands out from a cell better than black."""

BEYOND = "#B0B0B0"
"""Colour of an arrow where only the error is above the plotted range."""


def critical_differences(
    ranking: CriticalDifference, *, methods: Sequence[str] = (), title: str = "mean ranks"
) -> alt.TopLevelMixin:
    """Draw mean ranks and which methods cannot be told apart (Demsar 2006, JMLR 7, figure 1).

    Each method has a line of its own, the better half at the left, so that names never meet; a bar
    joins methods that cannot be told apart.

    Args:
        ranking: As `analysis.critical_difference` gives.
        methods: All methods of the experiment, for the same colours in every chart; default: those
            ranked.
        title: Title of the chart.

    Raises:
        ExperimentError: Fewer than two methods are ranked.
    """
    import pandas as pd

    count = len(ranking.methods)
    if count < 2:
        raise ExperimentError("a diagram of critical differences needs two methods or more")
    bars = pd.DataFrame(ranking.bars, columns=["low", "high"], dtype=float)
    bars["y"] = 12.0 + BAR_GAP * bars.index
    reach = REACH * (count - 1) / AXIS_WIDTH  # in ranks
    frame = _lines(ranking, reach)
    ticks = [tick for tick in range(1, count + 1) if count <= 20 or tick % 5 in (0, 1)]
    axis = alt.Axis(values=ticks, orient="top", grid=False, title="mean rank", format="d")
    x = alt.X("rank:Q", scale=alt.Scale(domain=[1 - reach, count + reach], nice=False), axis=axis)
    height = float(frame["y"].max()) + 10
    down = alt.Scale(domain=[height, 0], nice=False)
    y, at_top = (alt.Y(f"{name}:Q", scale=down, axis=None) for name in ("y", "top"))
    looks = by_method(ranking.methods, methods)
    looks = {name: looks[name].legend(None) for name in ("color", "shape")}
    base = alt.Chart(frame)
    line = base.mark_rule(color=FAINT)
    point = base.mark_point(filled=True, size=50, opacity=1).encode(**looks)
    bar = alt.Chart(bars).mark_rule(strokeWidth=4, color=INK, strokeCap="round")
    layers = [
        line.encode(x=x, y=at_top, y2="y:Q"),
        line.encode(x=x, x2="end:Q", y=y),
        point.encode(x=x, y=at_top, tooltip=["method:N", "rank:Q"]),
        point.encode(x="end:Q", y=y),
        bar.encode(x="low:Q", x2="high:Q", y=y),
    ]
    for is_left, align, dx in ((True, "right", -8), (False, "left", 8)):
        side = alt.Chart(frame[frame["is_left"] == is_left])
        text = side.mark_text(align=align, dx=dx, baseline="middle", fontSize=12)
        layers.append(text.encode(x="end:Q", y=y, text="label:N"))
    return configured(
        alt.layer(*layers).properties(width=AXIS_WIDTH + 2 * REACH, height=height),
        title=alt.TitleParams(title, subtitle=_test(ranking)),
        description=f"Diagram of critical differences; mean ranks are {', '.join(frame['label'])}.",
    )


def _lines(ranking: CriticalDifference, reach: float) -> "pd.DataFrame":
    """Each method's line: down from the axis to `y`, then sideways to its name at `end`."""
    import pandas as pd

    count = len(ranking.methods)
    places = np.arange(count)
    is_left = places < (count + 1) // 2
    labels = [f"{m}  {r:.2f}" for m, r in zip(ranking.methods, ranking.mean_ranks, strict=True)]
    return pd.DataFrame(
        {
            "method": ranking.methods,
            "rank": ranking.mean_ranks,
            "label": labels,
            "is_left": is_left,
            "end": np.where(is_left, 1 - reach, count + reach),
            "top": 0.0,
            "y": 24.0 + BAR_GAP * len(ranking.bars) + ROW * np.minimum(places, count - 1 - places),
        }
    )


def _test(ranking: CriticalDifference) -> str:
    p_value = ranking.friedman_p_value
    said = "p < 0.0001" if p_value < 1e-4 else f"p = {p_value:.2g}"
    text = f"{ranking.samples} samples; Friedman's test: {said}"
    if math.isfinite(ranking.critical_difference):
        text += f"; critical difference {ranking.critical_difference:.2f}"
    return text


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
    methods, panels = ([str(n) for n in data[c].unique()] for c in ("method", "panel"))
    numbers = data[measure].astype(float)
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0)
    is_dark = numbers < low + DARK_CELL * ((high - low) or 1.0)
    labels = numbers.map(f"{{:.{DECIMALS.get(measure, 2)}f}}".format)
    data = data.assign(label=labels, ink=np.where(is_dark, ON_DARK, ON_LIGHT))
    width = min(max(TABLE_WIDTH // max(len(panels), 1), NARROWEST), WIDEST)
    has_numbers = width >= NUMBER_WIDTH
    angle = 0 if 7 * max(map(len, panels), default=0) < width else -35 if has_numbers else -60
    axis = alt.Axis(orient="top", labelAngle=angle, domain=False)
    # Methods stand in rows: there may be forty of them, and a page is longer than wide.
    base = alt.Chart(data).encode(
        x=alt.X("panel:N", sort=panels, title=None, axis=axis),
        y=alt.Y("method:N", sort=methods, title=None),
        tooltip=["panel:N", "method:N", f"{measure}:Q"],
    )
    scale = alt.Scale(range=list(SEQUENCE), domain=[low, high])
    legend = alt.Legend(title=title_of(measure), gradientLength=120)
    cells = base.mark_rect().encode(color=alt.Color(f"{measure}:Q", scale=scale, legend=legend))
    text = base.mark_text(fontSize=11).encode(text="label:N", color=alt.Color("ink:N", scale=None))
    whole = alt.layer(*[cells, text][: 1 + has_numbers]).resolve_scale(color="independent")
    return configured(
        whole.properties(width=max(width * len(panels), 200), height=CELL_HEIGHT * len(methods)),
        title=title or title_of(measure),
        description=f"Table of the {title_of(measure)} of {', '.join(methods)} on "
        f"{', '.join(panels)}.",
    )


def by_task(
    frame: "pd.DataFrame", *, bars: bool, columns: int, size: tuple[float, float], title: str
) -> alt.TopLevelMixin:
    """Draw the mean score of every method on every task with its error, as bars or points.

    A dark arrow says that a mean is above the plotted range, a pale one that its error is. The
    frame has columns panel, task and method, in order, mean, low and high, and top, the upper end
    of its panel's plotted range; panels have a `size` in pixels and are `columns` in a row.
    """
    panels, methods = list(dict.fromkeys(frame["panel"])), list(frame["method"].unique())
    looks = by_method(methods)
    labels = alt.Axis(labelAngle=0, labelOverlap=True)
    y = alt.Y("shown:Q", title="normalised score", scale=alt.Scale(nice=False))
    base = alt.Chart().encode(
        x=alt.X("task:N", sort=list(dict.fromkeys(frame["task"])), title="task", axis=labels),
        xOffset=alt.XOffset("method:N", sort=methods, scale=alt.Scale(domain=methods)),
        tooltip=value_tips("task:N"),
    )
    inside = base.transform_filter("!datum.is_above")
    rule = inside.transform_filter("datum.high !== null").encode(y="below:Q", y2="above:Q")
    arrows = base.mark_point(shape="triangle-up", filled=True, size=22, opacity=1).encode(
        y="tip:Q", fill=alt.Fill("arrow:N", scale=None)
    )
    if bars:
        marks = base.mark_bar().encode(y=y, color=looks["color"])
        layers = [marks, rule.mark_rule(color=ON_LIGHT, strokeWidth=0.9)]
    else:
        marks = inside.mark_point(filled=True, size=36, opacity=1)
        marks = marks.encode(y=y, color=looks["color"], shape=looks["shape"])
        layers = [rule.mark_rule().encode(color=looks["color"]), marks]
    whole = alt.layer(*layers, arrows.transform_filter("datum.arrow"), data=_cut(frame))
    whole = facetted(whole.properties(width=size[0], height=size[1]), "panel", panels, columns)
    return configured(
        whole.resolve_scale(x="independent", xOffset="independent", y="independent"),
        title=title,
        description=f"Normalised scores of {', '.join(methods)} by task: {', '.join(panels)}.",
    )


def _cut(frame: "pd.DataFrame") -> "pd.DataFrame":
    """Means and errors within the plotted range, and arrows where they are not."""
    data = frame[["panel", "task", "method", "mean", "low", "high", "top"]].dropna(subset=["mean"])
    top = data["top"].astype(float)
    is_above = data["mean"] > top * (1 + 1e-9)  # random search ends near 100
    return data.assign(
        is_above=is_above,
        shown=data["mean"].clip(upper=top),
        below=data["low"].clip(lower=0.0, upper=top),
        above=data["high"].clip(upper=top),
        tip=1.035 * top,
        arrow=np.select([is_above, data["high"] > top * (1 + 1e-9)], [INK, BEYOND], ""),
    )


def strips(
    frame: "pd.DataFrame", *, x: str, y: str, log: bool, columns: int, size: tuple[float, float]
) -> alt.TopLevelMixin:
    """Draw every value as a point and the mean as a line, of methods beside each other.

    The frame has columns panel and group, in order, method, what the values are of (benchmark, and
    task if there is one), value, and the mean of its method there; `x` and `y` are titles. Values
    are ratios with a line at 1 if `log`, otherwise shares.
    """
    panels, methods = list(dict.fromkeys(frame["panel"])), list(frame["method"].unique())
    labels = ["benchmark", *(["task"] if "task" in frame else [])]
    data = frame[["panel", "group", "method", "value", "mean", *labels]]
    data = data.assign(is_mean=~data.duplicated(["panel", "group", "method"]), one=1.0)
    looks = by_method(methods)
    side_by_side = alt.Scale(domain=methods, paddingInner=0.3)
    base = alt.Chart().encode(
        x=alt.X(
            "group:N",
            sort=list(dict.fromkeys(frame["group"])),
            title=x,
            axis=alt.Axis(labelAngle=0),
        ),
        xOffset=alt.XOffset("method:N", sort=methods, scale=side_by_side),
        color=looks["color"],
    )
    shown = _ratio_axis(data["value"], y) if log else _share_axis(y)
    tips = [alt.Tooltip(f"{name}:N") for name in labels]
    number = alt.Tooltip("value:Q", format=".3~r")
    points = base.mark_point(filled=True, size=22, opacity=0.55).encode(
        y=shown, shape=looks["shape"], tooltip=["method:N", *tips, number]
    )
    mean = alt.Tooltip("mean:Q", format=".3~r")
    lines = base.transform_filter("datum.is_mean").mark_tick(
        thickness=2.5, orient="horizontal", opacity=1
    )
    layers = [points, lines.encode(y="mean:Q", tooltip=["method:N", mean])]
    if log:
        layers.insert(0, alt.Chart().mark_rule(color=FAINT).encode(y="one:Q"))
    whole = alt.layer(*layers, data=data).properties(width=size[0], height=size[1])
    return configured(
        facetted(whole, "panel", panels, columns),
        title=y,
        description=f"{y} of {', '.join(methods)}: {', '.join(panels)}.",
    )


def _share_axis(title: str) -> alt.Y:
    scale, axis = alt.Scale(domainMin=0), alt.Axis(format=".0%")
    return alt.Y("value:Q", title=title, scale=scale, axis=axis)


def _ratio_axis(values: "pd.Series[float]", title: str) -> alt.Y:
    """A logarithmic axis with powers of two."""
    low, high = min(values.min(), 0.5) / 1.05, max(values.max(), 2.0) * 1.05
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    axis = alt.Axis(values=[2.0**power for power in powers], format="~r")
    return alt.Y("value:Q", title=title, scale=scale, axis=axis)
