"""Critical-difference diagrams (Demsar 2006, JMLR 7, figure 1).

Mean ranks stand on one axis, 1 at the left. Methods are named below it, the better half at the left
and the others at the right, each on a line of its own, so that names never meet however close the
ranks are. A bar joins methods that cannot be told apart.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered.analysis.critical_differences import CriticalDifference, PostHoc
from hpobench_ordered.reporting.drawings.drawing import Drawing, Kind, count, finish
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
    markers,
    rectangle,
    widest,
)
from hpobench_ordered.reporting.style import styles

if TYPE_CHECKING:
    import pandas as pd

AXIS = 420.0
"""Length of the axis of ranks."""

ROW = 18.0
"""Height of a method's line."""

BAR_GAP = 7.0
"""Distance of bars one below the other."""

BAR_WIDTH = 3.2
REACH = 26.0
"""How far the lines of methods go beyond the ends of the axis."""

TESTS = {
    PostHoc.NEMENYI: "Nemenyi's test",
    PostHoc.WILCOXON_HOLM: "Wilcoxon's signed-rank test with Holm's correction",
}


def draw_critical_difference(
    ranking: CriticalDifference, *, about: str, noun: str = "task"
) -> Drawing:
    """Draw mean ranks, and which methods cannot be told apart.

    Args:
        ranking: The ranks and groups, of two methods or more.
        about: What was ranked, such as the name of a benchmark or suite.
        noun: What a sample is: "task" or "seed".
    """
    methods = ranking.methods
    labels = [f"{m}  {r:.2f}" for m, r in zip(methods, ranking.mean_ranks, strict=True)]
    side = widest(labels, size=NORMAL) + REACH + 10
    has_margin = math.isfinite(ranking.critical_difference)
    axis = HEADING + (46 if has_margin else 22)
    rows_top = axis + 16 + BAR_GAP * len(ranking.bars)
    rows = math.ceil(len(methods) / 2)
    scene = Scene(2 * (MARGIN + side) + AXIS, rows_top + ROW * rows + MARGIN)
    diagram = _Diagram(scene, left=MARGIN + side, axis=axis, methods=methods)
    draw_heading(scene, f"mean ranks: {about}")
    diagram.draw_axis()
    if has_margin:
        diagram.draw_margin(ranking.critical_difference)
    for number, (place, label) in enumerate(zip(ranking.mean_ranks, labels, strict=True)):
        diagram.draw_method(methods[number], label, number, float(place), rows_top)
    diagram.draw_bars(ranking.bars)
    return finish(
        scene,
        Kind.CRITICAL_DIFFERENCE,
        about=about,
        title=f"mean ranks: {about}",
        caption=_caption(ranking, noun),
        alt=f"Critical-difference diagram; mean ranks are {', '.join(labels).replace('  ', ' ')}.",
        data=_table(ranking),
    )


class _Diagram:
    """Draws on an axis of ranks.

    Args:
        scene: Where to draw.
        left: Left end of the axis.
        axis: Height of the axis.
        methods: Names of the methods.
    """

    def __init__(self, scene: Scene, *, left: float, axis: float, methods: Sequence[str]) -> None:
        self._scene = scene
        self._left = left
        self._axis = axis
        self._methods = len(methods)
        self._looks = styles(methods)

    def _at(self, rank: float) -> float:
        return self._left + AXIS * (rank - 1) / (self._methods - 1)

    def draw_axis(self) -> None:
        """Draw the axis, a mark at every whole rank."""
        lines = [np.array([[self._at(1), self._axis], [self._at(self._methods), self._axis]])]
        for rank in range(1, self._methods + 1):
            x = self._at(rank)
            lines.append(np.array([[x, self._axis - 5], [x, self._axis]]))
            self._scene.add(Text(x, self._axis - 8, str(rank), SMALL, Anchor.MIDDLE))
        self._scene.add(Paths(tuple(lines), stroke=INK, width=1.0))

    def draw_margin(self, difference: float) -> None:
        """Draw the critical difference above the axis, no longer than the axis."""
        y = self._axis - 32
        right = self._at(1 + min(difference, self._methods - 1))
        line = np.array([[self._left, y], [right, y]])
        ends = [np.array([[x, y - 4], [x, y + 4]]) for x in (self._left, right)]
        self._scene.add(Paths((line, *ends), stroke=INK, width=1.2))
        text = f"critical difference {difference:.2f}"
        self._scene.add(centred(right + 8, y, text, anchor=Anchor.START))

    def draw_method(
        self, method: str, label: str, number: int, rank: float, rows_top: float
    ) -> None:
        """Draw the line from a rank to its method, in the look of the method."""
        half = math.ceil(self._methods / 2)
        is_left = number < half
        row = number if is_left else self._methods - 1 - number
        y = rows_top + ROW * (row + 0.5)
        end = self._left - REACH if is_left else self._left + AXIS + REACH
        look = self._looks[method]
        x = self._at(rank)
        line = np.array([[x, self._axis], [x, y], [end, y]])
        self._scene.add(Paths((line,), stroke=INK, width=0.9, opacity=0.75))
        signs = markers(look.marker, np.array([[x, self._axis], [end, y]]), size=6.5)
        self._scene.add(Paths(signs, fill=look.colour, closed=True, label=method))
        anchor = Anchor.END if is_left else Anchor.START
        shift = -8 if is_left else 8
        self._scene.add(centred(end + shift, y, label, size=NORMAL, anchor=anchor))

    def draw_bars(self, bars: tuple[tuple[float, float], ...]) -> None:
        """Draw the groups below the axis, each on a height of its own."""
        areas = []
        for number, (low, high) in enumerate(bars):
            y = self._axis + 10 + BAR_GAP * number
            left, right = self._at(low) - 3, self._at(high) + 3
            areas.append(rectangle(left, y - BAR_WIDTH / 2, right, y + BAR_WIDTH / 2))
        self._scene.add(Paths(tuple(areas), fill=INK, closed=True))


def _caption(ranking: CriticalDifference, noun: str) -> str:
    text = f"Mean ranks over {count(ranking.samples, noun)}; 1 is best. "
    if noun == "task":
        text += (
            "They are the ranks of each task's mean normalised regret over seeds after the last "
            "trial; every task counts the same. "
        )
    text += (
        "A bar joins methods that cannot be told apart by "
        f"{TESTS[ranking.post_hoc]} at the level of {ranking.alpha:g}."
    )
    p_value = ranking.friedman_p_value
    shown = "below 0.0001" if p_value < 1e-4 else f"{p_value:.2g}"
    text += f" The p value of Friedman's test of no difference at all is {shown}"
    return text + ("; the groups mean nothing then." if p_value > ranking.alpha else ".")


def _table(ranking: CriticalDifference) -> "pd.DataFrame":
    """A row a method: its rank, and the groups it is in, counted from 1."""
    import pandas as pd

    bars = [(first, last) for first, last in ranking.groups if first < last]
    groups = [
        " ".join(str(n) for n, (first, last) in enumerate(bars, 1) if first <= place <= last)
        for place in range(len(ranking.methods))
    ]
    columns = {"method": ranking.methods, "mean_rank": ranking.mean_ranks, "groups": groups}
    return pd.DataFrame(columns).assign(critical_difference=ranking.critical_difference)
