"""Bars of normalised scores by task, as in Hellan et al. (2023), figure 5."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis import Scores
from hpobench_ordered.reporting.style import Style, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GROUP_WIDTH = 0.86
"""Width of all bars of a task together; tasks are 1 apart."""

HEADROOM = 1.07
"""Height of the axes relative to the plotted range; the arrows are in between."""

TOLERANCE = 1e-9
"""Relative amount by which a number may be above the plotted range."""


def draw_bars(
    axes: "Axes",
    scores: Scores,
    *,
    looks: Mapping[str, Style],
    trial: int,
    tasks: Sequence[int],
    top: float = np.inf,
) -> None:
    """Draw the mean score of every method on some tasks, with two standard errors.

    A black arrow says that the mean is above the plotted range, a grey one that the range of two
    standard errors is.

    Args:
        axes: Where to draw.
        scores: The scores.
        looks: How methods look, in drawing order; maybe of more than there are scores of.
        trial: The trial, counted from 1.
        tasks: The tasks to show, from 0.
        top: Upper end of the plotted range; lower where everything fits below.
    """
    mean = scores.mean[:, list(tasks), trial - 1]
    errors = scores.two_standard_errors[:, list(tasks), trial - 1]
    errors = np.where(np.isnan(errors), 0.0, errors)  # of one seed
    top = min(top, max(float(np.nanmax(mean + errors, initial=0)), 1.0))
    shown = [method for method in looks if method in scores.methods]
    width = GROUP_WIDTH / len(shown)
    positions = np.arange(len(tasks), dtype=np.float64)
    for place, method in enumerate(shown):
        a = scores.methods.index(method)
        x = positions + (place + 0.5) * width - GROUP_WIDTH / 2
        axes.bar(x, np.minimum(mean[a], top), width, label=method, color=looks[method].colour)
        _draw_errors(axes, x, mean[a], errors[a], top)
    for position in positions[np.isnan(mean).all(axis=0)]:
        axes.text(position, 0.03 * top, "undefined", ha="center", fontsize=7, color="dimgrey")
    axes.set_ylim(0, HEADROOM * top)
    axes.set_xlim(-0.55, len(positions) - 0.45)
    axes.grid(axis="y", lw=0.3)
    axes.set_axisbelow(True)
    tidy(axes)


def _draw_errors(
    axes: "Axes", x: FloatArray, mean: FloatArray, errors: FloatArray, top: float
) -> None:
    """Draw the errors within the plotted range, and arrows for what is above it."""
    # Random search ends at 100, give or take what floating point does.
    inside = mean <= top * (1 + TOLERANCE)
    lower, upper = errors[inside], np.clip(top - mean[inside], 0, errors[inside])
    axes.errorbar(x[inside], mean[inside], [lower, upper], fmt="none", ecolor="black", lw=0.8)
    above = ~inside & ~np.isnan(mean)
    error_above = inside & (mean + errors > top * (1 + TOLERANCE))
    height = (1 + HEADROOM) / 2 * top
    for which, colour in ((above, "black"), (error_above, "darkgrey")):
        axes.plot(x[which], np.full(which.sum(), height), "^", color=colour, ms=3.5)
