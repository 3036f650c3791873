"""Where methods looked: the points of one run on the landscape that all evaluations show."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.landscape import lowest_in_cells
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.reporting.drawings.colours import ON_DARK, ON_LIGHT, SHADES, sequential
from hpobench_ordered.reporting.drawings.dimensions import Dimension
from hpobench_ordered.reporting.drawings.drawing import Drawing, Kind, Subject, finish, listed
from hpobench_ordered.reporting.drawings.panels import (
    HEADING,
    MARGIN,
    PANEL_TITLE,
    TICK_ROOM,
    WIDTH,
    Panel,
    draw_frames,
    draw_heading,
    draw_x_name,
    draw_y_name,
    y_room,
)
from hpobench_ordered.reporting.drawings.scene import (
    NORMAL,
    SMALL,
    Anchor,
    Paths,
    Repeated,
    Scene,
    centred,
    markers,
    rectangle,
    shortened,
    text_width,
    widest,
)
from hpobench_ordered.reporting.style import drawing_order

if TYPE_CHECKING:
    import pandas as pd

CELLS = 24
"""Number of cells of the landscape along an axis of numbers."""

STEPS = 12
"""Number of colours of the landscape."""

WIDEST = 250.0
"""Width of a panel."""

PANEL_HEIGHT = 104.0
GAP = 12.0
NAME_ROOM = 20.0

POINT, CROSS = 6.2, 11.0
"""Sizes of the points and of the best one."""

KEY = (
    "light at the first trial and dark at the last; the cross is the best of them. Background: the "
    "lowest loss that any method met with any seed in each cell, by its rank among the cells of "
    "the task: dark is better; cells that nobody met are as the nearest one."
)
"""How to read what is drawn."""

MOST_NAME = 160.0
"""Width of a method's name."""

MOST_LABEL = 70.0
"""Width of a choice's name beside an axis."""


@dataclass(frozen=True, slots=True)
class _Layout:
    """Places of panels: a row a method, a column a task."""

    left: float
    top: float
    width: float
    methods: tuple[str, ...]
    tasks: tuple[int, ...]

    def panel(self, row: int, column: int, x: Dimension, y: Dimension, title: str) -> Panel:
        """The panel of a method and a task."""
        return Panel(
            left=self.left + column * (self.width + GAP),
            top=self.top + row * (PANEL_HEIGHT + GAP),
            width=self.width,
            height=PANEL_HEIGHT,
            x=x.scale,
            y=y.scale,
            title=title if row == 0 else "",
            shows_x=row == len(self.methods) - 1,
            shows_y=column == 0,
        )

    @classmethod
    def of(cls, subject: Subject, tasks: Sequence[int], y: Dimension) -> "_Layout":
        """Panels within the usual width, beside names of methods and the vertical axis."""
        methods = tuple(drawing_order(subject.methods))
        name_room = 10 + min(widest(methods, size=NORMAL), MOST_NAME)
        left = MARGIN + name_room + NAME_ROOM + y_room([y.scale])
        width = min(WIDEST, (WIDTH - MARGIN - left) / len(tasks) - GAP)
        return cls(left, HEADING + PANEL_TITLE, width, methods, tuple(tasks))

    @property
    def right(self) -> float:
        """Right edge of the last column."""
        return self.left + len(self.tasks) * (self.width + GAP) - GAP

    @property
    def bottom(self) -> float:
        """Lower edge of the last row."""
        return self.top + len(self.methods) * (PANEL_HEIGHT + GAP) - GAP


