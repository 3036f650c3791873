"""Meta-features: against scipy and scikit-learn, on any data, and what they cannot see."""

import sys
import warnings
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.errors import EvaluationsError, MissingExtraError
from hpobench_ordered.methods._meta_features import compute_meta_features, scale_to_unit_interval

GENERAL = 19
"""Number of meta-features that need no labels, which come first."""
REGRESSION, CLASSIFICATION = hbo.DataKind.REGRESSION, hbo.DataKind.CLASSIFICATION
UNSUPERVISED = hbo.DataKind.UNSUPERVISED


def make_regression(rng: np.random.Generator, n: int = 300, p: int = 4) -> hbo.TaskData:
    """Data of n points with p skewed and correlated features, and skewed numeric labels."""
    X = rng.gamma(2.0, size=(n, p)) @ rng.normal(size=(p, p))
    y = 3.0 + np.exp(X[:, 0] / 4) + 0.1 * rng.normal(size=n)
    return hbo.TaskData(X, y, REGRESSION)


# -- against scipy and scikit-learn ----------------------------------------------------------------


def summarise(values: FloatArray) -> list[float]:
    """Minimum, maximum, mean and standard deviation."""
    return [values.min(), values.max(), values.mean(), values.std()]


def describe_features_by_scipy(X: FloatArray) -> list[float]:
    """The 19 meta-features of features X (n, p): minimum, maximum, mean and standard deviation of
    each column's skewness and kurtosis and of each pair's correlation and covariance; then of the
    first principal component, and how many components explain 95 % of the variance.
    """
    correlations = []
    covariances = []
    for i, j in combinations(range(X.shape[1]), 2):
        correlations.append(stats.pearsonr(X[:, i], X[:, j]).statistic)
        covariances.append(np.cov(X[:, i], X[:, j], ddof=0)[0, 1])
    first_component = PCA().fit_transform(X)[:, 0]
    return [
        *summarise(stats.skew(X)),
        *summarise(stats.kurtosis(X)),
        *summarise(np.array(correlations)),
        *summarise(np.array(covariances)),
        abs(stats.skew(first_component)),
        stats.kurtosis(first_component),
        PCA(n_components=0.95).fit(X).n_components_,
    ]


def test_features_are_standardised_with_labels():
    data = make_regression(np.random.default_rng(0))
    expected = describe_features_by_scipy(StandardScaler().fit_transform(data.features))
    assert_allclose(compute_meta_features(data)[:GENERAL], expected, rtol=1e-8)


def test_numeric_labels_are_scaled_and_described():
    data = make_regression(np.random.default_rng(0))
    # Scaled to [0, 1].
    y = (data.labels - data.labels.min()) / np.ptp(data.labels)
    expected = [y.mean(), y.std(), stats.skew(y), stats.kurtosis(y)]
    # They follow the meta-features of the features.
    assert_allclose(compute_meta_features(data)[GENERAL : GENERAL + 4], expected, rtol=1e-8)


def test_features_keep_scale_without_labels():
    # Features of other means and scales.
    X = np.random.default_rng(2).gamma(1.0, size=(200, 3)) * [1.0, 5.0, 0.1] - [4.0, 0.0, 1.0]
    meta_features = compute_meta_features(hbo.TaskData(X, None, UNSUPERVISED))
    expected = [*describe_features_by_scipy(X), *X.mean(axis=0)]
    assert_allclose(meta_features, expected, rtol=1e-8)


def test_single_feature_has_no_pairs():
    X = np.random.default_rng(3).gamma(1.0, size=(200, 1))
    meta_features = compute_meta_features(hbo.TaskData(X, None, UNSUPERVISED))
    # The first principal component is the feature, and one explains all variance.
    of_component = [stats.skew(X[:, 0]), stats.kurtosis(X[:, 0]), 1]
    correlation_and_covariance = meta_features[8:16]
    assert_array_equal(correlation_and_covariance, 0)
    assert_allclose(meta_features[16:], [*of_component, X.mean()])


