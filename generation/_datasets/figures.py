"""What the cards of the benchmarks datasets-LEARNER say of their evaluations.

Notation:
    n   configurations, the first of which is the learner's default
    T   tasks, which are data sets
"""

from itertools import combinations
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.copying import compute_portfolio_regrets, compute_regrets
from hpobench_ordered.surrogates.card import rank_correlation


def compute_noise_shares(losses: FloatArray, spread: FloatArray, *, averaged: int) -> FloatArray:
    """Compute how large the noise of folds and seeds is beside what tuning can gain, (T,).

    It is the standard deviation of a loss, divided by the distance from the best loss to the median
    loss. It is that of the better half of the configurations, which optimisers have to tell apart;
    bad ones, such as networks that diverge, vary much more.

    Args:
        losses: Losses of n configurations, means over seeds, (n, T).
        spread: Standard deviations over seeds, NaN for configurations with one seed, (n, T).
        averaged: Number of seeds that losses are means over.
    """
    median = np.median(losses, axis=0)
    spread_of_better = np.where(losses <= median, spread, np.nan)
    variance_of_noise = np.nanmean(spread_of_better**2, axis=0) / averaged
    shares: FloatArray = np.sqrt(variance_of_noise) / (median - losses.min(axis=0))
    return shares


def make_comparisons(losses: FloatArray, spread: FloatArray, *, averaged: int) -> dict[str, Any]:
    """Make the comparisons for a card: each an explanation in words, and its numbers.

    "noise" says how much folds and seeds matter, "default" what tuning gains over the learner's
    default, "portfolio" how good the best configuration of the other data sets is, and
    "correlation" how alike data sets rank configurations.

    Args:
        losses: Losses of n configurations on T tasks, (n, T).
        spread: Standard deviations over seeds, NaN for configurations with one seed, (n, T).
        averaged: Number of seeds that losses are means over.
    """
    noise = compute_noise_shares(losses, spread, averaged=averaged)
    default = compute_regrets(losses)[0]  # the first configuration is the default
    portfolio = compute_portfolio_regrets(losses)
    pairs = combinations(losses.T, 2)
    correlations = [float(rank_correlation(one[:, None], two[:, None])[0]) for one, two in pairs]
    return {
        "noise": {
            "explanation": "the standard deviation over folds and seeds, in the better half of the "
            f"configurations, is {np.median(noise):.2f} of the distance from the median to the "
            f"best, at most {noise.max():.2f} (median and largest over tasks)",
            "shares": noise.tolist(),
        },
        "default": {
            "explanation": f"the learner's default leaves {np.median(default):.2f} of the distance "
            "from the median to the best of the random configurations (median over tasks), and is "
            f"better than the median on {np.sum(default < 1)} of {len(default)} tasks",
            "shares": default.tolist(),
        },
        "portfolio": {
            "explanation": "the configuration that is best on average on the other tasks leaves "
            f"{np.median(portfolio):.2f} of that distance (median over tasks)",
            "shares": portfolio.tolist(),
        },
        "correlation": {
            "explanation": f"mean rank correlation of two tasks {np.mean(correlations):.2f}, "
            f"{np.min(correlations):.2f} to {np.max(correlations):.2f}",
            "mean": float(np.mean(correlations)),
        },
    }
