"""Models of the distBO benchmarks, trained at every evaluation.

Notation:
    n, p        points, features
    m           inducing points: the first m training points
    x, x'       points, (p,)
    sigma       bandwidths, (p,)
    k           kernel, exp(-1/2 sum_j (x_j - x'_j)^2 / sigma_j^2)
    K_m, K_n    kernel matrix of the inducing points (m, m), and of these with others (m, n)
    L           Cholesky factor of K_m + JITTER I, (m, m)
    Phi         Nystroem features, L^-1 K_n, (m, n): Phi' Phi approximates the kernel matrix
    w           weights of the features, (m,)
    alpha, C    regularisation: alpha of ridge regression; w'w / (2 C) of logistic regression

The generated tasks have 5000 training points, on which an exact model takes seconds. Ridge
regression is exact but uses only the first of them: with Nystroem features of all points it could
not overfit as the exact model does with a small alpha or small bandwidths. Logistic regression uses
Nystroem features of all points. All other models are exact.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.benchmarks._distbo_data import (
    Split,
    classification_data,
    counterexample_data,
    parkinsons_data,
    protein_data,
    toy_mean,
)
from hpobench_ordered.errors import needed
from hpobench_ordered.runtime.threads import one_thread

if TYPE_CHECKING:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.svm import SVC

RIDGE_POINTS = 1000
"""Number of training points, of 5000, that models of the counterexample are trained on."""
LOGISTIC_INDUCING = 250
JITTER = 1e-8
"""Added to the diagonal of K_m, which is nearly singular where all bandwidths are large."""
NEWTON_STEPS = 30
DECREMENT = 1e-6
"""Newton's method stops when a step would gain less than half of this in log likelihood."""
DECIMALS = 6
"""Values are rounded, because their last digits depend on the linear algebra library."""
SKLEARN_SEED = 0
"""Without a seed, scikit-learn uses the global random generator."""


