"""Curves over trials: means with their intervals, ranks, and what runs attain."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import altair as alt

from hpobench_ordered.errors import ExperimentError, UnknownNameError
from hpobench_ordered.plotting.axes import (
    marked_trials,
    measure_axis,
    measure_scale,
    shown_trials,
    title_of,
    trial_axis,
)
from hpobench_ordered.plotting.theme import INK, configured, drawing_order, scales

if TYPE_CHECKING:
    import pandas as pd

MEANS = ("mean", "low", "high")
BAND_OPACITY = 0.12
LINE_WIDTH = 1.6
MARKER_AREA = 34
WIDTH, HEIGHT = 210, 150
"""Size of a panel, in pixels."""

ALONE = 2.0
"""A chart of one panel is so many times larger."""

SAME_SCALE = frozenset({"score", "regret", "rank", "regret over trials"})
"""Measures that mean the same in all panels, which then have the same vertical axis."""


def curves(
    frame: "pd.DataFrame",
    *,
    measure: str = "score",
    facet: str = "benchmark",
    columns: int = 4,
    methods: Sequence[str] | None = None,
    bands: bool = True,
    top: float | None = None,
    title: str | None = None,
) -> alt.TopLevelMixin:
    """Draw the mean of a measure over trials with its interval, one panel a benchmark or task.

    Args:
        frame: As `analysis.curves.curves` gives: a row a method and trial, with columns
            method, measure, trial, mean, low, high, and that of the facet.
        measure: The measure; one of those in the frame.
        facet: Column that makes the panels, such as "benchmark" or "task"; panels stand in the
            order of the frame.
        columns: Panels in a row.
        methods: All methods of the experiment, for the same colours in every chart; default: those
            in the frame.
        bands: Whether to draw the intervals.
        top: Upper end of the plotted range, where lower than the largest mean.
        title: Title of the chart; default: the measure.

    Raises:
        UnknownNameError: There is no such measure or column.
        ExperimentError: No number of the measure is finite.

    Examples:
        >>> import pandas as pd
        >>> from hpobench_ordered.plotting import curves
        >>> rows = [("forrester", "bo", "score", trial, 50 / trial, 40 / trial, 60 / trial)
        ...         for trial in (1, 2, 3)]
        >>> names = ["benchmark", "method", "measure", "trial", "mean", "low", "high"]
        >>> chart = curves(pd.DataFrame(rows, columns=names))
        >>> chart.to_dict()["description"]
        'Curves of the normalised score of bo over 3 trials on forrester.'
    """
    if facet not in frame.columns:
        raise UnknownNameError("column to make panels of", facet, list(frame.columns))
    chosen = frame[frame["measure"] == measure]
    if facet != "task" and "task" in frame.columns and (chosen["task"] == "").any():
        chosen = chosen[chosen["task"] == ""]
    if not len(chosen):
        raise UnknownNameError("measure", measure, list(dict.fromkeys(frame["measure"])))
    panels = [str(name) for name in dict.fromkeys(chosen[facet])]
    shown = drawing_order(chosen["method"])
    last = int(chosen["trial"].max())
    return configured(
        panels_of(
            chosen,
            facet=facet,
            panels=panels,
            columns=columns,
            y_title=title_of(measure),
            measure=measure,
            methods=methods or shown,
            bands=bands,
            top=top,
        ),
        title=title or f"{title_of(measure)} over trials",
        description=f"Curves of the {title_of(measure)} of {', '.join(shown)} over {last} trials "
        f"on {', '.join(panels)}.",
    )


def ranks(
    frame: "pd.DataFrame",
    *,
    facet: str = "benchmark",
    columns: int = 4,
    methods: Sequence[str] | None = None,
    title: str = "mean rank over trials",
) -> alt.TopLevelMixin:
    """Draw mean ranks over trials; 1 is best.

    Args:
        frame: As of `curves`; its measure "rank" is drawn.
        facet: Column that makes the panels.
        columns: Panels in a row.
        methods: All methods of the experiment; default: those in the frame.
        title: Title of the chart.
    """
    return curves(frame, measure="rank", facet=facet, columns=columns, methods=methods, title=title)


def attainment(
    frame: "pd.DataFrame",
    *,
    measure: str = "regret",
    columns: int = 4,
    methods: Sequence[str] | None = None,
    title: str | None = None,
) -> alt.TopLevelMixin:
    """Draw what a share of the runs attains over trials, one panel a method.

    Args:
        frame: As `analysis.curves.attained` gives, of one benchmark: method, trial, fraction
            and level. The line is the middle fraction, the band from the first to the last.
        measure: What is attained, of which lower is better.
        columns: Panels in a row.
        methods: All methods of the experiment; default: those in the frame.
        title: Title of the chart.

    Raises:
        ExperimentError: No number is finite.
    """
    shown = drawing_order(frame["method"])
    fractions = sorted(set(frame["fraction"]))
    chosen = [fractions[0], fractions[len(fractions) // 2], fractions[-1]]
    wide = frame.pivot(index=["method", "trial"], columns="fraction", values="level")[chosen]
    wide = wide.set_axis(["low", "mean", "high"], axis=1).reset_index()
    labelled = wide.assign(panel=wide["method"].astype(str))
    return configured(
        panels_of(
            labelled,
            facet="panel",
            panels=shown,
            columns=columns,
            y_title=title_of(measure),
            measure=measure,
            methods=methods or shown,
            legend=False,
        ),
        title=title or f"{title_of(measure)} that runs attain",
        description=f"Curves of the {title_of(measure)} that {chosen[1]:.0%} of the "
        f"runs of {', '.join(shown)} attain; bands from {chosen[0]:.0%} to {chosen[2]:.0%}.",
    )


def panels_of(
    frame: "pd.DataFrame",
    *,
    facet: str,
    panels: Sequence[str],
    columns: int,
    y_title: str,
    measure: str,
    methods: Sequence[str],
    bands: bool = True,
    legend: bool = True,
    top: float | None = None,
) -> alt.TopLevelMixin:
    """Panels of curves, each with its band, line and markers, without the theme.

    Args:
        frame: As of `curves`, of one measure.
        facet: Column that makes the panels.
        panels: Titles of the panels, in order.
        columns: Panels in a row.
        y_title: Title of the vertical axis.
        measure: The measure, which decides what its axis is like.
        methods: Methods that the colours are given out to.
        bands: Whether to draw intervals.
        legend: Whether to draw a legend.
        top: Upper end of the plotted range.

    Raises:
        ExperimentError: No mean is finite.
    """
    if not frame["mean"].notna().any():
        raise ExperimentError(f"{y_title} is undefined everywhere: there is nothing to draw")
    last = int(frame["trial"].max())
    data = frame.loc[frame["trial"].isin(shown_trials(last)), ["method", "trial", *MEANS, facet]]
    is_shared = measure in SAME_SCALE
    scale = measure_scale(measure, data["mean"], top=top)
    y = alt.Y("mean:Q", scale=scale, axis=measure_axis(scale, y_title))
    if not is_shared and len(panels) > 1:
        y = alt.Y("mean:Q", title=y_title, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=4))
    size = ALONE if len(panels) == 1 else 1.0
    layers = alt.layer(
        *_layers(data, y, last=last, methods=methods, bands=bands, legend=legend),
        data=data,
    ).properties(width=size * WIDTH, height=size * HEIGHT)
    if len(panels) == 1 and legend:
        return layers
    header = alt.Header(title=None, labelAnchor="start")
    whole = layers.facet(
        alt.Facet(f"{facet}:N", sort=list(panels), title=None, header=header), columns=columns
    )
    if not is_shared:
        whole = whole.resolve_scale(y="independent")
    is_ragged = len(panels) > columns and len(panels) % columns > 0
    return whole.resolve_axis(x="independent") if is_ragged else whole


def _layers(
    data: "pd.DataFrame",
    y: alt.Y,
    *,
    last: int,
    methods: Sequence[str],
    bands: bool,
    legend: bool,
) -> list[alt.Chart]:
    by_method = scales(methods)
    box = method_legend(drawing_order(data["method"])) if legend else None
    colour = alt.Color("method:N", scale=by_method["color"], legend=box)
    dashes = alt.StrokeDash("method:N", scale=by_method["strokeDash"], legend=None)
    marker = alt.Shape("method:N", scale=by_method["shape"], legend=box)
    chosen = alt.selection_point(name="chosen", fields=["method"], bind="legend")
    values = ["method:N", "trial:Q", *(alt.Tooltip(f"{n}:Q", format=".4~r") for n in MEANS)]
    base = alt.Chart().encode(x=trial_axis(last))
    layers = []
    if bands and data["low"].notna().any():
        pale = alt.condition(chosen, alt.value(BAND_OPACITY), alt.value(0.02))
        low = alt.Y("low:Q", title=None)
        area = base.mark_area()
        layers.append(area.encode(y=low, y2="high:Q", color=colour, fillOpacity=pale))
    line = base.mark_line(strokeWidth=LINE_WIDTH)
    bright = alt.condition(chosen, alt.value(1.0), alt.value(0.12))
    layers.append(line.encode(y=y, color=colour, strokeDash=dashes, strokeOpacity=bright))
    points = base.mark_point(filled=True, size=MARKER_AREA, opacity=1)
    marked = alt.FieldOneOfPredicate(field="trial", oneOf=marked_trials(last))
    points = points.transform_filter(marked)
    full = alt.condition(chosen, alt.value(1.0), alt.value(0.12))
    encoded = points.encode(y=y, color=colour, shape=marker, fillOpacity=full, tooltip=values)
    return [*layers, encoded.add_params(chosen)]


def method_legend(methods: Sequence[str], *, columns: int = 5) -> alt.Legend:
    """A legend of methods below a chart; a click on one dims the others."""
    options: dict[str, Any] = {"labelColor": INK}
    return alt.Legend(
        title=None,
        orient="bottom",
        values=list(methods),
        columns=min(columns, max(1, len(methods))),
        symbolSize=70,
        symbolOpacity=1,
        **options,
    )
