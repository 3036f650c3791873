"""Landscapes: the objective over two hyperparameters of a task, and the evaluations of methods."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from hpobench_ordered._typing import FloatArray, Value
from hpobench_ordered.plotting.theme import ON_DARK, ON_LIGHT, TRIALS, configured, panel_title
from hpobench_ordered.space.parameters import Parameter

if TYPE_CHECKING:
    import pandas as pd

MAX_RATIO_OF_LINEAR_SCALE = 10.0
"""Objectives whose largest is more times the smallest are coloured on a log scale."""

POINT_SIZE = 24
CROSS: dict[str, Any] = {
    "shape": "cross",
    "angle": 45,
    "fill": ON_LIGHT,
    "stroke": ON_DARK,
    "filled": True,
    "size": 130,
    "opacity": 1,
    "strokeWidth": 1.6,
}
MARGIN = 0.04
"""Margin around the range of a hyperparameter, relative to its width."""

OVERLAP = 0.12
"""Share of its width by which a cell reaches below the next one, so that there are no seams."""

MAX_NAME_LENGTH = 14
"""Characters of a choice's name beside an axis."""

MAX_LETTERS_IN_LINE = 24
"""Names of choices with more characters together do not fit side by side."""

INDEPENDENT_SCALES = {"color": "independent", "fill": "independent"}
"""How panels have their scales."""

INACTIVE = "#C9C9CA"
"""Colour where a hyperparameter is inactive."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A hyperparameter as an axis."""

    name: str
    low: float  # lower end, as coded: of a choice, its index
    high: float  # upper end
    log: bool = False  # on a logarithmic scale
    choices: tuple[Value, ...] = ()  # its values in order; empty for a number

    @classmethod
    def of_parameter(cls, parameter: Parameter) -> "Dimension":
        """The axis of a hyperparameter over its whole range."""
        # Whole numbers have half a step around them; `from_unit` adds it to choices.
        is_whole_number = parameter.is_discrete and not parameter.log and not parameter.choices
        margin = 0.5 if is_whole_number else 0.0
        return cls(
            name=parameter.name,
            low=parameter.lower - margin,
            high=parameter.upper + margin,
            log=parameter.log,
            choices=tuple(parameter.choices),
        )

    def from_unit(self, unit: FloatArray) -> FloatArray:
        """Coded values of places from 0 to 1; the ends are half a step beyond choices."""
        margin = 0.5 if self.choices else 0.0
        low = self.low - margin
        high = self.high + margin
        if self.log:
            return np.asarray(low * (high / low) ** unit)
        return np.asarray(low + (high - low) * unit)

    def channel(self, kind: type[Any], *, margin: float = MARGIN, labels: bool = True) -> Any:
        """Its channel, with the names of choices.

        Args:
            kind: `alt.X` or `alt.Y`.
            margin: Margin around the range of a number, relative to its width.
            labels: Whether the axis has a title and labels.
        """
        if self.choices:
            margin = 0.0
        ends = self.from_unit(np.array([-margin, 1.0 + margin])).tolist()
        scale = alt.Scale(type="log" if self.log else "linear", domain=ends, nice=False, zero=False)
        axis: dict[str, Any] = {"tickCount": 4, "format": "~g" if self.log else "~r"}
        if self.choices:
            axis = self._axis_of_choices(is_horizontal=kind is alt.X)
        axis |= {
            "title": self.name if labels else None,
            "labels": labels,
            "grid": False,
            "labelOverlap": True,
        }
        return kind("x:Q" if kind is alt.X else "y:Q", scale=scale, axis=alt.Axis(**axis))

    def _axis_of_choices(self, *, is_horizontal: bool) -> dict[str, Any]:
        """Options of an axis with a tick for each choice, whose name is cut if it is long."""
        names = []
        for choice in self.choices:
            name = str(choice)
            if len(name) > MAX_NAME_LENGTH:
                name = f"{name[: MAX_NAME_LENGTH - 1]}…"
            names.append(name)
        axis: dict[str, Any] = {
            "values": list(range(len(names))),
            "labelExpr": f"{json.dumps(names)}[datum.value]",
        }
        if is_horizontal and sum(map(len, names)) > MAX_LETTERS_IN_LINE:
            axis["labelAngle"] = -35
        return axis


