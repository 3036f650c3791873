"""Curves over trials: means with their intervals."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.reporting.charts.axes import (
    PAPER_SCORE,
    measure_axis,
    seconds_axis,
    spaced_trials,
    spread,
    title_of,
    trial_axis,
    unit_of,
)
from hpobench_ordered.reporting.charts.theme import by_method, configured, facetted, value_tips

if TYPE_CHECKING:
    import pandas as pd

MAX_NAMES_AT_ENDS = 20
"""Names stand at the ends of at most this many curves."""

MAX_BANDS = 5
"""Intervals are drawn of at most this many methods."""

BAND_OPACITY = 0.12
DIMMED_BAND_OPACITY = 0.02
DIMMED_OPACITY = 0.12

MAX_POINTS_OF_CURVE = 60
MAX_MARKERS_OF_CURVE = 6

PANEL_SIZE = (210, 150)
"""Width and height of a panel, in pixels; a panel alone is twice as large."""

SAME_SCALE = frozenset({"score", PAPER_SCORE, "regret", "rank"})
"""Measures that mean the same in all panels, which then have the same vertical axis."""


def curves(
    frame: "pd.DataFrame",
    *,
    measure: str = "score",
    over: str = "trial",
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
        over: Column of the horizontal axis, "trial" or "seconds". Panels have an axis of seconds
            each.
        facet: Column that makes the panels, in the order of the frame.
        columns: Panels in a row.
        methods: All methods of the experiment, the first eight of which are in colour; default: the
            methods of the frame, in the order of their last means, the lowest first.
        bands: Whether to draw the intervals of the first five methods.
        ends: Whether a chart of one panel has the names at the ends of the curves. Otherwise they
            are in a legend below.
        top: Upper end of the plotted range, if lower than the largest mean.
        size: Width and height of a panel, in pixels.
        title: Title of the chart; default: the measure.

    Raises:
        UnknownNameError: There is no such measure or column.
        ExperimentError: No mean is finite.

    Examples:
        >>> import pandas as pd
        >>> from hpobench_ordered.reporting.charts import curves
        >>> rows = [("forrester", "bo", "score", trial, 50 / trial, 40 / trial, 60 / trial)
        ...         for trial in (1, 2, 3)]
        >>> names = ["benchmark", "method", "measure", "trial", "mean", "low", "high"]
        >>> chart = curves(pd.DataFrame(rows, columns=names))
        >>> chart.to_dict()["description"]
        'Curves of the score of bo over 3 trials on forrester.'
    """
    chosen = _rows_of_measure(frame, measure, facet)
    last_trial = int(chosen["trial"].max())
    # A curve of many trials has points at some of them alone, to keep the chart small.
    is_drawn_trial = chosen["trial"].isin(spaced_trials(last_trial, MAX_POINTS_OF_CURVE))
    columns_drawn = ["measure", "method", "trial", "mean", "low", "high", facet]
    if over != "trial":
        columns_drawn.append(over)
    drawn = chosen.loc[is_drawn_trial, columns_drawn]
    order = list(methods) or _methods_lowest_first(chosen)  # decides the colours
    panels = [str(name) for name in dict.fromkeys(chosen[facet])]
    has_one_panel = len(panels) == 1

    if measure in SAME_SCALE or has_one_panel:
        y = measure_axis(measure, drawn["mean"], top=top)
    else:
        y = alt.Y("mean:Q", title=title_of(measure), scale=alt.Scale(zero=False))
    if size is None:
        enlargement = 2 if has_one_panel else 1
        size = (enlargement * PANEL_SIZE[0], enlargement * PANEL_SIZE[1])
    width, height = size

    has_names_at_ends = has_one_panel and ends and drawn["method"].nunique() <= MAX_NAMES_AT_ENDS
    x = trial_axis(last_trial) if over == "trial" else seconds_axis()
    chart = _layers(
        drawn, x, y, order, bands=bands, is_cut=top is not None, legend=not has_names_at_ends
    )
    chart = chart.properties(width=width, height=height)
    if has_names_at_ends:
        chart += _names_at_ends(drawn, y, order, height)
    if not has_one_panel:
        chart = facetted(chart, facet, panels, columns)
        if measure not in SAME_SCALE:
            chart = chart.resolve_scale(y="independent")
        if over != "trial":
            chart = chart.resolve_scale(x="independent")

    range_of_axis = f"{last_trial} trials" if over == "trial" else over
    names = ", ".join(chosen["method"].unique())
    return configured(
        chart,
        title=title or f"{title_of(measure)} over trials",
        description=f"Curves of the {title_of(measure)} of {names} over {range_of_axis} on "
        f"{', '.join(panels)}.",
    )


def _methods_lowest_first(frame: "pd.DataFrame") -> list[str]:
    """List the methods by their mean after the last trial, averaged over panels, lowest first."""
    last_rows = frame[frame["trial"] == frame["trial"].max()]
    means = last_rows.groupby(last_rows["method"].astype(str))["mean"].mean()
    return list(means.sort_values(kind="stable").index)


