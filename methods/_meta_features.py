"""Handcrafted meta-features of a data set: Law et al. (2019), appendix B.1.

======  ========  =====================================================================
symbol  shape     meaning
======  ========  =====================================================================
n, p    scalars   points, features
X       (n, p)    features; standardised, each by itself, if there are labels
Z       (n, p)    standardised features in any case; constant ones are 0
y       (n,)      labels: classes, or numbers scaled to [0, 1]
======  ========  =====================================================================

The sample size is not included: methods get it separately. Undefined meta-features, such as the
correlation of a single feature or the skewness of a constant, are 0.
"""

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.data.identity import hash_arrays
from hpobench_ordered.data.task_data import DataKind, TaskData
from hpobench_ordered.errors import EvaluationsError
from hpobench_ordered.runtime.threads import one_thread

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_POINTS = 5000
"""Largest number of points used; larger data sets are subsampled."""

MIN_POINTS = 5
"""Smallest number of points for landmarkers: two of them are for testing."""

EXPLAINED = 0.95
"""Share of the variance that the intrinsic dimension explains."""

MAX_CACHED = 1000
"""Number of cached results."""

_cache: dict[str, FloatArray] = {}


def compute_meta_features(data: TaskData, *, classes: int | None = None) -> FloatArray:
    """Compute the meta-features of a data set; results are cached.

    Args:
        data: The data.
        classes: Number of classes, so that vectors of several tasks have the same length; by
            default as many as in these data. Ignored if there are no classes.

    Returns:
        Finite numbers: first 19 that describe the features, then others that depend on the labels.
        For classes these are the share of each class, their entropy and 4 landmarkers; for numeric
        labels 4 moments of the labels and 3 landmarkers; without labels the mean of each feature.
        Landmarkers are the accuracy or R2 of simple models on a part of the data that they were not
        trained on.

    Raises:
        EvaluationsError: A label is not below `classes`.
        MissingExtraError: There are labels, and scikit-learn is not installed.
    """
    key = _digest(data, classes)
    if key not in _cache:
        if len(_cache) >= MAX_CACHED:  # so that it does not grow forever
            _cache.clear()
        with one_thread():
            _cache[key] = _compute(data, classes)
    return _cache[key].copy()


def scale_to_unit_interval(table: FloatArray) -> FloatArray:
    """Scale each column to [0, 1] over the tasks, the rows; constant columns become 0."""
    lowest = table.min(axis=0)
    width = np.ptp(table, axis=0)  # largest minus smallest
    return np.asarray((table - lowest) / np.where(width > 0, width, 1.0))


def _digest(data: TaskData, classes: int | None) -> str:
    """Hash everything that the meta-features depend on: kind, features, labels, class count.

    The hash is the key of cached results.
    """
    arrays = [data.features]
    if data.labels is not None:
        arrays.append(data.labels)
    description = f"{data.kind.value} {data.features.shape} {classes}"
    return hash_arrays(*arrays, description=description)


def _compute(data: TaskData, classes: int | None) -> FloatArray:
    """Compute the meta-features of a data set; `compute_meta_features` describes and caches them.

    Args:
        data: The data: features X, and labels y or None.
        classes: Number of classes; None for as many as in these data.
    """
    class_count = _count_classes(data, classes)
    X, y = data.features, data.labels
    if len(X) > MAX_POINTS:  # a random subset, always the same
        rows = np.random.default_rng(0).choice(len(X), MAX_POINTS, replace=False)
        X = X[rows]
        y = None if y is None else y[rows]

    Z = _standardise(X)  # features of mean 0 and variance 1
    if y is None:
        # Without labels, the scale of the features may tell tasks apart: their covariances and
        # means are those before standardising.
        return np.concatenate([_describe_features(X, Z), X.mean(axis=0)])

    if data.kind is DataKind.CLASSIFICATION:
        label_features = _describe_classes(Z, y.astype(np.int64), class_count)
    else:
        scaled_y = scale_to_unit_interval(y[:, None])[:, 0]  # it scales columns of a table
        label_features = _describe_numeric_labels(Z, scaled_y)
    # With labels, the covariances are those of the standardised features, too.
    return np.concatenate([_describe_features(Z, Z), label_features])