@dataclass(frozen=True, slots=True)
class Panel:
    """One landscape.

    `values` have columns x, y (coded) and value, the best last; cells have x2 and y2 as well.
    Without them only crosses and points are drawn. Values beyond the `domain` get the colours of
    its ends.
    """

    title: str  # such as the task
    x: Dimension
    y: Dimension
    values: "pd.DataFrame | None" = None
    value: str = "loss"  # what the values are called
    domain: tuple[float, float] = (0.0, 1.0)  # values at the ends of the colour scale
    maximised: bool = False  # high values are good; good is bright
    crosses: "pd.DataFrame | None" = None  # the best configurations: columns x and y
    points: "pd.DataFrame | None" = None  # what a method evaluated: columns x, y and trial
    colour: str | None = None  # of the points; default: from light to dark over the trials


def landscape(
    rows: Sequence[Sequence[Panel]],
    *,
    title: str | None = None,
    size: tuple[float, float] = (170, 140),
) -> alt.TopLevelMixin:
    """Draw landscapes, bright where they are good: cells or points, crosses on the best.

    Args:
        rows: Panels, row by row; panels of a row with the same colours share a colour bar.
        title: Title of the chart; default: the axes of the first panel.
        size: Width and height of a panel, in pixels.
    """
    drawn = []
    for row in rows:
        is_shared = len({panel.domain for panel in row}) == 1
        panels = [
            _panel(
                panel,
                has_bar=panel is row[-1] or not is_shared,
                has_title=panel is row[0] or panel.y != row[0].y,
            ).properties(width=size[0], height=size[1])
            for panel in row
        ]
        drawn.append(alt.hconcat(*panels, spacing=12).resolve_scale(**INDEPENDENT_SCALES))
    first = rows[0][0]
    names = ", ".join(dict.fromkeys(panel.title for row in rows for panel in row))
    axes = f"{first.value} by {first.x.name} and {first.y.name}"
    return configured(
        alt.vconcat(*drawn).resolve_scale(**INDEPENDENT_SCALES),
        title=title or axes,
        description=f"Landscapes of {axes}: {names}.".replace("\n", ", "),
    )


def _panel(panel: Panel, *, has_bar: bool, has_title: bool) -> Any:
    has_cells = panel.values is not None and "x2" in panel.values.columns
    margin = 0.0 if has_cells else MARGIN
    x = panel.x.channel(alt.X, margin=margin)
    y = panel.y.channel(alt.Y, margin=margin, labels=has_title)
    layers = []
    if panel.values is not None:
        layers.append(_background(panel, panel.values, has_bar=has_bar))
    if panel.points is not None and len(panel.points):
        layers.append(_points(panel.points, panel.colour))
    if panel.crosses is not None and len(panel.crosses):
        cross = alt.Chart(panel.crosses[["x", "y"]]).mark_point(**CROSS)
        layers.insert(1 if panel.colour else len(layers), cross)
    view = alt.ViewBackground(fill=INACTIVE if has_cells else None)
    whole = alt.layer(*(layer.encode(x=x, y=y) for layer in layers))
    return whole.properties(title=panel_title(panel.title), view=view)


def _background(panel: Panel, values: "pd.DataFrame", *, has_bar: bool) -> Any:
    low, high = panel.domain
    is_log = low > 0 and low * MAX_RATIO_OF_LINEAR_SCALE < high and values["value"].min() > 0
    scale = alt.Scale(
        type="log" if is_log else "linear",
        domain=[low, high],
        scheme="viridis",
        reverse=not panel.maximised,
        nice=False,
        clamp=True,
    )
    bar = alt.Legend(title=panel.value, gradientLength=110, format="~r", tickCount=4)
    colour = alt.Color("value:Q", scale=scale, legend=bar if has_bar else None)
    value = alt.Tooltip("value:Q", title=panel.value, format=".4~g")
    chart = alt.Chart(values)
    if "x2" in values.columns:
        cells = chart.mark_rect(stroke=None, aria=False)
        return cells.encode(x2="x2", y2="y2", color=colour, tooltip=value)
    dots = chart.mark_circle(size=POINT_SIZE, opacity=1, aria=False)
    return dots.encode(color=colour, tooltip=["x:Q", "y:Q", value])


def _points(points: "pd.DataFrame", colour: str | None) -> Any:
    chart = alt.Chart(points).encode(tooltip=[n for n in points.columns if n not in ("x", "y")])
    if colour is not None:
        return chart.mark_circle(size=POINT_SIZE, color=colour, opacity=0.45)
    scale = alt.Scale(domain=[1, max(int(points["trial"].max()), 2)], range=list(TRIALS))
    dots = chart.mark_point(size=1.6 * POINT_SIZE, opacity=1, stroke=ON_LIGHT, strokeWidth=0.7)
    return dots.encode(fill=alt.Fill("trial:Q", scale=scale, legend=None))


def cells(means: FloatArray, x: Dimension, y: Dimension) -> "pd.DataFrame":
    """Cells of equal size on the axes, for `Panel.values`."""
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
