"""Analysis: pure functions on arrays and frames."""

from hpobench_ordered.analysis.bootstrap import Intervals, interval_over, mean_intervals
from hpobench_ordered.analysis.critical_differences import (
    CriticalDifference,
    PostHoc,
    critical_difference,
    nemenyi_difference,
)
from hpobench_ordered.analysis.curves import (
    TrialAxis,
    area_under_curve,
    attained_levels,
    attainment,
)
from hpobench_ordered.analysis.differences import Difference, difference, pooled
from hpobench_ordered.analysis.downstream import Estimate
from hpobench_ordered.analysis.fallbacks import fallback_counts
from hpobench_ordered.analysis.ranks import Ranks, mean_ranks, ranks_by_seed
from hpobench_ordered.analysis.regret import (
    LossRange,
    best_known,
    evaluated_range,
    normalised_regrets,
    simple_regrets,
)
from hpobench_ordered.analysis.samples import Resampling, samples_of
from hpobench_ordered.analysis.scores import (
    Scores,
    TaskMean,
    incumbents,
    loss_array,
    normalised_scores,
    of_incumbents,
    trial_arrays,
)
from hpobench_ordered.analysis.significance import (
    FriedmanTest,
    PairwiseTests,
    friedman,
    holm,
    pairwise_wilcoxon,
)
from hpobench_ordered.analysis.speedup import (
    Speedups,
    geometric_mean,
    reference_targets,
    speedups,
    trials_to_reach,
)
from hpobench_ordered.analysis.wins import Contest, Wins, count_wins

__all__ = [
    "Contest",
    "CriticalDifference",
    "Difference",
    "Estimate",
    "FriedmanTest",
    "Intervals",
    "LossRange",
    "PairwiseTests",
    "PostHoc",
    "Ranks",
    "Resampling",
    "Scores",
    "Speedups",
    "TaskMean",
    "TrialAxis",
    "Wins",
    "area_under_curve",
    "attained_levels",
    "attainment",
    "best_known",
    "count_wins",
    "critical_difference",
    "difference",
    "evaluated_range",
    "fallback_counts",
    "friedman",
    "geometric_mean",
    "holm",
    "incumbents",
    "interval_over",
    "loss_array",
    "mean_intervals",
    "mean_ranks",
    "nemenyi_difference",
    "normalised_regrets",
    "normalised_scores",
    "of_incumbents",
    "pairwise_wilcoxon",
    "pooled",
    "ranks_by_seed",
    "reference_targets",
    "samples_of",
    "simple_regrets",
    "speedups",
    "trial_arrays",
    "trials_to_reach",
]
