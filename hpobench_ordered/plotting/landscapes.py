"""Landscapes: what two hyperparameters do on a task, and where methods looked."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from hpobench_ordered._typing import FloatArray, Value
from hpobench_ordered.plotting.theme import ON_DARK, ON_LIGHT, STYLES, TRIALS, configured
from hpobench_ordered.space.parameters import Parameter

if TYPE_CHECKING:
    import pandas as pd

WIDE = 300.0
"""Positive numbers so many times apart are taken for a logarithmic range."""

WIDE_VALUES = 10.0
"""Objectives whose largest value is so many times the smallest are coloured on a log scale."""

CROSS_SIZE, POINT_SIZE = 70, 24
CROSS: dict[str, Any] = {
    "shape": "cross",
    "angle": 45,
    "fill": ON_LIGHT,
    "stroke": ON_DARK,
    "filled": True,
    "size": CROSS_SIZE,
    "opacity": 1,
    "strokeWidth": 0.9,
}
PROFILE = STYLES["simple-ordered"].colour
MARGIN = 0.04
"""Margin around the range of a hyperparameter, relative to its width."""

OVERLAP = 0.12
"""Share of its width by which a cell reaches below the next one, so that there are no seams."""

MOST_NAME = 14
"""Characters of a choice's name beside an axis."""

INACTIVE = "#C9C9CA"
"""Colour behind cells where a hyperparameter is never active."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A hyperparameter as an axis.

    Attributes:
        name: Its name.
        low: Lower end, as coded: of a choice, its index.
        high: Upper end.
        log: Whether on a logarithmic scale.
        choices: Its values where it is no number, in order.
    """

    name: str
    low: float
    high: float
    log: bool = False
    choices: tuple[Value, ...] = ()

    @classmethod
    def of_parameter(cls, parameter: Parameter) -> "Dimension":
        """The axis of a hyperparameter over its whole range."""
        p = parameter
        half = 0.5 if p.is_discrete and not p.log and not p.choices else 0.0
        return cls(p.name, p.lower - half, p.upper + half, p.log, tuple(p.choices))

    @classmethod
    def of_column(cls, name: str, column: "pd.Series") -> "Dimension":
        """The axis that fits the evaluated values of a hyperparameter, some of which are known."""
        from pandas.api.types import is_bool_dtype, is_numeric_dtype

        known = column.dropna()
        if is_bool_dtype(known) or not is_numeric_dtype(known):
            choices = tuple(sorted(known.unique().tolist(), key=str))
            return cls(name, 0.0, len(choices) - 1.0, False, choices)
        low, high = float(known.min()), float(known.max())
        return cls(name, low, high, low > 0 and high >= WIDE * low)

    def coded(self, column: "pd.Series") -> FloatArray:
        """Values as numbers on the axis, shape (n,); NaN where it is inactive."""
        if not self.choices:
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        codes = {str(choice): float(index) for index, choice in enumerate(self.choices)}
        return np.array([codes.get(str(value), np.nan) for value in column])

    def unit(self, coded: FloatArray) -> FloatArray:
        """Places of coded values from 0 to 1, half a step from the ends for choices."""
        low, high = self._ends(0.0)
        if self.log:
            low, high, coded = np.log(low), np.log(high), np.log(coded)
        return np.asarray((coded - low) / ((high - low) or 1.0))

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """Coded values of places from 0 to 1, the inverse of `unit`."""
        low, high = self._ends(0.0)
        if self.log:
            return np.asarray(low * (high / low) ** unit)
        return np.asarray(low + (high - low) * unit)

    def scale(self, margin: float = MARGIN) -> alt.Scale:
        """Its scale, with a margin relative to its width."""
        kind: Any = "log" if self.log else "linear"
        return alt.Scale(type=kind, domain=list(self._ends(margin)), nice=False, zero=False)

    def axis(self, *, horizontal: bool) -> alt.Axis:
        """Its axis, with the names of choices."""
        options: dict[str, Any] = {"title": self.name, "grid": False, "labelOverlap": True}
        if not self.choices:
            return alt.Axis(tickCount=4, format="~g" if self.log else "~r", **options)
        names = [_short(str(choice)) for choice in self.choices]
        if horizontal and sum(map(len, names)) > 24:
            options["labelAngle"] = -35
        values = [float(index) for index in range(len(names))]
        return alt.Axis(values=values, labelExpr=f"{json.dumps(names)}[datum.value]", **options)

    def _ends(self, margin: float) -> tuple[float, float]:
        if self.choices:
            return self.low - 0.5, self.high + 0.5
        if self.low == self.high:
            return self.low - 0.5, self.high + 0.5
        if self.log:
            factor = (self.high / self.low) ** margin
            return self.low / factor, self.high * factor
        room = margin * (self.high - self.low)
        return self.low - room, self.high + room


