"""The axes of trials and of measures that may span decades."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np

from hpobench_ordered._typing import FloatArray

DECADES = 30.0
"""Positive numbers whose largest is more times the smallest get a logarithmic axis."""

PAPER_SCORE = "normalised score"
"""The measure of Hellan et al. (2023), which only the reproduction of that paper draws."""

TITLES = {"regret": "normalised regret", "rank": "mean rank", "value": "objective"}
"""Titles of the axes of measures; default: the measure's name."""

LINEAR = frozenset({"score", PAPER_SCORE, "rank", "similarity"})
"""Measures that never get a logarithmic axis: their zero is arbitrary, or they have none."""

STEPS = (1, 3, 10, 25, 50, 100, 200, 500, 1000, 2000, 5000, 10000)


def title_of(measure: str) -> str:
    """The title of a measure's axis."""
    return TITLES.get(measure, measure)


def trial_axis(last: int) -> alt.X:
    """Trials from 1 to the last, on a logarithmic axis if there are more than two."""
    steps = STEPS if last >= 10 else (1, 2, 3, 5)
    ticks = [step for step in steps if step < 0.75 * last] + [last]
    scale = alt.Scale(type="log" if last > 2 else "linear", domain=[1, max(last, 2)], nice=False)
    return alt.X("trial:Q", title="trial", scale=scale, axis=alt.Axis(values=ticks, format="d"))


def spaced_trials(last: int, count: int) -> list[int]:
    """At most `count` trials, evenly spaced along the axis; all of them if there are no more."""
    if last <= count:
        return list(range(1, last + 1))
    return [int(place) for place in np.unique(np.rint(np.geomspace(1, last, count)))]


def measure_axis(measure: str, numbers: Iterable[float], *, top: float | None = None) -> alt.Y:
    """The vertical axis of the column `mean`, on which all of some numbers can be seen."""
    known = np.array([number for number in numbers if math.isfinite(number)])
    low, high = float(known.min()), float(known.max())
    if measure in ("score", PAPER_SCORE):
        low = min(low, 0.0)
    high = high if top is None else min(high, top)
    positive = float(known[known > 0].min(initial=math.inf))
    if measure in LINEAR or low < 0 or high <= DECADES * positive:
        room = 0.04 * (high - low) or 0.5
        linear = alt.Scale(domain=[low - room, high + room], nice=False, zero=False)
        return alt.Y("mean:Q", scale=linear, axis=alt.Axis(title=title_of(measure), tickCount=5))
    if low > 0:
        scale = alt.Scale(type="log", domain=[low / 1.1, high * 1.1], nice=False, clamp=True)
        values = _powers(low / 1.1, high * 1.1)
    else:
        small = max(positive, high / 1e6)
        ends = [0, high * 1.1]
        scale = alt.Scale(type="symlog", constant=small, domain=ends, nice=False, clamp=True)
        values = [0.0, *_powers(small, high * 1.1)]
    axis = alt.Axis(title=title_of(measure), values=values, format="~r")
    return alt.Y("mean:Q", scale=scale, axis=axis)


Along = Callable[[FloatArray], FloatArray]


def unit_of(scale: Mapping[str, Any]) -> tuple[Along, Along]:
    """Places of numbers along the axis of a scale, from 0 to 1, and the inverse."""
    kinds: dict[str, tuple[Any, Any]] = {
        "log": (np.log, np.exp),
        "symlog": (lambda x: np.log1p(x / scale["constant"]), np.expm1),
    }
    bent, straight = kinds.get(scale.get("type", "linear"), (np.asarray, np.asarray))
    factor = scale["constant"] if scale.get("type") == "symlog" else 1.0
    low, high = bent(np.array(scale["domain"], dtype=np.float64))

    def to_unit(values: FloatArray) -> FloatArray:
        within = np.clip(values, *scale["domain"])
        return np.asarray((bent(within) - low) / (high - low))

    return to_unit, lambda unit: np.asarray(straight(low + unit * (high - low)) * factor)


def spread(places: FloatArray, *, gap: float, end: float) -> FloatArray:
    """Places at least `gap` apart and at most at `end`, in the same order, near those given."""
    moved, order = places.astype(np.float64), np.argsort(places, kind="stable")
    for before, after in itertools.pairwise(order):
        moved[after] = max(moved[after], moved[before] + gap)
    limit = end
    for place in order[::-1]:
        moved[place] = min(moved[place], limit)
        limit = moved[place] - gap
    return moved


def _powers(low: float, high: float) -> Sequence[float]:
    """At most seven ticks of a logarithmic axis: powers of ten, or 1, 2, 5 times these."""
    span = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 2, 5)):
        every = [step * 10.0**exponent for exponent in span for step in steps]
        ticks = [tick for tick in every if low <= tick <= high]
        if len(ticks) >= 3:
            break
    return ticks[:: math.ceil(len(ticks) / 6)]
