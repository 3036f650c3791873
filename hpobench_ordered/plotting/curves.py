"""Curves over trials: means with their intervals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.plotting.axes import (
    PAPER_SCORE,
    measure_axis,
    spaced_trials,
    spread,
    title_of,
    trial_axis,
    unit_of,
)
from hpobench_ordered.plotting.theme import by_method, configured, facetted, value_tips

if TYPE_CHECKING:
    import pandas as pd

MOST_NAMES = 20
"""Names stand at the ends of at most this many curves."""

MOST_BANDS = 5
"""Intervals are drawn of this many methods."""

BAND_OPACITY = 0.12
DIMMED = 0.12
POINTS, MARKERS = 60, 6
"""Number of points of a curve, and of those with its method's marker."""

SIZE = (210, 150)
"""Width and height of a panel, in pixels; a panel alone is twice as large."""

SAME_SCALE = frozenset({"score", PAPER_SCORE, "regret", "rank"})
"""Measures that mean the same in all panels, which then have the same vertical axis."""


def curves(
    frame: "pd.DataFrame",
    *,
    measure: str = "score",
    facet: str = "benchmark",
    columns: int = 4,
    methods: Sequence[str] = (),
    bands: bool = True,
    ends: bool = True,
    top: float | None = None,
    size: tuple[float, float] | None = None,
    title: str | None = None,
) -> alt.TopLevelMixin:
    """Draw the mean of a measure over trials with its interval, one panel per benchmark or task.

    Args:
        frame: As `analysis.curves.curves` gives: one row per method and trial, with columns
            method, measure, trial, mean, low, high, and that of the facet.
        measure: The measure.
        facet: Column that makes the panels, in the order of the frame.
        columns: Panels in a row.
        methods: All methods of the experiment, the first eight of which are in colour; default:
            those in the frame, those that end lowest first.
        bands: Draw the intervals of the first five methods.
        ends: In a chart of one panel, write the names at the ends of the curves instead of below.
        top: Upper end of the plotted range, if lower than the largest mean.
        size: Width and height of a panel, in pixels.
        title: Title of the chart; default: the measure.

    Raises:
        UnknownNameError: There is no such measure or column.
        ExperimentError: No mean is finite.

    Examples:
        >>> import pandas as pd
        >>> from hpobench_ordered.plotting import curves
        >>> rows = [("forrester", "bo", "score", trial, 50 / trial, 40 / trial, 60 / trial)
        ...         for trial in (1, 2, 3)]
        >>> names = ["benchmark", "method", "measure", "trial", "mean", "low", "high"]
        >>> chart = curves(pd.DataFrame(rows, columns=names))
        >>> chart.to_dict()["description"]
        'Curves of the score of bo over 3 trials on forrester.'
    """
    chosen = _of_measure(frame, measure, facet)
    panels = [str(name) for name in dict.fromkeys(chosen[facet])]
    last = int(chosen["trial"].max())
    drawn = ["measure", "method", "trial", "mean", "low", "high", facet]
    shown = chosen.loc[chosen["trial"].isin(spaced_trials(last, POINTS)), drawn]
    order = list(methods) or _lowest_first(chosen)
    is_one = len(panels) == 1
    y = measure_axis(measure, shown["mean"], top=top)
    if measure not in SAME_SCALE and not is_one:
        y = alt.Y("mean:Q", title=title_of(measure), scale=alt.Scale(zero=False))
    width, height = size or ((2 * SIZE[0], 2 * SIZE[1]) if is_one else SIZE)
    is_named = is_one and ends and shown["method"].nunique() <= MOST_NAMES
    chart = _layers(shown, y, order, bands=bands, is_cut=top is not None, legend=not is_named)
    chart = chart.properties(width=width, height=height)
    if is_named:
        chart += _names(shown, y, order, height)
    if not is_one:
        chart = facetted(chart, facet, panels, columns)
        chart = chart if measure in SAME_SCALE else chart.resolve_scale(y="independent")
    names = ", ".join(chosen["method"].unique())
    return configured(
        chart,
        title=title or f"{title_of(measure)} over trials",
        description=f"Curves of the {title_of(measure)} of {names} over {last} trials on "
        f"{', '.join(panels)}.",
    )


def _lowest_first(frame: "pd.DataFrame") -> list[str]:
    """Methods by their mean after the last trial, over panels."""
    last = frame[frame["trial"] == frame["trial"].max()]
    means = last.groupby(last["method"].astype(str))["mean"].mean().sort_values(kind="stable")
    return [*means.index]