def _names_at_ends(frame: "pd.DataFrame", y: alt.Y, methods: Sequence[str], height: float) -> Any:
    """Draw the name and the marker of each method to the right of the end of its curve.

    Where names would overlap, they are moved up or down. Methods without a mean have no name.

    Args:
        frame: The curves: columns method, trial and mean.
        y: The vertical axis, with its scale.
        methods: All methods, which decide the colours.
        height: Height of the chart, in pixels.
    """
    curves_of_methods = frame.sort_values("trial").groupby("method", observed=True)
    ends = curves_of_methods.last().dropna(subset="mean")

    # Names overlap in pixels, so they are moved in pixels. The chart needs their places in units of
    # the axis, so the moved places are converted back.
    to_unit, from_unit = unit_of(y["scale"].to_dict())
    pixels_from_top = (1 - to_unit(ends["mean"].to_numpy(dtype=float))) * height
    moved_pixels = spread(pixels_from_top, gap=13.0, end=height)
    moved_means = from_unit(1 - moved_pixels / height)
    table = ends.reset_index()[["method", "trial"]].assign(mean=moved_means)

    looks = by_method(table["method"], methods)
    base = alt.Chart(table).encode(x="trial:Q", y=y)
    names = base.mark_text(align="left", baseline="middle", dx=16, fontSize=11)
    names = names.encode(text="method:N")
    markers = base.mark_point(filled=True, size=34, opacity=1, xOffset=9)
    markers = markers.encode(color=looks["color"].legend(None), shape=looks["shape"].legend(None))
    return names + markers


def _rows_of_measure(frame: "pd.DataFrame", measure: str, facet: str) -> "pd.DataFrame":
    """Select the rows of a measure that a chart draws.

    If the panels are not tasks, rows of single tasks are left out, so that only means over tasks
    remain. A frame without means over tasks keeps all its rows.

    Raises:
        UnknownNameError: There is no such measure or column.
        ExperimentError: All means are NaN.
    """
    if facet not in frame.columns:
        raise UnknownNameError("column to make panels of", facet, list(frame.columns))
    chosen = frame[frame["measure"] == measure]
    if facet != "task" and "task" in frame.columns:
        is_mean_over_tasks = chosen["task"] == ""
        if is_mean_over_tasks.any():
            chosen = chosen[is_mean_over_tasks]
    if not len(chosen):
        raise UnknownNameError("measure", measure, list(dict.fromkeys(frame["measure"])))
    if not chosen["mean"].notna().any():
        raise ExperimentError(f"{title_of(measure)} is undefined everywhere: nothing to draw")
    return chosen


def attainment(
    frame: "pd.DataFrame",
    *,
    facet: str = "method",
    columns: int = 4,
    methods: Sequence[str] = (),
    size: tuple[float, float] | None = None,
    title: str | None = None,
) -> alt.TopLevelMixin:
    """Draw the normalised regret that half of the runs attain after every trial, with quartiles.

    Args:
        frame: As `analysis.curves.attainment_curves` gives for three fractions of the runs: the
            regret, `level`, that each fraction attains. That of the middle one is the line. Those
            of the outer two are the ends of the band, which is left out where they are NaN.
        facet: As for `curves`; so are all other arguments.
        columns: Panels in a row.
        methods: All methods of the experiment.
        size: Width and height of a panel, in pixels.
        title: Title of the chart.
    """
    levels = frame.assign(panel=frame[facet].astype(str)).pivot(
        index=["panel", "method", "trial"], columns="fraction", values="level"
    )
    # The columns are the three fractions, ascending: `curves` draws them as a mean with its band.
    levels = levels.set_axis(["low", "mean", "high"], axis=1)
    rows = levels.reset_index().assign(measure="regret")
    return curves(
        rows,
        measure="regret",
        facet="panel",
        columns=columns,
        methods=methods,
        size=size,
        title=title,
    )


def _layers(
    frame: "pd.DataFrame",
    x: alt.X,
    y: alt.Y,
    methods: Sequence[str],
    *,
    bands: bool,
    is_cut: bool,
    legend: bool,
) -> alt.LayerChart:
    """Draw bands, lines and markers; a click on a method in the legend dims the others.

    Args:
        frame: Columns method, trial, mean, low and high.
        x: The horizontal axis.
        y: The vertical axis.
        methods: All methods, which decide the colours; the first few have bands.
        bands: Whether to draw intervals.
        is_cut: Whether the vertical axis may end below the largest mean. Markers above its end are
            then left out.
        legend: Whether there is a legend. Without one, a click on a marker dims the other methods.
    """
    looks = by_method(frame["method"], methods)
    if not legend:
        looks = {name: channel.legend(None) for name, channel in looks.items()}
    clicked = alt.selection_point(
        name="chosen", fields=["method"], bind="legend" if legend else alt.Undefined
    )
    opacity = alt.condition(clicked, alt.value(1.0), alt.value(DIMMED_OPACITY))

    last_trial = int(frame["trial"].max())
    base = alt.Chart().encode(x=x, color=looks["color"])
    lines = base.mark_line(strokeWidth=1.6, clip=True).encode(
        y=y, strokeDash=looks["strokeDash"], strokeOpacity=opacity
    )
    marked_trials = alt.FieldOneOfPredicate(
        field="trial", oneOf=spaced_trials(last_trial, MAX_MARKERS_OF_CURVE)
    )
    markers = base.mark_point(filled=True, size=34, opacity=1, clip=is_cut)
    markers = markers.transform_filter(marked_trials).encode(
        y=y, shape=looks["shape"], fillOpacity=opacity, tooltip=value_tips(x.shorthand)
    )
    layers = [lines, markers.add_params(clicked)]

    if bands and frame["low"].notna().any():
        band_opacity = alt.condition(
            clicked, alt.value(BAND_OPACITY), alt.value(DIMMED_BAND_OPACITY)
        )
        low = y.copy(deep=False)  # the same axis for another column
        low.shorthand = "low:Q"
        band = base.mark_area(clip=True).encode(y=low, y2="high:Q", fillOpacity=band_opacity)
        first_methods = alt.FieldOneOfPredicate(field="method", oneOf=[*methods][:MAX_BANDS])
        layers.insert(0, band.transform_filter(first_methods))
    return alt.layer(*layers, data=frame)
