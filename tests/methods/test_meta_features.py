"""Meta-features: against scipy and scikit-learn, finite on any data, blind where they should be."""

import sys
import warnings

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
REGRESSION, CLASSIFICATION = hbo.DataKind.REGRESSION, hbo.DataKind.CLASSIFICATION
UNSUPERVISED = hbo.DataKind.UNSUPERVISED


def regression(rng: np.random.Generator, n: int = 300, p: int = 4) -> hbo.TaskData:
    X = rng.gamma(2.0, size=(n, p)) @ rng.normal(size=(p, p))
    return hbo.TaskData(X, 3.0 + np.exp(X[:, 0] / 4) + 0.1 * rng.normal(size=n), REGRESSION)


def summary(values: FloatArray) -> list[float]:
    return [values.min(), values.max(), values.mean(), values.std()]


def expected_general(X: FloatArray) -> list[float]:
    p = X.shape[1]
    pairs = [(i, j) for i in range(p) for j in range(i)]
    correlation = np.array([stats.pearsonr(X[:, i], X[:, j]).statistic for i, j in pairs])
    covariance = np.array([np.cov(X[:, i], X[:, j], ddof=0)[0, 1] for i, j in pairs])
    pca = PCA().fit(X)
    projected = pca.transform(X)[:, 0]
    return [
        *summary(stats.skew(X)),
        *summary(stats.kurtosis(X)),
        *summary(correlation),
        *summary(covariance),
        abs(stats.skew(projected)),
        stats.kurtosis(projected),
        PCA(n_components=0.95).fit(X).n_components_,
    ]


def test_those_of_regression_agree_with_scipy_and_scikit_learn():
    data = regression(np.random.default_rng(0))
    y = data.labels
    assert y is not None
    y = (y - y.min()) / (y.max() - y.min())
    expected = expected_general(StandardScaler().fit_transform(data.features))
    assert len(expected) == GENERAL
    expected += [y.mean(), y.std(), stats.skew(y), stats.kurtosis(y)]
    assert_allclose(compute_meta_features(data)[: GENERAL + 4], expected, rtol=1e-8)


def test_without_labels_features_keep_their_scale_and_their_means_are_encoded():
    X = np.random.default_rng(2).gamma(1.0, size=(200, 3)) * [1.0, 5.0, 0.1] - [4.0, 0.0, 1.0]
    found = compute_meta_features(hbo.TaskData(X, None, UNSUPERVISED))
    assert_allclose(found, [*expected_general(X), *X.mean(axis=0)], rtol=1e-8)


def test_one_feature_has_no_pairs():
    X = np.random.default_rng(3).gamma(1.0, size=(200, 1))
    found = compute_meta_features(hbo.TaskData(X, None, UNSUPERVISED))
    assert_array_equal(found[8:16], 0)
    assert_allclose(found[16:], [stats.skew(X[:, 0]), stats.kurtosis(X[:, 0]), 1, X.mean()])


def test_class_ratios_and_their_entropy():
    rng = np.random.default_rng(4)
    y = np.repeat([0.0, 1.0, 2.0], [100, 60, 40])
    data = hbo.TaskData(rng.normal(size=(200, 3)), y, CLASSIFICATION)
    ratios = [0.5, 0.3, 0.2]
    expected = [*ratios, stats.entropy(ratios)]
    assert_allclose(compute_meta_features(data)[GENERAL : GENERAL + 4], expected)
    padded = compute_meta_features(data, classes=5)
    assert_allclose(padded[GENERAL : GENERAL + 6], [*ratios, 0, 0, stats.entropy(ratios)])
    with pytest.raises(EvaluationsError, match="labels must be below 2, but got 2"):
        compute_meta_features(data, classes=2)


def test_landmarkers_tell_what_is_linear_from_what_is_not():
    X = np.random.default_rng(5).uniform(-1, 1, size=(2000, 2))

    def landmarkers(labels: FloatArray, kind: hbo.DataKind) -> FloatArray:
        return compute_meta_features(hbo.TaskData(X, labels, kind))[-4:]

    assert min(landmarkers(X[:, 0] > X[:, 1], CLASSIFICATION)) > 0.93
    nn, lda, bayes, tree = landmarkers(X[:, 0] * X[:, 1] > 0, CLASSIFICATION)
    assert max(lda, bayes) < 0.7 and min(nn, tree) > 0.9
    _, nn, linear, tree = landmarkers(X @ [1.0, 2.0], REGRESSION)
    assert linear == pytest.approx(1) and min(nn, tree) > 0.9
    _, nn, linear, tree = landmarkers(X[:, 0] ** 2, REGRESSION)
    assert linear < 0.1 and min(nn, tree) > 0.9


