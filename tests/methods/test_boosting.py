"""Boosted trees against XGBoost, scikit-learn and a naive implementation."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._boosting.compiled import MIN_GAIN, TIE, Settings
from hpobench_ordered.methods._boosting.model import BoostedTrees, Loss

SIZES = [(25, 4), (60, 3), (300, 5)]
FEW = Settings(rounds=5, depth=3)
SINGLE_PRECISION = 1e-5
"""XGBoost keeps derivatives and leaves in single precision, 6e-8 of values of the order of one."""


@pytest.fixture(scope="module")
def xgboost():
    return pytest.importorskip("xgboost", reason="XGBoost comes with the extra `train`")


def observations(n: int, p: int, *, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Features and targets of the order of one, exact in single precision."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    y = np.sin(5 * X[:, 0]) + 3 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)
    return X.astype(np.float32).astype(float), y.astype(np.float32).astype(float)


def naive(
    X: FloatArray, y: FloatArray, options: Settings, *, loss: Loss = Loss.SQUARED_ERROR
) -> FloatArray:
    """Predictions at X, by recursion."""

    def quality(g: FloatArray, h: FloatArray) -> float:
        return float(g.sum() ** 2 / (h.sum() + options.l2))

    def grow(rows: Any, depth: int) -> None:
        best, split = quality(g[rows], h[rows]) + MIN_GAIN, None
        for c in range(X.shape[1] if depth < options.depth else 0):
            for value in np.unique(X[rows, c])[:0:-1]:
                left, right = rows[X[rows, c] < value], rows[X[rows, c] >= value]
                if min(h[left].sum(), h[right].sum()) < options.min_weight:
                    continue
                both = quality(g[left], h[left]) + quality(g[right], h[right])
                if both > best * (1 + TIE):
                    best, split = both, (left, right)
        if split is None:
            step = options.learning_rate * g[rows].sum() / (h[rows].sum() + options.l2)
            score[rows] -= step
        else:
            grow(split[0], depth + 1)
            grow(split[1], depth + 1)

    mean = y.mean()
    score = np.full(len(y), mean if loss is Loss.SQUARED_ERROR else math.log(mean / (1 - mean)))
    for _ in range(options.rounds):
        if loss is Loss.SQUARED_ERROR:
            g, h = score - y, np.ones(len(y))
        else:
            probability = 1 / (1 + np.exp(-score))
            g, h = probability - y, probability * (1 - probability)
        grow(np.arange(len(y)), 0)
    return score


@st.composite
def coarse_data(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    """Few rows of small integers: ties, repeated rows, constant columns and targets."""
    n, p = draw(st.integers(1, 14)), draw(st.integers(1, 3))
    numbers = st.integers(-3, 3).map(float)
    X = draw(st.lists(st.lists(numbers, min_size=p, max_size=p), min_size=n, max_size=n))
    return np.array(X), np.array(draw(st.lists(numbers, min_size=n, max_size=n)))


# -- against others --------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "p"), SIZES)
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("loss", Loss)
def test_losses_as_xgboost(xgboost, n, p, seed, loss):
    X, y = observations(n, p, seed=seed)
    new, _ = observations(500, p, seed=seed + 100)
    kind, options = xgboost.XGBRegressor, {}
    if loss is Loss.LOGISTIC:
        y = (y < np.quantile(y, 0.25)).astype(float)
        kind, options = xgboost.XGBClassifier, {"output_margin": True}
    peer = kind(tree_method="exact", base_score=float(y.mean()), n_jobs=1)
    expected = peer.fit(X, y).predict(new, **options)
    trees = BoostedTrees.fit(X, y, loss=loss)
    assert_allclose(trees.predict(new), expected, atol=SINGLE_PRECISION)


@pytest.mark.parametrize("options", [FEW, Settings(depth=2, l2=0.1, min_weight=3.0)])
def test_settings_as_xgboost(xgboost, options):
    X, y = observations(80, 4, seed=5)
    settings = {"n_estimators": options.rounds, "max_depth": options.depth}
    settings |= {"learning_rate": options.learning_rate, "reg_lambda": options.l2}
    settings |= {"min_child_weight": options.min_weight, "base_score": float(y.mean())}
    peer = xgboost.XGBRegressor(tree_method="exact", n_jobs=1, **settings)
    trees = BoostedTrees.fit(X, y, settings=options)
    assert_allclose(trees.predict(X), peer.fit(X, y).predict(X), atol=SINGLE_PRECISION)


@pytest.mark.parametrize("loss", Loss)
@given(coarse_data(), st.sampled_from([0.0, 0.313, 1.0]))
def test_losses_as_a_naive_implementation(loss, data, min_weight):
    X, y = data
    options = FEW._replace(min_weight=min_weight)
    if loss is Loss.LOGISTIC:
        y = (y > 0).astype(float)
        if not 0 < y.mean() < 1:
            y = np.append(1 - y[0], y[1:])
        assume(0 < y.mean() < 1)
    trees = BoostedTrees.fit(X, y, loss=loss, settings=options)
    assert_allclose(trees.predict(X), naive(X, y, options, loss=loss), atol=1e-12)


# -- properties ------------------------------------------------------------------------------------


def test_predictions_do_not_depend_on_the_batch():
    trees = BoostedTrees.fit(*observations(100, 4))
    new, _ = observations(150, 4, seed=1)
    together = trees.predict(new)
    assert_array_equal(together, [trees.predict(row[None])[0] for row in new])
    assert_array_equal(together[::-1], trees.predict(new[::-1]))
    assert trees.predict(new[:0]).shape == (0,)


# -- extreme data ----------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [0.0, 0.1, 1.0, -1e9, 1e300])
def test_constant_targets_and_classes(constant):
    X, y = observations(30, 3)[0], np.full(30, constant)
    trees = BoostedTrees.fit(X, y)
    assert_allclose(trees.predict(X), constant, rtol=1e-14)
    assert not trees.depths.any()
    if constant in (0.0, 1.0):
        (odds,) = set(BoostedTrees.fit(X, y, loss=Loss.LOGISTIC).predict(X))
        assert math.isfinite(odds) and (odds > 10.0) == bool(constant)


def test_neighbouring_numbers_are_told_apart_and_thresholds_lie_in_the_middle():
    X = np.array([[1.0], [np.nextafter(1.0, 2.0)]])
    low, high = BoostedTrees.fit(X, np.array([0.0, 1.0])).predict(X)
    assert low < 0.01 and high > 0.99
    trees = BoostedTrees.fit(np.array([[0.0], [0.5], [2.0]]), np.array([0.0, 0.0, 9.0]))
    assert trees.thresholds[0, 0] == 1.25