def _short(name: str) -> str:
    return name if len(name) <= MOST_NAME else f"{name[: MOST_NAME - 1]}…"


@dataclass(frozen=True, slots=True)
class Panel:
    """One landscape.

    Attributes:
        title: What it is of, such as a task.
        x: Hyperparameter of the horizontal axis.
        y: That of the vertical axis.
        values: Columns x, y (coded) and value, the best last; cells have x2 and y2 as well. None:
            only crosses and points.
        value: What the values are called.
        domain: Values at the ends of the colours; what is beyond looks as these.
        maximised: Whether high values are good; good is bright.
        crosses: The best configurations: columns x and y.
        points: What a method evaluated: columns x, y and trial.
        colour: Colour of the points; None: from light to dark over the trials.
    """

    title: str
    x: Dimension
    y: Dimension
    values: "pd.DataFrame | None" = None
    value: str = "loss"
    domain: tuple[float, float] = (0.0, 1.0)
    maximised: bool = False
    crosses: "pd.DataFrame | None" = None
    points: "pd.DataFrame | None" = None
    colour: str | None = None


def landscape(
    rows: Sequence[Sequence[Panel]],
    *,
    title: str = "",
    description: str = "",
    size: tuple[float, float] = (170, 140),
) -> alt.TopLevelMixin:
    """Draw landscapes, bright where they are good: cells or points, crosses on the best.

    Args:
        rows: Panels, row by row; panels of a row with the same colours share a colour bar.
        title: Title of the chart.
        description: For screen readers; default: made of the panels' titles.
        size: Width and height of a panel, in pixels.
    """
    drawn = []
    for row in rows:
        ends = [panel.domain for panel in row]
        panels = []
        for number, panel in enumerate(row):
            has_bar = number + 1 == len(row) or len(set(ends)) > 1
            is_first = number == 0 or panel.y != row[0].y
            panels.append(_panel(panel, size=size, has_bar=has_bar, has_title=is_first))
        joined = alt.hconcat(*panels, spacing=12)
        drawn.append(joined.resolve_scale(color="independent", fill="independent"))
    first = rows[0][0]
    names = ", ".join(dict.fromkeys(panel.title for row in rows for panel in row))
    chart = alt.vconcat(*drawn).resolve_scale(color="independent", fill="independent")
    return configured(
        chart,
        title=title or f"{first.value} by {first.x.name} and {first.y.name}",
        description=description
        or f"Landscapes of {first.value} by {first.x.name} and {first.y.name}: {names}.",
    )


def profiles(
    frame: "pd.DataFrame", x: Dimension, *, value: str, size: tuple[float, float] = (190, 150)
) -> alt.TopLevelMixin:
    """Draw what a single hyperparameter does, one panel a task, a cross on the best.

    Args:
        frame: Columns panel, x (coded), value and best (whether it is the best of its panel).
        x: The hyperparameter.
        value: What the values are called.
        size: Width and height of a panel, in pixels.
    """
    panels = []
    names = list(dict.fromkeys(frame["panel"]))
    across = alt.X("x:Q", scale=x.scale(), axis=x.axis(horizontal=True))
    up = alt.Y("value:Q", title=value, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5))
    for name in names:
        rows = frame[frame["panel"] == name]
        line = alt.Chart(rows).mark_line(color=PROFILE, strokeWidth=1.6).encode(x=across, y=up)
        sign = alt.Chart(rows[rows["best"]]).mark_point(**CROSS).encode(x=across, y=up)
        heading = alt.TitleParams(name, fontSize=12, anchor="start")
        panels.append(
            alt.layer(line, sign).properties(width=size[0], height=size[1], title=heading)
        )
    return configured(
        alt.hconcat(*panels),
        title=f"{value} by {x.name}",
        description=f"Curves of {value} by {x.name}: {', '.join(names)}.",
    )