@given(st.integers(0, 2**32 - 1), st.sampled_from(hbo.DataKind))
def test_order_of_points_and_features_does_not_matter(seed, kind):
    rng = np.random.default_rng(seed)
    data = regression(rng, n=40, p=3)
    points, features = rng.permutation(40), rng.permutation(3)
    X = data.features
    labels = {REGRESSION: data.labels, CLASSIFICATION: X[:, 0] > np.median(X[:, 0])}.get(kind)
    first = compute_meta_features(hbo.TaskData(X, labels, kind))
    shuffled = None if labels is None else labels[points]
    other = compute_meta_features(hbo.TaskData(X[points][:, features], shuffled, kind))
    own = {REGRESSION: 4, CLASSIFICATION: 3, UNSUPERVISED: 0}[kind]
    assert_allclose(other[: GENERAL + own], first[: GENERAL + own], rtol=1e-6, atol=1e-9)
    if kind is UNSUPERVISED:
        assert_allclose(other[GENERAL:], first[GENERAL:][features])


@given(st.data(), st.integers(1, 12), st.integers(1, 4), st.sampled_from(hbo.DataKind))
def test_any_data_give_finite_numbers_without_warnings(draw, n, p, kind):
    few = st.sampled_from([0.0, 0.1, 1.0, -3.0]) | st.floats(-1e6, 1e6)
    X = draw.draw(arrays(np.float64, (n, p), elements=few))
    of_labels = {REGRESSION: few, CLASSIFICATION: st.integers(0, 2).map(float)}.get(kind)
    y = None if of_labels is None else draw.draw(arrays(np.float64, n, elements=of_labels))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = compute_meta_features(hbo.TaskData(X, y, kind), classes=3)
    lengths = {REGRESSION: GENERAL + 7, CLASSIFICATION: GENERAL + 8, UNSUPERVISED: GENERAL + p}
    assert found.shape == (lengths[kind],)
    assert np.isfinite(found).all()


def test_nothing_varies():
    X, y = np.full((20, 3), 0.1), np.repeat([0.0, 1.0], 10)
    found = compute_meta_features(hbo.TaskData(X, y, CLASSIFICATION))
    assert not found[:GENERAL].any() and not found[-4:].any()
    assert not compute_meta_features(hbo.TaskData(X, np.full(20, 2.0), REGRESSION)).any()


def counterexample(rng: np.random.Generator, task: int) -> hbo.TaskData:
    """Section 5.2, equation 1: features 1, 2 and task + 2 matter."""
    X = rng.normal(0.0, 2.0, size=(5000, 6))
    X[:, task + 1] = np.sign(X[:, 0] * X[:, 1]) * np.abs(X[:, task + 1])
    product = X[:, 0] * X[:, 1] * X[:, task + 1]
    return hbo.TaskData(X, np.log1p(product**3) + rng.normal(0, 0.5, size=5000), REGRESSION)


@pytest.mark.slow
def test_processes_of_the_counterexample_look_alike():
    rng = np.random.default_rng(6)
    first, second = (
        np.array([compute_meta_features(counterexample(rng, i)) for _ in range(8)]) for i in (1, 2)
    )
    varies = np.ptp([*first, *second], axis=0) > 1e-9
    assert varies.sum() == GENERAL + 7 - 1  # the intrinsic dimension does not
    p_values = stats.ttest_ind(first[:, varies], second[:, varies]).pvalue
    assert p_values.min() > 0.01 / varies.sum()  # Bonferroni


def test_large_data_are_sampled():
    rng = np.random.default_rng(7)
    X = rng.uniform(size=(20000, 2))
    few, many = (hbo.TaskData(X[:n], X[:n, 0], REGRESSION) for n in (5000, 20000))
    assert compute_meta_features(many) == pytest.approx(compute_meta_features(few), abs=0.1)
    assert (compute_meta_features(many) != compute_meta_features(few)).any()
    y = np.zeros(20000)
    y[0] = 1  # most likely not in the sample
    assert (
        len(compute_meta_features(hbo.TaskData(rng.normal(size=(20000, 1)), y, CLASSIFICATION)))
        == 26
    )


def test_without_scikit_learn_labels_cannot_be_described(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.neighbors", None)
    X = np.random.default_rng(10).normal(size=(50, 2))
    with pytest.raises(MissingExtraError, match="scikit-learn"):
        compute_meta_features(hbo.TaskData(X, X[:, 0], REGRESSION))
    assert compute_meta_features(hbo.TaskData(X, None, UNSUPERVISED)).shape == (GENERAL + 2,)


def test_normalised_over_tasks():
    table = np.array([[1.0, 5.0, -2.0], [3.0, 5.0, 0.0], [2.0, 5.0, -1.0]])
    assert_array_equal(scale_to_unit_interval(table), [[0, 0, 0], [1, 0, 1], [0.5, 0, 0.5]])
