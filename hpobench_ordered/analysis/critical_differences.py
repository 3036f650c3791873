"""Critical differences of mean ranks, and which methods cannot be told apart.

Notation:
    A      number of methods
    n      number of samples: seeds or tasks
    R[a]   mean rank of method a over samples; 1 is best
    alpha  level of the test
    q      quantile 1 - alpha of the studentised range of A, with infinite degrees of freedom,
           over sqrt(2)
    CD     q sqrt(A (A + 1) / (6 n))

Two methods differ by Nemenyi's test where |R[a] - R[b]| >= CD (Demsar 2006, JMLR 7, section 3.2.2),
and by Wilcoxon's where the p value that Holm's procedure adjusts is at most alpha (as in Benavoli
et al. 2016, Should we really use post-hoc tests based on mean-ranks?, JMLR 17).

The leaderboard's mean rank is itself a mean within every sample, over its seeds and tasks. Such
ranks vary less from sample to sample than those of a single ranking, for which CD is made, and so
Nemenyi's test of them errs on the side of finding no difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray
from hpobench_ordered.analysis.significance import check_samples, friedman, pairwise_wilcoxon
from hpobench_ordered.errors import ExperimentError


class PostHoc(Enum):
    """Test that decides which methods differ.

    NEMENYI: By the mean ranks alone, which depend on the other methods compared.
    WILCOXON_HOLM: By Wilcoxon's signed-rank test of each pair, with Holm's correction.
    """

    NEMENYI = "nemenyi"
    WILCOXON_HOLM = "wilcoxon-holm"


@dataclass(frozen=True, slots=True)
class CriticalDifference:
    """Mean ranks and groups of methods that cannot be told apart, ready to be drawn.

    Attributes:
        methods: Names of the methods by mean rank, best first, length A.
        mean_ranks: Their mean ranks, ascending, shape (A,).
        groups: First and last place in `methods` of every maximal group, from the best on. A group
            holds neighbours by rank of which no two differ; every method is in one at least, by
            itself if need be.
        post_hoc: The test that made them.
        alpha: Its level.
        critical_difference: CD, in ranks; NaN unless the test is Nemenyi's.
        friedman_p_value: p value of Friedman's test. Where it is above alpha, the methods cannot
            be told apart at all, whatever the groups are.
        samples: Number of samples n.
    """

    methods: tuple[str, ...]
    mean_ranks: FloatArray
    groups: tuple[tuple[int, int], ...]
    post_hoc: PostHoc
    alpha: float
    critical_difference: float
    friedman_p_value: float
    samples: int

    @property
    def bars(self) -> tuple[tuple[float, float], ...]:
        """Lowest and highest mean rank of every group of two methods or more."""
        ranks = self.mean_ranks
        return tuple((float(ranks[a]), float(ranks[b])) for a, b in self.groups if a < b)


def usual_test(methods: int, samples: int, *, alpha: float = 0.05) -> PostHoc:
    """The test to decide by: Wilcoxon's, where it can find a difference at all.

    Of few samples and many methods it cannot: the lowest p value of n samples is 2^(1 - n), and
    Holm's procedure multiplies the lowest by the number of pairs. Nemenyi's test then decides.

    Args:
        methods: Number of methods A.
        samples: Number of samples n.
        alpha: Level of the test.
    """
    lowest = 2.0 ** (1 - samples) * methods * (methods - 1) / 2
    return PostHoc.WILCOXON_HOLM if lowest <= alpha else PostHoc.NEMENYI


def critical_difference(
    samples: FloatArray,
    methods: Sequence[str],
    *,
    post_hoc: PostHoc = PostHoc.NEMENYI,
    alpha: float = 0.05,
    mean_ranks: FloatArray | None = None,
    adjusted: FloatArray | None = None,
) -> CriticalDifference:
    """Rank methods, and group those that cannot be told apart.

    Args:
        samples: Losses, or anything of which lower is better, shape (n, A), as `samples_of` gives
            them; for Wilcoxon's test on one scale, as `pairwise_wilcoxon` says.
        methods: Names of the methods, length A.
        post_hoc: The test.
        alpha: Its level.
        mean_ranks: Mean ranks R, shape (A,); default: those of the samples.
        adjusted: Adjusted p values of Wilcoxon's test, shape (A, A); default: of the samples.

    Raises:
        ExperimentError: As `pairwise_wilcoxon`; or alpha is not between 0 and 1.
    """
    count = check_samples(samples, methods)
    test = friedman(samples, methods)
    means = test.mean_ranks if mean_ranks is None else mean_ranks
    order = np.argsort(means, kind="stable")
    ranks = means[order]
    margin = float("nan")
    if post_hoc is PostHoc.NEMENYI:
        margin = nemenyi_difference(len(methods), count, alpha=alpha)
        alike = np.abs(ranks[:, None] - ranks) < margin
    else:
        _check_alpha(alpha)
        if adjusted is None:
            adjusted = pairwise_wilcoxon(samples, methods).adjusted
        alike = adjusted[np.ix_(order, order)] > alpha
    return CriticalDifference(
        methods=tuple(methods[place] for place in order),
        mean_ranks=ranks,
        groups=_groups(alike),
        post_hoc=post_hoc,
        alpha=alpha,
        critical_difference=margin,
        friedman_p_value=test.p_value,
        samples=count,
    )


@lru_cache(maxsize=256)
def nemenyi_difference(methods: int, samples: int, *, alpha: float = 0.05) -> float:
    """Critical difference CD of mean ranks, in ranks.

    Args:
        methods: Number of methods A, two or more.
        samples: Number of samples n.
        alpha: Level of the test.
    """
    from scipy.stats import studentized_range

    _check_alpha(alpha)
    quantile = studentized_range.isf(alpha, methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(methods * (methods + 1) / (6 * samples)))


def _check_alpha(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise ExperimentError(f"a level lies between 0 and 1, as 0.05 does, not {alpha}")


def _groups(alike: BoolArray) -> tuple[tuple[int, int], ...]:
    """Maximal runs of places of which no two differ.

    Args:
        alike: Whether the methods at two places cannot be told apart, shape (A, A).
    """
    groups: list[tuple[int, int]] = []
    for first in range(len(alike)):
        last = first
        while last + 1 < len(alike) and alike[first : last + 1, last + 1].all():
            last += 1
        if not groups or last > groups[-1][1]:
            groups.append((first, last))
    return tuple(groups)