# -- classes ---------------------------------------------------------------------------------------


def make_classification() -> hbo.TaskData:
    """Data of three classes, with shares of 0.5, 0.3 and 0.2."""
    X = np.random.default_rng(4).normal(size=(200, 3))
    return hbo.TaskData(X, np.repeat([0.0, 1.0, 2.0], [100, 60, 40]), CLASSIFICATION)


@pytest.mark.parametrize(
    ("classes", "ratios"), [(None, [0.5, 0.3, 0.2]), (5, [0.5, 0.3, 0.2, 0, 0])]
)
def test_class_ratios_and_entropy(classes, ratios):
    """Of three classes in the data, or of five if the number is passed."""
    meta_features = compute_meta_features(make_classification(), classes=classes)
    expected = [*ratios, stats.entropy([0.5, 0.3, 0.2])]
    # Between the meta-features of the features and the four landmarkers.
    assert_allclose(meta_features[GENERAL:-4], expected)


def test_label_above_number_of_classes_is_refused():
    with pytest.raises(EvaluationsError, match="labels must be below 2, but got 2"):
        # The labels are 0, 1 and 2.
        compute_meta_features(make_classification(), classes=2)


# -- landmarkers -----------------------------------------------------------------------------------

SQUARE_POINTS = np.random.default_rng(5).uniform(-1, 1, size=(2000, 2))


def compute_landmarkers_of_classes(labels: FloatArray) -> dict[str, float]:
    """Accuracies of four models, the last four meta-features."""
    data = hbo.TaskData(SQUARE_POINTS, labels, CLASSIFICATION)
    names = ("neighbour", "linear", "bayes", "tree")
    return dict(zip(names, compute_meta_features(data)[-4:], strict=True))


def compute_landmarkers_of_numbers(labels: FloatArray) -> dict[str, float]:
    """R2 of three models, the last three meta-features."""
    data = hbo.TaskData(SQUARE_POINTS, labels, REGRESSION)
    return dict(zip(("neighbour", "linear", "tree"), compute_meta_features(data)[-3:], strict=True))


def test_all_models_learn_linear_classes():
    """Landmarkers are the accuracies of simple models: here each of them exceeds 93 %."""
    x, y = SQUARE_POINTS.T
    landmarkers = compute_landmarkers_of_classes(x > y)
    assert min(landmarkers.values()) > 0.93


def test_only_flexible_models_learn_nonlinear_classes():
    """Landmarkers are the accuracies of simple models; half of the points have each label."""
    x, y = SQUARE_POINTS.T
    landmarkers = compute_landmarkers_of_classes(x * y > 0)
    assert max(landmarkers["linear"], landmarkers["bayes"]) < 0.7
    assert min(landmarkers["neighbour"], landmarkers["tree"]) > 0.9


def test_all_models_learn_linear_function():
    """Landmarkers are the R2 of simple models; that of linear regression is 1."""
    landmarkers = compute_landmarkers_of_numbers(SQUARE_POINTS @ [1.0, 2.0])
    assert landmarkers["linear"] == pytest.approx(1)
    assert min(landmarkers.values()) > 0.9


def test_only_flexible_models_learn_nonlinear_function():
    """Landmarkers are the R2 of simple models, 0 if they predict no better than the mean."""
    landmarkers = compute_landmarkers_of_numbers(SQUARE_POINTS[:, 0] ** 2)
    assert landmarkers["linear"] < 0.1
    assert min(landmarkers["neighbour"], landmarkers["tree"]) > 0.9


# -- properties ------------------------------------------------------------------------------------

SEEDS = st.integers(0, 2**32 - 1)
ORDER_FREE = {REGRESSION: GENERAL + 4, CLASSIFICATION: GENERAL + 3, UNSUPERVISED: GENERAL}
"""Number of meta-features, from the first, that do not depend on an order: all but landmarkers,
which split the points, and means of features."""


