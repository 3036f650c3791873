"""Boosted trees against XGBoost, and on extreme data."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._boosting.compiled import Settings
from hpobench_ordered.methods._boosting.model import BoostedTrees, Loss

FEW_TREES = Settings(rounds=5, depth=3)
"""Fewer and smaller trees than by default, as a recursion over nodes takes long."""
SINGLE_PRECISION = 1e-5
"""XGBoost keeps derivatives and leaves in single precision, 6e-8 of values of the order of one."""


def make_data(n: int, p: int, *, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Features and targets of the order of one, exact in single precision."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, p))
    y = np.sin(5 * X[:, 0]) + 3 * X[:, 1] ** 2 + 0.1 * rng.standard_normal(n)
    return X.astype(np.float32).astype(float), y.astype(np.float32).astype(float)


# -- against XGBoost -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def xgboost():
    return pytest.importorskip("xgboost", reason="XGBoost comes with the extra `train`")


each_size = pytest.mark.parametrize(("n", "p"), [(25, 4), (60, 3), (300, 5)])
each_seed = pytest.mark.parametrize("seed", [1, 2, 3])


@each_size
@each_seed
def test_regression_equals_xgboost(xgboost, n, p, seed):
    """Fitted to n rows of p features, with the default settings of both, and exact splits."""
    X, y = make_data(n, p, seed=seed)
    new_X, _ = make_data(500, p, seed=seed + 100)
    other = xgboost.XGBRegressor(tree_method="exact", base_score=float(y.mean()), n_jobs=1)
    expected = other.fit(X, y).predict(new_X)
    assert_allclose(BoostedTrees.fit(X, y).predict(new_X), expected, atol=SINGLE_PRECISION)


@each_size
@each_seed
def test_classification_equals_xgboost(xgboost, n, p, seed):
    """Predictions are log odds; a quarter of the points has label 1."""
    X, y = make_data(n, p, seed=seed)
    labels = (y < np.quantile(y, 0.25)).astype(float)
    new_X, _ = make_data(500, p, seed=seed + 100)
    other = xgboost.XGBClassifier(tree_method="exact", base_score=float(labels.mean()), n_jobs=1)
    expected = other.fit(X, labels).predict(new_X, output_margin=True)
    trees = BoostedTrees.fit(X, labels, loss=Loss.LOGISTIC)
    assert_allclose(trees.predict(new_X), expected, atol=SINGLE_PRECISION)


@pytest.mark.parametrize("settings", [FEW_TREES, Settings(depth=2, l2=0.1, min_weight=3.0)])
def test_settings_equal_xgboost(xgboost, settings):
    """Each setting has the effect that XGBoost's has, which has another name."""
    X, y = make_data(80, 4, seed=5)
    other = xgboost.XGBRegressor(
        tree_method="exact",
        n_jobs=1,
        n_estimators=settings.rounds,
        max_depth=settings.depth,
        learning_rate=settings.learning_rate,
        reg_lambda=settings.l2,
        min_child_weight=settings.min_weight,
        base_score=float(y.mean()),
    )
    expected = other.fit(X, y).predict(X)
    trees = BoostedTrees.fit(X, y, settings=settings)
    assert_allclose(trees.predict(X), expected, atol=SINGLE_PRECISION)


# -- predictions -----------------------------------------------------------------------------------


def test_predictions_do_not_depend_on_batch():
    """A row has the same prediction alone and among 150."""
    trees = BoostedTrees.fit(*make_data(100, 4))
    X, _ = make_data(150, 4, seed=1)
    single = [trees.predict(row[None])[0] for row in X]
    assert_array_equal(trees.predict(X), single)


# -- extreme data ----------------------------------------------------------------------------------


@pytest.mark.parametrize("constant", [0.0, 0.1, 1.0, -1e9, 1e300])
def test_constant_targets_need_no_split(constant):
    """All 30 targets are the same number, which every prediction equals."""
    X, _ = make_data(30, 3)
    trees = BoostedTrees.fit(X, np.full(30, constant))
    assert_allclose(trees.predict(X), constant, rtol=1e-14)
    assert not trees.depths.any()


@pytest.mark.parametrize("label", [0.0, 1.0])
def test_single_class_has_finite_odds(label):
    """All 30 labels are 0, or all are 1."""
    X, _ = make_data(30, 3)
    trees = BoostedTrees.fit(X, np.full(30, label), loss=Loss.LOGISTIC)
    # All predictions are equal.
    (log_odds,) = set(trees.predict(X))
    assert math.isfinite(log_odds)
    is_class_1_almost_certain = log_odds > 10.0
    assert is_class_1_almost_certain == (label == 1.0)


def test_neighbouring_numbers_are_split():
    """Two values are told apart although no number lies between them."""
    # 1 and the next floating-point number.
    X = np.array([[1.0], [np.nextafter(1.0, 2.0)]])
    low, high = BoostedTrees.fit(X, np.array([0.0, 1.0])).predict(X)
    assert low < 0.01
    assert high > 0.99


def test_thresholds_lie_in_middle():
    """The threshold of a split is halfway between the two values that it separates."""
    X = np.array([[0.0], [0.5], [2.0]])
    trees = BoostedTrees.fit(X, np.array([0.0, 0.0, 9.0]))
    # Targets differ between 0.5 and 2.
    threshold_of_first_split = trees.thresholds[0, 0]
    assert threshold_of_first_split == (0.5 + 2.0) / 2
