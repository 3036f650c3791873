"""Analysis: pure functions on arrays and frames."""

from hpobench_ordered.analysis.scores import (
    Scores,
    TaskMean,
    incumbents,
    loss_array,
    normalised_scores,
)

__all__ = ["Scores", "TaskMean", "incumbents", "loss_array", "normalised_scores"]
