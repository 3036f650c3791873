"""Charts that compare methods: critical differences, heat maps, wins, and bars by task."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from hpobench_ordered.analysis.significance import CriticalDifference
from hpobench_ordered.analysis.wins import Wins
from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.plotting.axes import title_of
from hpobench_ordered.plotting.curves import method_legend
from hpobench_ordered.plotting.theme import (
    DIVERGING,
    FAINT,
    INK,
    ON_DARK,
    ON_LIGHT,
    SEQUENCE,
    configured,
    drawing_order,
    scales,
    styles,
)

if TYPE_CHECKING:
    import pandas as pd

AXIS_WIDTH = 420
ROW = 18
"""Height of a method's line, in pixels."""

REACH = 26
"""How far the lines of methods go beyond the ends of the axis, in pixels."""

BAR_GAP = 8
CELL_WIDTH, CELL_HEIGHT = 62, 24
DARK_CELL = 0.35
"""Below this share of `SEQUENCE`, white text stands out from a cell better than black."""

HEADROOM = 1.07
"""Height of bars' axis relative to the plotted range; arrows stand in between."""


def critical_differences(
    ranking: CriticalDifference, *, methods: Sequence[str] | None = None, title: str | None = None
) -> alt.TopLevelMixin:
    """Draw mean ranks and which methods cannot be told apart (Demsar 2006, JMLR 7, figure 1).

    Methods are named on a line of their own each, the better half at the left, so that names never
    meet; a bar joins methods that cannot be told apart.

    Args:
        ranking: Ranks and groups, as `analysis.critical_difference` gives.
        methods: All methods of the experiment, for the same colours in every chart; default: those
            ranked.
        title: Title of the chart; default: "mean ranks".

    Raises:
        ExperimentError: Fewer than two methods are ranked.
    """
    import pandas as pd

    count = len(ranking.methods)
    if count < 2:
        raise ExperimentError("a diagram of critical differences needs two methods or more")
    unit = (count - 1) / AXIS_WIDTH  # ranks a pixel
    half = math.ceil(count / 2)
    top = 24 + BAR_GAP * len(ranking.bars)
    rows = []
    for place, (method, rank) in enumerate(zip(ranking.methods, ranking.mean_ranks, strict=True)):
        is_left = place < half
        line = top + ROW * (place if is_left else count - 1 - place)
        end = 1 - REACH * unit if is_left else count + REACH * unit
        label = f"{method}  {rank:.2f}"
        rows.append((method, float(rank), float(line), end, label, "left" if is_left else "right"))
    frame = pd.DataFrame(rows, columns=["method", "rank", "y", "end", "label", "side"]).assign(
        zero=0.0
    )
    bars = pd.DataFrame(
        [(low, high, 12 + BAR_GAP * n) for n, (low, high) in enumerate(ranking.bars)],
        columns=["low", "high", "y"],
    ).astype(float)
    height = top + ROW * (half - 1) + 10
    ticks = [tick for tick in range(1, count + 1) if count <= 20 or tick % 5 in (0, 1)]
    domain = [1 - REACH * unit, count + REACH * unit]
    axis = alt.Axis(values=ticks, orient="top", grid=False, title="mean rank", format="d")
    x = alt.X("rank:Q", scale=alt.Scale(domain=domain, nice=False), axis=axis)
    y = alt.Y("y:Q", scale=alt.Scale(domain=[height, 0], nice=False), axis=None)
    looks = scales(methods or ranking.methods)
    layers = _diagram(frame, x, y, looks, y_domain=[height, 0])
    if len(bars):
        thick = alt.Chart(bars).mark_rule(strokeWidth=4, color=INK, strokeCap="round")
        layers.append(thick.encode(x=alt.X("low:Q"), x2="high:Q", y=y))
    diagram = alt.layer(*layers).properties(width=AXIS_WIDTH + 2 * REACH, height=height)
    heading: dict[str, Any] = {"text": title or "mean ranks", "subtitle": _margin(ranking)}
    ranks = ", ".join(frame["label"].str.replace("  ", " "))
    return configured(
        diagram,
        title=alt.TitleParams(**heading),
        description=f"Diagram of critical differences; mean ranks are {ranks}.",
    )


def _margin(ranking: CriticalDifference) -> str:
    p_value = ranking.friedman_p_value
    said = "p < 0.0001" if p_value < 1e-4 else f"p = {p_value:.2g}"
    text = f"{ranking.samples} samples; Friedman's test: {said}"
    if math.isfinite(ranking.critical_difference):
        text += f"; critical difference {ranking.critical_difference:.2f}"
    return text


