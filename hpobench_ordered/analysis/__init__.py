"""Analysis: pure functions on arrays and frames."""

from hpobench_ordered.analysis.differences import Difference, difference, pooled
from hpobench_ordered.analysis.downstream import Estimate
from hpobench_ordered.analysis.fallbacks import fallback_counts
from hpobench_ordered.analysis.ranks import Ranks, mean_ranks, ranks_by_seed
from hpobench_ordered.analysis.scores import (
    Scores,
    TaskMean,
    incumbents,
    loss_array,
    normalised_scores,
    of_incumbents,
    trial_arrays,
)

__all__ = [
    "Difference",
    "Estimate",
    "Ranks",
    "Scores",
    "TaskMean",
    "difference",
    "fallback_counts",
    "incumbents",
    "loss_array",
    "mean_ranks",
    "normalised_scores",
    "of_incumbents",
    "pooled",
    "ranks_by_seed",
    "trial_arrays",
]
