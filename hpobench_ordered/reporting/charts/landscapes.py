"""Landscapes: the objective over two hyperparameters of a task, and the evaluations of methods."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from hpobench_ordered._typing import FloatArray, Value
from hpobench_ordered.reporting.charts.theme import (
    ON_DARK,
    ON_LIGHT,
    TRIALS,
    configured,
    panel_title,
)
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

ANGLE_OF_SLANTED_NAMES = -35
"""In degrees; a negative angle slants names upwards."""

INDEPENDENT_SCALES = {"scale": {"color": "independent", "fill": "independent"}}
"""Every panel has its own colours. Given when charts are made: altair copies them to change it."""

INACTIVE = "#C9C9CA"
"""Colour where a hyperparameter is inactive."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """A hyperparameter as an axis.

    Attributes:
        name: Name of the hyperparameter.
        low: Lower end of the axis, as a coded value: a choice is coded as its index.
        high: Upper end.
        log: Whether the scale is logarithmic.
        choices: The choices in order; empty for a number.
    """

    name: str
    low: float
    high: float
    log: bool = False
    choices: tuple[Value, ...] = ()

    @classmethod
    def of_parameter(cls, parameter: Parameter) -> "Dimension":
        """Make the axis of a hyperparameter over its whole range."""
        # A whole number is drawn as a cell that reaches half a step to both sides, so that the axis
        # needs a margin. So is a choice, but there `from_unit` adds the margin.
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
        """Convert positions along the axis, 0 at its lower and 1 at its upper end, to coded values.

        Choices are coded as whole numbers. Their axis begins half a step before the first choice,
        and ends half a step after the last one.
        """
        margin = 0.5 if self.choices else 0.0
        low = self.low - margin
        high = self.high + margin
        if self.log:
            return np.asarray(low * (high / low) ** unit)
        return np.asarray(low + (high - low) * unit)

    def channel(self, kind: type[Any], *, margin: float = MARGIN, labels: bool = True) -> Any:
        """Make the channel of Altair in which this hyperparameter is an axis.

        Args:
            kind: `alt.X` or `alt.Y`.
            margin: Margin around the range of a number, relative to its width.
            labels: Whether the axis has a title and labels.
        """
        is_horizontal = kind is alt.X
        axis: dict[str, Any]
        if self.choices:
            margin = 0.0  # the axis goes half a step beyond the choices anyway
            axis = self._axis_of_choices(is_horizontal=is_horizontal)
        else:
            axis = {"tickCount": 4, "format": "~g" if self.log else "~r"}
        axis |= {
            "title": self.name if labels else None,
            "labels": labels,
            "grid": False,
            "labelOverlap": True,
        }
        ends = self.from_unit(np.array([-margin, 1.0 + margin])).tolist()
        scale = alt.Scale(type="log" if self.log else "linear", domain=ends, nice=False, zero=False)
        column = "x:Q" if is_horizontal else "y:Q"
        return kind(column, scale=scale, axis=alt.Axis(**axis))

    def _axis_of_choices(self, *, is_horizontal: bool) -> dict[str, Any]:
        """Choose the options of an axis with a tick and a name for each choice.

        Names longer than `MAX_NAME_LENGTH` are cut. On a horizontal axis, names that do not fit
        side by side are slanted.
        """
        names = []
        for choice in self.choices:
            name = str(choice)
            if len(name) > MAX_NAME_LENGTH:
                name = f"{name[: MAX_NAME_LENGTH - 1]}…"
            names.append(name)
        # A choice is drawn at its index, where a tick shows the name with this index. The browser
        # evaluates the expression, such as `["adam", "sgd"][datum.value]`, for every tick.
        axis: dict[str, Any] = {
            "values": list(range(len(names))),
            "labelExpr": f"{json.dumps(names)}[datum.value]",
        }
        n_letters = sum(map(len, names))
        if is_horizontal and n_letters > MAX_LETTERS_IN_LINE:
            axis["labelAngle"] = ANGLE_OF_SLANTED_NAMES
        return axis


@dataclass(frozen=True, slots=True)
class Panel:
    """One landscape.

    The `values` are a table with the columns x and y, in coded values, and value; its best rows are
    last, so that they are drawn on top. If it has the columns x2 and y2 as well, its rows are
    drawn as cells with these upper ends, otherwise as dots. Without `values` only crosses and
    points are drawn. Values beyond the `domain` get the colours of its ends.
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
        first_panel = row[0]
        last_panel = row[-1]
        has_same_colours = len({panel.domain for panel in row}) == 1
        panels = []
        for panel in row:
            # If all panels of a row have the same colours, the last one has the colour bar for all.
            has_colour_bar = panel is last_panel or not has_same_colours
            # A panel whose y axis is that of the first one does not repeat its labels.
            has_y_labels = panel is first_panel or panel.y != first_panel.y
            chart = _draw_panel(
                panel, size, has_colour_bar=has_colour_bar, has_y_labels=has_y_labels
            )
            panels.append(chart)
        drawn.append(alt.hconcat(*panels, spacing=12, resolve=INDEPENDENT_SCALES))

    first = rows[0][0]
    titles = [panel.title for panel in itertools.chain.from_iterable(rows)]
    names = ", ".join(dict.fromkeys(titles))
    axes = f"{first.value} by {first.x.name} and {first.y.name}"
    return configured(
        alt.vconcat(*drawn, resolve=INDEPENDENT_SCALES),
        title=title or axes,
        description=f"Landscapes of {axes}: {names}.".replace("\n", ", "),
    )


