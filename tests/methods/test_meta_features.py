"""Meta-features: against scipy and scikit-learn, and on any data."""

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

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data import DataKind, TaskData
from hpobench_ordered.methods._meta_features import compute_meta_features

FEATURE_PART = 19
"""Number of meta-features that describe the features, which come first."""
REGRESSION, CLASSIFICATION = DataKind.REGRESSION, DataKind.CLASSIFICATION
UNSUPERVISED = DataKind.UNSUPERVISED


LANDMARKERS = {REGRESSION: 3, CLASSIFICATION: 4, UNSUPERVISED: 0}
"""Number of landmarkers, the last meta-features: accuracies or R2 of simple models."""


def compute_parts(
    data: TaskData, *, classes: int | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Compute meta-features, and split them into their three parts.

    Returns:
        Those that describe the features, then those that describe the labels, or the means of the
        features if there are no labels, and last the landmarkers.
    """
    meta_features = compute_meta_features(data, classes=classes)
    landmarker_start = len(meta_features) - LANDMARKERS[data.kind]
    of_features, of_labels, landmarkers = np.split(meta_features, [FEATURE_PART, landmarker_start])
    return of_features, of_labels, landmarkers


def make_regression(rng: np.random.Generator, n: int = 300, p: int = 4) -> TaskData:
    """Data of n points with p skewed and correlated features, and skewed numeric labels."""
    X = rng.gamma(2.0, size=(n, p)) @ rng.normal(size=(p, p))
    y = 3.0 + np.exp(X[:, 0] / 4) + 0.1 * rng.normal(size=n)
    return TaskData(X, y, REGRESSION)


# -- against scipy and scikit-learn ----------------------------------------------------------------


def summarise(values: FloatArray) -> list[float]:
    """Minimum, maximum, mean and standard deviation."""
    return [values.min(), values.max(), values.mean(), values.std()]


def describe_features_by_scipy(X: FloatArray) -> list[float]:
    """The 19 meta-features that describe features X (n, p).

    First come summaries of the skewness and kurtosis of columns, and of the correlation and
    covariance of pairs of columns. Then come skewness and kurtosis of the first principal
    component, and how many components explain 95 % of the variance.
    """
    correlations = []
    covariances = []
    for first, second in combinations(X.T, 2):
        correlations.append(stats.pearsonr(first, second).statistic)
        covariances.append(np.cov(first, second, ddof=0)[0, 1])
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
    """Features of data with labels are described after they were standardised."""
    data = make_regression(np.random.default_rng(0))
    standardised = StandardScaler().fit_transform(data.features)
    of_features, _of_labels, _landmarkers = compute_parts(data)
    assert_allclose(of_features, describe_features_by_scipy(standardised), rtol=1e-8)


def test_numeric_labels_are_scaled_and_described():
    """Numeric labels are described by four moments, after they were scaled to [0, 1]."""
    data = make_regression(np.random.default_rng(0))
    scaled = (data.labels - data.labels.min()) / np.ptp(data.labels)
    expected = [scaled.mean(), scaled.std(), stats.skew(scaled), stats.kurtosis(scaled)]
    _of_features, of_labels, _landmarkers = compute_parts(data)
    assert_allclose(of_labels, expected, rtol=1e-8)


def test_features_keep_scale_without_labels():
    """Three features with different scales and means are described as they are.

    Without labels, the means of the features are meta-features, too.
    """
    scales = [1.0, 5.0, 0.1]
    offsets = [-4.0, 0.0, -1.0]
    X = scales * np.random.default_rng(2).gamma(1.0, size=(200, 3)) + offsets
    of_features, means, _landmarkers = compute_parts(TaskData(X, None, UNSUPERVISED))
    assert_allclose(of_features, describe_features_by_scipy(X), rtol=1e-8)
    assert_allclose(means, X.mean(axis=0), rtol=1e-8)


def test_single_feature_has_no_pairs():
    """Correlation and covariance of pairs are 0; the principal component is the feature itself."""
    X = np.random.default_rng(3).gamma(1.0, size=(200, 1))
    of_features, _means, _landmarkers = compute_parts(TaskData(X, None, UNSUPERVISED))
    # Summaries of four numbers of skewness, kurtosis, correlation and covariance come first.
    _of_columns, of_pairs, of_component = np.split(of_features, [8, 16])
    assert_array_equal(of_pairs, 0)
    # One component explains all variance.
    assert_allclose(of_component, [*stats.skew(X), *stats.kurtosis(X), 1])


# -- classes ---------------------------------------------------------------------------------------


def make_classification() -> TaskData:
    """Data of three classes, with shares of 0.5, 0.3 and 0.2."""
    X = np.random.default_rng(4).normal(size=(200, 3))
    labels = np.repeat([0.0, 1.0, 2.0], [100, 60, 40])
    return TaskData(X, labels, CLASSIFICATION)


@pytest.mark.parametrize(
    ("classes", "ratios"), [(None, [0.5, 0.3, 0.2]), (5, [0.5, 0.3, 0.2, 0, 0])]
)
def test_class_ratios_and_entropy(classes, ratios):
    """The data have three classes with shares of 0.5, 0.3 and 0.2.

    If a larger number of classes is passed, the others have the ratio 0.
    """
    _of_features, of_labels, _landmarkers = compute_parts(make_classification(), classes=classes)
    assert_allclose(of_labels, [*ratios, stats.entropy([0.5, 0.3, 0.2])])


# -- landmarkers -----------------------------------------------------------------------------------

SQUARE_POINTS = np.random.default_rng(5).uniform(-1, 1, size=(2000, 2))
"""Two features of 2000 points, uniform on a square around 0."""


def compute_landmarkers_of_classes(labels: FloatArray) -> dict[str, float]:
    """Accuracies of four simple models on points of a square with these labels, by model."""
    data = TaskData(SQUARE_POINTS, labels, CLASSIFICATION)
    _of_features, _of_labels, landmarkers = compute_parts(data)
    names = ("neighbour", "linear", "bayes", "tree")
    return dict(zip(names, landmarkers, strict=True))


def compute_landmarkers_of_numbers(labels: FloatArray) -> dict[str, float]:
    """R2 of three simple models on points of a square with these labels, by model."""
    data = TaskData(SQUARE_POINTS, labels, REGRESSION)
    _of_features, _of_labels, landmarkers = compute_parts(data)
    names = ("neighbour", "linear", "tree")
    return dict(zip(names, landmarkers, strict=True))


def test_only_flexible_models_learn_nonlinear_classes():
    """The class is whether x * y is positive, which no linear model and no naive Bayes can learn.

    Half of the points are in each class, so that guesses have an accuracy of 0.5.
    """
    x, y = SQUARE_POINTS.T
    landmarkers = compute_landmarkers_of_classes(x * y > 0)
    assert max(landmarkers["linear"], landmarkers["bayes"]) < 0.7
    assert min(landmarkers["neighbour"], landmarkers["tree"]) > 0.9


def test_only_flexible_models_learn_nonlinear_function():
    """A parabola around 0 has no slope on average, so that a linear model's R2 is near 0.

    An R2 of 0 means that a model predicts no better than the mean, and 1 that it makes no error.
    """
    landmarkers = compute_landmarkers_of_numbers(SQUARE_POINTS[:, 0] ** 2)
    assert landmarkers["linear"] < 0.1
    assert min(landmarkers["neighbour"], landmarkers["tree"]) > 0.9


# -- properties ------------------------------------------------------------------------------------

SEEDS = st.integers(0, 2**32 - 1)


def compute_order_free(data: TaskData) -> FloatArray:
    """The meta-features that do not depend on the order of points or of features.

    These are all but landmarkers, which split the points, and the means of features.
    """
    of_features, of_labels_or_means, _landmarkers = compute_parts(data)
    if data.kind is UNSUPERVISED:
        return of_features
    return np.concatenate([of_features, of_labels_or_means])


def make_small_data(kind: DataKind, seed: int) -> TaskData:
    """40 points of three features, with numbers, classes or nothing as labels."""
    regression = make_regression(np.random.default_rng(seed), n=40, p=3)
    X = regression.features
    if kind is REGRESSION:
        return regression
    if kind is CLASSIFICATION:
        return TaskData(X, X[:, 0] > np.median(X[:, 0]), CLASSIFICATION)
    return TaskData(X, None, UNSUPERVISED)


@given(SEEDS, st.sampled_from(DataKind))
def test_order_of_points_does_not_matter(seed, kind):
    """Shuffled points have the same meta-features, but for landmarkers, which split them."""
    data = make_small_data(kind, seed)
    order = np.random.default_rng(seed).permutation(40)
    labels = None if data.labels is None else data.labels[order]
    shuffled = TaskData(data.features[order], labels, kind)
    expected = compute_order_free(data)
    assert_allclose(compute_order_free(shuffled), expected, rtol=1e-6, atol=1e-9)


any_number = st.sampled_from([0.0, 0.1, 1.0, -3.0]) | st.floats(-1e6, 1e6)
"""Some numbers are frequent, so that there are ties."""
any_class = st.integers(0, 2).map(float)


@st.composite
def any_data(draw: st.DrawFn) -> TaskData:
    """Draw up to twelve points of up to four features, often equal or constant, and labels."""
    kind = draw(st.sampled_from(DataKind))
    n = draw(st.integers(1, 12))
    p = draw(st.integers(1, 4))
    X = draw(arrays(np.float64, (n, p), elements=any_number))
    if kind is UNSUPERVISED:
        return TaskData(X, None, kind)
    any_label = any_number if kind is REGRESSION else any_class
    labels = draw(arrays(np.float64, n, elements=any_label))
    return TaskData(X, labels, kind)


@given(any_data())
def test_any_data_give_finite_numbers(data):
    """Few, equal or constant points and labels give as many numbers as others, all finite."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        meta_features = compute_meta_features(data, classes=3)
    label_part = {
        REGRESSION: 4,  # mean, deviation, skewness and kurtosis
        CLASSIFICATION: 3 + 1,  # ratios of three classes, and their entropy
        UNSUPERVISED: data.features.shape[1],  # means of the features instead
    }
    expected_length = FEATURE_PART + label_part[data.kind] + LANDMARKERS[data.kind]
    assert meta_features.shape == (expected_length,)
    assert np.isfinite(meta_features).all()


CONSTANT_FEATURES = np.full((20, 3), 0.1)
"""Three features that are the same for all of 20 points."""


def test_constant_features_give_zeros():
    """Constant features have meta-features and landmarkers of 0, although labels differ."""
    labels = np.repeat([0.0, 1.0], 10)
    data = TaskData(CONSTANT_FEATURES, labels, CLASSIFICATION)
    of_features, _of_labels, landmarkers = compute_parts(data)
    assert not of_features.any()
    assert not landmarkers.any()


# -- large data ------------------------------------------------------------------------------------


def test_large_data_are_subsampled():
    """Of 20 000 points, 5000 random ones are used.

    So the meta-features are about those of the first 5000 points, but not the same.
    """
    X = np.random.default_rng(7).uniform(size=(20_000, 2))
    # All 5000 points of small data are used.
    small = compute_meta_features(TaskData(X[:5000], X[:5000, 0], REGRESSION))
    large = compute_meta_features(TaskData(X, X[:, 0], REGRESSION))
    assert large == pytest.approx(small, abs=0.1)
    # The subsample is not simply the first 5000.
    assert (large != small).any()
