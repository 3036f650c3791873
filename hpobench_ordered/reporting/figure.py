"""The figure of a report: normalised scores per task, as in Hellan et al. (2023), figure 5."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hpobench_ordered.reporting.bars import draw_bars
from hpobench_ordered.reporting.style import figure_files, legend_below, styles

if TYPE_CHECKING:
    from hpobench_ordered.reporting.scoring import BenchmarkScores

HIGHEST_SHOWN = 300.0
"""Scores above are off the scale; random search ends at 100."""


def draw_scores(scored: "Sequence[BenchmarkScores]", *, trial: int) -> dict[str, bytes]:
    """Draw the scores of all tasks after a trial: one row of bars a benchmark.

    Args:
        scored: Scores by benchmark.
        trial: The trial, counted from 1.

    Returns:
        The figure as PNG and as SVG, by file name.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 1.6 + 1.9 * len(scored)), layout="constrained")
    panels = figure.subplots(len(scored), 1, squeeze=False)[:, 0]
    looks = styles({method for item in scored for method in item.scores.methods})
    for axes, item in zip(panels, scored, strict=True):
        tasks = range(len(item.task_names))
        draw_bars(axes, item.scores, looks=looks, trial=trial, tasks=tasks, top=HIGHEST_SHOWN)
        axes.set_xticks(tasks, item.task_names, fontsize=7)
        axes.set_ylabel("normalised score", fontsize=9)
        axes.set_title(item.title, fontsize=9, loc="left")
    panels[-1].set_xlabel("task", fontsize=9)
    legend_below(figure)
    figure.suptitle(
        f"Normalised score after trial {trial}, ± two standard errors: lower is better; arrows: "
        "the mean (black) or the error (grey) is above the plotted range",
        fontsize=10,
    )
    return figure_files(figure, f"scores-trial-{trial}")
