"""How often one method is better than another, as a table of colours with the counts."""

from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.analysis.wins import Wins
from hpobench_ordered.reporting.drawings.colours import ON_DARK, ON_LIGHT, diverging, is_dark
from hpobench_ordered.reporting.drawings.drawing import Drawing, Kind, finish, listed
from hpobench_ordered.reporting.drawings.panels import HEADING, MARGIN, draw_heading
from hpobench_ordered.reporting.drawings.scene import (
    INK,
    NORMAL,
    SMALL,
    Anchor,
    Paths,
    Scene,
    Text,
    centred,
    rectangle,
    widest,
)

if TYPE_CHECKING:
    import pandas as pd

CELL_WIDTH, CELL_HEIGHT = 76.0, 27.0

SLANT = 35.0
"""Angle of the names above the columns, in degrees."""

NARROWEST = 560.0


def draw_wins(wins: Wins, *, about: str, noun: str = "run") -> Drawing:
    """Draw how often each method is better than each other.

    Args:
        wins: The counts.
        about: What was compared, such as the name of a benchmark with the trial.
        noun: What was counted: "run" or "task".
    """
    methods = wins.methods
    side = widest(methods, size=NORMAL)
    rise = side * np.sin(np.radians(SLANT)) + NORMAL
    run = side * np.cos(np.radians(SLANT))
    left, top = MARGIN + side + 8, HEADING + rise + 4
    width = left + CELL_WIDTH * (len(methods) - 0.5) + max(CELL_WIDTH / 2, run) + MARGIN
    scene = Scene(max(width, NARROWEST), top + CELL_HEIGHT * len(methods) + MARGIN)
    draw_heading(scene, f"wins, ties and losses: {about}")
    for number, method in enumerate(methods):
        x, y = left + CELL_WIDTH * (number + 0.5), top + CELL_HEIGHT * (number + 0.5)
        scene.add(centred(left - 8, y, method, size=NORMAL, anchor=Anchor.END))
        scene.add(Text(x, top - 6, method, NORMAL, Anchor.START, angle=SLANT))
    for row in range(len(methods)):
        for column in range(len(methods)):
            x, y = left + CELL_WIDTH * column, top + CELL_HEIGHT * row
            _draw_cell(scene, wins, row, column, (x, y))
    return finish(
        scene,
        Kind.WINS,
        about=about,
        title=f"wins, ties and losses: {about}",
        caption=(
            f"In how many {noun}s the method of the row was better than, as good as and worse than "
            "that of the column; blue where it was better more often, orange where less often."
        ),
        alt=f"Table of wins, ties and losses of {listed(methods)} against each other.",
        data=_table(wins),
    )


def _draw_cell(
    scene: Scene, wins: Wins, row: int, column: int, corner: tuple[float, float]
) -> None:
    x, y = corner
    box = rectangle(x + 0.5, y + 0.5, x + CELL_WIDTH - 0.5, y + CELL_HEIGHT - 0.5)
    share = float(wins.shares[row, column])
    if row == column or np.isnan(share):
        scene.add(Paths((box,), fill=INK, opacity=0.06, closed=True))
        return
    colour = diverging(share)
    scene.add(Paths((box,), fill=colour, closed=True))
    counts = (wins.wins, wins.ties, wins.losses)
    string = " / ".join(str(int(count[row, column])) for count in counts)
    ink = ON_DARK if is_dark(colour) else ON_LIGHT
    middle = x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2
    scene.add(centred(*middle, string, size=SMALL, colour=ink))


def _table(wins: Wins) -> "pd.DataFrame":
    import pandas as pd

    names = ["method", "opponent"]
    index = pd.MultiIndex.from_product([wins.methods, wins.methods], names=names)
    columns = {"wins": wins.wins, "ties": wins.ties, "losses": wins.losses, "share": wins.shares}
    flat = {name: array.ravel() for name, array in columns.items()}
    frame = pd.DataFrame(flat, index=index).reset_index()
    return frame[frame["method"] != frame["opponent"]].reset_index(drop=True)
