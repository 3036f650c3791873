"""Handcrafted meta-features of a data set: Law et al. (2019), appendix B.1.

======  ========  =====================================================================
symbol  shape     meaning
======  ========  =====================================================================
n, p    scalars   points, features
X       (n, p)    features; standardised, each by itself, if there are labels
Z       (n, p)    standardised features in any case; constant ones are 0
C       (p, p)    covariance of X
y       (n,)      labels: classes, or numbers scaled to [0, 1]
======  ========  =====================================================================

The sample size is not included: methods get it separately. Undefined meta-features, such as the
correlation of a single feature or the skewness of a constant, are 0.
"""

import hashlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import BoolArray, FloatArray, IntArray
from hpobench_ordered.core.data import DataKind, TaskData
from hpobench_ordered.core.extras import import_extra
from hpobench_ordered.errors import EvaluationsError
from hpobench_ordered.runtime.threads import one_thread

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_POINTS = 5000
"""Largest number of points used; larger data sets are subsampled."""

LEAST_POINTS = 5
"""Smallest number of points for landmarkers: two of them are for testing."""

EXPLAINED = 0.95
"""Share of the variance that the intrinsic dimension explains."""

KNOWN = 1000
"""Number of cached results."""

_known: dict[str, FloatArray] = {}


def meta_features(data: TaskData, *, classes: int | None = None) -> FloatArray:
    """Compute the meta-features of a data set; results are cached.

    Args:
        data: The data.
        classes: Number of classes, so that vectors of several tasks have the same length; default:
            as in these data. Ignored if there are no classes.

    Returns:
        Finite numbers: 19 of the features; with classes, the share of each, their entropy and 4
        landmarkers; with other labels, 4 of the labels and 3 landmarkers; without labels, the mean
        of each feature. Landmarkers are the accuracy or R2 of simple models on a part of the data
        that they were not trained on.

    Raises:
        EvaluationsError: A label is not below `classes`.
        MissingExtraError: There are labels, and scikit-learn is not installed.
    """
    key = _digest(data, classes)
    if key not in _known:
        if len(_known) >= KNOWN:
            _known.clear()
        with one_thread():
            _known[key] = _computed(data, classes)
    return _known[key].copy()


def normalised(table: FloatArray) -> FloatArray:
    """Scale each column to [0, 1] over the tasks, the rows; constant columns become 0."""
    low = table.min(axis=0)
    spread = np.ptp(table, axis=0)
    return np.asarray((table - low) / np.where(spread > 0, spread, 1.0))


def _digest(data: TaskData, classes: int | None) -> str:
    digest = hashlib.sha256(f"{data.kind.value} {data.features.shape} {classes}".encode())
    digest.update(data.features.tobytes())
    if data.labels is not None:
        digest.update(data.labels.tobytes())
    return digest.hexdigest()


def _computed(data: TaskData, classes: int | None) -> FloatArray:
    X, y = data.features, data.labels
    if len(X) > MOST_POINTS:
        chosen = np.random.default_rng(0).choice(len(X), MOST_POINTS, replace=False)
        X, y = X[chosen], None if y is None else y[chosen]
    Z = _standardised(X)
    if y is None:
        return np.concatenate([_general(X, Z), X.mean(axis=0)])
    if data.kind is DataKind.CLASSIFICATION:
        assert data.labels is not None
        found = int(data.labels.max()) + 1
        if classes is not None and found > classes:
            raise EvaluationsError(f"labels must be below {classes}, but got {found - 1}")
        own = _of_classes(Z, y.astype(np.int64), found if classes is None else classes)
    else:
        own = _of_numbers(Z, normalised(y[:, None])[:, 0])
    return np.concatenate([_general(Z, Z), own])


def _general(X: FloatArray, Z: FloatArray) -> FloatArray:
    """Meta-features that need no labels, shape (19,).

    The sign of a principal component is arbitrary, so the absolute value of its skewness is used.
    """
    centred = X - X.mean(axis=0)
    C = (centred.T @ centred) * (1.0 / len(X))
    pairs = np.triu_indices(len(C), k=1)
    correlation = (Z.T @ Z / len(Z))[pairs]
    variances, directions = np.linalg.eigh(C)
    first = centred @ directions[:, -1:]
    skewness, kurtosis = _moments(_standardised(first))
    explained = np.cumsum(np.maximum(variances[::-1], 0.0))
    needed_components = np.searchsorted(explained, EXPLAINED * explained[-1], side="right") + 1
    summaries = [_summary(values) for values in (*_moments(Z), correlation, C[pairs])]
    pca = [abs(skewness[0]), kurtosis[0], needed_components if explained[-1] > 0 else 0.0]
    return np.concatenate([*summaries, pca])