def _count_classes(data: TaskData, classes: int | None) -> int:
    """Return the number of classes to describe; 0 if labels are not classes.

    Args:
        data: Training data of a task; classes are numbered from 0.
        classes: The number asked for, so that several tasks get the same; None for as many as occur
            in these data.

    Raises:
        EvaluationsError: A label is not below `classes`.
    """
    if data.kind is not DataKind.CLASSIFICATION:
        return 0
    assert data.labels is not None
    highest_label = int(data.labels.max())
    if classes is None:
        return highest_label + 1
    if highest_label >= classes:
        raise EvaluationsError(f"labels must be below {classes}, but got {highest_label}")
    return classes


def _describe_features(X: FloatArray, Z: FloatArray) -> FloatArray:
    """Compute the meta-features that need no labels, shape (19,).

    They are minimum, maximum, mean and standard deviation of the skewness and of the kurtosis of
    the features, and of the correlation and of the covariance of their pairs; then skewness and
    kurtosis of the first principal component, and the number of components that explain `EXPLAINED`
    of the variance, the intrinsic dimension.

    The sign of a principal component is arbitrary, so the absolute value of its skewness is used.

    Args:
        X: Features whose covariance is described, shape (n, p).
        Z: The standardised features, shape (n, p).
    """
    skewness, kurtosis = _compute_moments(Z)  # of each feature, (p,)
    centred = X - X.mean(axis=0)
    covariance = (centred.T @ centred) * (1.0 / len(X))
    correlation = Z.T @ Z / len(Z)
    pairs = np.triu_indices(len(covariance), k=1)  # of different features, each pair once

    variances, directions = np.linalg.eigh(covariance)  # of the components, ascending
    first_component = centred @ directions[:, -1:]
    (component_skewness,), (component_kurtosis,) = _compute_moments(_standardise(first_component))

    # The variance of the first component, of the first two, and so on; rounding may make the
    # smallest negative.
    explained = np.cumsum(np.maximum(variances[::-1], 0.0))
    intrinsic_dimension = 0.0  # of constant features
    if explained[-1] > 0:
        needed_variance = EXPLAINED * explained[-1]
        # For so many k, the first k components do not explain enough.
        insufficient_count = np.searchsorted(explained, needed_variance, side="right")
        intrinsic_dimension = insufficient_count + 1.0

    return np.array(
        [
            *_summarise(skewness),
            *_summarise(kurtosis),
            *_summarise(correlation[pairs]),
            *_summarise(covariance[pairs]),
            abs(component_skewness),
            component_kurtosis,
            intrinsic_dimension,
        ]
    )


def _describe_classes(Z: FloatArray, y: IntArray, class_count: int) -> FloatArray:
    """Compute class ratios, their entropy in nats and the landmarkers, shape (classes + 5,).

    The four landmarkers are accuracies of simple classifiers on points held out.

    Args:
        Z: Standardised features, shape (n, p).
        y: Class of each point, from 0, shape (n,).
        class_count: Number of classes; some may not occur in y.
    """
    # What the error says if scikit-learn is not installed.
    error_details = {"package": "scikit-learn", "extra": "generate", "purpose": "meta-features"}
    neighbours = import_extra("sklearn.neighbors", **error_details)
    analysis = import_extra("sklearn.discriminant_analysis", **error_details)
    bayes = import_extra("sklearn.naive_bayes", **error_details)
    tree = import_extra("sklearn.tree", **error_details)

    ratios = np.bincount(y, minlength=class_count) / len(y)
    positive_ratios = ratios[ratios > 0]  # 0 log 0 counts as 0
    entropy = -np.sum(positive_ratios * np.log(positive_ratios))
    models = [
        neighbours.KNeighborsClassifier(1),
        analysis.LinearDiscriminantAnalysis(),
        bayes.GaussianNB(),
        tree.DecisionTreeClassifier(random_state=0),
    ]
    return np.array([*ratios, entropy, *_compute_landmarkers(models, Z, y)])


