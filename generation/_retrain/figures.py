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
from hpobench_ordered.data.objective import Direction
from hpobench_ordered.surrogates.card import rank_correlation, upper_half_correlation

LAGS = (1, 2, 5, 10)
SHARE_OF_FLAT_TASK = 0.1
"""A task with a larger share of configurations within noise of the best is flat."""
MENTIONED_SHARE_OF_TASKS = 0.1
"""A benchmark with a larger share of flat tasks says so on its card."""


def compute_correlation_by_lag(losses: FloatArray) -> dict[int, float]:
    """Compute how similarly tasks rank configurations that are 1, 2, 5 and 10 tasks apart.

    Args:
        losses: Losses of n configurations on T tasks, in the order of time, (n, T).

    Returns:
        The mean rank correlation over all pairs of tasks that are a lag apart, by lag. Lags for
        which there are too few tasks are left out.
    """
    number_of_tasks = losses.shape[1]
    correlation_of_lag = {}
    for lag in LAGS:
        if lag < number_of_tasks:
            earlier = losses[:, :-lag]
            later = losses[:, lag:]
            correlations = rank_correlation(earlier, later)
            # They are NaN where all configurations of a task have the same loss.
            correlation_of_lag[lag] = float(np.nanmean(correlations))
    return correlation_of_lag


def compute_noise_share(repeated: FloatArray, *, averaged: int = 1) -> float:
    """Compute which share of a task's variance of losses is due to the seed, averaged over tasks.

    The rest of the variance is due to the configurations.

    Args:
        repeated: Losses of m configurations on T tasks, trained with each of S seeds, (S, m, T).
        averaged: Each value of the benchmark is the mean over this many seeds, which divides the
            variance due to the seed.
    """
    number_of_seeds = len(repeated)
    means_over_seeds = repeated.mean(axis=0)  # (m, T)
    variance_of_means = means_over_seeds.var(axis=0, ddof=1)  # over configurations, (T,)
    variance_of_seeds = repeated.var(axis=0, ddof=1).mean(axis=0)  # mean over configurations, (T,)

    # A mean over S seeds still varies by the seeds, with 1 / S of their variance.
    variance_of_configs = np.maximum(variance_of_means - variance_of_seeds / number_of_seeds, 0.0)

    # Values of the benchmark are means over `averaged` seeds, so the seed moves them less.
    variance_in_values = variance_of_seeds / averaged
    total = variance_in_values + variance_of_configs
    has_variance = total > 0
    if not has_variance.any():
        return 0.0
    shares = variance_in_values[has_variance] / total[has_variance]
    return float(shares.mean())


def compute_agreement(repeated: FloatArray) -> tuple[float, float]:
    """Compute how similarly two seeds rank configurations.

    Args:
        repeated: Losses of m configurations on T tasks, trained with each of S seeds, (S, m, T).

    Returns:
        The rank correlation of all configurations, and that of the half that is better with the
        first seed of a pair; means over all ordered pairs of seeds and all tasks.
    """
    pairs_of_seeds = list(permutations(repeated, 2))
    # NaN where all configurations of a task have the same loss.
    correlations = [rank_correlation(first, second) for first, second in pairs_of_seeds]
    correlations_in_better_half = [
        upper_half_correlation(first, second, direction=Direction.MINIMIZE)
        for first, second in pairs_of_seeds
    ]
    return float(np.nanmean(correlations)), float(np.nanmean(correlations_in_better_half))


def compute_shares_within_noise(
    smooth: FloatArray, repeated: FloatArray, *, averaged: int = 1
) -> FloatArray:
    """Compute which share of each task's configurations is near the best, (T,).

    Near is within two standard deviations of the best. The standard deviation is the effect of the
    seed on the better half of configurations, as only these compete with the best.

    Args:
        smooth: Losses of n configurations on the forest, (n, T), with hardly any effect of seeds.
        repeated: Losses of m configurations on T tasks, trained with each of S seeds, (S, m, T).
        averaged: Each value of the benchmark is the mean over this many seeds.
    """
    means_over_seeds = repeated.mean(axis=0)  # (m, T)
    is_in_better_half = means_over_seeds <= np.median(means_over_seeds, axis=0)
    variances = repeated.var(axis=0, ddof=1)  # over seeds, (m, T)
    variances_in_better_half = np.where(is_in_better_half, variances, np.nan)
    deviation = np.sqrt(np.nanmean(variances_in_better_half, axis=0) / averaged)  # (T,)

    is_near_best = smooth <= smooth.min(axis=0) + 2 * deviation
    shares: FloatArray = is_near_best.mean(axis=0)
    return shares


