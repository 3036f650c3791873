"""Bars of normalised scores by task, as in Hellan et al. (2023), figure 5."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
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


@dataclass(frozen=True, slots=True)
class Heights:
    """What bars show, for methods in drawing order.

    Attributes:
        methods: Names of the methods, length A.
        mean: Mean scores on the tasks shown, shape (A, T); NaN where undefined.
        errors: Two standard errors, shape (A, T); 0 of one seed.
        top: Upper end of the plotted range.
    """

    methods: tuple[str, ...]
    mean: FloatArray
    errors: FloatArray
    top: float

    @classmethod
    def of(
        cls,
        scores: Scores,
        *,
        methods: Iterable[str],
        trial: int,
        tasks: Sequence[int],
        top: float = np.inf,
    ) -> "Heights":
        """Means and errors of some tasks after a trial.

        Args:
            scores: The scores.
            methods: Methods in drawing order; maybe more than there are scores of.
            trial: The trial, counted from 1.
            tasks: The tasks to show, from 0.
            top: Upper end of the plotted range; lower where everything fits below.
        """
        shown = tuple(method for method in methods if method in scores.methods)
        places = [scores.methods.index(method) for method in shown]
        mean = scores.mean[places][:, list(tasks), trial - 1]
        errors = scores.two_standard_errors[places][:, list(tasks), trial - 1]
        errors = np.where(np.isnan(errors), 0.0, errors)  # of one seed
        top = min(top, max(float(np.nanmax(mean + errors, initial=0)), 1.0))
        return cls(shown, mean, errors, top)

    @property
    def is_above(self) -> BoolArray:
        """Whether a mean is above the plotted range, shape (A, T)."""
        # Random search ends at 100, give or take what floating point does.
        return np.asarray(self.mean > self.top * (1 + TOLERANCE))

    @property
    def is_error_above(self) -> BoolArray:
        """Whether the range of two standard errors alone is, shape (A, T)."""
        reached = self.mean + self.errors > self.top * (1 + TOLERANCE)
        return np.asarray(reached & ~self.is_above)

    @property
    def is_undefined(self) -> BoolArray:
        """Whether a task has no score, shape (T,)."""
        return np.asarray(np.isnan(self.mean).all(axis=0))

    def places(self, method: int) -> FloatArray:
        """Where the bars of a method stand, by its index, shape (T,); tasks are 1 apart."""
        width = GROUP_WIDTH / len(self.methods)
        tasks = np.arange(self.mean.shape[1], dtype=np.float64)
        return np.asarray(tasks + (method + 0.5) * width - GROUP_WIDTH / 2)


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
    heights = Heights.of(scores, methods=looks, trial=trial, tasks=tasks, top=top)
    top = heights.top
    width = GROUP_WIDTH / len(heights.methods)
    for a, method in enumerate(heights.methods):
        x = heights.places(a)
        height = np.minimum(heights.mean[a], top)
        axes.bar(x, height, width, label=method, color=looks[method].colour)
        _draw_errors(axes, x, heights, a)
    positions = np.arange(len(tasks), dtype=np.float64)
    for position in positions[heights.is_undefined]:
        axes.text(position, 0.03 * top, "undefined", ha="center", fontsize=7, color="dimgrey")
    axes.set_ylim(0, HEADROOM * top)
    axes.set_xlim(-0.55, len(positions) - 0.45)
    axes.grid(axis="y", lw=0.3)
    axes.set_axisbelow(True)
    tidy(axes)


def _draw_errors(axes: "Axes", x: FloatArray, heights: Heights, a: int) -> None:
    """Draw the errors within the plotted range, and arrows for what is above it."""
    above, mean, errors = heights.is_above[a], heights.mean[a], heights.errors[a]
    inside = ~(above | np.isnan(mean))
    lower, upper = errors[inside], np.clip(heights.top - mean[inside], 0, errors[inside])
    axes.errorbar(x[inside], mean[inside], [lower, upper], fmt="none", ecolor="black", lw=0.8)
    height = (1 + HEADROOM) / 2 * heights.top
    for which, colour in ((above, "black"), (heights.is_error_above[a], "darkgrey")):
        axes.plot(x[which], np.full(which.sum(), height), "^", color=colour, ms=3.5)
