"""Which levels runs attain over the trials: quantiles of runs, and shares of runs.

Notation:
    A   number of methods
    M   number of trials per task
    H   number of fractions of runs, or of levels
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.bootstrap import Intervals
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.reporting.drawings.curves import (
    LINE_WIDTH,
    Band,
    draw_methods,
    marked_points,
    shown_trials,
    trial_numbers,
)
from hpobench_ordered.reporting.drawings.drawing import (
    Drawing,
    Kind,
    Subject,
    count,
    finish,
    listed,
)
from hpobench_ordered.reporting.drawings.multiples import small_multiples
from hpobench_ordered.reporting.drawings.panels import WIDTH, Panel, curve_paths
from hpobench_ordered.reporting.drawings.scales import (
    linear,
    short,
    spanning,
    spans_decades,
    trials_scale,
)
from hpobench_ordered.reporting.drawings.scene import INK, Paths, Scene, area, markers
from hpobench_ordered.reporting.style import Style, styles

if TYPE_CHECKING:
    import pandas as pd

BAND_OPACITY = 0.22
OTHERS_OPACITY = 0.3
PANEL_WIDTH, NARROWEST = 360.0, 480.0
"""Width of a panel, and of the whole."""


def draw_attainment(
    subject: Subject, measure: str, levels: FloatArray, fractions: Sequence[float]
) -> Drawing:
    """Draw which levels a quarter, half and three quarters of the runs attain, a panel a method.

    Args:
        subject: What the runs are of.
        measure: Name of what is measured, of which lower is better.
        levels: Levels that fractions of the runs attain, shape (H, A, M).
        fractions: The fractions, ascending, length H: the line is the middle one, the band is from
            the first to the last.

    Raises:
        ExperimentError: No level is finite.
    """
    if not np.isfinite(levels).any():
        raise ExperimentError(f"{measure} of {subject.benchmark} is undefined on all tasks")
    places = shown_trials(levels.shape[-1])
    looks = styles(subject.methods)
    shown = levels[:, [subject.methods.index(method) for method in looks]][..., places]
    scale = spanning(shown, logarithmic=spans_decades(shown), most=5)
    title = f"{measure} that runs attain: {subject.title}"
    scene, panels = small_multiples(
        list(looks),
        [scale] * len(looks),
        [trials_scale(levels.shape[-1])] * len(looks),
        title=title,
        y_name=measure,
        looks={},  # each panel has the name of its method
        width=_width(len(looks)),
    )
    _draw_attained(scene, panels, looks, shown, trial_numbers(places))
    ends = f"{fractions[0]:.0%} and {fractions[-1]:.0%}"
    return finish(
        scene,
        Kind.ATTAINMENT,
        about=f"{measure} {subject.title}",
        title=title,
        caption=(
            f"Lines: the {measure} that {fractions[len(fractions) // 2]:.0%} of the runs attain "
            f"({count(subject.seeds, 'seed')} on the tasks that count); bands: between those that "
            f"{ends} attain. Thin lines are the other methods'. Lower is better."
        ),
        alt=f"Curves of the {measure} that runs of {listed(tuple(looks))} attain over trials.",
        data=_attained_table(subject, tuple(looks), shown, fractions, places),
    )


def _draw_attained(
    scene: Scene,
    panels: Sequence[Panel],
    looks: Mapping[str, Style],
    levels: FloatArray,
    trials: FloatArray,
) -> None:
    """Draw the band and the line of every method in its panel, over the lines of the others."""
    middle = levels[len(levels) // 2]
    for number, (panel, (method, look)) in enumerate(zip(panels, looks.items(), strict=True)):
        others = [panel.points(trials, m) for b, m in enumerate(middle) if b != number]
        scene.add(Paths(tuple(others), stroke=INK, width=0.7, opacity=OTHERS_OPACITY))
        lower, upper = (panel.up(levels[end, number]) for end in (0, -1))
        band = area(panel.along(trials), lower, upper)
        known = band[~np.isnan(band).any(axis=1)]
        scene.add(Paths((known,), fill=look.colour, opacity=BAND_OPACITY, closed=True))
        line = panel.points(trials, middle[number])
        scene.add(curve_paths([line], look, width=1.4 * LINE_WIDTH, label=method))
        signs = markers(look.marker, marked_points(line), size=6)
        scene.add(Paths(signs, fill=look.colour, closed=True))


def draw_reach(subject: Subject, measure: str, shares: FloatArray, levels: FloatArray) -> Drawing:
    """Draw how many of the runs have reached levels after every trial, a panel a level.

    Args:
        subject: What the runs are of.
        measure: Name of what is measured, of which lower is better.
        shares: Share of all runs, shape (A, M, H).
        levels: The levels, shape (H,).
    """
    places = shown_trials(shares.shape[1])
    looks = styles(subject.methods)
    title = f"runs that reach a {measure}: {subject.title}"
    scene, panels = small_multiples(
        [f"{measure} ≤ {short(float(level))}" for level in levels],
        [linear(0.0, 1.0, most=5)] * len(levels),
        [trials_scale(shares.shape[1])] * len(levels),
        title=title,
        y_name="share of runs",
        looks=looks,
        width=_width(len(levels)),
    )
    curves = []
    for h in range(len(levels)):
        share = shares[:, places, h]
        nothing = np.full(share.shape, np.nan)
        curves.append(Intervals(share, nothing, nothing, subject.seeds, 0.95))
    trials = trial_numbers(places)
    bands = [Band.NONE] * len(panels)
    every = [trials] * len(panels)
    draw_methods(scene, panels, curves, looks, subject.methods, every, bands=bands)
    return finish(
        scene,
        Kind.REACH,
        about=f"{measure} {subject.title}",
        title=title,
        caption=(
            f"Share of the runs ({count(subject.seeds, 'seed')} on "
            f"{count(len(subject.task_names), 'task')}) whose best trial so far reaches each "
            "level; higher is better. The trials are on a logarithmic axis."
        ),
        alt=f"Curves of the share of runs of {listed(subject.methods)} that reach a {measure} of "
        f"{listed([short(float(level)) for level in levels])}.",
        data=_reach_table(subject, shares[:, places], levels, places),
    )


def _width(panels: int) -> float:
    return min(WIDTH, max(NARROWEST, PANEL_WIDTH * panels))


def _attained_table(
    subject: Subject,
    methods: Sequence[str],
    levels: FloatArray,
    fractions: Sequence[float],
    places: NDArray[np.intp],
) -> "pd.DataFrame":
    import pandas as pd

    axes = {"fraction": fractions, "method": methods, "trial": places + 1}
    index = pd.MultiIndex.from_product(axes.values(), names=list(axes))
    frame = pd.DataFrame({"level": levels.ravel()}, index=index).reset_index()
    return frame.assign(**subject.columns)


def _reach_table(
    subject: Subject, shares: FloatArray, levels: FloatArray, places: NDArray[np.intp]
) -> "pd.DataFrame":
    import pandas as pd

    axes = {"method": subject.methods, "trial": places + 1, "level": levels}
    index = pd.MultiIndex.from_product(axes.values(), names=list(axes))
    frame = pd.DataFrame({"share": shares.ravel()}, index=index).reset_index()
    return frame.assign(**subject.columns)