def _draw_panel(
    panel: Panel, size: tuple[float, float], *, has_colour_bar: bool, has_y_labels: bool
) -> alt.LayerChart:
    """Draw one landscape: values at the bottom, the points of a method above, crosses on top.

    If the points have a single colour, crosses are right above the lowest layer instead. Points on
    values then hide crosses, but crosses still hide points if there are no values.

    Args:
        panel: The landscape.
        size: Its width and height in pixels.
        has_colour_bar: Whether it shows the colour bar.
        has_y_labels: Whether the vertical axis has a title and labels.
    """
    layers = []
    if panel.values is not None:
        layers.append(_draw_values(panel, panel.values, has_colour_bar=has_colour_bar))
    if panel.points is not None and len(panel.points):
        layers.append(_draw_points(panel.points, panel.colour))  # None: a colour for each trial
    if panel.crosses is not None and len(panel.crosses):
        crosses = alt.Chart(panel.crosses[["x", "y"]]).mark_point(**CROSS)
        has_single_colour = bool(panel.colour)
        if has_single_colour:
            layers.insert(1, crosses)
        else:
            layers.append(crosses)

    has_cells = panel.values is not None and "x2" in panel.values.columns
    margin = 0.0 if has_cells else MARGIN
    x = panel.x.channel(alt.X, margin=margin)
    y = panel.y.channel(alt.Y, margin=margin, labels=has_y_labels)
    # Where a hyperparameter is inactive there are no cells, and the background shows.
    background = alt.ViewBackground(fill=INACTIVE if has_cells else None)
    return alt.layer(
        *(layer.encode(x=x, y=y) for layer in layers),
        title=panel_title(panel.title),
        view=background,
        width=size[0],
        height=size[1],
    )


def _draw_values(panel: Panel, values: "pd.DataFrame", *, has_colour_bar: bool) -> alt.Chart:
    """Draw values in colour: as cells if they have upper ends (x2, y2), otherwise as dots."""
    legend = None
    if has_colour_bar:
        legend = alt.Legend(title=panel.value, gradientLength=110, format="~r", tickCount=4)
    colour = alt.Color("value:Q", scale=_colour_scale(panel, values), legend=legend)
    value_tip = alt.Tooltip("value:Q", title=panel.value, format=".4~g")

    chart = alt.Chart(values)
    if "x2" in values.columns:
        cells = chart.mark_rect(stroke=None, aria=False)
        return cells.encode(x2="x2", y2="y2", color=colour, tooltip=value_tip)
    dots = chart.mark_circle(size=POINT_SIZE, opacity=1, aria=False)
    return dots.encode(color=colour, tooltip=["x:Q", "y:Q", value_tip])


def _colour_scale(panel: Panel, values: "pd.DataFrame") -> alt.Scale:
    """Make the scale from values to colours, over the panel's domain.

    It is logarithmic if all values are positive and the ends of the domain are far apart.
    """
    low, high = panel.domain
    is_positive = low > 0 and values["value"].min() > 0
    is_far_apart = high > MAX_RATIO_OF_LINEAR_SCALE * low
    is_log = is_positive and is_far_apart
    return alt.Scale(
        type="log" if is_log else "linear",
        domain=[low, high],
        scheme="viridis",
        reverse=not panel.maximised,  # so that good values are bright
        nice=False,
        clamp=True,
    )


def _draw_points(points: "pd.DataFrame", colour: str | None) -> alt.Chart:
    """Draw evaluations of a method as points.

    Args:
        points: The evaluations: columns x, y and trial, and more columns for the tooltip.
        colour: The colour of all points; None: from light to dark over the trials.
    """
    columns_of_tooltip = [column for column in points.columns if column not in ("x", "y")]
    chart = alt.Chart(points).encode(tooltip=columns_of_tooltip)
    if colour is not None:
        return chart.mark_circle(size=POINT_SIZE, color=colour, opacity=0.45)

    last_trial = max(int(points["trial"].max()), 2)  # the scale needs two ends
    scale = alt.Scale(domain=[1, last_trial], range=list(TRIALS))
    dots = chart.mark_point(size=1.6 * POINT_SIZE, opacity=1, stroke=ON_LIGHT, strokeWidth=0.7)
    return dots.encode(fill=alt.Fill("trial:Q", scale=scale, legend=None))


def cells(means: FloatArray, x: Dimension, y: Dimension) -> "pd.DataFrame":
    """Turn a table of means into cells of equal size, for `Panel.values`.

    Args:
        means: Means, (number of cells along y, number along x); NaN where there is no cell.
        x: The horizontal axis.
        y: The vertical axis.

    Returns:
        Columns x, x2, y and y2, the sides of each cell in coded values, and value.
    """
    import pandas as pd

    n_rows, n_columns = means.shape
    row_of_cell, column_of_cell = np.nonzero(~np.isnan(means))
    # Sides as places along the axes, from 0 to 1.
    left = column_of_cell / n_columns
    lower = row_of_cell / n_rows
    # Cells reach a little below the next ones, so that there are no seams.
    right = np.minimum((column_of_cell + 1 + OVERLAP) / n_columns, 1)
    upper = np.minimum((row_of_cell + 1 + OVERLAP) / n_rows, 1)
    return pd.DataFrame(
        {
            "x": x.from_unit(left),
            "x2": x.from_unit(right),
            "y": y.from_unit(lower),
            "y2": y.from_unit(upper),
            "value": means[row_of_cell, column_of_cell],
        }
    )