def make_data(kind: hbo.DataKind, seed: int) -> hbo.TaskData:
    """Data of a kind: 40 points of three features, with numbers, classes or nothing as labels."""
    regression = make_regression(np.random.default_rng(seed), n=40, p=3)
    X = regression.features
    if kind is REGRESSION:
        return regression
    if kind is CLASSIFICATION:
        return hbo.TaskData(X, X[:, 0] > np.median(X[:, 0]), CLASSIFICATION)
    return hbo.TaskData(X, None, UNSUPERVISED)


@given(SEEDS, st.sampled_from(hbo.DataKind))
def test_order_of_points_does_not_matter(seed, kind):
    data = make_data(kind, seed)
    order = np.random.default_rng(seed).permutation(40)
    labels = None if data.labels is None else data.labels[order]
    shuffled = hbo.TaskData(data.features[order], labels, kind)
    # Without landmarkers, which split the points, and means of features.
    expected = compute_meta_features(data)[: ORDER_FREE[kind]]
    actual = compute_meta_features(shuffled)[: ORDER_FREE[kind]]
    assert_allclose(actual, expected, rtol=1e-6, atol=1e-9)


@given(SEEDS, st.sampled_from(hbo.DataKind))
def test_order_of_features_does_not_matter(seed, kind):
    data = make_data(kind, seed)
    order = np.random.default_rng(seed).permutation(3)
    shuffled = hbo.TaskData(data.features[:, order], data.labels, kind)
    # Without landmarkers and means of features.
    expected = compute_meta_features(data)[: ORDER_FREE[kind]]
    actual = compute_meta_features(shuffled)[: ORDER_FREE[kind]]
    assert_allclose(actual, expected, rtol=1e-6, atol=1e-9)


@given(SEEDS)
def test_means_are_in_order_of_features(seed):
    data = make_data(UNSUPERVISED, seed)
    order = np.random.default_rng(seed).permutation(3)
    shuffled = hbo.TaskData(data.features[:, order], None, UNSUPERVISED)
    # Without labels, the last meta-features are the features' means.
    means = compute_meta_features(data)[GENERAL:]
    assert_allclose(compute_meta_features(shuffled)[GENERAL:], means[order])


NUMBERS = st.sampled_from([0.0, 0.1, 1.0, -3.0]) | st.floats(-1e6, 1e6)
LABELS = {REGRESSION: NUMBERS, CLASSIFICATION: st.integers(0, 2).map(float)}


@st.composite
def any_data(draw: st.DrawFn) -> hbo.TaskData:
    """Up to twelve points of up to four features, often equal or constant."""
    kind = draw(st.sampled_from(hbo.DataKind))
    n, p = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    X = draw(arrays(np.float64, (n, p), elements=NUMBERS))
    if kind is UNSUPERVISED:
        return hbo.TaskData(X, None, kind)
    return hbo.TaskData(X, draw(arrays(np.float64, n, elements=LABELS[kind])), kind)


