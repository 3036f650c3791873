"""Time of the boosted trees, beside XGBoost on one thread, and of the methods that use them.

Histories are those of the last task of Hellan et al. (2023), 27 tasks of 25 evaluations, and one
far beyond it.
"""

import numpy as np
import pytest
from histories import minimised

from hpobench_ordered import Evaluations
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._boosting.model import BoostedTrees, Loss
from hpobench_ordered.methods._candidates import CANDIDATES
from hpobench_ordered.methods.cts import CopulaThompsonSampling
from hpobench_ordered.methods.dre_ordered import DREOrdered
from hpobench_ordered.methods.zero_shot import ZeroShot
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter

FIT_LIMITS = {25: 2e-3, 700: 40e-3, 20_000: 5.0}  # seconds, median, with 4 columns
PREDICT_LIMIT = 10e-3
CONSTRUCTION_LIMITS = {(27, 25): 0.2, (100, 1000): 10.0}
SPACE = SearchSpace(
    [
        *(Parameter.number(f"x{j}", 0, 1) for j in range(8)),
        Parameter.choice("c", ("a", "b", "c", "d")),
    ]
)


def observations(n: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(0)
    X = rng.random((n, 4))
    return X, np.sin(5 * X[:, 0]) + 3 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)


def history(tasks: int, evaluations: int) -> list[Evaluations]:
    rng = np.random.default_rng(0)
    finished = []
    for task in range(tasks):
        unit = SPACE.sample_unit(rng, evaluations)
        losses = ((unit - 0.3 - 0.3 * task / tasks) ** 2).sum(axis=1)
        finished.append(minimised(f"{task}", {}, SPACE.decode(unit), losses, SPACE))
    return finished


def rounds(n: int) -> int:
    return max(3, min(200, 20_000 // n))


@pytest.mark.parametrize("n", sorted(FIT_LIMITS))
def test_fit(benchmark, n):
    X, y = observations(n)
    benchmark.pedantic(BoostedTrees.fitted, (X, y), rounds=rounds(n), warmup_rounds=1)
    assert benchmark.stats.stats.median <= FIT_LIMITS[n]


@pytest.mark.parametrize("n", sorted(FIT_LIMITS))
def test_fit_by_xgboost(benchmark, n):
    xgboost = pytest.importorskip("xgboost", reason="XGBoost comes with the extra `train`")
    X, y = observations(n)
    model = xgboost.XGBRegressor(tree_method="exact", n_jobs=1)
    benchmark.pedantic(model.fit, (X, y), rounds=max(3, rounds(n) // 10), warmup_rounds=1)


def test_fit_of_a_classifier(benchmark):
    X, y = observations(25)
    good = (y < np.quantile(y, 0.25)).astype(float)
    options = {"loss": Loss.LOGISTIC}
    benchmark.pedantic(BoostedTrees.fitted, (X, good), options, rounds=200, warmup_rounds=1)
    assert benchmark.stats.stats.median <= FIT_LIMITS[25]


@pytest.mark.parametrize("n", sorted(FIT_LIMITS))
def test_predict(benchmark, n):
    trees = BoostedTrees.fitted(*observations(n))
    new, _ = observations(CANDIDATES)
    benchmark.pedantic(trees.predict, (new,), rounds=50, warmup_rounds=2)
    assert benchmark.stats.stats.median <= PREDICT_LIMIT


@pytest.mark.parametrize("size", sorted(CONSTRUCTION_LIMITS))
@pytest.mark.parametrize("method", [ZeroShot, CopulaThompsonSampling, DREOrdered])
def test_first_suggestion(benchmark, method, size):
    finished = history(*size)

    def suggest() -> None:
        rng = np.random.default_rng(0)
        method(space=SPACE, rng=rng, history=finished, context={}, budget=25).ask()

    benchmark.pedantic(suggest, rounds=3, warmup_rounds=1)
    assert benchmark.stats.stats.median <= CONSTRUCTION_LIMITS[size]
