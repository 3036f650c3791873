"""Bars of normalised scores by task, as in Hellan et al. (2023), figure 5."""

import math
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.analysis import Scores
from hpobench_ordered.reporting.bars import GROUP_WIDTH, HEADROOM, Heights
from hpobench_ordered.reporting.drawings.drawing import (
    Drawing,
    Kind,
    Subject,
    count,
    finish,
    listed,
)
from hpobench_ordered.reporting.drawings.panels import (
    HEADING,
    MARGIN,
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
from hpobench_ordered.reporting.drawings.scales import Scale, Spacing, linear
from hpobench_ordered.reporting.drawings.scene import (
    INK,
    Anchor,
    Paths,
    Scene,
    Text,
    markers,
    rectangle,
    shortened,
)
from hpobench_ordered.reporting.style import drawing_order, styles

if TYPE_CHECKING:
    import pandas as pd

HIGHEST_SHOWN = 300.0
"""Scores above are off the scale; random search ends at 100."""

ROW_HEIGHT = 150.0
ROW_GAP = 26.0
NAME_ROOM = 18.0

NARROWEST = 3.6
"""Width of a bar; where they would be narrower, tasks go on in another row."""

FEWEST_TASKS = 4
"""A row is as wide as for so many tasks at least."""

FAINT = 0.45


def draw_bars(subject: Subject, scores: Scores, *, trial: int) -> Drawing:
    """Draw the mean score of every method on every task after a trial, with two standard errors.

    Args:
        subject: What the scores are of.
        scores: Normalised scores.
        trial: The trial, counted from 1.
    """
    looks = styles(scores.methods)
    tasks = range(len(subject.task_names))
    heights = Heights.of(
        scores, methods=drawing_order(looks), trial=trial, tasks=tasks, top=HIGHEST_SHOWN
    )
    panels = _panels(subject, heights)
    end = panels[-1].bottom + TICK_ROOM
    legend = legend_height(tuple(looks), width=WIDTH - 2 * MARGIN)
    scene = Scene(WIDTH, end + 26 + legend)
    title = f"normalised score after {count(trial, 'trial')}: {subject.title}"
    draw_heading(scene, title)
    draw_frames(scene, panels, vertical_grid=False)
    for a, method in enumerate(heights.methods):
        lines = _bars(panels, heights, a)
        scene.add(Paths(lines, fill=looks[method].colour, closed=True, label=method))
    _draw_errors(scene, panels, heights)
    _draw_undefined(scene, panels, heights)
    draw_x_name(scene, "task", left=panels[0].left, right=WIDTH - MARGIN, y=end + 12)
    draw_y_name(scene, "score", x=MARGIN + 10, top=HEADING, bottom=end)
    draw_legend(scene, looks, top=end + 22, boxes=True)
    return finish(
        scene,
        Kind.BARS,
        about=f"trial {trial} {subject.title}",
        title=title,
        caption=(
            f"Means over {count(subject.seeds, 'seed')} ± two standard errors on each of "
            f"{count(len(tasks), 'task')}; lower is better, 0 is the best method after the last "
            "trial and 100 random search. Arrows: the mean (dark) or the error (faint) is above "
            "the plotted range."
        ),
        alt=f"Bars of the normalised score of {listed(heights.methods)} after "
        f"{count(trial, 'trial')} on {count(len(tasks), 'task')} of {subject.benchmark}.",
        data=_table(subject, heights, trial),
    )


def _panels(subject: Subject, heights: Heights) -> list[Panel]:
    """Rows of tasks, as equal as may be, which begin at the same edge."""
    total = heights.mean.shape[1]
    y = linear(0.0, HEADROOM * heights.top, most=5)
    left = MARGIN + NAME_ROOM + y_room([y])
    width = WIDTH - left - MARGIN
    rows = math.ceil(total * (len(heights.methods) * NARROWEST / GROUP_WIDTH) / width)
    size = max(math.ceil(total / rows), FEWEST_TASKS)
    panels = []
    for row in range(rows):
        first, last = row * size, min((row + 1) * size, total)
        room = width / size - 2
        labels = [shortened(subject.task_names[t], width=room, size=9) for t in range(first, last)]
        x = Scale(
            first - 0.5,
            first + size - 0.5,
            Spacing.LINEAR,
            tuple(map(float, range(first, last))),
            tuple(labels),
        )
        top = HEADING + 4 + row * (ROW_HEIGHT + ROW_GAP)
        panels.append(Panel(left, top, width, ROW_HEIGHT, x, y))
    return panels


def _in_panel(panel: Panel, tasks: int) -> BoolArray:
    numbers = np.arange(tasks)
    return np.asarray((numbers > panel.x.low) & (numbers < panel.x.high))


def _bars(panels: list[Panel], heights: Heights, a: int) -> tuple[FloatArray, ...]:
    lines = []
    half = GROUP_WIDTH / len(heights.methods) / 2
    places, mean = heights.places(a), np.minimum(heights.mean[a], heights.top)
    for panel in panels:
        shown = _in_panel(panel, len(mean)) & ~np.isnan(mean)
        lefts, rights = panel.along(places[shown] - half), panel.along(places[shown] + half)
        tops = panel.up(mean[shown])
        lines += [
            rectangle(left, top, right, panel.bottom)
            for left, top, right in zip(lefts, tops, rights, strict=True)
            if top < panel.bottom
        ]
    return tuple(lines)


def _draw_errors(scene: Scene, panels: list[Panel], heights: Heights) -> None:
    """Draw the errors within the plotted range, and arrows for what is above it."""
    lines: list[FloatArray] = []
    arrows: list[FloatArray] = []
    faint: list[FloatArray] = []
    size = 0.9 * GROUP_WIDTH / len(heights.methods)
    for a in range(len(heights.methods)):
        mean, errors, above = heights.mean[a], heights.errors[a], heights.is_above[a]
        for panel in panels:
            shown = _in_panel(panel, len(mean)) & ~np.isnan(mean)
            x = panel.along(heights.places(a))
            upper = panel.up(np.minimum(mean + errors, heights.top))
            lower = panel.up(mean - errors)
            for t in np.flatnonzero(shown & ~above & (errors > 0)):
                lines.append(np.array([[x[t], lower[t]], [x[t], upper[t]]]))
            y = float(panel.up(np.array((1 + HEADROOM) / 2 * heights.top)))
            wide = min(6.0, size * panel.width / (panel.x.high - panel.x.low))
            arrows += _arrows(x[shown & above], y, wide)
            faint += _arrows(x[shown & heights.is_error_above[a]], y, wide)
    scene.add(Paths(tuple(lines), stroke=INK, width=0.8))
    scene.add(Paths(tuple(arrows), fill=INK, closed=True))
    scene.add(Paths(tuple(faint), fill=INK, closed=True, opacity=FAINT))


def _arrows(x: FloatArray, y: float, width: float) -> tuple[FloatArray, ...]:
    return markers("^", np.stack([x, np.full(x.shape, y)], axis=1), size=width)


def _draw_undefined(scene: Scene, panels: list[Panel], heights: Heights) -> None:
    for panel in panels:
        missing = heights.is_undefined & _in_panel(panel, len(heights.is_undefined))
        for x in panel.along(np.flatnonzero(missing).astype(np.float64)):
            scene.add(Text(float(x) + 3, panel.bottom - 4, "undefined", 8, Anchor.START, angle=90))


def _table(subject: Subject, heights: Heights, trial: int) -> "pd.DataFrame":
    import pandas as pd

    levels = {"method": heights.methods, "task": subject.task_names}
    index = pd.MultiIndex.from_product(levels.values(), names=list(levels))
    columns = {"score": heights.mean.ravel(), "two_standard_errors": heights.errors.ravel()}
    frame = pd.DataFrame(columns, index=index).reset_index()
    return frame.assign(trial=trial, **subject.columns)
