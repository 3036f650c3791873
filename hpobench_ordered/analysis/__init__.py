"""Analysis: pure functions on arrays and frames."""

from hpobench_ordered.analysis.scores import (
    Scores,
    incumbents,
    loss_array,
    mean_score,
    normalised_scores,
)

__all__ = ["Scores", "incumbents", "loss_array", "mean_score", "normalised_scores"]
