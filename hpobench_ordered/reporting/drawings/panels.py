"""Panels of a drawing: where they are, their axes and grids, titles and legends."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.reporting.drawings.scales import Scale
from hpobench_ordered.reporting.drawings.scene import (
    AXIS_OPACITY,
    DASHES,
    GRID_OPACITY,
    INK,
    LARGE,
    NORMAL,
    SMALL,
    Anchor,
    Paths,
    Scene,
    Text,
    centred,
    markers,
    shortened,
    text_width,
)
from hpobench_ordered.reporting.style import Style

WIDTH = 1000.0
"""Width of most drawings."""

MARGIN = 8.0
"""Free space at the edges."""

HEADING = 30.0
"""Height of the line of a drawing's title."""

LEGEND_ROW = 17.0
LEGEND_LINE, LEGEND_BOX = 30.0, 18.0
LEGEND_GAP = 20.0

PANEL_TITLE = 16.0
"""Room for a title above a panel."""

OVERHANG = 3.0
"""How far a number may stick out at either end of a panel, so as not to meet a neighbour's."""

TICK_ROOM = 15.0
"""Room for numbers below a panel."""


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes.

    Attributes:
        left: Its left edge.
        top: Its upper edge.
        width: Its width.
        height: Its height.
        x: The horizontal axis.
        y: The vertical axis, upwards.
        title: What stands above it.
        shows_x: Whether numbers stand below it.
        shows_y: Whether numbers stand to the left of it.
    """

    left: float
    top: float
    width: float
    height: float
    x: Scale
    y: Scale
    title: str = ""
    shows_x: bool = True
    shows_y: bool = True

    @property
    def bottom(self) -> float:
        """Its lower edge."""
        return self.top + self.height

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.left + self.width

    def along(self, numbers: FloatArray) -> FloatArray:
        """Horizontal coordinates of numbers."""
        return np.asarray(self.left + self.width * self.x(numbers))

    def up(self, numbers: FloatArray) -> FloatArray:
        """Vertical coordinates of numbers."""
        return np.asarray(self.bottom - self.height * self.y(numbers))

    def points(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Coordinates of points, shape (n, 2), without those that are NaN."""
        points = np.stack([self.along(x), self.up(y)], axis=1)
        return np.asarray(points[~np.isnan(points).any(axis=1)])


def draw_frames(scene: Scene, panels: Sequence[Panel], *, vertical_grid: bool = True) -> None:
    """Draw grids, axes, numbers and titles of all panels."""
    grid, axes = [], []
    for panel in panels:
        for y in panel.up(np.array(panel.y.ticks)):
            grid.append(np.array([[panel.left, y], [panel.right, y]]))
        for x in panel.along(np.array(panel.x.ticks)) if vertical_grid else ():
            grid.append(np.array([[x, panel.top], [x, panel.bottom]]))
        corners = [[panel.left, panel.top], [panel.left, panel.bottom], [panel.right, panel.bottom]]
        axes.append(np.array(corners))
        _draw_words(scene, panel)
    scene.add(Paths(tuple(grid), stroke=INK, width=0.6, opacity=GRID_OPACITY))
    scene.add(Paths(tuple(axes), stroke=INK, width=0.8, opacity=AXIS_OPACITY))


def _draw_words(scene: Scene, panel: Panel) -> None:
    if panel.shows_x:
        places = panel.along(np.array(panel.x.ticks))
        for x, label in zip(places, panel.x.labels, strict=True):
            half = text_width(label, size=9) / 2 - OVERHANG
            inside = min(max(float(x), panel.left + half), panel.right - half)
            scene.add(Text(inside, panel.bottom + 11.5, label, 9, Anchor.MIDDLE))
    if panel.shows_y:
        places = panel.up(np.array(panel.y.ticks))
        for y, label in zip(places, panel.y.labels, strict=True):
            scene.add(centred(panel.left - 4, float(y), label, size=9, anchor=Anchor.END))
    if panel.title:
        title = shortened(panel.title, width=panel.width + 4)
        scene.add(Text(panel.left, panel.top - 5, title, SMALL))


def y_room(scales: Iterable[Scale]) -> float:
    """Room for the numbers to the left of panels."""
    labels = {label for scale in scales for label in scale.labels}
    return 8 + max((text_width(label, size=9) for label in labels), default=0)


def draw_heading(scene: Scene, title: str) -> None:
    """Draw the title of the drawing."""
    room = scene.width - 2 * MARGIN
    text = shortened(title, width=room, size=LARGE)
    scene.add(Text(MARGIN, 20, text, LARGE))


def draw_x_name(scene: Scene, name: str, *, left: float, right: float, y: float) -> None:
    """Name the horizontal axis."""
    scene.add(Text((left + right) / 2, y, name, NORMAL, Anchor.MIDDLE))


def draw_y_name(scene: Scene, name: str, *, x: float, top: float, bottom: float) -> None:
    """Name the vertical axis."""
    scene.add(Text(x, (top + bottom) / 2, name, NORMAL, Anchor.MIDDLE, angle=90))


def legend_rows(names: Sequence[str], *, width: float) -> list[list[str]]:
    """Names in rows that are not wider than given."""
    rows: list[list[str]] = [[]]
    used = 0.0
    for name in names:
        needed = LEGEND_LINE + text_width(name, size=NORMAL) + LEGEND_GAP
        if rows[-1] and used + needed - LEGEND_GAP > width:
            rows.append([])
            used = 0.0
        rows[-1].append(name)
        used += needed
    return rows


def legend_height(names: Sequence[str], *, width: float) -> float:
    """Height of a legend."""
    return LEGEND_ROW * len(legend_rows(names, width=width)) + MARGIN


def draw_legend(
    scene: Scene, looks: Mapping[str, Style], *, top: float, boxes: bool = False
) -> None:
    """Draw a legend over the whole width, each row in the middle.

    Args:
        scene: Where to draw.
        looks: How methods look, in drawing order.
        top: Its upper edge.
        boxes: Whether methods are bars, not lines.
    """
    rows = legend_rows(tuple(looks), width=scene.width - 2 * MARGIN)
    for number, row in enumerate(rows):
        sign_room = LEGEND_BOX if boxes else LEGEND_LINE
        widths = [sign_room + text_width(name, size=NORMAL) + LEGEND_GAP for name in row]
        x = (scene.width - sum(widths) + LEGEND_GAP) / 2
        y = top + LEGEND_ROW * (number + 0.5)
        for name, width in zip(row, widths, strict=True):
            look = looks[name]
            line = np.array([[x, y], [x + sign_room - 6, y]])
            centre = line.mean(axis=0, keepdims=True)
            if boxes:
                sign = markers("s", centre, size=10)
            else:
                scene.add(curve_paths([line], look, width=1.6))
                sign = markers(look.marker, centre, size=7)
            scene.add(Paths(sign, fill=look.colour, closed=True))
            scene.add(centred(x + sign_room, y, name, size=NORMAL, anchor=Anchor.START))
            x += width


def curve_paths(
    lines: Iterable[FloatArray], look: Style, *, width: float, label: str = ""
) -> Paths:
    """Curves of a method."""
    kept = tuple(line for line in lines if len(line) > 1)
    return Paths(kept, stroke=look.colour, width=width, dashes=DASHES[look.line], label=label)
