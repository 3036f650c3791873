"""Charts that compare methods: critical differences, heat maps, and means by task."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

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
    drawing_order,
    panel_title,
    value_tips,
)

if TYPE_CHECKING:
    import pandas as pd

AXIS_WIDTH, ROW, BAR_GAP = 420, 18, 8
"""Of a diagram of critical differences: width, height of a method's line, distance of bars."""

REACH = 26
"""How far the lines of methods go beyond the ends of the axis, in pixels."""

CELL_WIDTH, CELL_HEIGHT = 62, 24
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
    reach = REACH * (count - 1) / AXIS_WIDTH  # in ranks
    left = (count + 1) // 2
    top = 24 + BAR_GAP * len(ranking.bars)
    height = top + ROW * (left - 1) + 10
    places = np.arange(count)
    frame = pd.DataFrame({"method": ranking.methods, "rank": ranking.mean_ranks, "top": 0.0})
    frame["end"] = np.where(places < left, 1 - reach, count + reach)
    frame["y"] = top + ROW * np.minimum(places, count - 1 - places).astype(float)
    frame["label"] = [f"{m}  {r:.2f}" for m, r in zip(frame["method"], frame["rank"], strict=True)]
    bars = pd.DataFrame(ranking.bars, columns=["low", "high"], dtype=float)
    bars["y"] = 12.0 + BAR_GAP * bars.index
    ticks = [tick for tick in range(1, count + 1) if count <= 20 or tick % 5 in (0, 1)]
    axis = alt.Axis(values=ticks, orient="top", grid=False, title="mean rank", format="d")
    ends = alt.Scale(domain=[1 - reach, count + reach], nice=False)
    down = alt.Scale(domain=[height, 0], nice=False)
    x, y = alt.X("rank:Q", scale=ends, axis=axis), alt.Y("y:Q", scale=down, axis=None)
    at_top = alt.Y("top:Q", scale=down, axis=None)
    looks = by_method(ranking.methods, methods)
    looks = {name: looks[name].legend(None) for name in ("color", "shape")}
    base = alt.Chart(frame)
    point = base.mark_point(filled=True, size=50, opacity=1).encode(**looks)
    layers = [
        base.mark_rule(color=FAINT).encode(x=x, y=at_top, y2="y:Q"),
        base.mark_rule(color=FAINT).encode(x=x, x2="end:Q", y=y),
        point.encode(x=x, y=at_top, tooltip=["method:N", "rank:Q"]),
        point.encode(x="end:Q", y=y),
        alt.Chart(bars).mark_rule(strokeWidth=4, color=INK, strokeCap="round")
        .encode(x="low:Q", x2="high:Q", y=y),
    ]  # fmt: skip
    for side, align, dx in ((frame[:left], "right", -8), (frame[left:], "left", 8)):
        text = alt.Chart(side).mark_text(align=align, dx=dx, baseline="middle", fontSize=12)
        layers.append(text.encode(x="end:Q", y=y, text="label:N"))
    return configured(
        alt.layer(*layers).properties(width=AXIS_WIDTH + 2 * REACH, height=height),
        title=alt.TitleParams(title, subtitle=_test(ranking)),
        description="Diagram of critical differences; mean ranks are "
        f"{', '.join(frame['label'].str.replace('  ', ' '))}.",
    )


def _test(ranking: CriticalDifference) -> str:
    p_value = ranking.friedman_p_value
    said = "p < 0.0001" if p_value < 1e-4 else f"p = {p_value:.2g}"
    text = f"{ranking.samples} samples; Friedman's test: {said}"
    if math.isfinite(ranking.critical_difference):
        text += f"; critical difference {ranking.critical_difference:.2f}"
    return text