@given(any_data())
def test_any_data_give_finite_numbers(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        meta_features = compute_meta_features(data, classes=3)
    # 4 numbers of labels and 3 landmarkers; 3 class ratios, their entropy and 4 landmarkers; a mean
    # a feature.
    lengths = {
        REGRESSION: GENERAL + 7,
        CLASSIFICATION: GENERAL + 8,
        UNSUPERVISED: GENERAL + data.features.shape[1],
    }
    assert meta_features.shape == (lengths[data.kind],)
    assert np.isfinite(meta_features).all()


CONSTANT_FEATURES = np.full((20, 3), 0.1)


def test_constant_features_give_zeros():
    labels = np.repeat([0.0, 1.0], 10)
    meta_features = compute_meta_features(hbo.TaskData(CONSTANT_FEATURES, labels, CLASSIFICATION))
    # First the meta-features of the features, at the end the landmarkers.
    assert not meta_features[:GENERAL].any()
    landmarkers = meta_features[-4:]
    assert not landmarkers.any()


def test_constant_data_give_zeros():
    data = hbo.TaskData(CONSTANT_FEATURES, np.full(20, 2.0), REGRESSION)
    assert not compute_meta_features(data).any()


# -- the counterexample ----------------------------------------------------------------------------


def make_counterexample(rng: np.random.Generator, task: int) -> hbo.TaskData:
    """Section 5.2, equation 1: features 1, 2 and task + 2 matter."""
    X = rng.normal(0.0, 2.0, size=(5000, 6))
    X[:, task + 1] = np.sign(X[:, 0] * X[:, 1]) * np.abs(X[:, task + 1])
    product = X[:, 0] * X[:, 1] * X[:, task + 1]
    return hbo.TaskData(X, np.log1p(product**3) + rng.normal(0, 0.5, size=5000), REGRESSION)


@pytest.mark.slow
def test_counterexample_tasks_look_alike():
    """No meta-feature differs significantly between eight samples of one task and of another."""
    rng = np.random.default_rng(6)
    first = [compute_meta_features(make_counterexample(rng, 1)) for _ in range(8)]
    second = [compute_meta_features(make_counterexample(rng, 2)) for _ in range(8)]
    varies = np.ptp([*first, *second], axis=0) > 1e-9
    # All but one: the intrinsic dimension is the same in all samples.
    assert varies.sum() == GENERAL + 7 - 1
    p_values = stats.ttest_ind(np.array(first)[:, varies], np.array(second)[:, varies]).pvalue
    bonferroni = 0.01 / varies.sum()
    assert p_values.min() > bonferroni


# -- large data, missing packages, scaling ---------------------------------------------------------


def test_large_data_are_subsampled():
    X = np.random.default_rng(7).uniform(size=(20_000, 2))
    # 5000 is the largest number of points that is used.
    small = compute_meta_features(hbo.TaskData(X[:5000], X[:5000, 0], REGRESSION))
    large = compute_meta_features(hbo.TaskData(X, X[:, 0], REGRESSION))
    assert large == pytest.approx(small, abs=0.1)
    # The subsample is not simply the first 5000.
    assert (large != small).any()


def test_class_outside_subsample_counts():
    rng = np.random.default_rng(7)
    labels = np.zeros(20_000)
    labels[0] = 1  # most likely not in the sample
    data = hbo.TaskData(rng.normal(size=(20_000, 1)), labels, CLASSIFICATION)
    # Two class ratios, their entropy and four landmarkers.
    assert len(compute_meta_features(data)) == GENERAL + 2 + 1 + 4


UNCACHED_FEATURES = np.random.default_rng(10).normal(size=(50, 2))
"""Of no other test, so that their meta-features are computed anew."""


def test_labels_need_scikit_learn(monkeypatch):
    # Makes the import fail.
    monkeypatch.setitem(sys.modules, "sklearn.neighbors", None)
    data = hbo.TaskData(UNCACHED_FEATURES, UNCACHED_FEATURES[:, 0], REGRESSION)
    with pytest.raises(MissingExtraError, match="scikit-learn"):
        compute_meta_features(data)


def test_features_need_no_scikit_learn(monkeypatch):
    """Only labels do, for landmarkers; without labels, the last meta-features are a mean of each of
    two features.
    """
    # Makes the import fail.
    monkeypatch.setitem(sys.modules, "sklearn.neighbors", None)
    meta_features = compute_meta_features(hbo.TaskData(UNCACHED_FEATURES, None, UNSUPERVISED))
    assert meta_features.shape == (GENERAL + 2,)


def test_columns_are_scaled_to_unit_interval():
    table = np.array([[1.0, 5.0, -2.0], [3.0, 5.0, 0.0], [2.0, 5.0, -1.0]])
    # The second column is constant.
    expected = [[0, 0, 0], [1, 0, 1], [0.5, 0, 0.5]]
    assert_array_equal(scale_to_unit_interval(table), expected)
