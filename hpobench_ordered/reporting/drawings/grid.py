"""Places of small multiples: a grid of equal cells, the first maybe four times as large."""

from dataclasses import dataclass

FEWEST_FOR_LARGE = 6
"""From so many panels on, the first is larger than the others."""

COLUMNS = ((4, 4), (6, 3), (8, 4), (20, 5), (24, 6))
"""Numbers of columns for up to so many cells."""

MOST_COLUMNS = 7

ROW_HEIGHTS = {1: 230.0, 2: 220.0, 3: 200.0, 4: 170.0, 5: 140.0, 6: 122.0, 7: 112.0}
"""Height of a row by number of columns."""


@dataclass(frozen=True, slots=True)
class Cell:
    """Place of a panel with its title and numbers.

    Attributes:
        left: Its left edge.
        top: Its upper edge.
        width: Its width.
        height: Its height.
        is_first: Whether it is the first of its row.
        is_lowest: Whether there is none below.
    """

    left: float
    top: float
    width: float
    height: float
    is_first: bool
    is_lowest: bool


def cell_grid(
    panels: int, *, left: float, top: float, width: float, large_first: bool
) -> list[Cell]:
    """Places of panels, row by row.

    Args:
        panels: Number of panels.
        left: Left edge of the grid.
        top: Its upper edge.
        width: Its width.
        large_first: Whether the first panel is larger, where there are enough.
    """
    is_large = large_first and panels >= FEWEST_FOR_LARGE
    needed = panels + 3 * is_large
    columns = next((c for most, c in COLUMNS if needed <= most), MOST_COLUMNS)
    columns = min(columns, needed)
    taken = {(0, 0), (0, 1), (1, 0), (1, 1)} if is_large else {(0, 0)}
    places = [(0, 0)]
    free = ((n // columns, n % columns) for n in range(needed + columns))
    places += [place for place in free if place not in taken][: panels - 1]
    across, down = width / columns, ROW_HEIGHTS[columns]
    occupied = taken | set(places)
    cells = []
    for number, (row, column) in enumerate(places):
        span = 2 if is_large and number == 0 else 1
        cells.append(
            Cell(
                left + column * across,
                top + row * down,
                span * across,
                span * down,
                is_first=column == 0,
                is_lowest=(row + span, column) not in occupied,
            )
        )
    return cells


def bottom(cells: list[Cell]) -> float:
    """Lower edge of a grid."""
    return max(cell.top + cell.height for cell in cells)