def _names(frame: "pd.DataFrame", y: alt.Y, methods: Sequence[str], height: float) -> Any:
    """Names at the ends of curves, moved apart where they would overlap."""
    last = frame.sort_values("trial").groupby("method", observed=True).last().dropna(subset="mean")
    to_unit, from_unit = unit_of(y["scale"].to_dict())
    wanted = (1 - to_unit(last["mean"].to_numpy(dtype=float))) * height
    shown = 1 - spread(wanted, gap=13.0, end=height) / height
    table = last.reset_index()[["method", "trial"]].assign(mean=from_unit(shown))
    looks = by_method(table["method"], methods)
    base = alt.Chart(table).encode(x="trial:Q", y=y)
    text = base.mark_text(align="left", baseline="middle", dx=16, fontSize=11)
    marks = base.mark_point(filled=True, size=34, opacity=1, xOffset=9)
    colour, shape = (looks[name].legend(None) for name in ("color", "shape"))
    return text.encode(text="method:N") + marks.encode(color=colour, shape=shape)


def _of_measure(frame: "pd.DataFrame", measure: str, facet: str) -> "pd.DataFrame":
    """Rows of a measure; means over tasks where tasks make no panels."""
    if facet not in frame.columns:
        raise UnknownNameError("column to make panels of", facet, list(frame.columns))
    chosen = frame[frame["measure"] == measure]
    if facet != "task" and "task" in frame.columns and (chosen["task"] == "").any():
        chosen = chosen[chosen["task"] == ""]
    if not len(chosen):
        raise UnknownNameError("measure", measure, list(dict.fromkeys(frame["measure"])))
    if not chosen["mean"].notna().any():
        raise ExperimentError(f"{title_of(measure)} is undefined everywhere: nothing to draw")
    return chosen


def attainment(
    frame: "pd.DataFrame",
    *,
    facet: str = "method",
    methods: Sequence[str] = (),
    bands: bool = True,
    size: tuple[float, float] | None = None,
    title: str | None = None,
) -> alt.TopLevelMixin:
    """Draw the normalised regret that half of the runs attain, with quartiles.

    The frame is what `analysis.curves.attainment_curves` gives of three fractions; the other
    arguments are those of `curves`.
    """
    levels = frame.assign(panel=frame[facet].astype(str)).pivot(
        index=["panel", "method", "trial"], columns="fraction", values="level"
    )
    levels = levels.set_axis(["low", "mean", "high"], axis=1).reset_index()
    levels = levels.assign(measure="regret")
    return curves(
        levels, measure="regret", facet="panel", methods=methods, bands=bands, size=size,
        title=title,
    )  # fmt: skip


def _layers(
    frame: "pd.DataFrame",
    y: alt.Y,
    methods: Sequence[str],
    *,
    bands: bool,
    is_cut: bool,
    legend: bool,
) -> alt.LayerChart:
    looks = by_method(frame["method"], methods)
    if not legend:
        looks = {name: channel.legend(None) for name, channel in looks.items()}
    bind = "legend" if legend else alt.Undefined
    chosen = alt.selection_point(name="chosen", fields=["method"], bind=bind)
    last = int(frame["trial"].max())
    base = alt.Chart().encode(x=trial_axis(last), color=looks["color"])
    opacity = alt.condition(chosen, alt.value(1.0), alt.value(DIMMED))
    line = base.mark_line(strokeWidth=1.6, clip=True).encode(
        y=y, strokeDash=looks["strokeDash"], strokeOpacity=opacity
    )
    marked = alt.FieldOneOfPredicate(field="trial", oneOf=spaced_trials(last, MARKERS))
    markers = base.mark_point(filled=True, size=34, opacity=1, clip=is_cut).transform_filter(marked)
    markers = markers.encode(
        y=y, shape=looks["shape"], fillOpacity=opacity, tooltip=value_tips("trial:Q")
    )
    layers = [line, markers.add_params(chosen)]
    if bands and frame["low"].notna().any():
        pale = alt.condition(chosen, alt.value(BAND_OPACITY), alt.value(0.02))
        ends = y.copy(deep=False)
        ends.shorthand = "low:Q"
        band = base.mark_area(clip=True).encode(y=ends, y2="high:Q", fillOpacity=pale)
        first = alt.FieldOneOfPredicate(field="method", oneOf=[*methods][:MOST_BANDS])
        band = band.transform_filter(first)
        layers.insert(0, band)
    return alt.layer(*layers, data=frame)