def _diagram(
    frame: "pd.DataFrame",
    x: alt.X,
    y: alt.Y,
    looks: Mapping[str, alt.Scale],
    *,
    y_domain: list[float],
) -> list[Any]:
    base = alt.Chart(frame)
    colour = alt.Color("method:N", scale=looks["color"], legend=None)
    shape = alt.Shape("method:N", scale=looks["shape"], legend=None)
    top = alt.Y("zero:Q", scale=alt.Scale(domain=y_domain, nice=False), axis=None)
    point: dict[str, Any] = {"filled": True, "size": 50, "opacity": 1}
    layers: list[Any] = [
        base.mark_rule(color=FAINT).encode(x=x, y=top, y2="y:Q"),
        base.mark_rule(color=FAINT).encode(x=x, x2="end:Q", y=y),
        base.mark_point(**point).encode(
            x=x, y=top, color=colour, shape=shape, tooltip=["method:N", "rank:Q"]
        ),
        base.mark_point(**point).encode(x="end:Q", y=y, color=colour, shape=shape),
    ]
    for side, align, dx in (("left", "right", -8), ("right", "left", 8)):
        text = alt.Chart(frame[frame["side"] == side]).mark_text(
            align=align, dx=dx, baseline="middle", color=INK, fontSize=12
        )
        layers.append(text.encode(x="end:Q", y=y, text="label:N"))
    return layers


