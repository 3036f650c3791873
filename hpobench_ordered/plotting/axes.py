"""Axes that several charts share: of trials, and of measures that may span decades."""

import math
from collections.abc import Iterable
from typing import Any

import altair as alt
import numpy as np

DECADES = 30.0
"""Positive numbers so many times apart stand on a logarithmic axis."""

HIGHEST_SCORE = 300.0
"""Scores above are cut off; random search ends at 100."""

TITLES = {
    "score": "normalised score",
    "regret": "normalised regret",
    "rank": "mean rank",
    "value": "objective",
}
"""What measures are called on an axis, where it is not their name."""

LINEAR = frozenset({"score", "rank"})
"""Measures that never stand on a logarithmic axis: their zero is arbitrary, or they have none."""


def title_of(measure: str) -> str:
    """What a measure is called on an axis."""
    return TITLES.get(measure, measure)


def trial_axis(last: int) -> alt.X:
    """Trials from 1 to the last, on a logarithmic axis where there are more than two."""
    steps = [1, 2, 3, 5, 10, 25, 50, 100, 200, 500, 1000, 2000, 5000, 10000]
    ticks = [step for step in steps if step < 0.75 * last] + [last]
    if last >= 10:
        ticks = [tick for tick in ticks if tick not in (2, 5)]
    scale = alt.Scale(type="log" if last > 2 else "linear", domain=[1, max(last, 2)], nice=False)
    axis = alt.Axis(values=ticks, format="d", grid=True)
    return alt.X("trial:Q", title="trial", scale=scale, axis=axis)


def marked_trials(last: int, count: int = 6) -> list[int]:
    """Trials at which a curve has its method's marker, evenly spaced along the axis."""
    places = np.rint(np.geomspace(1, max(last, 1), count))
    return [int(place) for place in np.unique(places)]


def shown_trials(last: int, most: int = 60) -> list[int]:
    """Trials that a curve is drawn through: all, or as many as can be told apart."""
    if last <= most:
        return list(range(1, last + 1))
    return marked_trials(last, most)


def measure_scale(measure: str, numbers: Iterable[float], *, top: float | None = None) -> alt.Scale:
    """The vertical scale of a measure that shows some numbers.

    Args:
        measure: Name of the measure.
        numbers: What must be seen, such as the means of all curves; what is not finite is ignored.
        top: Upper end of the plotted range; default: of scores 300, of others none.
    """
    known = np.array([number for number in numbers if math.isfinite(number)])
    if not len(known):
        return alt.Scale()
    low, high = float(known.min()), float(known.max())
    if measure == "score":
        low, top = min(low, 0.0), HIGHEST_SCORE if top is None else top
    high = high if top is None else min(high, top)
    if measure not in LINEAR and low >= 0 and high > 0:
        positive = float(known[known > 0].min())
        options: dict[str, Any] = {"nice": False, "clamp": True}
        if low > 0 and high > DECADES * positive:
            return alt.Scale(type="log", domain=[low / 1.1, high * 1.1], **options)
        if low == 0 and high > DECADES * positive:
            constant = max(positive, high / 1e6)
            return alt.Scale(type="symlog", constant=constant, domain=[0, high * 1.1], **options)
    room = 0.04 * (high - low) or 0.5
    return alt.Scale(domain=[low - room, high + room], nice=False, zero=False, clamp=True)


def measure_axis(scale: alt.Scale, title: str) -> alt.Axis:
    """The vertical axis that goes with a scale."""
    options = scale.to_dict()
    if options.get("type") not in ("log", "symlog"):
        return alt.Axis(title=title, tickCount=5, format="~r")
    low, high = options["domain"]
    first = math.floor(math.log10(low or options["constant"]))
    powers = [10.0**exponent for exponent in range(first, math.ceil(math.log10(high)) + 1)]
    ticks = [tick for tick in powers if low <= tick <= high]
    if len(ticks) < 3:
        ticks = [step * tick for tick in powers for step in (1, 2, 5) if low <= step * tick <= high]
    stride = math.ceil(len(ticks) / 6)
    values = [0.0] * (low == 0) + ticks[::stride]
    return alt.Axis(title=title, values=values, format="~r")
