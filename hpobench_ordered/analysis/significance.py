"""Tests of whether methods differ: Wilcoxon's with Holm's correction, and Friedman's.

Notation:
    A   number of methods
    n   number of samples (blocks): seeds or tasks, as `samples_of` gives them
    P   number of hypotheses tested together: A (A - 1) / 2 pairs

    r[i, a]  rank of method a in sample i: 1 is lowest, ties share their mean rank
    R[a]     mean rank over samples
    p[k]     p value of hypothesis k in ascending order, k = 1 ... P

    Friedman   chi2 = n^2 (A - 1) sum over a of (R[a] - (A + 1) / 2)^2
                      / sum over i and a of (r[i, a] - (A + 1) / 2)^2
               which corrects for ties; without any it is Demsar's formula
    Holm       adjusted p[k] = max over j <= k of min(1, (P - j + 1) p[j])

Sources: Demsar (2006), Statistical comparisons of classifiers over multiple data sets, JMLR 7,
sections 3.1.3 and 3.2.2; Holm (1979), A simple sequentially rejective multiple test procedure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.analysis.ranks import rank_over_methods
from hpobench_ordered.errors import ExperimentError

MOST_EXACT = 50
"""Samples up to which scipy's p values are exact where there are no ties."""


@dataclass(frozen=True, slots=True)
class PairwiseTests:
    """Wilcoxon's signed-rank test of every pair of methods.

    Attributes:
        methods: Names of the methods, length A.
        p_values: Two-sided p values, each test by itself, shape (A, A), symmetric; 1 on the
            diagonal.
        adjusted: The same by Holm's correction for all pairs.
        samples: Number of samples n.
    """

    methods: tuple[str, ...]
    p_values: FloatArray
    adjusted: FloatArray
    samples: int


@dataclass(frozen=True, slots=True)
class FriedmanTest:
    """Friedman's test of whether all methods are alike.

    Attributes:
        methods: Names of the methods, length A.
        mean_ranks: Mean rank over samples R, shape (A,); 1 is best.
        statistic: chi2; 0 if all methods are tied in every sample.
        p_value: Its p value by the chi-squared distribution with A - 1 degrees of freedom, an
            approximation that is rough for fewer than about 10 samples.
        samples: Number of samples n.
    """

    methods: tuple[str, ...]
    mean_ranks: FloatArray
    statistic: float
    p_value: float
    samples: int


def pairwise_wilcoxon(samples: FloatArray, methods: Sequence[str]) -> PairwiseTests:
    """Test every pair of methods on paired samples.

    Differences of 0 count half for either side, as Demsar advises: two methods that are the same
    everywhere have p = 1. With fewer than 6 samples, no p value is below 0.05.

    Args:
        samples: Losses, or anything of which lower is better, shape (n, A). Wilcoxon's test
            compares sizes of differences: if tasks are the samples, pass what is on one scale on
            all of them, such as normalised regrets.
        methods: Names of the methods, length A.

    Raises:
        ExperimentError: There are fewer than two methods, no samples, or values that are NaN or
            infinite.
    """
    check_samples(samples, methods)
    return wilcoxon_of_differences(samples[:, :, None] - samples[:, None, :], methods)


def wilcoxon_of_differences(differences: FloatArray, methods: Sequence[str]) -> PairwiseTests:
    """Test every pair of methods on its differences.

    Args:
        differences: Of the method of the row from that of the column, shape (n, A, A); NaN where
            the two cannot be compared in a sample.
        methods: Names of the methods, length A.
    """
    rows, columns = np.triu_indices(len(methods), k=1)
    single = _signed_rank_p_values(differences[:, rows, columns])
    matrices = []
    for values in (single, holm(single)):
        matrix = np.ones((len(methods), len(methods)))
        matrix[rows, columns] = matrix[columns, rows] = values
        matrices.append(matrix)
    return PairwiseTests(tuple(methods), matrices[0], matrices[1], len(differences))


def _signed_rank_p_values(differences: FloatArray) -> FloatArray:
    """Two-sided p values of differences (n, P) having no preferred sign, shape (P,)."""
    from scipy.stats import wilcoxon

    count = len(differences)
    sizes = np.sort(np.abs(differences), axis=0)
    tied = (sizes[0] == 0) | (np.diff(sizes, axis=0) == 0).any(axis=0)
    # At once where scipy takes the same method for each of them by itself, as calls are slow.
    at_once = ~tied if count <= MOST_EXACT else differences.any(axis=0)
    at_once &= np.isfinite(differences).all(axis=0) & (count > 1)
    p_values = np.ones(differences.shape[1])
    if at_once.any():
        p_values[at_once] = wilcoxon(differences[:, at_once], zero_method="zsplit").pvalue
    for place in np.flatnonzero(~at_once):
        column = differences[np.isfinite(differences[:, place]), place]
        if len(column) > 1 and column.any():  # else scipy refuses in part
            p_values[place] = float(wilcoxon(column, zero_method="zsplit").pvalue)
    return p_values


def holm(p_values: FloatArray) -> FloatArray:
    """Adjust p values of hypotheses tested together by Holm's step-down procedure.

    Args:
        p_values: One a hypothesis, shape (P,), in any order.

    Returns:
        Adjusted p values in the same order, shape (P,): to reject those up to alpha wrongly rejects
        any with a probability of at most alpha.
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = np.minimum(np.maximum.accumulate(factors * p_values[order]), 1)
    return adjusted


def friedman(samples: FloatArray, methods: Sequence[str]) -> FriedmanTest:
    """Test whether all methods are alike, by their ranks within every sample.

    Args:
        samples: Losses, or anything of which lower is better, shape (n, A).
        methods: Names of the methods, length A; of two, it is the sign test's approximation.

    Raises:
        ExperimentError: As `pairwise_wilcoxon`.
    """
    from scipy.special import chdtrc

    count = check_samples(samples, methods)
    size = len(methods)
    ranks = rank_over_methods(samples.T)
    mean_ranks = ranks.mean(axis=1)
    varied = ((ranks - (size + 1) / 2) ** 2).sum() / (size - 1)
    between = count**2 * ((mean_ranks - (size + 1) / 2) ** 2).sum()
    statistic = float(between / varied) if varied > 0 else 0.0
    p_value = float(chdtrc(size - 1, statistic))
    return FriedmanTest(tuple(methods), mean_ranks, statistic, p_value, count)


def check_samples(samples: FloatArray, methods: Sequence[str]) -> int:
    """Number of samples (n, A) of several methods; an error unless they can be tested."""
    if len(methods) < 2:
        raise ExperimentError(f"a test compares two methods or more, not {list(methods)}")
    if samples.ndim != 2 or samples.shape[1] != len(methods):
        raise ExperimentError(
            f"samples of {len(methods)} methods have the shape (n, {len(methods)}), "
            f"not {samples.shape}"
        )
    if not len(samples):
        raise ExperimentError("there are no samples to test: no task on which the value is defined")
    if not np.isfinite(samples).all():
        raise ExperimentError("samples that are NaN or infinite cannot be tested: leave them out")
    return len(samples)