def heatmap(
    frame: "pd.DataFrame",
    *,
    measure: str = "rank",
    rows: str = "benchmark",
    title: str | None = None,
) -> alt.TopLevelMixin:
    """Draw a measure of every method on every benchmark as a table of colours with the numbers.

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
    numbers = data[measure]
    low, high = (float(numbers.min()), float(numbers.max())) if len(numbers) else (0.0, 1.0)
    span = high - low or 1.0
    data = data.assign(
        label=[f"{number:.3g}" for number in numbers],
        ink=[ON_DARK if (n - low) / span < DARK_CELL else ON_LIGHT for n in numbers],
    )
    x = alt.X(
        "method:N",
        sort=methods,
        title=None,
        axis=alt.Axis(orient="top", labelAngle=-35, domain=False),
    )
    base = alt.Chart(data).encode(x=x, y=alt.Y(f"{rows}:N", sort=names, title=None))
    colour = alt.Color(
        f"{measure}:Q",
        scale=alt.Scale(range=list(SEQUENCE), domain=[low, high]),
        legend=alt.Legend(title=title_of(measure), gradientLength=120),
    )
    cells = base.mark_rect().encode(color=colour, tooltip=[f"{rows}:N", "method:N", f"{measure}:Q"])
    text = base.mark_text(fontSize=11).encode(
        text="label:N", color=alt.Color("ink:N", scale=None, legend=None)
    )
    width = max(CELL_WIDTH * len(methods) * (0.7 if len(methods) > 15 else 1), 200)
    chart = alt.layer(cells, text).resolve_scale(color="independent")
    return configured(
        chart.properties(width=width, height=CELL_HEIGHT * len(names)),
        title=title or title_of(measure),
        description=f"Table of the {title_of(measure)} of {', '.join(methods)} on "
        f"{', '.join(names)}.",
    )


def wins(counts: Wins, *, title: str = "wins, ties and losses") -> alt.TopLevelMixin:
    """Draw how often the method of the row was better than that of the column.

    Args:
        counts: As `analysis.count_wins` gives.
        title: Title of the chart.
    """
    import pandas as pd

    rows = []
    for a, method in enumerate(counts.methods):
        for b, opponent in enumerate(counts.methods):
            share = float(counts.shares[a, b])
            if a != b and not math.isnan(share):
                label = f"{counts.wins[a, b]}/{counts.ties[a, b]}/{counts.losses[a, b]}"
                ink = ON_DARK if share < 0.1 or share > 0.9 else ON_LIGHT
                rows.append((method, opponent, share, label, ink))
    data = pd.DataFrame(rows, columns=["method", "opponent", "share", "label", "ink"])
    order = list(counts.methods)
    x = alt.X(
        "opponent:N",
        sort=order,
        title=None,
        axis=alt.Axis(orient="top", labelAngle=-35, domain=False),
    )
    base = alt.Chart(data).encode(x=x, y=alt.Y("method:N", sort=order, title=None))
    colour = alt.Color(
        "share:Q",
        scale=alt.Scale(range=list(DIVERGING), domain=[0, 1]),
        legend=alt.Legend(title="share won", gradientLength=120),
    )
    tips = ["method:N", "opponent:N", "label:N", "share:Q"]
    cells = base.mark_rect().encode(color=colour, tooltip=tips)
    text = base.mark_text(fontSize=11).encode(
        text="label:N", color=alt.Color("ink:N", scale=None, legend=None)
    )
    size = len(order)
    chart = alt.layer(cells, text).resolve_scale(color="independent")
    return configured(
        chart.properties(width=1.2 * CELL_WIDTH * size, height=CELL_HEIGHT * size),
        title=title,
        description=f"Table of wins, ties and losses of {', '.join(order)} against each other.",
    )


def bars(
    frame: "pd.DataFrame",
    *,
    measure: str = "score",
    tops: Mapping[str, float] | None = None,
    methods: Sequence[str] | None = None,
    title: str | None = None,
) -> alt.TopLevelMixin:
    """Draw bars of every method on every task, with their errors, one row a benchmark.

    A dark arrow says that the mean is above the plotted range, a pale one that the error is.

    Args:
        frame: A row a benchmark, task and method, with mean, low and high. Tasks stand in the order
            of the frame.
        measure: What is measured, for the titles.
        tops: Upper end of the plotted range by benchmark; default: all is plotted.
        methods: All methods of the experiment; default: those in the frame.
        title: Title of the chart.
    """
    shown = drawing_order(frame["method"])
    names = [str(name) for name in dict.fromkeys(frame["benchmark"])]
    rows = [
        _bars_of(
            frame[frame["benchmark"] == name],
            name,
            y_title=title_of(measure),
            top=(tops or {}).get(name, math.inf),
            methods=methods or shown,
        )
        for name in names
    ]
    whole = rows[0] if len(rows) == 1 else alt.vconcat(*rows)
    return configured(
        whole,
        title=title or title_of(measure),
        description=f"Bars of the {title_of(measure)} of {', '.join(shown)} on tasks of "
        f"{', '.join(names)}.",
    )


def _bars_of(
    frame: "pd.DataFrame", name: str, *, y_title: str, top: float, methods: Sequence[str]
) -> Any:
    tasks = list(dict.fromkeys(frame["task"]))
    shown = list(styles(frame["method"]))
    highest = float(frame[["mean", "high"]].max().max())
    top = min(top, max(highest, 1.0)) if math.isfinite(highest) else 1.0
    data = frame[["task", "method", "mean", "low", "high"]].assign(
        shown=frame["mean"].clip(upper=top),
        below=frame["low"].clip(lower=0.0, upper=top),
        above=frame["high"].clip(upper=top),
    )
    limit = top * (1 + 1e-9)  # random search ends at 100, give or take what floating point does
    x = alt.X("task:N", sort=tasks, title="task", axis=alt.Axis(labelAngle=0))
    offset = alt.XOffset("method:N", sort=shown, scale=alt.Scale(domain=shown))
    scale = alt.Scale(domain=[0, HEADROOM * top], nice=False)
    y = alt.Y("shown:Q", title=y_title, scale=scale, axis=alt.Axis(tickCount=5))
    colour = alt.Color("method:N", scale=scales(methods)["color"], legend=method_legend(shown))
    tips = [
        "method:N",
        "task:N",
        *(alt.Tooltip(f"{n}:Q", format=".4~r") for n in ("mean", "low", "high")),
    ]
    layers = [
        alt.Chart(data).mark_bar().encode(x=x, xOffset=offset, y=y, color=colour, tooltip=tips)
    ]
    inside = data[(data["mean"] <= limit) & data["high"].notna()]
    rule = alt.Chart(inside).mark_rule(color=ON_LIGHT, strokeWidth=0.9)
    layers.append(rule.encode(x=x, xOffset=offset, y=alt.Y("below:Q"), y2="above:Q"))
    beyond = data["mean"] > limit
    for chosen, ink in ((beyond, INK), (~beyond & (data["high"] > limit), "#B0B0B0")):
        if chosen.any():
            sign = alt.Chart(data[chosen]).mark_point(
                shape="triangle-up", filled=True, color=ink, size=22, opacity=1
            )
            layers.append(sign.encode(x=x, xOffset=offset, y=alt.datum((1 + HEADROOM) / 2 * top)))
    width = max(90.0 + 8 * len(shown), 60.0) * len(tasks)
    return alt.layer(*layers).properties(width=min(width, 820), height=150, title=name)
