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
            default as many as in these data. Ignored if labels are not classes.

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
    key = _hash_dependencies(data, classes)
    if key not in _cache:
        if len(_cache) >= MAX_CACHED:  # so that it does not grow forever
            _cache.clear()
        with one_thread():  # so that sums do not depend on the number of threads
            _cache[key] = _compute(data, classes)
    return _cache[key].copy()


def scale_to_unit_interval(table: FloatArray) -> FloatArray:
    """Scale each column of a table to the range [0, 1] over its rows; constant columns become 0."""
    lowest = table.min(axis=0)
    width = np.ptp(table, axis=0)  # largest minus smallest
    divisor = np.where(width > 0, width, 1.0)  # constant columns are divided by 1
    return np.asarray((table - lowest) / divisor)


def _hash_dependencies(data: TaskData, classes: int | None) -> str:
    """Hash what meta-features depend on: kind, features and labels of data, and number of classes.

    The hash is the key of cached results.
    """
    arrays = [data.features]
    if data.labels is not None:
        arrays.append(data.labels)
    description = f"{data.kind.value} {data.features.shape} {classes}"
    return hash_arrays(*arrays, description=description)


def _compute(data: TaskData, classes: int | None) -> FloatArray:
    """Compute the meta-features that `compute_meta_features` describes, without the cache.

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
        # Without labels, the scale of the features may tell tasks apart: the covariances and means
        # of the features themselves are used, not of Z.
        return np.concatenate([_describe_features(X, Z), X.mean(axis=0)])

    if data.kind is DataKind.CLASSIFICATION:
        label_features = _describe_classes(Z, y.astype(np.int64), class_count)
    else:
        y_as_column = y[:, None]
        scaled_y = scale_to_unit_interval(y_as_column)[:, 0]
        label_features = _describe_numeric_labels(Z, scaled_y)
    # With labels, covariances are those of the standardised features.
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

    First come minimum, maximum, mean and standard deviation of four quantities: the skewness and
    the kurtosis of each feature, and the correlation and the covariance of each pair of features.
    The last three describe the principal components.

    Args:
        X: Features whose covariance is described, shape (n, p).
        Z: The standardised features, shape (n, p).
    """
    skewness, kurtosis = _compute_moments(Z)  # of each feature, (p,)
    correlation = Z.T @ Z / len(Z)
    centred = X - X.mean(axis=0)
    covariance = (centred.T @ centred) * (1.0 / len(X))
    pairs = np.triu_indices(len(covariance), k=1)  # of different features, each pair once
    return np.array(
        [
            *_summarise(skewness),
            *_summarise(kurtosis),
            *_summarise(correlation[pairs]),
            *_summarise(covariance[pairs]),
            *_describe_principal_components(centred, covariance),
        ]
    )


def _describe_principal_components(
    centred: FloatArray, covariance: FloatArray
) -> tuple[float, float, float]:
    """Describe the principal components of features by three numbers.

    Args:
        centred: Features with mean 0, shape (n, p).
        covariance: Their covariance, shape (p, p).

    Returns:
        The absolute skewness of the first component, as the sign of a component is arbitrary; its
        kurtosis; and the intrinsic dimension, the smallest number of components that together
        explain more than the share `EXPLAINED` of the variance.
    """
    variances, directions = np.linalg.eigh(covariance)  # of the components, ascending
    first_component = centred @ directions[:, -1:]  # (n, 1)
    (skewness,), (kurtosis,) = _compute_moments(_standardise(first_component))

    # Rounding may make the smallest variances negative.
    descending_variances = np.maximum(variances[::-1], 0.0)
    # Variance that the first component explains, the first two together, and so on.
    explained = np.cumsum(descending_variances)
    total = explained[-1]
    intrinsic_dimension = 0.0  # of constant features
    if total > 0:
        insufficient_count = np.searchsorted(explained, EXPLAINED * total, side="right")
        intrinsic_dimension = insufficient_count + 1.0
    return abs(skewness), kurtosis, intrinsic_dimension


