"""Whether methods differ: tests over benchmarks or tasks, critical and significant differences.

Notation:
    A      number of methods
    n      number of samples (blocks): benchmarks, tasks or seeds
    P      number of hypotheses tested together: A (A - 1) / 2 pairs
    alpha  level of a test

    r[i, a]  rank of method a in sample i: 1 is lowest, ties share their mean rank
    R[a]     mean rank over samples
    p[k]     p value of hypothesis k in ascending order, k = 1 ... P
    q        quantile 1 - alpha of the studentised range of A, with infinite degrees of freedom,
             over sqrt(2)

    Friedman   chi2 = n^2 (A - 1) sum over a of (R[a] - (A + 1) / 2)^2
                      / sum over i and a of (r[i, a] - (A + 1) / 2)^2
               which corrects for ties; without any it is Demsar's formula
    Holm       adjusted p[k] = max over j <= k of min(1, (P - j + 1) p[j])
    Nemenyi    CD = q sqrt(A (A + 1) / (6 n)), the critical difference
    Fisher     LSD = t sqrt(2 s^2 / n), the least significant difference of means, with s^2 the
               variance of the residuals after the means of methods and of samples, of
               f = (A - 1)(n - 1) degrees of freedom, and t Student's quantile 1 - alpha of f

Two methods differ by Nemenyi's test where |R[a] - R[b]| >= CD, if Friedman's test rejects that all
methods are equal, and by Wilcoxon's where the p value
adjusted by Holm's procedure is at most alpha. CD is made for a single ranking per sample. The mean
rank of the leaderboard is a mean over seeds and tasks within each sample and varies less, so
Nemenyi's test is conservative for it.

Sources: Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7,
sections 3.1.3 and 3.2.2; Holm (1979), A simple sequentially rejective multiple test procedure;
Benavoli et al. (2016), Should we really use post-hoc tests based on mean-ranks?, JMLR 17; Fisher
(1935), The design of experiments, section 24.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.analysis.scores import rank_over_methods
from hpobench_ordered.errors import ExperimentError

ALPHA = 0.05  # level of every test
MAX_SAMPLES_OF_EXACT_TEST = 50  # up to which scipy's p values are exact where there are no ties


class PostHoc(Enum):
    """Test that decides which methods differ."""

    NEMENYI = "nemenyi"
    """By the mean ranks, which depend on the other methods compared."""
    WILCOXON_HOLM = "wilcoxon-holm"
    """By Wilcoxon's signed-rank test of each pair, with Holm's correction."""


@dataclass(frozen=True, slots=True)
class CriticalDifference:
    """Mean ranks, and which methods do not differ at level `ALPHA`.

    By Nemenyi's test none differ if the p value of Friedman's test is above that level.
    """

    methods: tuple[str, ...]  # by mean rank, best first
    mean_ranks: FloatArray  # ascending, (methods,)
    alike: BoolArray  # whether two do not differ significantly, (methods, methods)
    post_hoc: PostHoc  # the test behind `alike`
    critical_difference: float  # CD, in ranks; NaN unless Nemenyi's
    friedman_p_value: float
    samples: int  # n

    @property
    def groups(self) -> tuple[tuple[int, int], ...]:
        """First and last place in `methods` of every maximal group in which no two differ.

        `methods` are sorted by mean rank, so a group is a range of places; groups may overlap.
        """
        groups: list[tuple[int, int]] = []
        for first in range(len(self.methods)):
            last = self._last_of_group(first)
            is_within_previous = bool(groups) and last <= groups[-1][1]
            if not is_within_previous:
                groups.append((first, last))
        return tuple(groups)

    def _last_of_group(self, first: int) -> int:
        """Last place of the largest group from a first place on in which no two differ."""
        last = first
        while last + 1 < len(self.methods):
            is_next_alike = self.alike[first : last + 1, last + 1].all()  # to all of the group
            if not is_next_alike:
                break
            last += 1
        return last

    @property
    def bars(self) -> tuple[tuple[float, float], ...]:
        """Ends of the bars of a critical-difference diagram: the mean ranks that each one joins.

        A bar joins the methods of a group, from its lowest to its highest mean rank; a group of one
        method has none.
        """
        bars = []
        for first, last in self.groups:  # places in `methods`, which is sorted by mean rank
            if first < last:
                bars.append((float(self.mean_ranks[first]), float(self.mean_ranks[last])))
        return tuple(bars)


@dataclass(frozen=True, slots=True)
class PairwiseTests:
    """Wilcoxon's signed-rank test of every pair of methods."""

    methods: tuple[str, ...]
    p_values: FloatArray  # two-sided, (methods, methods), symmetric, 1 on the diagonal
    adjusted: FloatArray  # for all pairs, by Holm's procedure, (methods, methods)
    samples: int  # n