def draw_landscapes(
    subject: Subject,
    evaluations: "pd.DataFrame",
    x: Dimension,
    y: Dimension,
    *,
    tasks: Sequence[int],
    seed: int,
) -> Drawing:
    """Draw what each method evaluated in one run, on what all methods know in all runs together.

    Args:
        subject: What the evaluations are of.
        evaluations: A row an evaluation; columns method, seed, task (from 0), trial, loss, and the
            hyperparameters by their names. Those where one of the two is inactive are left out.
        x: Hyperparameter of the horizontal axis.
        y: Hyperparameter of the vertical axis.
        tasks: The tasks to show, from 0.
        seed: The run to show.

    Raises:
        ExperimentError: There is nothing to show of a task.
    """
    placed = evaluations.assign(x=x.places(evaluations[x.name]), y=y.places(evaluations[y.name]))
    placed = placed[placed["task"].isin(tasks)].dropna(subset=["x", "y", "loss"])
    missing = set(tasks) - set(placed["task"])
    if missing:
        name = subject.task_title(min(missing))
        raise ExperimentError(f"{subject.benchmark} has no evaluations of {name}")
    x, y = (_with_short_labels(dimension) for dimension in (x, y))
    layout = _Layout.of(subject, tasks, y)
    title = f"where methods look: {subject.title}"
    scene = Scene(max(layout.right + MARGIN + 6, 520.0), layout.bottom + TICK_ROOM + 58)
    draw_heading(scene, title)
    chosen = placed[(placed["seed"] == seed) & placed["method"].isin(layout.methods)]
    _draw_background(scene, layout, placed, x, y)
    _draw_panels(scene, layout, subject, x, y)
    _draw_points(scene, layout, chosen, x, y)
    _draw_words(scene, layout, x, y)
    return finish(
        scene,
        Kind.LANDSCAPE,
        about=f"{x.name} {y.name} seed {seed} {subject.title}",
        title=title,
        caption=_caption(x, y, seed),
        alt=f"Landscapes of {x.name} and {y.name} of {subject.benchmark} with the "
        f"points evaluated by {listed(layout.methods)}.",
        data=_table(subject, chosen, x, y),
    )


def _caption(x: Dimension, y: Dimension, seed: int) -> str:
    text = f"Points: configurations that each method evaluated with seed {seed}, {KEY}"
    choices = [dimension.name for dimension in (x, y) if dimension.choices]
    if not choices:
        return text
    verb = "is" if len(choices) == 1 else "are"
    return (
        f"{text} {listed(choices)} {verb} categorical: points of the same choice are spread along "
        "its width or height in the order of trials."
    )


def _with_short_labels(dimension: Dimension) -> Dimension:
    scale = dimension.scale
    labels = tuple(shortened(label, width=MOST_LABEL, size=9) for label in scale.labels)
    scale = type(scale)(scale.low, scale.high, scale.spacing, scale.ticks, labels)
    return Dimension(dimension.name, scale, dimension.choices)


def _draw_background(
    scene: Scene, layout: _Layout, placed: "pd.DataFrame", x: Dimension, y: Dimension
) -> None:
    """Draw each task's landscape once, and repeat it in the rows below."""
    shape = y.cells(CELLS), x.cells(CELLS)
    offsets = tuple((0.0, row * (PANEL_HEIGHT + GAP)) for row in range(len(layout.methods)))
    for column, task in enumerate(layout.tasks):
        known = placed[placed["task"] == task]
        places = (known[name].to_numpy(dtype=np.float64) for name in ("x", "y", "loss"))
        lowest = lowest_in_cells(*places, shape=shape)
        _, ranks = np.unique(lowest, return_inverse=True)
        levels = np.floor(ranks.reshape(shape) / (ranks.max() + 1) * STEPS).astype(np.int64)
        panel = layout.panel(0, column, x, y, "")
        paths = tuple(
            Paths(tuple(_cells(panel, levels == n)), fill=sequential(n / (STEPS - 1)), closed=True)
            for n in range(STEPS)
        )
        scene.add(Repeated(f"task-{task}", tuple(p for p in paths if p.lines), offsets))


def _cells(panel: Panel, inside: FloatArray) -> Iterator[FloatArray]:
    """Rectangles of neighbouring cells of a row."""
    rows, columns = inside.shape
    across, down = panel.width / columns, panel.height / rows
    for row, line in enumerate(inside):
        ends = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(np.int8), [0]])))
        lower = panel.bottom - row * down
        for first, last in ends.reshape(-1, 2):
            left, right = panel.left + first * across, panel.left + last * across
            # A little more to the right and above: no seams between cells.
            yield rectangle(
                left,
                max(lower - down - 0.4, panel.top),
                min(right + 0.4, panel.right),
                lower,
            )


def _draw_panels(
    scene: Scene, layout: _Layout, subject: Subject, x: Dimension, y: Dimension
) -> None:
    titles = [subject.task_title(task) for task in layout.tasks]
    panels = [
        layout.panel(row, column, x, y, title)
        for row in range(len(layout.methods))
        for column, title in enumerate(titles)
    ]
    draw_frames(scene, [_thinned(panel) for panel in panels], vertical_grid=False)


