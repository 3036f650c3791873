"""Small multiples over trials: panels in a grid, their axes, and one legend."""

from collections.abc import Mapping, Sequence

from hpobench_ordered.reporting.drawings.grid import Cell, bottom, cell_grid
from hpobench_ordered.reporting.drawings.panels import (
    HEADING,
    MARGIN,
    PANEL_TITLE,
    TICK_ROOM,
    WIDTH,
    Panel,
    draw_frames,
    draw_heading,
    draw_legend,
    draw_x_name,
    draw_y_name,
    legend_height,
    y_room,
)
from hpobench_ordered.reporting.drawings.scales import Scale
from hpobench_ordered.reporting.drawings.scene import Scene
from hpobench_ordered.reporting.style import Style

NAME_ROOM = 18.0
"""Room for the name of the vertical axis."""

GAP = 6.0
"""Between a panel and the next one's numbers."""


def small_multiples(
    names: Sequence[str],
    y: Sequence[Scale],
    trials: Sequence[Scale],
    *,
    title: str,
    y_name: str,
    looks: Mapping[str, Style],
    width: float = WIDTH,
    large_first: bool = False,
) -> tuple[Scene, list[Panel]]:
    """A scene with empty panels.

    Args:
        names: Titles of the panels.
        y: Their vertical axes; numbers stand only in the first column if all are the same.
        trials: Their horizontal axes; numbers stand only in the last row if all are the same.
        title: Title of the drawing.
        y_name: Name of the vertical axes.
        looks: What the legend shows, in drawing order; no legend without any.
        width: Width of the drawing.
        large_first: Whether the first panel is larger, if there are enough.
    """
    left = MARGIN + NAME_ROOM
    cells = cell_grid(
        len(names), left=left, top=HEADING, width=width - MARGIN - left, large_first=large_first
    )
    end = bottom(cells)
    legend = legend_height(tuple(looks), width=width - 2 * MARGIN) if looks else 0.0
    scene = Scene(width, end + 24 + legend)
    panels = _place_panels(cells, names, y, trials)
    draw_heading(scene, title)
    draw_frames(scene, panels)
    draw_x_name(scene, "trial", left=left, right=width - MARGIN, y=end + 12)
    draw_y_name(scene, y_name, x=MARGIN + 10, top=HEADING, bottom=end)
    if looks:
        draw_legend(scene, looks, top=end + 22)
    return scene, panels


def _place_panels(
    cells: Sequence[Cell], names: Sequence[str], y: Sequence[Scale], trials: Sequence[Scale]
) -> list[Panel]:
    room = y_room(y)
    is_same_y, is_same_x = len(set(y)) == 1, len(set(trials)) == 1
    panels = []
    for cell, name, scale, x in zip(cells, names, y, trials, strict=True):
        is_large = cell.height > cells[-1].height
        panels.append(
            Panel(
                left=cell.left + room,
                top=cell.top + PANEL_TITLE,
                width=cell.width - room - GAP,
                height=cell.height - PANEL_TITLE - TICK_ROOM - GAP,
                x=x,
                y=scale,
                title=name,
                shows_x=cell.is_lowest or is_large or not is_same_x,
                shows_y=cell.is_first or not is_same_y,
            )
        )
    return panels