def pairwise_wilcoxon(
    samples: FloatArray, methods: Sequence[str], *, differences: FloatArray | None = None
) -> PairwiseTests:
    """Test every pair of methods on paired samples.

    Differences of 0 count half for either side, as Demsar advises: two methods that are the same
    everywhere have p = 1. With fewer than 6 samples, no p value is below 0.05.

    Args:
        samples: Losses, or other values of which lower is better, shape (samples, methods).
            Wilcoxon's test compares sizes of differences: if tasks are the samples, pass values on
            a common scale, such as normalised regrets.
        methods: Names of the methods, in the order of the columns.
        differences: Value of the row's method minus that of the column's, shape (samples, methods,
            methods), NaN where they cannot be compared in a sample; default: from the samples.

    Raises:
        ExperimentError: There are fewer than two methods, no samples, or values that are NaN or
            infinite.
    """
    check_samples(samples, methods)
    if differences is None:
        differences = samples[:, :, None] - samples[:, None, :]
    pairs = np.triu_indices(len(methods), k=1)  # each pair once
    p_values = _signed_rank_p_values(differences[:, *pairs])  # (pairs,)
    return PairwiseTests(
        methods=tuple(methods),
        p_values=_symmetric_matrix(p_values, len(methods)),
        adjusted=_symmetric_matrix(holm(p_values), len(methods)),
        samples=len(samples),
    )


def _symmetric_matrix(p_values: FloatArray, n_methods: int) -> FloatArray:
    """P values of pairs, (pairs,), as a symmetric matrix (methods, methods); 1 on the diagonal.

    Pairs are in the order of the matrix above its diagonal, row by row.
    """
    pairs = np.triu_indices(n_methods, k=1)
    matrix = np.ones((n_methods, n_methods))
    matrix[pairs] = p_values
    matrix.T[pairs] = p_values  # the transpose is a view: this fills the part below the diagonal
    return matrix


def _signed_rank_p_values(differences: FloatArray) -> FloatArray:
    """Two-sided p values of Wilcoxon's test, (pairs,), that differences are symmetric about 0.

    The differences are (samples, pairs). Those of 0 count half for either side ("zsplit"); those
    that are NaN or infinite are left out of their own test.

    Pairs that cannot be tested, such as those that never differ, have p = 1.
    """
    from scipy.stats import wilcoxon

    n_pairs = differences.shape[1]
    p_values = np.ones(n_pairs)
    is_in_common_call = _can_be_in_common_call(differences)
    if is_in_common_call.any():
        common = differences[:, is_in_common_call]
        p_values[is_in_common_call] = wilcoxon(common, zero_method="zsplit").pvalue

    for pair in np.flatnonzero(~is_in_common_call):
        column = differences[:, pair]
        column = column[np.isfinite(column)]
        if len(column) > 1 and column.any():  # else the p value stays 1
            p_values[pair] = float(wilcoxon(column, zero_method="zsplit").pvalue)
    return p_values


def _can_be_in_common_call(differences: FloatArray) -> BoolArray:
    """Whether a common call of scipy tests each pair as a call of its own would, (pairs,).

    One call for many pairs is much faster than one for each, but scipy tests all pairs of a call in
    the same way. With more than `MAX_SAMPLES_OF_EXACT_TEST` samples it uses a normal approximation.
    With fewer it uses the exact distribution, but only if no pair of the call has ties or zeros;
    else it permutes signs or, again, approximates.

    `differences` are (samples, pairs).
    """
    n_samples = len(differences)
    if n_samples <= MAX_SAMPLES_OF_EXACT_TEST:
        fits_other_pairs = ~_has_ties_or_zeros(differences)
    else:
        fits_other_pairs = np.asarray(differences.any(axis=0))  # zeros alone cannot be tested
    # Differences that are not finite are left out, so that such a pair has samples of its own.
    has_all_samples = np.isfinite(differences).all(axis=0)
    has_enough_samples = n_samples > 1
    return np.asarray(fits_other_pairs & has_all_samples & has_enough_samples)


def _has_ties_or_zeros(differences: FloatArray) -> BoolArray:
    """Whether any differences of a pair are 0 or have the same size, (pairs,).

    `differences` are (samples, pairs).
    """
    sizes = np.sort(np.abs(differences), axis=0)
    has_zeros = sizes[0] == 0
    has_ties = (np.diff(sizes, axis=0) == 0).any(axis=0)
    return np.asarray(has_zeros | has_ties)