@dataclass(frozen=True, slots=True)
class Trained:
    """Trains a model at every evaluation; see `Surrogate`.

    Attributes:
        evaluate: Trains on a task, given its index and the configuration, (d,).
        dimension: Number of hyperparameters, d.
        n_tasks: Number of tasks.
    """

    evaluate: Callable[[int, FloatArray], float]
    dimension: int
    n_tasks: int

    def predict(self, values: FloatArray, task: int) -> FloatArray:
        """Values of many configurations, one after another, shape (n, d) to (n,)."""
        if not 0 <= task < self.n_tasks:
            raise IndexError(f"task {task} is not one of 0..{self.n_tasks - 1}")
        with one_thread():
            return np.array([self.evaluate(task, row) for row in values], dtype=np.float64)

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Value of one configuration, shape (d,)."""
        return float(self.predict(row[None], task)[0])


def toy_value(seed: int, task: int, row: FloatArray) -> float:
    """exp(-(theta - mean)^2 / 2), Law et al. (2019), section 5.1."""
    return math.exp(-0.5 * (float(row[0]) - toy_mean(seed, task)) ** 2)


def counterexample_value(seed: int, task: int, row: FloatArray) -> float:
    """R2 of ARD kernel ridge regression with alpha and six bandwidths."""
    return ridge_value(counterexample_data(seed, task), row, points=RIDGE_POINTS)


def classification_value(seed: int, experiment: str, task: int, row: FloatArray) -> float:
    """AUC of ARD kernel logistic regression with C and six bandwidths."""
    data = classification_data(seed, experiment, task)
    return logistic_value(data, row, inducing=LOGISTIC_INDUCING)


def ridge_value(data: Split, row: FloatArray, *, points: int | None = None) -> float:
    """R2 of exact kernel ridge regression.

    Args:
        data: Data of the task.
        row: alpha and the bandwidths, (1 + p,).
        points: Number of training points to use, from the first. Default: all.
    """
    from scipy.linalg import cho_factor, cho_solve

    alpha, sigma = row[0], row[1:]
    x, labels = data.train.features[:points], _labels(data.train.labels)[:points]
    kernel = ard_kernel(x, x, sigma)
    kernel.flat[:: len(kernel) + 1] += alpha
    factor = cho_factor(kernel, lower=True, overwrite_a=True, check_finite=False)
    dual = cho_solve(factor, labels)
    predicted = dual @ ard_kernel(x, data.test.features, sigma)
    return r_squared(_labels(data.test.labels), predicted)


def logistic_value(data: Split, row: FloatArray, *, inducing: int) -> float:
    """AUC of kernel logistic regression on Nystroem features, without an intercept.

    The weights minimise w'w / 2 + C sum_l log(1 + exp(-(2 y_l - 1) w'Phi_l)), by Newton's method.

    Args:
        data: Data of the task.
        row: C and the bandwidths, (1 + p,).
        inducing: Number of inducing points, m.
    """
    C, sigma = float(row[0]), row[1:]
    features, coefficients = _nystroem(data.train.features, sigma, inducing)
    weights = coefficients(_logistic_weights(features, _labels(data.train.labels), C))
    scores = weights @ ard_kernel(data.train.features[:inducing], data.test.features, sigma)
    return area_under_curve(_labels(data.test.labels), scores)


def _logistic_weights(features: FloatArray, labels: FloatArray, C: float) -> FloatArray:
    """Weights w of a logistic regression on features (m, n) with labels 0 or 1, (n,)."""
    from scipy.linalg import cho_factor, cho_solve
    from scipy.special import expit

    def loss(weights: FloatArray, scores: FloatArray) -> float:
        likelihood = np.logaddexp(0.0, scores) - labels * scores
        return float(0.5 * weights @ weights + C * likelihood.sum())

    weights, scores = np.zeros(len(features)), np.zeros(len(labels))
    for _ in range(NEWTON_STEPS):
        share = expit(scores)
        gradient = weights + C * (features @ (share - labels))
        scaled = features * np.sqrt(C * share * (1.0 - share))
        hessian = scaled @ scaled.T
        hessian.flat[:: len(hessian) + 1] += 1.0
        step = cho_solve(cho_factor(hessian, lower=True, check_finite=False), gradient)
        gain = float(gradient @ step)
        if gain < DECREMENT * C:
            break
        length, change, before = 1.0, step @ features, loss(weights, scores)
        while loss(weights - length * step, scores - length * change) > before and length > 1e-6:
            length /= 2.0
        weights, scores = weights - length * step, scores - length * change
    return weights


def _nystroem(
    x: FloatArray, sigma: FloatArray, inducing: int
) -> tuple[FloatArray, Callable[[FloatArray], FloatArray]]:
    """Nystroem features (m, n) of points (n, p), and a function from weights to coefficients.

    The coefficients are those of the kernel at the inducing points.
    """
    from scipy.linalg import cholesky, solve_triangular

    kernel = ard_kernel(x[:inducing], x, sigma)
    inner = kernel[:, :inducing].copy()
    inner.flat[:: inducing + 1] += JITTER
    factor = cholesky(inner, lower=True, check_finite=False)
    features = solve_triangular(factor, kernel, lower=True, check_finite=False)

    def coefficients(weights: FloatArray) -> FloatArray:
        return np.asarray(solve_triangular(factor, weights, lower=True, trans="T"))

    return features, coefficients


def ard_kernel(left: FloatArray, right: FloatArray, sigma: FloatArray) -> FloatArray:
    """Kernel matrix (a, b) of points (a, p) and points (b, p)."""
    left, right = left / sigma, right / sigma
    exponent = left @ right.T
    exponent -= 0.5 * np.sum(right * right, axis=1)
    exponent -= 0.5 * np.sum(left * left, axis=1)[:, None]
    np.minimum(
        exponent, 0.0, out=exponent
    )  # rounding may make the exponent of a point with itself positive
    return np.exp(exponent, out=exponent)


def r_squared(labels: FloatArray, predicted: FloatArray) -> float:
    """Coefficient of determination, rounded."""
    residual = np.sum((labels - predicted) ** 2)
    return round(float(1.0 - residual / np.sum((labels - labels.mean()) ** 2)), DECIMALS)


def area_under_curve(labels: FloatArray, scores: FloatArray) -> float:
    """Area under the ROC curve of labels 0 or 1: ties count one half; rounded."""
    from scipy.stats import rankdata

    positive = labels == 1.0
    n1, n0 = int(positive.sum()), int((~positive).sum())
    area = (rankdata(scores)[positive].sum() - n1 * (n1 + 1) / 2) / (n1 * n0)
    return round(float(area), DECIMALS)


def parkinsons_value(task: int, row: FloatArray) -> float:
    """R2 of kernel ridge regression with the kernel exp(-gamma |x - x'|^2), exact."""
    alpha, gamma = row
    data = parkinsons_data(task)
    bandwidths = np.full(data.train.features.shape[1], 1.0 / np.sqrt(2.0 * gamma))
    return ridge_value(data, np.concatenate([[alpha], bandwidths]))


def svm_value(task: int, row: FloatArray) -> float:
    """Accuracy of a support vector machine with the Jaccard kernel and C."""
    data, (inner, outer) = protein_data(task), _protein_kernels(task)
    model: SVC = _sklearn("svm").SVC(
        C=float(row[0]), kernel="precomputed", random_state=SKLEARN_SEED
    )
    model.fit(inner, data.train.labels)
    return accuracy(_labels(data.test.labels), model.predict(outer))


def forest_value(task: int, row: FloatArray) -> float:
    """Accuracy of a random forest."""
    data = protein_data(task)
    trees, depth, split, leaf = row.tolist()
    model: RandomForestClassifier = _sklearn("ensemble").RandomForestClassifier(
        n_estimators=int(trees),
        max_depth=int(depth),
        min_samples_split=split,
        min_samples_leaf=leaf,
        random_state=SKLEARN_SEED,
        n_jobs=1,
    )
    model.fit(data.train.features, data.train.labels)
    return accuracy(_labels(data.test.labels), model.predict(data.test.features))


@lru_cache(maxsize=7)
def _protein_kernels(task: int) -> tuple[FloatArray, FloatArray]:
    """Similarities of a protein's training points, and of test points with training points."""
    data = protein_data(task)
    inner = jaccard_similarity(data.train.features, data.train.features)
    outer = jaccard_similarity(data.test.features, data.train.features)
    for kernel in (inner, outer):
        kernel.flags.writeable = False
    return inner, outer


def jaccard_similarity(left: FloatArray, right: FloatArray) -> FloatArray:
    """Jaccard similarity of points (a, p) and (b, p), (a, b); 1 for two points without features."""
    both = left @ right.T
    either = left.sum(axis=1)[:, None] + right.sum(axis=1) - both
    return np.where(either > 0.0, both / np.maximum(either, 1.0), 1.0)


def accuracy(labels: FloatArray, predicted: FloatArray) -> float:
    """Share of the points whose class is predicted correctly."""
    return float(np.mean(labels == predicted))


def _labels(labels: FloatArray | None) -> FloatArray:
    """Labels of labelled data."""
    assert labels is not None
    return labels


def _sklearn(module: str) -> Any:
    return needed(
        f"sklearn.{module}", package="scikit-learn", extra="generate", purpose="training live"
    )