def _of_classes(Z: FloatArray, y: IntArray, classes: int) -> FloatArray:
    """Class ratios, their entropy in nats and the landmarkers, shape (classes + 5,)."""
    purpose = {"package": "scikit-learn", "extra": "generate", "purpose": "meta-features"}
    neighbours = import_extra("sklearn.neighbors", **purpose)
    analysis = import_extra("sklearn.discriminant_analysis", **purpose)
    bayes = import_extra("sklearn.naive_bayes", **purpose)
    tree = import_extra("sklearn.tree", **purpose)
    ratios = np.bincount(y, minlength=classes) / len(y)
    present = ratios[ratios > 0]
    models = [
        neighbours.KNeighborsClassifier(1),
        analysis.LinearDiscriminantAnalysis(),
        bayes.GaussianNB(),
        tree.DecisionTreeClassifier(random_state=0),
    ]
    entropy = -np.sum(present * np.log(present))
    return np.array([*ratios, entropy, *_landmarkers(models, Z, y)])


def _of_numbers(Z: FloatArray, y: FloatArray) -> FloatArray:
    """Mean, standard deviation, skewness, kurtosis of the labels and the landmarkers, (7,)."""
    purpose = {"package": "scikit-learn", "extra": "generate", "purpose": "meta-features"}
    neighbours = import_extra("sklearn.neighbors", **purpose)
    linear = import_extra("sklearn.linear_model", **purpose)
    tree = import_extra("sklearn.tree", **purpose)
    skewness, kurtosis = _moments(_standardised(y[:, None]))
    models = [
        neighbours.KNeighborsRegressor(1),
        linear.LinearRegression(),
        tree.DecisionTreeRegressor(random_state=0),
    ]
    return np.array([y.mean(), y.std(), skewness[0], kurtosis[0], *_landmarkers(models, Z, y)])


def _landmarkers(
    models: "Sequence[Any]", Z: FloatArray, y: FloatArray | IntArray
) -> "Sequence[float]":
    """Score each model on a held-out quarter of the points; 0 if that is impossible."""
    order = np.random.default_rng(0).permutation(len(Z))
    test, train = np.split(order, [-(-len(Z) // 4)])
    varies: BoolArray = np.ptp(Z[train], axis=0) > 0 if len(train) else np.zeros(0, dtype=bool)
    if len(Z) < LEAST_POINTS or not varies.any() or np.ptp(y[train]) == 0:
        return [0.0] * len(models)
    X = Z[:, varies]
    return [_score(model, X[train], y[train], X[test], y[test]) for model in models]


def _score(model: Any, *parts: FloatArray | IntArray) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of collinear or, within a class, constant features
        try:
            score = model.fit(*parts[:2]).score(*parts[2:])
        except (ValueError, IndexError, np.linalg.LinAlgError):
            return 0.0  # discriminant analysis of too few points, or without variance in classes
    return float(score) if np.isfinite(score) else 0.0


def _standardised(X: FloatArray) -> FloatArray:
    """Features with mean 0 and variance 1; constant ones become 0."""
    varies = np.ptp(X, axis=0) > 0
    Z = X - X.mean(axis=0)
    Z /= np.where(varies, np.abs(Z).max(axis=0), 1.0)  # so that squares do not underflow
    return np.asarray(np.where(varies, Z / np.where(varies, Z.std(axis=0), 1.0), 0.0))


def _moments(Z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Skewness and excess kurtosis of standardised features, shape (p,) each; 0 for constants."""
    kurtosis = np.where(Z.any(axis=0), (Z**4).mean(axis=0) - 3.0, 0.0)
    return (Z**3).mean(axis=0), kurtosis


def _summary(values: FloatArray) -> FloatArray:
    """Minimum, maximum, mean and standard deviation, shape (4,); zeros if there are no values."""
    if not values.size:
        return np.zeros(4)
    return np.array([values.min(), values.max(), values.mean(), values.std()])
