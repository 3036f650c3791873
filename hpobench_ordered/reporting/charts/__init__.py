"""Altair charts of the frames that `hpobench_ordered.analysis` computes.

Each function takes a tidy frame and returns a chart: notebooks show it, `save` writes it, and
Altair's own methods restyle it. No chart computes a statistic.
"""

from hpobench_ordered.reporting.charts.comparisons import (
    heatmap,
    leader_differences,
)
from hpobench_ordered.reporting.charts.curves import attainment, curves
from hpobench_ordered.reporting.charts.landscapes import Dimension, Panel, landscape
from hpobench_ordered.reporting.charts.saving import javascript, save, specification

__all__ = [
    "Dimension",
    "Panel",
    "attainment",
    "curves",
    "heatmap",
    "javascript",
    "landscape",
    "leader_differences",
    "save",
    "specification",
]
