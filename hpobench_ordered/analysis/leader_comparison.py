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
at most; `docs/experiments/leader_errors.py` measures it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.analysis.benchmark_group import BenchmarkGroup, family_means
from hpobench_ordered.analysis.bootstrap import MIN_SAMPLES_OF_INTERVAL
from hpobench_ordered.analysis.samples import defined_tasks, finished_runs, mean_over_seeds
from hpobench_ordered.analysis.scoring import BenchmarkScores

if TYPE_CHECKING:
    import pandas as pd

ALPHA = 0.05
"""Level of the test, for all methods together."""

MIN_SAMPLES = 8
"""Of five seeds on one task, one in nine leaders of three equal methods was called better."""

RESAMPLES = 1999
RESAMPLING_SEED = 0  # so that the same results give the same verdicts


@dataclass(frozen=True, slots=True)
class LeaderComparison:
    """Differences of all methods from the leader in mean rank, (methods,) each.

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
    mean_ranks: FloatArray,
    strata: Sequence[FloatArray],
    borrowed_variances: FloatArray | None = None,
) -> LeaderComparison | None:
    """Compare every method with the leader, the one of lowest mean rank.

    Methods are tested one by one, the least likely to be as good first, and the test ends at the
    first one that is not significantly worse. The limit of a step is how far a method is behind
    the leader by chance, if all remaining methods are equally good.

    Args:
        mean_ranks: Mean ranks, (methods,).
        strata: Influences of the samples of each stratum on the mean ranks, (samples, methods), as
            `influences` gives: how much of a mean rank's deviation is due to each sample.
        borrowed_variances: Further variances of the mean ranks, (methods,), due to seeds of methods
            with too few of them to be samples, see `borrow_variances`; default: none.

    Returns:
        The comparison; None with a single method, with fewer than `MIN_SAMPLES` samples, or if no
        difference varies between samples, so that there is no error.
    """
    if len(mean_ranks) < 2:
        return None
    # A single sample tells nothing of how much samples vary, so it does not count.
    n_samples = sum(len(stratum) for stratum in strata if len(stratum) > 1)
    if n_samples < MIN_SAMPLES:
        return None
    if borrowed_variances is None:
        borrowed_variances = np.zeros(len(mean_ranks))
    all_influences = np.concatenate(strata)  # (samples, methods)
    errors = _errors_of_differences(all_influences, borrowed_variances)  # (methods, methods)
    if not errors.any() or not all_influences.any():
        return None
    # Deviations of the mean ranks, (resamples, methods)
    deviations = _draw_chance_deviations(strata, borrowed_variances)

    leader = int(mean_ranks.argmin())
    difference = mean_ranks - mean_ranks[leader]
    error = errors[leader]
    ratio = difference / error

    is_worse, limits = _test_step_by_step(ratio, leader, deviations, errors)
    return LeaderComparison(
        leader=leader,
        difference=difference,
        lower=difference - limits * error,
        upper=difference + limits * error,
        is_worse=is_worse,
    )


def _test_step_by_step(
    ratio: FloatArray, leader: int, deviations: FloatArray, errors: FloatArray
) -> tuple[BoolArray, FloatArray]:
    """Test which methods are worse than the leader, in the order of falling ratios.

    Each method is tested against a limit, the largest ratio that is expected by chance among the
    leader and the methods that have not been found worse. The test ends at the first method whose
    ratio is within its limit: this method and all after it are not found worse.

    Args:
        ratio: Differences from the leader, divided by their standard errors, (methods,).
        leader: Index of the leader, which is not tested itself.
        deviations: Deviations of the mean ranks in resamples, (resamples, methods).
        errors: Standard errors of the differences of methods, (methods, methods).

    Returns:
        Which methods are worse, (methods,), and the limit that each method was compared with,
        (methods,). Methods after the end of the test get its last limit; the leader has a limit
        of 0.
    """
    is_worse = np.zeros(len(ratio), dtype=np.bool_)
    limits = np.zeros(len(ratio))
    remaining = np.ones(len(ratio), dtype=np.bool_)  # the leader and all not yet found worse
    untested = [int(a) for a in np.argsort(-ratio, kind="stable") if a != leader]
    while untested:
        limit = _largest_ratio_by_chance(deviations[:, remaining], errors[remaining][:, remaining])
        limits[untested] = limit  # later steps replace the limits of the methods that they test
        method = untested.pop(0)
        if ratio[method] <= limit:  # neither this method nor those after it are worse
            break
        is_worse[method] = True
        remaining[method] = False
    return is_worse, limits


def leader_differences(group: BenchmarkGroup, *, trial: int | None = None) -> "pd.DataFrame":
    """Compute how far all methods are behind the leader in mean rank, on these benchmarks.

    Args:
        group: The benchmarks.
        trial: The trial, counted from 1; default: the last of all benchmarks.

    Returns:
        A row for each method but the leader and each family of benchmarks, methods by mean rank.
        The columns are `leader`, `method`, `family` and the `difference` on the family. The other
        columns are the same in all rows of a method: its `mean_difference`, with the interval from
        `low` to `high`, and whether it `is_worse`. There are no rows if nothing can be tested, see
        `compare_with_leader`.
    """
    import pandas as pd

    columns = ["leader", "method", "family", "difference"]
    columns += ["mean_difference", "low", "high", "is_worse"]
    trial = trial or group.last_trial
    ranks = group.by_family("rank", trial)  # (families, methods)
    mean_ranks = ranks.mean(axis=0)
    comparison = None
    if len(group.methods) > 1:
        comparison = compare_with_leader(mean_ranks, *seed_and_task_influences(group, trial))
    if comparison is None:
        return pd.DataFrame(columns=columns)

    leader = comparison.leader
    differences = ranks - ranks[:, [leader]]
    rows: list[tuple[object, ...]] = []
    for a in np.argsort(mean_ranks, kind="stable"):
        if a == leader:
            continue
        # The difference over all families, the same in each row of the method.
        overall_comparison = (
            comparison.difference[a],
            comparison.lower[a],
            comparison.upper[a],
            bool(comparison.is_worse[a]),
        )
        for family, difference in zip(group.families, differences[:, a], strict=True):
            labels = (group.methods[leader], group.methods[a], family)
            rows.append((*labels, difference, *overall_comparison))
    return pd.DataFrame(rows, columns=columns)


def influences(samples: FloatArray, weight: float) -> FloatArray:
    """Compute how each sample of one stratum moves the mean ranks, (samples, methods).

    A stratum is a group of samples, such as the seeds of a benchmark, whose mean is a part of the
    mean rank: it enters with a weight. The variance of a mean of n samples is the sum of their
    squared deviations, divided by n (n - 1). The influence of a sample is therefore
    weight * (sample - mean) / sqrt(n (n - 1)): the squared influences of all samples then sum to
    the variance of the stratum's part of the mean rank.

    Args:
        samples: Ranks, (samples, methods). NaN where a method lacks a sample, which then has no
            influence on the method.
        weight: Weight of the stratum's mean in the mean rank.
    """
    n_samples = (~np.isnan(samples)).sum(axis=0)  # n of each method, (methods,)
    deviations = np.nan_to_num(samples - mean_over_seeds(samples, axis=0))  # NaN becomes 0
    divisor = np.sqrt(n_samples * (n_samples - 1))
    # A single sample deviates by 0 from its mean: any divisor other than 0 gives no influence.
    return np.asarray(weight * deviations / np.maximum(divisor, 1))


def seed_and_task_influences(
    group: BenchmarkGroup, trial: int
) -> tuple[list[FloatArray], FloatArray]:
    """Compute how the seeds and the tasks of each benchmark move the mean ranks.

    With these influences, the test answers whether other seeds and other tasks of the same
    benchmarks would give another order of the methods.

    Returns:
        Two arrays of influences for each benchmark, those of its seeds, (seeds, methods), and those
        of its tasks, (tasks, methods); and the borrowed variances of the mean ranks, (methods,),
        which stand for the seeds of methods that have too few of them on some benchmark.
    """
    strata: list[FloatArray] = []
    borrowed_variances = np.zeros(len(group.methods))
    for item in group.items:
        ranks = group.values(item, "rank", trial)  # (methods, seeds, tasks)
        weight = _weight_in_mean_over_families(item, group)
        influences_of_item, variances_of_item = benchmark_influences(ranks, weight)
        strata += influences_of_item
        borrowed_variances += variances_of_item
    return strata, borrowed_variances


def benchmark_influences(ranks: FloatArray, weight: float) -> tuple[list[FloatArray], FloatArray]:
    """Compute how the seeds and the tasks of one benchmark move the mean ranks.

    The mean rank of a method over all benchmarks deviates by chance. The influence of a seed is the
    part of this deviation that is due to the ranks with this seed; so is that of a task. A run is
    one seed on one task, and is counted in both. The sum of all variances is therefore rather too
    large than too small.

    A method with too few seeds cannot show how much its ranks vary from seed to seed. The
    influences of its seeds are 0. In their place it has a borrowed variance, which is estimated
    from the seeds of the other methods.

    Args:
        ranks: Ranks, (methods, seeds, tasks), as `ranks_by_seed` gives.
        weight: Weight of the benchmark in the mean ranks over all benchmarks, from 0 to 1.

    Returns:
        A list of the influences of the seeds, (seeds, methods), and of the tasks, (tasks, methods);
        and the borrowed variances, (methods,), which are 0 for methods with enough seeds.
    """
    defined_ranks = ranks[:, :, defined_tasks(ranks)]
    # `ranks_by_seed` may leave a seed without ranks of any method.
    is_ranked_seed = finished_runs(defined_ranks).any(axis=0)
    if not is_ranked_seed.all():
        defined_ranks = defined_ranks[:, is_ranked_seed]
    means_of_seeds = defined_ranks.mean(axis=2).T  # mean ranks over tasks, (seeds, methods)
    means_of_tasks = mean_over_seeds(defined_ranks).T  # mean ranks over seeds, (tasks, methods)
    influences_of_seeds = influences(means_of_seeds, weight)
    influences_of_tasks = influences(means_of_tasks, weight)

    has_too_few = has_too_few_seeds(means_of_seeds)
    influences_of_seeds[:, has_too_few] = 0
    borrowed_variances = borrow_variances(means_of_seeds, has_too_few, weight)
    return [influences_of_seeds, influences_of_tasks], borrowed_variances


def has_too_few_seeds(means_of_seeds: FloatArray) -> BoolArray:
    """Find the methods with too few seeds to estimate a variance over seeds, (methods,).

    A method has too few if it has fewer than `MIN_SAMPLES_OF_INTERVAL` seeds and also fewer than
    another method.

    Args:
        means_of_seeds: Mean ranks over tasks, (seeds, methods); NaN where a method lacks a seed.
    """
    n_seeds = (~np.isnan(means_of_seeds)).sum(axis=0)
    return np.asarray(n_seeds < min(MIN_SAMPLES_OF_INTERVAL, n_seeds.max()))


def borrow_variances(
    means_of_seeds: FloatArray, has_too_few: BoolArray, weight: float
) -> FloatArray:
    """Estimate variances over seeds for methods that have too few of them, (methods,).

    Few seeds do not tell how much the rank of a method varies from seed to seed. The rank is
    therefore assumed to vary as much as the ranks of the other methods do on average.

    Args:
        means_of_seeds: Mean ranks over tasks, (seeds, methods); NaN where a method lacks a seed.
        has_too_few: Which methods have too few seeds, (methods,); the others have a variance of 0.
        weight: Weight of the benchmark in the mean ranks.
    """
    variances = np.zeros(len(has_too_few))
    if not has_too_few.any():
        return variances

    has_enough = ~has_too_few
    n_seeds = effective_seeds(means_of_seeds)
    # The variance of a method's mean over n seeds is the sum of its squared influences. That of a
    # single seed is n times as large; its average over methods is the variance to borrow.
    influences_of_others = influences(means_of_seeds[:, has_enough], weight)
    variances_of_means = (influences_of_others**2).sum(axis=0)
    variance_of_seed = (variances_of_means * n_seeds[has_enough]).mean()
    # The mean over few seeds varies as a single seed does, divided by their number.
    variances[has_too_few] = variance_of_seed / n_seeds[has_too_few]
    return variances


def effective_seeds(means_of_seeds: FloatArray) -> FloatArray:
    """Compute by how many seeds of equal weight each method's mean rank is determined, (methods,).

    The mean rank of a method is 1 plus, for each other method, the share of their common seeds on
    which the other is better. A seed therefore has a weight in the mean rank: the sum of
    1 / (number of common seeds) over the other methods that have finished the seed. The result is
    the effective sample size of these weights, (sum of weights)^2 / (sum of squared weights). The
    weights of a method sum to the number of other methods. If all methods have the same n seeds,
    all weights are equal, and the result is n.

    Args:
        means_of_seeds: Mean ranks over tasks, (seeds, methods); NaN where a method lacks a seed.
    """
    has_seed = (~np.isnan(means_of_seeds)).astype(np.float64)
    n_common = has_seed.T @ has_seed  # (methods, methods)
    weight_of_common_seed = 1 / np.maximum(n_common, 1)  # of each pair of methods
    np.fill_diagonal(weight_of_common_seed, 0)  # a method is not compared with itself
    weights = has_seed * (has_seed @ weight_of_common_seed)  # (seeds, methods)
    sum_of_squares = (weights**2).sum(axis=0)
    n_others = has_seed.shape[1] - 1
    # A method without common seeds counts as one with a single seed.
    sum_of_squares = np.where(sum_of_squares > 0, sum_of_squares, n_others**2)
    return np.asarray(n_others**2 / sum_of_squares)


def family_influences(group: BenchmarkGroup, trial: int) -> list[FloatArray]:
    """Compute how each family of benchmarks moves the mean ranks.

    The families are samples of benchmarks in general. They are the only stratum, and the mean rank
    is the mean over them, so that its weight is 1.

    Returns:
        A list with one array, (families, methods).
    """
    ranks_on_families = group.by_family("rank", trial)
    return [influences(ranks_on_families, 1.0)]


def _weight_in_mean_over_families(weighed_item: BenchmarkScores, group: BenchmarkGroup) -> float:
    """Compute the weight of one item of a group in a mean over the group's families.

    An item is one benchmark on one surrogate. A mean averages the items of a benchmark first, then
    the benchmarks of a family, and then the families. It is a weighted sum over the items. If the
    item has the value 1 and all others have the value 0, the mean is therefore the item's weight.
    """
    values = []
    for item in group.items:
        value = 1.0 if item is weighed_item else 0.0
        values.append((item, np.array(value)))
    return float(family_means(values).mean())


def _errors_of_differences(
    all_influences: FloatArray, borrowed_variances: FloatArray
) -> FloatArray:
    """Compute standard errors of differences in mean rank, (methods, methods).

    The variance of a difference is the sum over samples of squared differences of influences. Each
    variance is estimated from few samples. Of the many variances, some are therefore far too small
    by chance, and pairs of methods with such a variance would seem to differ. To prevent this, each
    variance is averaged with the mean variance of all pairs.

    Args:
        all_influences: Influence of each sample on each mean rank, (samples, methods): how much of
            the mean rank's deviation is due to the sample.
        borrowed_variances: Further variances of the mean ranks, (methods,), each independent of the
            others.
    """
    n_methods = all_influences.shape[1]
    variances = np.empty((n_methods, n_methods))
    for method, method_influences in enumerate(all_influences.T):
        differences = all_influences - method_influences[:, None]
        variances[method] = (differences**2).sum(axis=0)
    # Borrowed variances are independent, so that those of both methods of a pair add up.
    borrowed_of_pairs = borrowed_variances[:, None] + borrowed_variances
    np.fill_diagonal(borrowed_of_pairs, 0)  # a method does not differ from itself
    variances += borrowed_of_pairs

    pairs = np.triu_indices(n_methods, k=1)
    common_variance = variances[pairs].mean()
    return np.asarray(np.sqrt((variances + common_variance) / 2))


def _draw_chance_deviations(
    strata: Sequence[FloatArray], borrowed_variances: FloatArray
) -> FloatArray:
    """Draw how far mean ranks deviate by chance, by the bootstrap, (resamples, methods).

    Each stratum, such as the seeds of a benchmark, is a group of samples that is resampled by
    itself: as many samples as it has are drawn with replacement. A mean rank then deviates by the
    sum of the influences of the samples drawn, as an influence is what one sample adds to it.

    Args:
        strata: Influences of the samples of each stratum on the mean ranks, (samples, methods).
        borrowed_variances: Further variances of the mean ranks, (methods,). They have no samples to
            draw from, so that normal deviations of these variances are added.
    """
    rng = np.random.default_rng(RESAMPLING_SEED)
    n_methods = strata[0].shape[1]
    deviations = np.zeros((RESAMPLES, n_methods))
    for influences_of_samples in strata:
        n_samples = len(influences_of_samples)
        equal_probabilities = np.full(n_samples, 1 / n_samples)
        times_drawn = rng.multinomial(n_samples, equal_probabilities, size=RESAMPLES)
        deviations += times_drawn @ influences_of_samples
    if borrowed_variances.any():
        deviations += rng.normal(size=deviations.shape) * np.sqrt(borrowed_variances)

    # Deviations are later divided by standard errors, which are only estimates. Such a ratio has
    # heavier tails, as in Student's t: a normal variable over the root of chi-squared / f.
    degrees_of_freedom = _degrees_of_freedom(strata)
    chi_squared = rng.chisquare(degrees_of_freedom, size=(RESAMPLES, 1))
    estimated_over_true_error = np.sqrt(chi_squared / degrees_of_freedom)
    return np.asarray(deviations / estimated_over_true_error)


def _degrees_of_freedom(strata: Sequence[FloatArray]) -> float:
    """Compute the degrees of freedom of the summed variances, as Satterthwaite (1946) does.

    The formula is (sum of v)^2 / (sum of v^2 / (n - 1)), where the sums are over strata, n is the
    number of samples of a stratum, and v is its variance: its sum of squared influences, averaged
    over methods.

    Args:
        strata: Influences of the samples of each stratum on the mean ranks, (samples, methods).
    """
    variances = []
    squares_over_freedom = []
    for influences_of_samples in strata:
        squares = influences_of_samples**2
        variance = float(squares.mean(axis=1).sum())
        if variance > 0:  # a stratum of one sample has no variance, and n - 1 would be 0
            variances.append(variance)
            squares_over_freedom.append(variance**2 / (len(influences_of_samples) - 1))
    return sum(variances) ** 2 / sum(squares_over_freedom)


def _largest_ratio_by_chance(deviations: FloatArray, errors: FloatArray) -> float:
    """Compute the ratio that the largest ratio of a resample rarely exceeds by chance.

    The ratio of a method is how far it is behind the leader, divided by the standard error of this
    difference. Each resample has its own leader, the method of lowest rank in it, as the leader of
    the results was chosen in the same way. The result is exceeded in a share `ALPHA` (5 %) of the
    resamples.

    Args:
        deviations: Deviations of the mean ranks in resamples, (resamples, methods).
        errors: Standard errors of the differences of methods, (methods, methods).
    """
    leaders = deviations.argmin(axis=1)  # index of the method of lowest rank, (resamples,)
    behind_leaders = deviations - deviations.min(axis=1, keepdims=True)  # (resamples, methods)
    errors_to_leaders = errors[leaders]  # (resamples, methods)
    largest_ratios = (behind_leaders / errors_to_leaders).max(axis=1)
    return float(np.quantile(largest_ratios, 1 - ALPHA))
