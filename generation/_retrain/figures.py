"""Figures on the card of a stream: regret of copying, correlation by lag, noise.

Notation:
    n   configurations
    T   tasks, in the order of time
    S   seeds
    m   configurations that were trained with every seed
"""

from collections.abc import Mapping
from itertools import permutations
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.copying import copying_regrets
from hpobench_ordered.core.objective import Direction
from hpobench_ordered.surrogates.card import rank_correlation, upper_half_correlation

LAGS = (1, 2, 5, 10)
NEAR = 0.1
"""Smallest shares of configurations within noise of the best, and of such tasks, for a limit."""


def correlation_by_lag(losses: FloatArray) -> dict[int, float]:
    """Mean rank correlation of the losses, (n, T), of tasks at each lag."""
    tasks = losses.shape[1]
    return {
        lag: float(np.nanmean(rank_correlation(losses[:, :-lag], losses[:, lag:])))
        for lag in LAGS
        if lag < tasks
    }


def noise(repeated: FloatArray, *, averaged: int = 1) -> float:
    """Share of the variance of losses, (S, m, T), within a task that is due to the seed.

    The variance over seeds, averaged over configurations, relative to its sum with the variance of
    the configurations' means (corrected for the seeds' share in these); averaged over tasks. Values
    are means of `averaged` seeds.
    """
    seeds = len(repeated)
    within = repeated.var(axis=0, ddof=1).mean(axis=0)
    between = np.maximum(repeated.mean(axis=0).var(axis=0, ddof=1) - within / seeds, 0.0)
    within /= averaged
    total = within + between
    shares = within[total > 0] / total[total > 0]
    return float(shares.mean()) if len(shares) else 0.0


def agreement(repeated: FloatArray) -> tuple[float, float]:
    """Mean rank correlation of two seeds: all configurations, and the better half of the first."""
    pairs = list(permutations(repeated, 2))
    everywhere = [rank_correlation(one, other) for one, other in pairs]
    better = [upper_half_correlation(*pair, direction=Direction.MINIMIZE) for pair in pairs]
    return float(np.nanmean(everywhere)), float(np.nanmean(better))


def within_noise(smooth: FloatArray, repeated: FloatArray, *, averaged: int = 1) -> FloatArray:
    """Share of configurations, (T,), within two standard deviations of the best.

    `smooth`, (n, T), are losses on the forest, without the effect of the seed; the standard
    deviation is that of means of `averaged` seeds, in the better half of `repeated`, (S, m, T).
    """
    means = repeated.mean(axis=0)
    variances = np.where(means <= np.median(means, axis=0), repeated.var(axis=0, ddof=1), np.nan)
    deviation = np.sqrt(np.nanmean(variances, axis=0) / averaged)
    shares: FloatArray = (smooth <= smooth.min(axis=0) + 2 * deviation).mean(axis=0)
    return shares


def comparisons(
    losses: FloatArray, smooth: FloatArray, repeated: FloatArray | None, *, averaged: int = 1
) -> dict[str, Any]:
    """The comparisons on a card.

    Of losses of the trainings, (n, T), `smooth` ones on the forest, (n, T), and `repeated` ones of
    every seed, if any, (S, m, T); a loss is the mean of `averaged` seeds.
    """
    shares, on_forest = copying_regrets(losses), copying_regrets(smooth)
    median, forest_median = _median(shares), _median(on_forest)
    lags = correlation_by_lag(losses)
    spoken = ", ".join(f"{lag}: {value:.2f}" for lag, value in lags.items())
    compared: dict[str, Any] = {
        "copying": {
            "explanation": f"the configuration that was best on the task before leaves {median:.2f}"
            f" of the distance from the median to the best in trainings, {forest_median:.2f} on the"
            f" forest (medians over tasks); mean rank correlation by lag {spoken}",
            "median_share": median,
            "median_share_on_forest": forest_median,
            "shares": shares.tolist(),
            "rank_correlation": {str(lag): value for lag, value in lags.items()},
        }
    }
    if repeated is not None and len(repeated) > 1 and repeated.shape[1] > 3:
        compared["other seeds"] = _of_seeds(smooth, repeated, averaged)
    return compared


def flatness(compared: Mapping[str, Any]) -> tuple[str, ...]:
    """A limit for the card if on many tasks the best configurations differ only by noise."""
    flat = compared.get("other seeds", {}).get("tasks_within_noise", 0.0)
    if flat <= NEAR:
        return ()
    return (
        f"On {100 * flat:.0f} % of tasks more than a tenth of configurations are within two "
        "standard deviations of the seed of the best: which of them is better is uncertain.",
    )


def _of_seeds(smooth: FloatArray, repeated: FloatArray, averaged: int) -> dict[str, Any]:
    once, share = noise(repeated), noise(repeated, averaged=averaged)
    everywhere, better = agreement(repeated)
    near = within_noise(smooth, repeated, averaged=averaged)
    plateaus = float(np.mean(near > NEAR))
    means = f", {100 * share:.1f} % of that of means of {averaged}" if averaged > 1 else ""
    return {
        "explanation": f"{repeated.shape[1]} configurations trained with {len(repeated)} seeds: "
        f"{100 * once:.1f} % of the variance of a task is due to the seed{means}; two seeds "
        f"rank alike at {everywhere:.2f}, in the better half at {better:.2f}; on "
        f"{100 * plateaus:.0f} % of tasks more than a tenth of configurations lie within two "
        "standard deviations of the best",
        "share_of_variance": share,
        "rank_correlation": everywhere,
        "rank_correlation_in_better_half": better,
        "tasks_within_noise": plateaus,
    }


def _median(shares: FloatArray) -> float:
    return float(np.nanmedian(shares)) if np.isfinite(shares).any() else 0.0
