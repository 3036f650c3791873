"""The figure of normalised scores per task, as in Hellan et al. (2023), figure 5."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from hpobench_ordered.reporting.write import BenchmarkScores

# Okabe and Ito's colours, told apart by colour-blind readers.
COLOURS = ("#999999", "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#F0E442")
HIGHEST_SHOWN = 300.0
"""Scores above are drawn pale, with an arrow; random search ends at 100."""


def draw_scores(scored: "Sequence[BenchmarkScores]", *, trial: int) -> dict[str, bytes]:
    """Draw the scores of all tasks after a trial: one row of bars a benchmark.

    Args:
        scored: Scores by benchmark.
        trial: The trial, counted from 1.

    Returns:
        The figure as PNG and as SVG, by file name.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 1.6 + 1.9 * len(scored)), layout="constrained")
    panels = figure.subplots(len(scored), 1, squeeze=False)[:, 0]
    for axes, item in zip(panels, scored, strict=True):
        _draw_benchmark(axes, item, trial)
    panels[-1].set_xlabel("task")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(6, len(labels)))
    figure.suptitle(
        f"Normalised score after trial {trial}, ± two standard errors: lower is better; "
        "pale: off the scale",
        fontsize=11,
    )
    # Neither a date nor random ids: the same results give the same file.
    files = {}
    with mpl.rc_context({"svg.hashsalt": "hpobench_ordered"}):
        for suffix, options in (("png", {"dpi": 130}), ("svg", {"metadata": {"Date": None}})):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=suffix, **options)
            files[f"scores-trial-{trial}.{suffix}"] = buffer.getvalue()
    return files


def _draw_benchmark(axes: "Axes", item: "BenchmarkScores", trial: int) -> None:
    mean = item.scores.mean[:, :, trial - 1]
    errors = item.scores.two_standard_errors[:, :, trial - 1]
    positions = np.arange(len(item.task_names))
    width = 0.85 / len(item.scores.methods)
    top = min(HIGHEST_SHOWN, 1.08 * float(np.nanmax(mean + np.nan_to_num(errors), initial=1.0)))
    for a, method in enumerate(item.scores.methods):
        place = positions + (a + 0.5) * width - 0.425
        colour = COLOURS[a % len(COLOURS)]
        above = mean[a] > top
        shown = np.where(above, np.nan, mean[a])
        axes.bar(place, shown, width, label=method, color=colour)
        axes.errorbar(place, shown, errors[a], fmt="none", ecolor="black", lw=0.7)
        # Off the scale: pale, so that the bars one can read stand out.
        axes.bar(place[above], top, width, color=colour, alpha=0.2)
        axes.plot(place[above], np.full(above.sum(), 0.94 * top), "^", color=colour, ms=4)
    for position in positions[np.isnan(mean).all(axis=0)]:
        axes.text(position, 0.04 * top, "undefined", ha="center", fontsize=7)
    axes.set_ylim(0, top)
    axes.set_xlim(-0.6, len(positions) - 0.4)
    axes.set_xticks(positions, item.task_names, fontsize=7)
    axes.set_title(item.title, fontsize=9, loc="left")
    axes.grid(axis="y", lw=0.3)
    axes.set_axisbelow(True)
