"""ordered-gp on families of tasks without contexts, in order and without an order.

Histories are random evaluations, those of the method itself, and those of another optimiser.
"""

import itertools

import numpy as np
import pytest
from task_families import make_family

import hpobench_ordered as hbo

FAMILIES = range(3)
SEEDS = range(2)


def compare_ranks(results: hbo.Results, *, rival: str, trial: int) -> tuple[float, float]:
    """Mean difference of ranks, ordered-gp minus the rival, with its standard error over tasks.

    Ranks are those of the best losses so far among all methods of the results.
    """
    frame = results.frame()
    until = frame[frame["trial"] <= trial]
    best = until.groupby(["benchmark", "task", "seed", "method"])["loss"].min().unstack("method")
    ranks = best.rank(axis=1)
    differences = (ranks["ordered-gp"] - ranks[rival]).groupby(["benchmark", "task"]).mean()
    return differences.mean(), differences.std() / np.sqrt(len(differences))


@pytest.fixture(scope="module")
def unordered_results() -> hbo.Results:
    return hbo.run(
        benchmarks=[make_family(seed, is_ordered=False) for seed in FAMILIES],
        methods=["ordered-gp", "zero-shot", "rgpe", "bo"],
        seeds=SEEDS,
        protocol=hbo.LeaveOneOut(trials=30),
        progress=False,
    )


@pytest.fixture(scope="module")
def ordered_results() -> hbo.Results:
    return hbo.run(
        benchmarks=[make_family(seed, is_ordered=True) for seed in FAMILIES],
        methods=["ordered-gp", "zero-shot", "simple-ordered", "bo"],
        seeds=SEEDS,
        protocol=hbo.Ordered(trials=25),
        progress=False,
    )


@pytest.mark.long
@pytest.mark.parametrize(
    ("rival", "trial"),
    [
        # After one trial these are ahead: they see all tasks and evaluations.
        *itertools.product(["zero-shot", "rgpe"], [10, 30]),
        *itertools.product(["bo"], [1, 10, 30]),
    ],
)
def test_without_an_order(unordered_results, rival, trial):
    """On tasks without an order, ordered-gp is not clearly worse than the other methods.

    After the given trial, its mean rank is at most two standard errors above the rival's.
    """
    difference, standard_error = compare_ranks(unordered_results, rival=rival, trial=trial)
    assert difference <= 2.0 * standard_error


@pytest.mark.long
@pytest.mark.parametrize(
    ("rival", "trial"),
    [
        *itertools.product(["zero-shot", "bo"], [1, 10, 25]),
        # After 25 trials `simple-ordered` is ahead: it searches more locally.
        *itertools.product(["simple-ordered"], [1, 10]),
    ],
)
def test_in_order(ordered_results, rival, trial):
    """On tasks in order, ordered-gp is not clearly worse than the other methods.

    After the given trial, its mean rank is at most two standard errors above the rival's.
    """
    difference, standard_error = compare_ranks(ordered_results, rival=rival, trial=trial)
    assert difference <= 2.0 * standard_error


def test_history_of_an_optimiser():
    """The tip of a narrow bump is found, although most evaluations are at the tips of other bumps.

    More than half of an earlier task's losses are within a thousandth of the range from the best.
    """
    results = hbo.run(
        benchmarks=["distbo-toy"],
        methods=["ordered-gp"],
        seeds=range(2),
        protocol=hbo.LeaveOneOut(trials=30, tasks=["source-3", "target"]),
        progress=False,
    )
    lowest_regrets = results.frame().groupby(["task", "seed"])["regret"].min()
    assert (lowest_regrets < 1e-4).all()
