"""What a card says of a stream of tasks: how far copying gets, correlation by lag, noise.

Notation:
    n   configurations
    T   tasks, in the order of time
    S   seeds
    m   configurations that were trained with every seed
"""

from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.copying import copying
from hpobench_ordered.surrogates.card import rank_correlation

LAGS = (1, 2, 5, 10)


def correlation_by_lag(losses: FloatArray) -> dict[int, float]:
    """Mean rank correlation of tasks that lie so many apart, of losses (n, T)."""
    tasks = losses.shape[1]
    return {
        lag: float(np.nanmean(rank_correlation(losses[:, :-lag], losses[:, lag:])))
        for lag in LAGS
        if lag < tasks
    }


def noise(repeated: FloatArray) -> float:
    """Share of the variance within a task that is due to the seed, of losses (S, m, T).

    The variance over seeds, averaged over configurations, over that plus the variance of the means
    of configurations (corrected for what the seeds leave in the means); averaged over tasks.
    """
    seeds = len(repeated)
    within = repeated.var(axis=0, ddof=1).mean(axis=0)
    between = np.maximum(repeated.mean(axis=0).var(axis=0, ddof=1) - within / seeds, 0.0)
    total = within + between
    shares = within[total > 0] / total[total > 0]
    return float(shares.mean()) if len(shares) else 0.0


def comparisons(losses: FloatArray, repeated: FloatArray | None) -> dict[str, Any]:
    """What a card compares with: losses (n, T) and, if there are any, repetitions (S, m, T)."""
    shares = copying(losses)
    median = float(np.nanmedian(shares)) if np.isfinite(shares).any() else 0.0
    lags = correlation_by_lag(losses)
    spoken = ", ".join(f"{lag}: {value:.2f}" for lag, value in lags.items())
    compared: dict[str, Any] = {
        "copying": {
            "explanation": f"the configuration that was best on the task before leaves {median:.2f}"
            " of the distance from the median to the best (median over tasks); mean rank "
            f"correlation by lag {spoken}",
            "median_share": median,
            "shares": shares.tolist(),
            "rank_correlation": {str(lag): value for lag, value in lags.items()},
        }
    }
    if repeated is not None and len(repeated) > 1 and repeated.shape[1] > 1:
        share = noise(repeated)
        compared["other seeds"] = {
            "explanation": f"{repeated.shape[1]} configurations trained with {len(repeated)} "
            f"seeds: {100 * share:.1f} % of the variance of a task is due to the seed",
            "share_of_variance": share,
        }
    return compared