def _panel(panel: Panel, *, size: tuple[float, float], has_bar: bool, has_title: bool) -> Any:
    x_axis, y_axis = panel.x.axis(horizontal=True), panel.y.axis(horizontal=False)
    if not has_title:
        y_axis.title = None
        y_axis.labels = False
    has_cells = panel.values is not None and "x2" in panel.values.columns
    margin = 0.0 if has_cells else MARGIN
    x = alt.X("x:Q", scale=panel.x.scale(margin), axis=x_axis)
    y = alt.Y("y:Q", scale=panel.y.scale(margin), axis=y_axis)
    layers: list[Any] = []
    if panel.values is not None:
        layers.append(_background(panel, panel.values, x, y, has_bar=has_bar))
    if panel.points is not None and len(panel.points):
        layers.append(_points(panel.points, x, y, panel.colour))
    if panel.crosses is not None and len(panel.crosses):
        cross = alt.Chart(panel.crosses[["x", "y"]]).mark_point(**CROSS)
        layers.insert(1 if panel.colour else len(layers), cross.encode(x=x, y=y))
    return alt.layer(*layers).properties(
        width=size[0],
        height=size[1],
        title=alt.TitleParams(panel.title, fontSize=12, anchor="start"),
        view=alt.ViewBackground(fill=INACTIVE if has_cells else None),
    )


def _background(panel: Panel, values: "pd.DataFrame", x: alt.X, y: alt.Y, *, has_bar: bool) -> Any:
    low, high = panel.domain
    # What is beyond the ends looks like them; values of 0 and less have no logarithm.
    is_log = low > 0 and low * WIDE_VALUES < high and values["value"].min() > 0
    scale = alt.Scale(
        type="log" if is_log else "linear",
        domain=[low, high],
        scheme="viridis",
        reverse=not panel.maximised,
        nice=False,
    )
    bar = alt.Legend(title=panel.value, gradientLength=110, format="~r", tickCount=4)
    colour = alt.Color("shown:Q", scale=scale, legend=bar if has_bar else None)
    chart = alt.Chart(values.assign(shown=values["value"].clip(low, high)))
    if "x2" in values.columns:
        tips = [alt.Tooltip("value:Q", title=panel.value, format=".4~g")]
        cells = chart.mark_rect(stroke=None, aria=False)
        return cells.encode(x=x, x2="x2", y=y, y2="y2", color=colour, tooltip=tips)
    tips = [alt.Tooltip(n, format=".4~g") for n in ("x:Q", "y:Q", "value:Q")]
    dots = chart.mark_circle(size=POINT_SIZE, opacity=1, aria=False)
    return dots.encode(x=x, y=y, color=colour, tooltip=tips)


def _points(points: "pd.DataFrame", x: alt.X, y: alt.Y, colour: str | None) -> Any:
    tips = [name for name in points.columns if name not in ("x", "y")]
    chart = alt.Chart(points)
    if colour is not None:
        dots = chart.mark_circle(size=POINT_SIZE, color=colour, opacity=0.45)
        return dots.encode(x=x, y=y, tooltip=tips)
    last = max(int(points["trial"].max()), 2)
    scale = alt.Scale(domain=[1, last], range=list(TRIALS))
    dots = chart.mark_point(size=1.6 * POINT_SIZE, opacity=1, stroke=ON_LIGHT, strokeWidth=0.7)
    return dots.encode(x=x, y=y, tooltip=tips, fill=alt.Fill("trial:Q", scale=scale, legend=None))


def cells(means: FloatArray, x: Dimension, y: Dimension) -> "pd.DataFrame":
    """Cells of equal size on the axes, for `Panel.values`.

    Args:
        means: Value of every cell, shape (rows, columns), the first row at the lower end of y; NaN
            where there is none.
        x: The horizontal axis.
        y: The vertical axis.
    """
    import pandas as pd

    rows, columns = means.shape
    row, column = np.nonzero(~np.isnan(means))
    right = np.minimum((column + 1 + OVERLAP) / columns, 1)
    upper = np.minimum((row + 1 + OVERLAP) / rows, 1)
    return pd.DataFrame(
        {
            "x": x.from_unit(column / columns),
            "x2": x.from_unit(right),
            "y": y.from_unit(row / rows),
            "y2": y.from_unit(upper),
            "value": means[row, column],
        }
    )
