"""Points with their errors on every task, side by side."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from hpobench_ordered.plotting.axes import title_of
from hpobench_ordered.plotting.curves import method_legend
from hpobench_ordered.plotting.theme import configured, drawing_order, scales

if TYPE_CHECKING:
    import pandas as pd

SPREAD = 0.36
"""Width over which the points of a task are laid out side by side; tasks are 1 apart."""

WIDTH, HEIGHT = 215, 140


def points(
    frame: "pd.DataFrame",
    *,
    measure: str = "score",
    columns: int = 3,
    methods: Sequence[str] | None = None,
    title: str = "",
) -> alt.TopLevelMixin:
    """Draw the mean of every method on every task with its error, in panels.

    Errors may run out of the frame: they would press the means together otherwise.

    Args:
        frame: A row a panel, task (numbers) and method, with mean, low and high.
        measure: What is measured, for the title of the axis.
        columns: Panels in a row.
        methods: All methods of the experiment; default: those in the frame.
        title: Title of the chart; default: the measure.
    """
    shown = drawing_order(frame["method"])
    step = SPREAD / max(1, len(shown) - 1)
    offsets = {method: step * (n - (len(shown) - 1) / 2) for n, method in enumerate(shown)}
    placed = frame.assign(place=frame["task"] + frame["method"].map(offsets).astype(float))
    names = [str(name) for name in dict.fromkeys(frame["panel"])]
    panels = [
        _panel(placed[placed["panel"] == name], name, title_of(measure), methods or shown)
        for name in names
    ]
    rows = [alt.hconcat(*panels[n : n + columns]) for n in range(0, len(panels), columns)]
    return configured(
        alt.vconcat(*rows),
        title=title or title_of(measure),
        description=f"Points of the {title_of(measure)} of {', '.join(shown)} by task: "
        f"{', '.join(names)}.",
    )


def _panel(frame: "pd.DataFrame", name: str, y_title: str, methods: Sequence[str]) -> Any:
    known = frame["mean"].dropna()
    top = 1.15 * max(1.0, float(known.max()) if len(known) else 0.0)
    bottom = -0.04 * top
    data = frame.dropna(subset=["mean"]).assign(
        low=frame["low"].fillna(frame["mean"]).clip(lower=bottom),
        high=frame["high"].fillna(frame["mean"]).clip(upper=top),
    )[["method", "task", "place", "mean", "low", "high"]]
    tasks = (int(frame["task"].min()), int(frame["task"].max()))
    limits = [tasks[0] - 0.7, tasks[1] + 0.7]
    stride = max(1, round((tasks[1] - tasks[0]) / 7))
    ticks = list(range(tasks[0], tasks[1] + 1, stride))
    x_axis = alt.Axis(values=ticks, format="d", grid=False)
    x = alt.X("place:Q", title="task", scale=alt.Scale(domain=limits, nice=False), axis=x_axis)
    scale = alt.Scale(domain=[bottom, top], nice=False)
    looks = scales(methods)
    legend = method_legend(drawing_order(frame["method"]))
    colour = alt.Color("method:N", scale=looks["color"], legend=legend)
    shape = alt.Shape("method:N", scale=looks["shape"], legend=legend)
    y_axis = alt.Axis(tickCount=5, title=y_title)
    tips: list[Any] = ["method:N", "task:Q", *(alt.Tooltip(f"{n}:Q", format=".4~r") for n in MEANS)]
    base = alt.Chart(data).encode(x=x, color=colour, tooltip=tips)
    rule = base.mark_rule().encode(y=alt.Y("low:Q", scale=scale, axis=y_axis), y2="high:Q")
    sign = base.mark_point(filled=True, size=36, opacity=1).encode(
        y=alt.Y("mean:Q", scale=scale, axis=y_axis), shape=shape
    )
    heading = alt.TitleParams(name, fontSize=12, anchor="start")
    return alt.layer(rule, sign).properties(width=WIDTH, height=HEIGHT, title=heading)


MEANS = ("mean", "low", "high")
