"""Charts of what `hpobench_ordered.analysis` computes, by Altair.

Each function takes a tidy frame and returns a chart: notebooks show it, `save` writes it, and
Altair's own methods restyle it. No chart computes a statistic.
"""

from hpobench_ordered.plotting.comparisons import bars, critical_differences, heatmap, wins
from hpobench_ordered.plotting.curves import attainment, curves, ranks
from hpobench_ordered.plotting.landscapes import Dimension, Panel, landscape, profiles
from hpobench_ordered.plotting.points import points
from hpobench_ordered.plotting.saving import Format, encoded, javascript, save, specification

__all__ = [
    "Dimension",
    "Format",
    "Panel",
    "attainment",
    "bars",
    "critical_differences",
    "curves",
    "encoded",
    "heatmap",
    "javascript",
    "landscape",
    "points",
    "profiles",
    "ranks",
    "save",
    "specification",
    "wins",
]