def _describe_classes(Z: FloatArray, y: IntArray, class_count: int) -> FloatArray:
    """Compute the share of each class, their entropy in nats, and landmarkers, (classes + 5,).

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

    shares = np.bincount(y, minlength=class_count) / len(y)
    positive_shares = shares[shares > 0]  # 0 log 0 counts as 0
    entropy = -np.sum(positive_shares * np.log(positive_shares))
    models = [
        neighbours.KNeighborsClassifier(1),
        analysis.LinearDiscriminantAnalysis(),
        bayes.GaussianNB(),
        tree.DecisionTreeClassifier(random_state=0),
    ]
    return np.array([*shares, entropy, *_compute_landmarkers(models, Z, y)])


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
    """Fit each model to three quarters of the points, and score it on the others.

    All scores are 0 with fewer than `MIN_POINTS` points, or if all features or the labels are
    constant among the points that models are fitted to.

    Args:
        models: scikit-learn's models, not fitted.
        Z: Standardised features, shape (n, p).
        y: Labels, shape (n,).

    Returns:
        The accuracy of each classifier, or the R2 of each regression model.
    """
    zeros = [0.0] * len(models)
    if len(Z) < MIN_POINTS:
        return zeros
    order = np.random.default_rng(0).permutation(len(Z))  # always the same split
    test_count = math.ceil(len(Z) / 4)
    test, train = order[:test_count], order[test_count:]
    is_varying: BoolArray = np.ptp(Z[train], axis=0) > 0  # whether each feature varies
    has_constant_labels = np.ptp(y[train]) == 0
    if not is_varying.any() or has_constant_labels:
        return zeros
    X = Z[:, is_varying]
    return [_score(model, X[train], y[train], X[test], y[test]) for model in models]


def _score(
    model: Any,
    train_X: FloatArray,
    train_y: FloatArray | IntArray,
    test_X: FloatArray,
    test_y: FloatArray | IntArray,
) -> float:
    """Fit a model of scikit-learn, and return its accuracy or R2 on other points.

    The score is 0 if the model cannot be fitted, or has no finite score.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of collinear or, within a class, constant features
        try:
            score = model.fit(train_X, train_y).score(test_X, test_y)
        except (ValueError, IndexError, np.linalg.LinAlgError):
            return 0.0  # discriminant analysis of too few points, or without variance in classes
    return float(score) if np.isfinite(score) else 0.0


def _standardise(X: FloatArray) -> FloatArray:
    """Scale features (n, p) to mean 0 and variance 1; constant ones become 0."""
    is_varying = np.ptp(X, axis=0) > 0  # whether each feature varies
    centred = X - X.mean(axis=0)
    # Scaled to at most 1 first, as squares of very small or large numbers under- or overflow.
    # Constant features are divided by 1, as they would be by 0.
    largest = np.where(is_varying, np.abs(centred).max(axis=0), 1.0)
    centred /= largest
    sd = np.where(is_varying, centred.std(axis=0), 1.0)
    return np.asarray(np.where(is_varying, centred / sd, 0.0))


def _compute_moments(Z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute skewness (p,) and excess kurtosis (p,) of standardised features (n, p).

    The excess kurtosis is that over a normal distribution, whose kurtosis is 3. Constant features,
    which standardising makes 0, have skewness and excess 0.
    """
    skewness = (Z**3).mean(axis=0)
    is_constant = ~Z.any(axis=0)
    kurtosis = (Z**4).mean(axis=0)
    excess_kurtosis = np.where(is_constant, 0.0, kurtosis - 3.0)
    return skewness, excess_kurtosis


def _summarise(values: FloatArray) -> FloatArray:
    """Compute minimum, maximum, mean and standard deviation of values, (4,); 0 without values."""
    if not values.size:
        return np.zeros(4)
    return np.array([values.min(), values.max(), values.mean(), values.std()])