def holm(p_values: FloatArray) -> FloatArray:
    """Adjust p values of hypotheses tested together, (hypotheses,), by Holm's step-down procedure.

    The lowest of P p values is multiplied by P, the next one by P - 1 and so on; none becomes lower
    than one before it.
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    adjusted_in_order = np.maximum.accumulate(factors * p_values[order])
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(adjusted_in_order, 1)
    return adjusted


def friedman(samples: FloatArray, methods: Sequence[str]) -> tuple[FloatArray, float, float]:
    """Test whether methods differ, by their ranks within every sample.

    Args:
        samples: Losses, or other values of which lower is better, shape (samples, methods).
        methods: Names of the methods; for two, it approximates the sign test.

    Returns:
        Mean rank over samples, shape (methods,); Friedman's chi-squared, corrected for ties, 0 if
        all methods are tied in every sample; and its p value by the chi-squared distribution with
        (number of methods - 1) degrees of freedom, an approximation that is rough for fewer than
        about 10 samples.

    Raises:
        ExperimentError: As `pairwise_wilcoxon`.
    """
    from scipy.special import chdtrc

    check_samples(samples, methods)
    n_samples, n_methods = samples.shape
    ranks = rank_over_methods(samples.T)  # (methods, samples)
    mean_ranks = ranks.mean(axis=1)

    # Chi-squared is how much mean ranks vary over how much ranks vary within samples, which is less
    # where there are ties. Without ties the ratio is the usual formula.
    middle_rank = (n_methods + 1) / 2  # the mean of the ranks in every sample
    variation_within = ((ranks - middle_rank) ** 2).sum() / (n_methods - 1)
    variation_of_means = n_samples**2 * ((mean_ranks - middle_rank) ** 2).sum()
    chi_squared = 0.0  # if all methods are tied in every sample
    if variation_within > 0:
        chi_squared = float(variation_of_means / variation_within)
    p_value = float(chdtrc(n_methods - 1, chi_squared))
    return mean_ranks, chi_squared, p_value


def check_samples(samples: FloatArray, methods: Sequence[str]) -> None:
    """Raise an `ExperimentError` unless samples, (samples, methods), can be tested.

    They can if they are finite and there is a sample at least and two methods or more.
    """
    if len(methods) < 2:
        raise ExperimentError(f"a test needs two methods or more, but got {list(methods)}")
    if samples.ndim != 2 or samples.shape[1] != len(methods):
        raise ExperimentError(
            f"samples of {len(methods)} methods must have shape (n, {len(methods)}), "
            f"but got {samples.shape}"
        )
    if not len(samples):
        raise ExperimentError("there are no samples to test: no task on which the value is defined")
    if not np.isfinite(samples).all():
        raise ExperimentError("NaN or infinite values cannot be tested: leave their rows out")


def usual_test(methods: int, samples: int) -> PostHoc:
    """The default test: Wilcoxon's where it can find a difference, else Nemenyi's.

    The lowest p value of n samples is 2^(1 - n), which Holm's procedure multiplies by the number of
    pairs: with few samples and many methods none can be significant.

    Args:
        methods: Number of methods.
        samples: Number of samples.
    """
    lowest_p_value = 2.0 ** (1 - samples)
    n_pairs = methods * (methods - 1) // 2
    can_be_significant = lowest_p_value * n_pairs <= ALPHA
    return PostHoc.WILCOXON_HOLM if can_be_significant else PostHoc.NEMENYI


def critical_difference(
    samples: FloatArray,
    methods: Sequence[str],
    *,
    post_hoc: PostHoc | None = None,
    mean_ranks: FloatArray | None = None,
    tests: PairwiseTests | None = None,
) -> CriticalDifference:
    """Rank methods, and test which differ.

    Args:
        samples: Losses, or other values of which lower is better, shape (samples, methods); for
            Wilcoxon's test on a common scale, see `pairwise_wilcoxon`.
        methods: Names of the methods, in the order of the columns.
        post_hoc: The test; default: by `usual_test`.
        mean_ranks: Mean ranks, shape (methods,); default: those of the samples.
        tests: Wilcoxon's tests; default: of the samples.

    Raises:
        ExperimentError: As `pairwise_wilcoxon`.
    """
    mean_ranks_of_samples, _, friedman_p_value = friedman(samples, methods)
    if mean_ranks is None:
        mean_ranks = mean_ranks_of_samples
    order = np.argsort(mean_ranks, kind="stable")  # best first
    sorted_ranks = mean_ranks[order]

    post_hoc = post_hoc or usual_test(len(methods), len(samples))
    if post_hoc is PostHoc.NEMENYI:
        margin = nemenyi_difference(len(methods), len(samples))
        is_alike = np.abs(sorted_ranks[:, None] - sorted_ranks) < margin
        if friedman_p_value > ALPHA:  # Nemenyi's test follows a Friedman's test that rejects
            is_alike = np.ones_like(is_alike)
    else:  # Wilcoxon's tests of pairs have no common margin of mean ranks
        margin = float("nan")
        tests = tests or pairwise_wilcoxon(samples, methods)
        is_alike = tests.adjusted[np.ix_(order, order)] > ALPHA

    return CriticalDifference(
        methods=tuple(methods[a] for a in order),
        mean_ranks=sorted_ranks,
        alike=is_alike,
        post_hoc=post_hoc,
        critical_difference=margin,
        friedman_p_value=friedman_p_value,
        samples=len(samples),
    )


@lru_cache(maxsize=256)
def nemenyi_difference(methods: int, samples: int) -> float:
    """Critical difference of mean ranks by Nemenyi's test, for numbers of methods and samples."""
    from scipy.stats import studentized_range

    # Demsar's table of q has the studentised range divided by the root of 2.
    quantile = studentized_range.isf(ALPHA, methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(methods * (methods + 1) / (6 * samples)))
