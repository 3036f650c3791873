"""Whether the method of lowest mean rank, the leader, is really better than the others.

The leader is chosen by the same ranks that it is compared by, so that it looks better than it is.
The test takes this into account: every resample chooses a leader of its own.

Notation:
    A       number of methods
    J       number of samples, in strata that are resampled separately
    n       number of samples of one stratum
    B       number of resamples
    R[a]    mean rank of method a; the leader L has the lowest
    D[a]    R[a] - R[L], how much better the leader is
    x[j,a]  influence of sample j on R[a]: how much of its deviation is due to that sample,
            sqrt(n / (n - 1)) w[j] (value of the sample - mean of its stratum), with w[j] its weight
            in R[a]; the root makes up for the n - 1 degrees of freedom
    v[a,b]  variance of R[a] - R[b], the sum over j of (x[j,a] - x[j,b])^2
    s[a,b]  standard error of R[a] - R[b], the root of the mean of v[a,b] and of the mean of v over
            all pairs: of many variances of few samples, some are far too small by chance
    e[a]    deviation of R[a] in a resample: the sum over j of x[j,a] times how often j was drawn,
            over a draw of sqrt(chi2_f / f), as in Student's distribution of f degrees of freedom
    f       degrees of freedom of the variances (Satterthwaite 1946)
    K       the leader and the methods not yet found worse

Test, step by step as Holm's (Westfall and Young 1993, algorithm 2.8, the step-down max-T): of the
methods in K, the one of largest D[a] / s[a,L] is worse than the leader if this exceeds the quantile
1 - alpha, over resamples, of the largest (e[a] - e[l]) / s[a,l] over a in K, with l the method of
lowest e in K. If it is worse, it leaves K, and the next one is tested; otherwise the test ends.

With K of all methods, which are equally good, l is as extreme as a leader by chance alone. Hence a
leader is called better than a method that is as good, or better, with a probability of about alpha
at most; `tests/performance/leader_errors.py` measures it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup, family_means
from hpobench_ordered.analysis.samples import defined_tasks, mean_over_seeds
from hpobench_ordered.analysis.significance import ALPHA

if TYPE_CHECKING:
    import pandas as pd

MIN_SAMPLES = 8
"""Of five seeds on one task, one in nine leaders of three equal methods was called better."""

RESAMPLES = 1999
RESAMPLING_SEED = 0  # so that the same results give the same verdicts


@dataclass(frozen=True, slots=True)
class LeaderComparison:
    """Differences of all methods from the leader in mean rank, (A,) each.

    Attributes:
        leader: Index of the leader.
        difference: D, 0 for the leader.
        lower: Lower end of an interval of D, as wide as the step of the test that decided on the
            method: above 0 where the leader is better. 0 for the leader.
        upper: Its upper end.
        is_worse: Whether the leader is significantly better, at a level of 5 % for all together.
    """

    leader: int
    difference: FloatArray
    lower: FloatArray
    upper: FloatArray
    is_worse: BoolArray


def compare_with_leader(
    mean_ranks: FloatArray, strata: Sequence[FloatArray]
) -> LeaderComparison | None:
    """Compare every method with the one of lowest mean rank.

    Args:
        mean_ranks: R, (A,).
        strata: Influences x of the samples of each stratum, (n, A), as `influences` gives.

    Returns:
        The comparison; None with fewer than `MIN_SAMPLES`, or if no difference varies between
        samples, so that there is no error.
    """
    n_samples = sum(len(stratum) for stratum in strata if len(stratum) > 1)
    if n_samples < MIN_SAMPLES:
        return None
    all_influences = np.concatenate(strata)  # x, (J, A)
    errors = _errors_of_differences(all_influences)  # s, (A, A)
    if not errors.any():
        return None
    deviations = _resample(strata)  # e, (B, A)

    leader = int(mean_ranks.argmin())
    difference = mean_ranks - mean_ranks[leader]
    error = errors[leader]
    ratio = difference / error

    is_worse = np.zeros(len(mean_ranks), dtype=np.bool_)
    limits = np.zeros(len(mean_ranks))  # of the ratio, at the step that decided
    remaining = np.ones(len(mean_ranks), dtype=np.bool_)  # K
    others = [int(a) for a in np.argsort(-ratio, kind="stable") if a != leader]
    for place, method in enumerate(others):
        limit = _largest_ratio_by_chance(deviations[:, remaining], errors[remaining][:, remaining])
        if ratio[method] <= limit:
            limits[others[place:]] = limit
            break
        limits[method] = limit
        is_worse[method] = True
        remaining[method] = False

    return LeaderComparison(
        leader=leader,
        difference=difference,
        lower=difference - limits * error,
        upper=difference + limits * error,
        is_worse=is_worse,
    )


def leader_differences(group: BenchmarkGroup, *, trial: int | None = None) -> "pd.DataFrame":
    """Differences of all methods from the leader in mean rank, on these benchmarks.

    Args:
        group: The benchmarks.
        trial: The trial, counted from 1; default: the last of all benchmarks.

    Returns:
        A row per method, except for the leader, and family of benchmarks, by mean rank: `leader`,
        `method`, `family`, the `difference` on the family; and, the same in all rows of a method,
        its `mean_difference` with its interval from `low` to `high`, and whether it `is_worse`.
        Without rows if nothing can be tested, see `compare_with_leader`.
    """
    import pandas as pd

    columns = ["leader", "method", "family", "difference"]
    columns += ["mean_difference", "low", "high", "is_worse"]
    trial = trial or group.last_trial
    ranks = group.by_family("rank", trial)  # (F, A)
    mean_ranks = ranks.mean(axis=0)
    comparison = None
    if len(group.methods) > 1:
        comparison = compare_with_leader(mean_ranks, seed_and_task_influences(group, trial))
    if comparison is None:
        return pd.DataFrame(columns=columns)

    leader = comparison.leader
    differences = ranks - ranks[:, [leader]]
    rows: list[tuple[object, ...]] = []
    for a in np.argsort(mean_ranks, kind="stable"):
        if a == leader:
            continue
        of_method = (
            comparison.difference[a],
            comparison.lower[a],
            comparison.upper[a],
            bool(comparison.is_worse[a]),
        )
        for family, difference in zip(group.families, differences[:, a], strict=True):
            labels = (group.methods[leader], group.methods[a], family)
            rows.append((*labels, difference, *of_method))
    return pd.DataFrame(rows, columns=columns)


def influences(samples: FloatArray, weight: float) -> FloatArray:
    """Influences x of the samples of one stratum on the mean ranks, (n, A).

    They are scaled so that the sum of their squares estimates the variance of the stratum's part
    of the mean rank: `weight` squared times the variance of the mean of n samples, which is the sum
    of squared deviations over n (n - 1).

    Args:
        samples: Ranks, (n, A). NaN where a method lacks a sample, which has no influence on it.
        weight: Weight of the stratum's mean in the mean rank.
    """
    n_samples = (~np.isnan(samples)).sum(axis=0)  # of each method
    deviations = np.nan_to_num(samples - mean_over_seeds(samples, axis=0))
    divisor = np.sqrt(n_samples * (n_samples - 1))
    # A single sample deviates by 0 from its mean; any divisor but 0 does.
    return np.asarray(weight * deviations / np.maximum(divisor, 1))


def seed_and_task_influences(group: BenchmarkGroup, trial: int) -> list[FloatArray]:
    """Influences of the seeds and of the tasks of each benchmark: of these benchmarks alone.

    Seeds and tasks of a benchmark are two strata, whose variances add up. What a seed has on a
    single task alone counts in both, so that errors are rather too large.
    """
    strata = []
    for place, item in enumerate(group.items):
        weight = _family_weight(group, place)
        ranks = group.values(item, "rank", trial)  # (A, S, T)
        ranks = ranks[:, :, defined_tasks(ranks)]
        means_of_seeds = ranks.mean(axis=2).T
        means_of_tasks = mean_over_seeds(ranks).T
        strata.append(influences(means_of_seeds, weight))
        strata.append(influences(means_of_tasks, weight))
    return strata


def family_influences(group: BenchmarkGroup, trial: int) -> list[FloatArray]:
    """Influences of families of benchmarks, which stand for benchmarks in general: one stratum."""
    return [influences(group.by_family("rank", trial), 1.0)]


def _family_weight(group: BenchmarkGroup, place: int) -> float:
    """Weight of one benchmark on one surrogate in means over families, by its place."""
    is_item = [(item, np.array(float(k == place))) for k, item in enumerate(group.items)]
    return float(family_means(is_item).mean())


def _errors_of_differences(all_influences: FloatArray) -> FloatArray:
    """Standard errors s of the differences of all pairs of methods, (A, A), from x, (J, A).

    The variance of a pair is averaged with the mean variance of all pairs: of the many variances,
    each of few samples, some are far too small by chance, and their pairs would seem to differ.
    """
    n_methods = all_influences.shape[1]
    variances = np.empty((n_methods, n_methods))  # v
    for method, of_method in enumerate(all_influences.T):
        differences = all_influences - of_method[:, None]
        variances[method] = (differences**2).sum(axis=0)

    pairs = np.triu_indices(n_methods, k=1)
    common_variance = variances[pairs].mean()
    return np.asarray(np.sqrt((variances + common_variance) / 2))


def _resample(strata: Sequence[FloatArray]) -> FloatArray:
    """Deviations e of the mean ranks, (B, A), in resamples within each stratum."""
    rng = np.random.default_rng(RESAMPLING_SEED)
    deviations = np.zeros((RESAMPLES, strata[0].shape[1]))
    for stratum in strata:
        n_samples = len(stratum)
        equal_probabilities = np.full(n_samples, 1 / n_samples)
        times_drawn = rng.multinomial(n_samples, equal_probabilities, size=RESAMPLES)
        deviations += times_drawn @ stratum

    degrees_of_freedom = _degrees_of_freedom(strata)  # f
    chi_squared = rng.chisquare(degrees_of_freedom, size=(RESAMPLES, 1))
    return np.asarray(deviations / np.sqrt(chi_squared / degrees_of_freedom))


def _degrees_of_freedom(strata: Sequence[FloatArray]) -> float:
    """Degrees of freedom f of the sum of the strata's variances, which are means over methods."""
    variances = []
    weighted_squares = []
    for stratum in strata:
        variance = float((stratum**2).mean(axis=1).sum())
        if variance > 0:  # a stratum of one sample has none
            variances.append(variance)
            weighted_squares.append(variance**2 / (len(stratum) - 1))
    return sum(variances) ** 2 / sum(weighted_squares)


def _largest_ratio_by_chance(deviations: FloatArray, errors: FloatArray) -> float:
    """Quantile 1 - alpha of the largest ratio of a method to the leader of a resample.

    Args:
        deviations: e of the methods in K, (B, methods).
        errors: s of their differences, (methods, methods).
    """
    leaders = deviations.argmin(axis=1)  # l, (B,)
    behind_leaders = deviations - deviations.min(axis=1, keepdims=True)
    largest_ratios = (behind_leaders / errors[leaders]).max(axis=1)
    return float(np.quantile(largest_ratios, 1 - ALPHA))