def _thinned(panel: Panel) -> Panel:
    """The panel with only as many labels below it as there is room for."""
    x = panel.x
    room = max((text_width(label, size=9) for label in x.labels), default=0.0) + 6
    places = panel.along(np.array(x.ticks))
    step = float(np.diff(places).min()) if len(places) > 1 else room
    stride = max(1, int(np.ceil(room / step)))
    scale = type(x)(x.low, x.high, x.spacing, x.ticks[::stride], x.labels[::stride])
    return Panel(
        panel.left,
        panel.top,
        panel.width,
        panel.height,
        scale,
        panel.y,
        panel.title,
        panel.shows_x,
        panel.shows_y,
    )


def _draw_points(
    scene: Scene, layout: _Layout, chosen: "pd.DataFrame", x: Dimension, y: Dimension
) -> None:
    """Draw the points of all panels, shade by shade, then the best of every panel."""
    last = max(int(chosen["trial"].max()), 2) if len(chosen) else 2
    by_shade: list[list[FloatArray]] = [[] for _ in SHADES]
    best = []
    for row, method in enumerate(layout.methods):
        for column, task in enumerate(layout.tasks):
            run = chosen[(chosen["method"] == method) & (chosen["task"] == task)]
            if not len(run):
                continue
            panel = layout.panel(row, column, x, y, "")
            trials = run["trial"].to_numpy() - 1
            across, up = (
                dimension.spread(run[name].to_numpy(), trials / (last - 1))
                for name, dimension in (("x", x), ("y", y))
            )
            centres = np.stack(
                [panel.left + panel.width * across, panel.bottom - panel.height * up], axis=1
            )
            shades = trials * len(SHADES) // last
            for centre, shade in zip(centres, shades, strict=True):
                by_shade[min(shade, len(SHADES) - 1)].append(centre)
            best.append(centres[run["loss"].to_numpy().argmin()])
    for shade, points in zip(SHADES, by_shade, strict=True):
        signs = markers("o", np.array(points).reshape(-1, 2), size=POINT)
        scene.add(Paths(signs, stroke=ON_LIGHT, fill=shade, width=0.7, closed=True))
    crosses = markers("X", np.array(best).reshape(-1, 2), size=CROSS)
    scene.add(Paths(crosses, stroke=ON_DARK, fill=ON_LIGHT, width=1.2, closed=True))


def _draw_words(scene: Scene, layout: _Layout, x: Dimension, y: Dimension) -> None:
    """Name methods and axes, and say what the colours are."""
    for row, method in enumerate(layout.methods):
        middle = layout.top + row * (PANEL_HEIGHT + GAP) + PANEL_HEIGHT / 2
        name = shortened(method, width=MOST_NAME, size=NORMAL)
        scene.add(centred(MARGIN, middle, name, size=NORMAL, anchor=Anchor.START))
    end = layout.bottom + TICK_ROOM
    draw_x_name(scene, x.name, left=layout.left, right=layout.right, y=end + 12)
    y_left = MARGIN + 20 + min(widest(layout.methods, size=NORMAL), MOST_NAME)
    draw_y_name(scene, y.name, x=y_left, top=layout.top, bottom=layout.bottom)
    middle = end + 34
    place = MARGIN
    for name, colours in (
        ("loss, low to high", [sequential(n / (STEPS - 1)) for n in range(STEPS)]),
        ("trial, first to last", list(SHADES)),
    ):
        for number, colour in enumerate(colours):
            side = 72.0 / len(colours)
            box = rectangle(
                place + number * side, middle - 5, place + (number + 1) * side, middle + 5
            )
            scene.add(Paths((box,), fill=colour, closed=True))
        scene.add(centred(place + 78, middle, name, size=SMALL, anchor=Anchor.START))
        place += 100 + text_width(name, size=SMALL)
    sign = markers("X", np.array([[place + 6, middle]]), size=CROSS)
    scene.add(Paths(sign, stroke=ON_DARK, fill=ON_LIGHT, width=1.2, closed=True))
    scene.add(centred(place + 18, middle, "best of the run", size=SMALL, anchor=Anchor.START))


def _table(subject: Subject, chosen: "pd.DataFrame", x: Dimension, y: Dimension) -> "pd.DataFrame":
    columns = ["method", "seed", "task", "trial", "loss", x.name, y.name]
    ordered = chosen[columns].sort_values(["method", "task", "trial"], ignore_index=True)
    names = [subject.task_names[task] for task in ordered["task"]]
    return ordered.assign(task=names, **subject.columns)