def _describe_numeric_labels(Z: FloatArray, y: FloatArray) -> FloatArray:
    """Compute mean, standard deviation, skewness, kurtosis of labels, and landmarkers, (7,).

    The three landmarkers are the R2 of simple regression models on points held out.

    Args:
        Z: Standardised features, shape (n, p).
        y: Labels, scaled to [0, 1], shape (n,).
    """
    # What the error says if scikit-learn is not installed.
    error_details = {"package": "scikit-learn", "extra": "generate", "purpose": "meta-features"}
    neighbours = import_extra("sklearn.neighbors", **error_details)
    linear = import_extra("sklearn.linear_model", **error_details)
    tree = import_extra("sklearn.tree", **error_details)

    # Labels as a table with one column, so that there is one skewness and one kurtosis.
    (skewness,), (kurtosis,) = _compute_moments(_standardise(y[:, None]))
    models = [
        neighbours.KNeighborsRegressor(1),
        linear.LinearRegression(),
        tree.DecisionTreeRegressor(random_state=0),
    ]
    landmarkers = _compute_landmarkers(models, Z, y)
    return np.array([y.mean(), y.std(), skewness, kurtosis, *landmarkers])


def _compute_landmarkers(
    models: "Sequence[Any]", Z: FloatArray, y: FloatArray | IntArray
) -> "Sequence[float]":
    """Fit each model and score it on a held-out quarter of the points; 0 if that is impossible.

    It is impossible with fewer than `MIN_POINTS` points, or if all features or the labels are
    constant.

    Args:
        models: scikit-learn's models, not fitted.
        Z: Standardised features, shape (n, p).
        y: Labels, shape (n,).

    Returns:
        The accuracy of each classifier, or the R2 of each regression model.
    """
    if len(Z) < MIN_POINTS:
        return [0.0] * len(models)
    order = np.random.default_rng(0).permutation(len(Z))  # always the same split
    test_count = math.ceil(len(Z) / 4)
    test, train = np.split(order, [test_count])
    varies: BoolArray = np.ptp(Z[train], axis=0) > 0  # which features do
    has_constant_labels = np.ptp(y[train]) == 0
    if not varies.any() or has_constant_labels:
        return [0.0] * len(models)
    X = Z[:, varies]  # without features that are constant in the training part
    return [_score(model, X[train], y[train], X[test], y[test]) for model in models]


def _score(
    model: Any,
    train_X: FloatArray,
    train_y: FloatArray | IntArray,
    test_X: FloatArray,
    test_y: FloatArray | IntArray,
) -> float:
    """Fit a model and score it on other points; 0 if it cannot be fitted or has no finite score."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of collinear or, within a class, constant features
        try:
            score = model.fit(train_X, train_y).score(test_X, test_y)
        except (ValueError, IndexError, np.linalg.LinAlgError):
            return 0.0  # discriminant analysis of too few points, or without variance in classes
    return float(score) if np.isfinite(score) else 0.0


def _standardise(X: FloatArray) -> FloatArray:
    """Scale features (n, p) to mean 0 and variance 1; constant ones become 0."""
    varies = np.ptp(X, axis=0) > 0
    centred = X - X.mean(axis=0)
    # Scaled to at most 1 first, as squares of very small or large numbers under- or overflow.
    centred /= np.where(varies, np.abs(centred).max(axis=0), 1.0)
    sd = np.where(varies, centred.std(axis=0), 1.0)
    return np.asarray(np.where(varies, centred / sd, 0.0))


def _compute_moments(Z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute skewness and excess kurtosis of standardised features, (p,) each; 0 for constants."""
    skewness = (Z**3).mean(axis=0)
    is_constant = ~Z.any(axis=0)  # standardising makes constants 0
    # The excess over a normal distribution's kurtosis, 3; without the exception, -3 for constants.
    kurtosis = np.where(is_constant, 0.0, (Z**4).mean(axis=0) - 3.0)
    return skewness, kurtosis


def _summarise(values: FloatArray) -> FloatArray:
    """Compute minimum, maximum, mean and standard deviation, (4,); zeros without values."""
    if not values.size:
        return np.zeros(4)
    return np.array([values.min(), values.max(), values.mean(), values.std()])