def heatmap(
    frame: "pd.DataFrame",
    *,
    measure: str = "rank",
    rows: str = "benchmark",
    title: str | None = None,
) -> alt.TopLevelMixin:
    """Draw a measure of every method on every benchmark as a table of coloured numbers.

    Args:
        frame: As `analysis.leaderboard` gives: a row a benchmark and method, of one protocol and
            surrogate a benchmark.
        measure: Column of the frame; lower is better.
        rows: Column that makes the rows, in the order of the frame.
        title: Title of the chart; default: the measure.

    Raises:
        UnknownNameError: The frame has no such column.
    """
    for column in (measure, rows):
        if column not in frame.columns:
            raise UnknownNameError("column", column, list(frame.columns))
    methods = drawing_order(frame["method"])
    names = [str(name) for name in dict.fromkeys(frame[rows])]
    data = frame[[rows, "method", measure]].dropna()
    numbers = data[measure].astype(float)
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0)
    is_dark = numbers < low + DARK_CELL * ((high - low) or 1.0)
    data = data.assign(label=numbers.map("{:.3g}".format), ink=np.where(is_dark, ON_DARK, ON_LIGHT))
    axis = alt.Axis(orient="top", labelAngle=-35, domain=False)
    base = alt.Chart(data).encode(
        x=alt.X("method:N", sort=methods, title=None, axis=axis),
        y=alt.Y(f"{rows}:N", sort=names, title=None),
    )
    colour = alt.Color(
        f"{measure}:Q",
        scale=alt.Scale(range=list(SEQUENCE), domain=[low, high]),
        legend=alt.Legend(title=title_of(measure), gradientLength=120),
    )
    cells = base.mark_rect().encode(color=colour, tooltip=[f"{rows}:N", "method:N", f"{measure}:Q"])
    text = base.mark_text(fontSize=11).encode(text="label:N", color=alt.Color("ink:N", scale=None))
    width = max(CELL_WIDTH * len(methods) * (0.7 if len(methods) > 15 else 1), 200)
    return configured(
        alt.layer(cells, text).resolve_scale(color="independent")
        .properties(width=width, height=CELL_HEIGHT * len(names)),
        title=title or title_of(measure),
        description=f"Table of the {title_of(measure)} of {', '.join(methods)} on "
        f"{', '.join(names)}.",
    )  # fmt: skip


def by_task(
    frame: "pd.DataFrame",
    *,
    bars: bool,
    columns: int,
    tops: Mapping[str, float],
    size: tuple[float, float],
    title: str,
) -> alt.TopLevelMixin:
    """Draw the mean score of every method on every task with its error, as bars or points.

    A dark arrow says that a mean is above the plotted range, a pale one that its error is.

    Args:
        frame: A row a panel, task and method, with mean, low and high; panels and tasks in order.
        bars: Draw bars; otherwise points.
        columns: Panels in a row.
        tops: Upper end of the plotted range by panel.
        size: Width and height of a panel, in pixels.
        title: Title of the chart.
    """
    panels = [str(name) for name in dict.fromkeys(frame["panel"])]
    drawn = [
        _by_task(frame[frame["panel"] == name], tops[name], bars=bars).properties(
            width=size[0], height=size[1], title=panel_title(name)
        )
        for name in panels
    ]
    rows = [alt.hconcat(*drawn[n : n + columns]) for n in range(0, len(drawn), columns)]
    names = ", ".join(drawing_order(frame["method"]))
    return configured(
        alt.vconcat(*rows),
        title=title,
        description=f"Normalised scores of {names} by task: {', '.join(panels)}.",
    )


def _by_task(frame: "pd.DataFrame", top: float, *, bars: bool) -> Any:
    data = frame[["task", "method", "mean", "low", "high"]].dropna(subset=["mean"])
    limit = top * (1 + 1e-9)  # random search ends near 100
    is_above, is_cut = data["mean"] > limit, data["high"] > limit
    data = data.assign(
        shown=data["mean"].clip(upper=top),
        below=data["low"].clip(lower=0.0, upper=top),
        above=data["high"].clip(upper=top),
        arrow=np.where(is_above, INK, np.where(is_cut, BEYOND, "")),
    )
    methods = drawing_order(frame["method"])
    looks = by_method(methods)
    order = list(dict.fromkeys(frame["task"]))
    labels = alt.Axis(labelAngle=0, labelOverlap=True)
    encoding = {
        "x": alt.X("task:N", sort=order, title="task", axis=labels),
        "xOffset": alt.XOffset("method:N", sort=methods, scale=alt.Scale(domain=methods)),
        "tooltip": value_tips("task:N"),
    }
    y = alt.Y("shown:Q", title="normalised score", scale=alt.Scale(nice=False))
    rule = alt.Chart(data[~is_above & data["high"].notna()]).encode(
        **encoding, y="below:Q", y2="above:Q"
    )
    arrows = alt.Chart(data[is_above | is_cut]).mark_point(
        shape="triangle-up", filled=True, size=22, opacity=1
    )
    arrows = arrows.encode(
        **encoding, y=alt.datum(1.035 * top), fill=alt.Fill("arrow:N", scale=None)
    )
    if bars:
        bar = alt.Chart(data).mark_bar().encode(**encoding, y=y, color=looks["color"])
        return alt.layer(bar, rule.mark_rule(color=ON_LIGHT, strokeWidth=0.9), arrows)
    sign = alt.Chart(data[~is_above]).mark_point(filled=True, size=36, opacity=1)
    sign = sign.encode(**encoding, y=y, color=looks["color"], shape=looks["shape"])
    return alt.layer(rule.mark_rule().encode(color=looks["color"]), sign, arrows)
