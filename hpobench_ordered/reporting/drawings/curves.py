"""Curves over trials: small multiples by task, and ranks by benchmark.

Notation:
    A   number of methods
    T   number of tasks
    M   number of trials per task
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.bootstrap import Intervals
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.reporting.drawings.drawing import (
    Drawing,
    Kind,
    Subject,
    count,
    finish,
    listed,
)
from hpobench_ordered.reporting.drawings.multiples import small_multiples
from hpobench_ordered.reporting.drawings.panels import Panel, curve_paths
from hpobench_ordered.reporting.drawings.scales import (
    Scale,
    Spacing,
    is_nowhere_negative,
    spanning,
    spans_decades,
    trials_scale,
)
from hpobench_ordered.reporting.drawings.scene import Paths, Scene, area, markers
from hpobench_ordered.reporting.style import Style, styles

if TYPE_CHECKING:
    import pandas as pd

MOST_TASKS = 28
"""Of more tasks, so many are shown, evenly spaced."""

MOST_TRIALS = 40
"""Of more trials, so many are drawn, evenly spaced along the axis."""

HIGHEST = 300.0
"""Scores above are drawn at the edge; random search ends at 100."""

OVERALL = "mean over tasks"

BAND_OPACITY = 0.1

MOST_AT_FULL = 5
"""Bands of more methods are lighter, so that all of them together are not darker."""

FEWEST_SAMPLES = 5
"""Intervals over fewer are so wide that bands would hide the curves."""

OUTLINE_WIDTH, OUTLINE_OPACITY = 0.6, 0.45

SCORE = "score"

SHARED = frozenset({SCORE, "normalised regret", "regret over trials", "rank"})
"""Measures that mean the same on every task, so that all panels have the same axis."""

LINE_WIDTH = 1.4
MARKER_SIZE = 4.8

MARKER_STEP = 64.0
"""Distance of the markers along a curve."""


class Band(Enum):
    """How intervals are drawn in a panel."""

    AREA = "regret over trials"
    OUTLINE = "outline"
    NONE = "none"


def draw_curves(
    subject: Subject,
    measure: str,
    by_task: Intervals,
    overall: Intervals | None = None,
    *,
    first_task: int = 0,
    is_maximised: bool = False,
) -> Drawing:
    """Draw a measure of the best trial so far over trials, one panel a task.

    Args:
        subject: What the numbers are about.
        measure: Name of the measure, as in `BenchmarkScores.measures`.
        by_task: Means over seeds, shape (A, T, M); a task without any finite one has no panel.
        overall: Means over tasks, shape (A, M), for a first and larger panel; none without.
        first_task: First task that counts in `overall`, from 0.
        is_maximised: Whether higher is better.

    Raises:
        ExperimentError: The measure is finite on no task.
    """
    defined = np.isfinite(by_task.mean).any(axis=(0, 2))
    if not defined.any():
        raise ExperimentError(f"{measure} of {subject.benchmark} is undefined on all tasks")
    tasks = _spread(np.flatnonzero(defined), MOST_TASKS)
    steps = shown_trials(by_task.mean.shape[-1])
    trials = trial_numbers(steps)
    curves = {subject.task_title(t): of_trials(by_task, steps, task=t) for t in tasks}
    if overall is not None and np.isfinite(overall.mean).any():
        curves = {OVERALL: of_trials(overall, steps)} | curves
    names = list(curves)
    scales = _scales(measure, list(curves.values()))
    title, looks = f"{measure} over trials: {subject.title}", styles(subject.methods)
    scene, panels = small_multiples(
        names,
        scales,
        [trials_scale(int(trials[-1]))] * len(names),
        title=title,
        y_name=measure,
        looks=looks,
        large_first=names[0] == OVERALL,
    )
    every = [trials] * len(panels)
    bands = band_kinds([curve.samples for curve in curves.values()], outlined=OVERALL in curves)
    draw_methods(scene, panels, list(curves.values()), looks, subject.methods, every, bands=bands)
    caption = _caption(subject, measure, by_task, len(tasks), scales, bands)
    if OVERALL in curves and first_task:
        first = (
            "first task, which has" if first_task == 1 else f"first {first_task} tasks, which have"
        )
        caption += f" The mean over tasks leaves out the {first} no history."
    better = "higher" if is_maximised else "lower"
    return finish(
        scene,
        Kind.CURVES,
        about=f"{measure} {subject.title}",
        title=title,
        caption=f"{caption} The trials are on a logarithmic axis; {better} is better.",
        alt=f"Curves of the {measure} of {listed(subject.methods)} over trials on "
        f"{count(len(tasks), 'task')} of {subject.benchmark}.",
        data=_table(subject, measure, curves, steps),
    )


def shown_trials(last: int) -> NDArray[np.intp]:
    """Places of the trials that are drawn: all, or as many as can be told apart."""
    if last <= MOST_TRIALS:
        return np.arange(last)
    wanted = np.geomspace(1, last, MOST_TRIALS)
    return np.unique(np.rint(wanted).astype(np.intp)) - 1


def band_kinds(samples: Sequence[int], *, outlined: bool) -> list[Band]:
    """How intervals over numbers of samples are drawn, by panel.

    Args:
        samples: Numbers of samples by panel.
        outlined: Whether the first panel shows them even of few samples.
    """
    kinds = [Band.AREA if number >= FEWEST_SAMPLES else Band.NONE for number in samples]
    if outlined and kinds[0] is Band.NONE:
        kinds[0] = Band.OUTLINE
    return kinds


def draw_methods(
    scene: Scene,
    panels: Sequence[Panel],
    curves: Sequence[Intervals],
    looks: Mapping[str, Style],
    methods: Sequence[str],
    trials: Sequence[FloatArray],
    *,
    bands: Sequence[Band],
) -> None:
    """Draw the bands of all methods in all panels, then the lines on top of them.

    Args:
        scene: Where to draw.
        panels: The panels.
        curves: Of every panel, shape (A, M) each.
        looks: How methods look, in drawing order.
        methods: Names of the methods, length A.
        trials: Numbers of the trials of every panel, shape (M,) each.
        bands: How the intervals of every panel are drawn.
    """
    placed = list(zip(panels, curves, trials, strict=True))
    _draw_bands(scene, placed, looks, methods, bands)
    for number, (method, look) in enumerate(looks.items()):
        a = methods.index(method)
        lines = [panel.points(numbers, curve.mean[a]) for panel, curve, numbers in placed]
        scene.add(curve_paths(lines, look, width=LINE_WIDTH, label=method))
        marked = [marked_points(line, shift=number / len(looks)) for line in lines]
        signs = markers(look.marker, np.concatenate(marked), size=MARKER_SIZE)
        scene.add(Paths(signs, fill=look.colour, closed=True, label=method))


def _draw_bands(
    scene: Scene,
    placed: Sequence[tuple[Panel, Intervals, FloatArray]],
    looks: Mapping[str, Style],
    methods: Sequence[str],
    bands: Sequence[Band],
) -> None:
    """Draw the intervals of all methods in panels, of each with its curves and trials."""
    opacity = BAND_OPACITY * min(1.0, MOST_AT_FULL / len(looks))
    earlier: list[int] = []
    for method, look in looks.items():
        a = methods.index(method)
        found: dict[Band, list[FloatArray]] = {kind: [] for kind in Band}
        for (panel, curve, numbers), kind in zip(placed, bands, strict=True):
            # Transfer methods are the same without history: their bands together would be opaque.
            if not any(np.array_equal(curve.mean[a], curve.mean[b]) for b in earlier):
                found[kind].append(_band(panel, numbers, curve.lower[a], curve.upper[a]))
        areas, outlines = _drawn(found[Band.AREA]), _drawn(found[Band.OUTLINE])
        scene.add(
            Paths(areas, fill=look.colour, opacity=opacity, closed=True),
            Paths(
                tuple(end for outline in outlines for end in np.split(outline, 2)),
                stroke=look.colour,
                width=OUTLINE_WIDTH,
                opacity=OUTLINE_OPACITY,
            ),
        )
        earlier.append(a)


def marked_points(line: FloatArray, *, shift: float = 0.0) -> FloatArray:
    """Points of a line that have markers: the last, and some of about equal distance before.

    Args:
        line: Its points, shape (n, 2), to the right.
        shift: How far the others are moved, from 0 to 1 steps, so that those of curves that are
            the same do not cover each other.

    Returns:
        Shape (m, 2).
    """
    if not len(line):
        return line.reshape(-1, 2)
    x = line[:, 0]
    wanted = np.arange(x[0] + shift * MARKER_STEP, x[-1] - MARKER_STEP / 2, MARKER_STEP)
    nearest = np.abs(x[:, None] - wanted).argmin(axis=0)
    return np.asarray(line[np.unique([*nearest, len(line) - 1])])


def _band(panel: Panel, trials: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    known = np.isfinite(lower) & np.isfinite(upper)
    return area(panel.along(trials[known]), panel.up(lower[known]), panel.up(upper[known]))


def _drawn(lines: Iterable[FloatArray]) -> tuple[FloatArray, ...]:
    return tuple(line for line in lines if len(line) > 2)


def _spread(numbers: NDArray[np.intp], most: int) -> list[int]:
    """At most so many of some numbers, evenly spaced, with the first and the last."""
    places = np.linspace(0, len(numbers) - 1, min(most, len(numbers)))
    return [int(numbers[place]) for place in np.rint(places).astype(np.intp)]


def of_trials(curves: Intervals, places: NDArray[np.intp], *, task: int | None = None) -> Intervals:
    """Some trials of curves, shape (A, M); or of those of a task, shape (A, T, M)."""
    ends = (curves.mean, curves.lower, curves.upper)
    chosen = ends if task is None else tuple(end[:, task] for end in ends)
    mean, lower, upper = (end[:, places] for end in chosen)
    return Intervals(mean, lower, upper, curves.samples, curves.confidence)


def trial_numbers(places: NDArray[np.intp]) -> FloatArray:
    """Numbers of trials, counted from 1, by their places."""
    return np.asarray(places + 1, dtype=np.float64)


def _scales(measure: str, curves: Sequence[Intervals]) -> list[Scale]:
    """Vertical axes that fit all means; bands that go beyond are cut off.

    They are logarithmic where numbers span decades, but for scores, of which 0 is arbitrary.
    """
    means = [curve.mean[np.isfinite(curve.mean)] for curve in curves]
    if measure == SCORE:
        numbers = np.minimum(np.concatenate(means), HIGHEST)
        return [spanning(numbers, logarithmic=False, most=5)] * len(curves)
    if measure in SHARED:
        numbers = np.concatenate(means)
        return [spanning(numbers, logarithmic=spans_decades(numbers), most=5)] * len(curves)
    wide = sum(map(spans_decades, means))
    is_logarithmic = 2 * wide > len(means) and all(map(is_nowhere_negative, means))
    return [spanning(numbers, logarithmic=is_logarithmic, most=3) for numbers in means]


def _caption(
    subject: Subject,
    measure: str,
    by_task: Intervals,
    shown: int,
    scales: Sequence[Scale],
    bands: Sequence[Band],
) -> str:
    parts = [
        f"Means over {count(by_task.samples, 'seed')} on {count(shown, 'task')}"
        + (f" of {len(subject.task_names)}" if shown < len(subject.task_names) else "")
    ]
    if np.isfinite(by_task.lower).any():
        parts.append(_band_words(by_task, bands))
    text = "".join(parts) + "."
    if measure == SCORE and np.nanmax(by_task.mean) > HIGHEST:
        text += f" What is above {HIGHEST:g} is at the upper edge."
    defined = int(np.isfinite(by_task.mean).any(axis=(0, 2)).sum())
    if defined < len(subject.task_names):
        text += f" It is defined on {defined}."
    spacings = {scale.spacing for scale in scales}
    if Spacing.LOGARITHMIC_WITH_ZERO in spacings:
        text += " Vertical axes are logarithmic; zero, and what is too small for them, is at 0."
    elif Spacing.LOGARITHMIC in spacings:
        text += " Vertical axes are logarithmic."
    if measure not in SHARED and len(scales) > 1:
        text += " Each panel has its own vertical axis."
    return text


def _band_words(by_task: Intervals, bands: Sequence[Band]) -> str:
    interval = f"{by_task.confidence:.0%} intervals over seeds"
    if Band.AREA in bands:
        return f"; bands are {interval}"
    text = f"; with fewer than {FEWEST_SAMPLES} seeds, the panels of tasks have no bands"
    if Band.OUTLINE in bands:
        text += f", and the thin lines in that of the mean over tasks are {interval}"
    return text


def curve_frame(
    curve: Intervals, methods: Sequence[str], trials: NDArray[np.intp]
) -> "pd.DataFrame":
    """Curves as a table: a row for each method and trial."""
    import pandas as pd

    levels = {"method": methods, "trial": trials}
    index = pd.MultiIndex.from_product(levels.values(), names=list(levels))
    columns = {"mean": curve.mean, "lower": curve.lower, "upper": curve.upper}
    flat = {name: array.ravel() for name, array in columns.items()}
    return pd.DataFrame(flat, index=index).reset_index()


def _table(
    subject: Subject,
    measure: str,
    curves: Mapping[str, Intervals],
    places: NDArray[np.intp],
) -> "pd.DataFrame":
    """A row for each panel, method and trial; the mean over tasks has no task."""
    import pandas as pd

    names = {subject.task_title(t): name for t, name in enumerate(subject.task_names)}
    frames = [
        curve_frame(curve, subject.methods, places + 1).assign(
            panel=title, task="" if title == OVERALL else names[title]
        )
        for title, curve in curves.items()
    ]
    return pd.concat(frames, ignore_index=True).assign(measure=measure, **subject.columns)