def make_comparisons(
    losses: FloatArray, smooth: FloatArray, repeated: FloatArray, *, averaged: int = 1
) -> dict[str, Any]:
    """Make the comparisons for a card: each an explanation in words, and its numbers.

    "copying" tells how well the best configuration of the task before does; "other seeds" tells how
    much of the losses is noise.

    Args:
        losses: Losses of n configurations on T tasks, as trained, (n, T).
        smooth: Losses of the same on the forest, (n, T).
        repeated: Losses of m of them with each of S seeds, (S, m, T).
        averaged: Each loss is the mean over this many seeds.
    """
    # Regret of the configuration that was best on the task before, on each task but the first: its
    # distance from the best loss, as a share of the distance from the best loss to the median.
    regrets = copying_regrets(losses)
    median_regret = _compute_nan_median(regrets)
    median_regret_on_forest = _compute_nan_median(copying_regrets(smooth))
    correlation_of_lag = compute_correlation_by_lag(losses)
    lags_in_words = ", ".join(f"{lag}: {value:.2f}" for lag, value in correlation_of_lag.items())
    return {
        "copying": {
            "explanation": "the configuration that was best on the task before leaves "
            f"{median_regret:.2f} of the distance from the median to the best in trainings, "
            f"{median_regret_on_forest:.2f} on the forest (medians over tasks); mean rank "
            f"correlation by lag {lags_in_words}",
            "median_share": median_regret,
            "median_share_on_forest": median_regret_on_forest,
            "shares": regrets.tolist(),
            "rank_correlation": {str(lag): value for lag, value in correlation_of_lag.items()},
        },
        "other seeds": _compare_seeds(smooth, repeated, averaged),
    }


def describe_flatness(comparisons: Mapping[str, Any]) -> tuple[str, ...]:
    """Describe for the card that many tasks are flat: many configurations are as good as the best.

    The result is empty if at most a tenth of the tasks are flat.

    Args:
        comparisons: What `make_comparisons` returned, by the comparison's name.
    """
    share_of_flat_tasks = comparisons["other seeds"]["tasks_within_noise"]
    if share_of_flat_tasks <= MENTIONED_SHARE_OF_TASKS:
        return ()
    return (
        f"On {100 * share_of_flat_tasks:.0f} % of tasks more than a tenth of configurations are "
        "within two standard deviations of the seed of the best: which of them is better is "
        "uncertain.",
    )


def _compare_seeds(smooth: FloatArray, repeated: FloatArray, averaged: int) -> dict[str, Any]:
    """Compare the losses of different seeds, in words and numbers: how much of them is noise.

    Args:
        smooth: Losses on the forest, which evens out the noise of seeds, (n, T).
        repeated: Losses of m of the configurations with each of S seeds, (S, m, T).
        averaged: Each loss of the benchmark is the mean over this many seeds, so noise is less.
    """
    number_of_seeds, number_of_configs, _ = repeated.shape
    noise_of_one_seed = compute_noise_share(repeated)
    noise_of_means = compute_noise_share(repeated, averaged=averaged)
    correlation, correlation_in_better_half = compute_agreement(repeated)
    shares_near_best = compute_shares_within_noise(smooth, repeated, averaged=averaged)
    # On a flat task, more than a tenth of the configurations are near the best.
    share_of_flat_tasks = float(np.mean(shares_near_best > SHARE_OF_FLAT_TASK))

    trained = f"{number_of_configs} configurations trained with {number_of_seeds} seeds"
    noise = f"{100 * noise_of_one_seed:.1f} % of the variance of a task is due to the seed"
    if averaged > 1:
        noise += f", {100 * noise_of_means:.1f} % of that of means of {averaged}"
    agreement = (
        f"two seeds rank alike at {correlation:.2f}, in the better half at "
        f"{correlation_in_better_half:.2f}"
    )
    flatness = (
        f"on {100 * share_of_flat_tasks:.0f} % of tasks more than a tenth of configurations lie "
        "within two standard deviations of the best"
    )
    return {
        "explanation": f"{trained}: {noise}; {agreement}; {flatness}",
        "share_of_variance": noise_of_means,
        "rank_correlation": correlation,
        "rank_correlation_in_better_half": correlation_in_better_half,
        "tasks_within_noise": share_of_flat_tasks,
    }


def _compute_nan_median(shares: FloatArray) -> float:
    """Return the median of the shares that are not NaN, and 0 if all are NaN."""
    return float(np.nanmedian(shares)) if np.isfinite(shares).any() else 0.0
