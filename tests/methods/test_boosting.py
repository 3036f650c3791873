"""Boosted trees against XGBoost and a recursive implementation, and on extreme data."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.methods._boosting.compiled import MIN_GAIN, TIE, Settings
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


# -- against a recursive implementation ------------------------------------------------------------


class RecursiveTrees:
    """Boosted trees by recursion over nodes, with their predictions at X.

    The formulas are XGBoost's: with the sums G and H of the derivatives over the rows of a node,
    its quality is G^2 / (H + l2), and the value of a leaf -G / (H + l2).
    """

    def __init__(self, X: FloatArray, y: FloatArray, settings: Settings, loss: Loss) -> None:
        """Fit the trees one after the other; `predictions` are then those of all rows."""
        self.X = X
        self.y = y
        self.settings = settings
        self.loss = loss

        # The first prediction is the mean, or its log odds.
        mean = y.mean()
        start = math.log(mean / (1 - mean)) if loss is Loss.LOGISTIC else mean
        self.predictions = np.full(len(y), start)
        for _ in range(settings.rounds):
            # First and second derivatives of the loss by the predictions.
            self.g, self.h = self.compute_derivatives()
            self.grow(np.arange(len(y)), depth=0)

    def compute_derivatives(self) -> tuple[FloatArray, FloatArray]:
        """First and second derivatives of the loss by the predictions."""
        if self.loss is Loss.SQUARED_ERROR:
            return self.predictions - self.y, np.ones(len(self.y))
        probability = 1 / (1 + np.exp(-self.predictions))
        return probability - self.y, probability * (1 - probability)

    def quality(self, rows: IntArray) -> float:
        return float(self.g[rows].sum() ** 2 / (self.h[rows].sum() + self.settings.l2))

    def is_heavy_enough(self, rows: IntArray) -> bool:
        return bool(self.h[rows].sum() >= self.settings.min_weight)

    def grow(self, rows: IntArray, depth: int) -> None:
        """Split the rows until no split is left, and add each leaf's value to its predictions."""
        goes_left = self.find_split(rows) if depth < self.settings.depth else None
        if goes_left is None:
            leaf_value = -self.g[rows].sum() / (self.h[rows].sum() + self.settings.l2)
            self.predictions[rows] += self.settings.learning_rate * leaf_value
        else:
            self.grow(rows[goes_left], depth + 1)
            self.grow(rows[~goes_left], depth + 1)

    def find_split(self, rows: IntArray) -> BoolArray | None:
        """Whether each row goes left in the best split; None if no split is good enough.

        A split must improve the quality by `MIN_GAIN`. Of equally good splits, that of the first
        column counts, and there the highest value.
        """
        best_quality = self.quality(rows) + MIN_GAIN
        best_split = None
        for column in range(self.X.shape[1]):
            values = self.X[rows, column]
            _smallest, *other_values = np.unique(values)
            # Below the smallest value there is no row to go left.
            for value in reversed(other_values):
                goes_left = values < value
                left, right = rows[goes_left], rows[~goes_left]
                if not (self.is_heavy_enough(left) and self.is_heavy_enough(right)):
                    continue
                quality = self.quality(left) + self.quality(right)
                # Qualities that differ by rounding alone, less than `TIE`, count as equal.
                if quality > best_quality * (1 + TIE):
                    best_quality, best_split = quality, goes_left
        return best_split


@st.composite
def coarse_data(draw: st.DrawFn) -> tuple[FloatArray, FloatArray]:
    """Few rows of small integers: ties, repeated rows, constant columns and targets."""
    n, p = draw(st.integers(1, 14)), draw(st.integers(1, 3))
    numbers = st.integers(-3, 3).map(float)
    rows = st.lists(numbers, min_size=p, max_size=p)
    X = draw(st.lists(rows, min_size=n, max_size=n))
    y = draw(st.lists(numbers, min_size=n, max_size=n))
    return np.array(X), np.array(y)


each_weight = st.sampled_from([0.0, 0.313, 1.0])


@given(coarse_data(), each_weight)
def test_regression_equals_recursion(data, min_weight):
    """Rows are few, with many ties; `min_weight` is the smallest number of rows in a leaf."""
    X, y = data
    settings = FEW_TREES._replace(min_weight=min_weight)
    trees = BoostedTrees.fit(X, y, settings=settings)
    recursive_trees = RecursiveTrees(X, y, settings, Loss.SQUARED_ERROR)
    assert_allclose(trees.predict(X), recursive_trees.predictions, atol=1e-12)


@given(coarse_data(), each_weight)
def test_classification_equals_recursion(data, min_weight):
    """Rows are few, with many ties; a leaf needs the sum `min_weight` of second derivatives."""
    X, numbers = data
    labels = (numbers > 0).astype(float)
    # Log odds need both classes.
    assume(0 < labels.mean() < 1)
    settings = FEW_TREES._replace(min_weight=min_weight)
    trees = BoostedTrees.fit(X, labels, loss=Loss.LOGISTIC, settings=settings)
    recursive_trees = RecursiveTrees(X, labels, settings, Loss.LOGISTIC)
    assert_allclose(trees.predict(X), recursive_trees.predictions, atol=1e-12)


# -- predictions -----------------------------------------------------------------------------------


def test_predictions_do_not_depend_on_batch():
    """A row has the same prediction alone and among 150."""
    trees = BoostedTrees.fit(*make_data(100, 4))
    X, _ = make_data(150, 4, seed=1)
    single = [trees.predict(row[None])[0] for row in X]
    assert_array_equal(trees.predict(X), single)


def test_predictions_do_not_depend_on_order():
    """Rows in reverse order have the same predictions in reverse order."""
    trees = BoostedTrees.fit(*make_data(100, 4))
    X, _ = make_data(150, 4, seed=1)
    assert_array_equal(trees.predict(X[::-1]), trees.predict(X)[::-1])


def test_no_rows_give_no_predictions():
    trees = BoostedTrees.fit(*make_data(100, 4))
    assert trees.predict(np.empty((0, 4))).shape == (0,)


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
