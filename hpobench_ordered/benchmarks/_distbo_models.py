"""Models of the distBO benchmarks, trained at every evaluation.

Notation:
    n, p        points, features
    m           inducing points: the first m training points
    x, x'       points, (p,)
    sigma       bandwidths, (p,)
    k           kernel, exp(-1/2 sum_j (x_j - x'_j)^2 / sigma_j^2)
    K_m, K_n    kernel matrix of the inducing points (m, m), and of these with all points (m, n)
    L           Cholesky factor of K_m + JITTER I, (m, m)
    Phi         Nystroem features, L^-1 K_n, (m, n): Phi' Phi approximates the kernel matrix
    w           weights of the features, (m,)
    y           labels, 0 or 1 in a classification, (n,)
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
    TrainTestSplit,
    classification_data,
    counterexample_data,
    parkinsons_data,
    protein_data,
    toy_mean,
)
from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.data.task_data import TaskData
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
NEWTON_DECREMENT = 1e-6
"""Newton's method stops when a step would gain less than half of this in log likelihood."""
SHORTEST_STEP = 1e-6
"""Newton steps are halved until the loss falls, but not below this share of a whole step."""
DECIMALS = 6
"""Values are rounded, because their last digits depend on the linear algebra library."""
SKLEARN_SEED = 0
"""Without a seed, scikit-learn uses the global random generator."""


@dataclass(frozen=True, slots=True)
class TrainedSurrogate:
    """A surrogate that trains the model itself at every evaluation; see `Surrogate`.

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


def evaluate_toy(seed: int, task: int, row: FloatArray) -> float:
    """exp(-(theta - mean)^2 / 2), Law et al. (2019), section 5.1."""
    theta = float(row[0])
    return math.exp(-0.5 * (theta - toy_mean(seed, task)) ** 2)


def evaluate_counterexample(seed: int, task: int, row: FloatArray) -> float:
    """R2 of ARD kernel ridge regression with alpha and six bandwidths, `row`.

    It is trained on the first points only, as an exact model of all would take seconds.
    """
    return evaluate_ridge(counterexample_data(seed, task), row, points=RIDGE_POINTS)


def evaluate_classification(seed: int, experiment: str, task: int, row: FloatArray) -> float:
    """AUC of ARD kernel logistic regression with C and six bandwidths, `row`.

    The kernel is approximated by Nystroem's method with inducing points, the first training points.
    """
    data = classification_data(seed, experiment, task)
    return evaluate_logistic(data, row, inducing=LOGISTIC_INDUCING)


def evaluate_ridge(data: TrainTestSplit, row: FloatArray, *, points: int | None = None) -> float:
    """R2 of exact kernel ridge regression.

    Args:
        data: Data of the task.
        row: alpha and the bandwidths, (1 + p,).
        points: Number of training points to use, from the first. Default: all.
    """
    from scipy.linalg import cho_factor, cho_solve

    alpha = row[0]
    sigma = row[1:]
    x = data.train.features[:points]
    y = _require_labels(data.train)[:points]

    kernel = compute_ard_kernel(x, x, sigma)
    _add_to_diagonal(kernel, alpha)
    factor = cho_factor(kernel, lower=True, overwrite_a=True, check_finite=False)
    coefficients = cho_solve(factor, y)
    predicted = coefficients @ compute_ard_kernel(x, data.test.features, sigma)
    return compute_r_squared(_require_labels(data.test), predicted)


def evaluate_logistic(data: TrainTestSplit, row: FloatArray, *, inducing: int) -> float:
    """AUC of kernel logistic regression on Nystroem features, without an intercept.

    The weights minimise w'w / 2 + C sum_l log(1 + exp(-(2 y_l - 1) w'Phi_l)), by Newton's method.

    Args:
        data: Data of the task.
        row: C and the bandwidths, (1 + p,).
        inducing: Number of inducing points, m.
    """
    from scipy.linalg import solve_triangular

    C = float(row[0])
    sigma = row[1:]
    inducing_points = data.train.features[:inducing]
    features, factor = _compute_nystroem_features(data.train.features, sigma, inducing)
    weights = _fit_logistic_weights(features, _require_labels(data.train), C)

    # w'Phi = w'L^-1 K_n, so that L'^-1 w are the coefficients of the kernel.
    coefficients = np.asarray(solve_triangular(factor, weights, lower=True, trans="T"))
    scores = coefficients @ compute_ard_kernel(inducing_points, data.test.features, sigma)
    return compute_auc(_require_labels(data.test), scores)


def _compute_nystroem_features(
    x: FloatArray, sigma: FloatArray, inducing: int
) -> tuple[FloatArray, FloatArray]:
    """Nystroem features Phi (m, n) of points (n, p), and the Cholesky factor L, (m, m)."""
    from scipy.linalg import cholesky, solve_triangular

    kernel = compute_ard_kernel(x[:inducing], x, sigma)
    kernel_of_inducing = kernel[:, :inducing].copy()
    _add_to_diagonal(kernel_of_inducing, JITTER)
    factor = cholesky(kernel_of_inducing, lower=True, check_finite=False)
    features = solve_triangular(factor, kernel, lower=True, check_finite=False)
    return features, factor


def _fit_logistic_weights(features: FloatArray, labels: FloatArray, C: float) -> FloatArray:
    """Weights w (m,) of a logistic regression on features (m, n) with labels y = 0 or 1, (n,).

    They minimise w'w / 2 + C (negative log-likelihood), by Newton's method with a line search.
    """
    from scipy.linalg import cho_factor, cho_solve
    from scipy.special import expit

    def compute_loss(weights: FloatArray, scores: FloatArray) -> float:
        # log(1 + exp(score)) - y score, of every point.
        negative_log_likelihood = np.logaddexp(0.0, scores) - labels * scores
        return float(0.5 * weights @ weights + C * negative_log_likelihood.sum())

    weights = np.zeros(len(features))
    scores = np.zeros(len(labels))  # weights @ features
    for _ in range(NEWTON_STEPS):
        probability = expit(scores)
        gradient = weights + C * (features @ (probability - labels))
        scaled = features * np.sqrt(C * probability * (1.0 - probability))
        hessian = scaled @ scaled.T
        _add_to_diagonal(hessian, 1.0)
        factor = cho_factor(hessian, lower=True, check_finite=False)
        step = cho_solve(factor, gradient)

        # A whole step gains about half of this in the loss, which is C times a log-likelihood.
        newton_decrement = float(gradient @ step)
        if newton_decrement < NEWTON_DECREMENT * C:
            break

        # Halve the step until the loss falls.
        step_in_scores = step @ features
        loss = compute_loss(weights, scores)
        length = 1.0
        while length > SHORTEST_STEP:
            new_weights = weights - length * step
            new_scores = scores - length * step_in_scores
            if compute_loss(new_weights, new_scores) <= loss:
                break
            length /= 2.0
        weights = weights - length * step
        scores = scores - length * step_in_scores
    return weights


def compute_ard_kernel(left: FloatArray, right: FloatArray, sigma: FloatArray) -> FloatArray:
    """Kernel matrix (a, b) of points (a, p) and points (b, p)."""
    left = left / sigma
    right = right / sigma

    # -1/2 |x - x'|^2 = x'x' - 1/2 |x|^2 - 1/2 |x'|^2, in place as the matrices are large.
    exponent = left @ right.T
    exponent -= 0.5 * np.sum(right * right, axis=1)
    exponent -= 0.5 * np.sum(left * left, axis=1)[:, None]

    # Rounding may make the exponent of a point with itself positive.
    np.minimum(exponent, 0.0, out=exponent)
    return np.exp(exponent, out=exponent)


def _add_to_diagonal(matrix: FloatArray, value: float) -> None:
    """Add a value to the diagonal of a square matrix, in place."""
    matrix.flat[:: len(matrix) + 1] += value


def compute_r_squared(labels: FloatArray, predicted: FloatArray) -> float:
    """Coefficient of determination, rounded."""
    residual = np.sum((labels - predicted) ** 2)
    total = np.sum((labels - labels.mean()) ** 2)
    return round(float(1.0 - residual / total), DECIMALS)


def compute_auc(labels: FloatArray, scores: FloatArray) -> float:
    """Area under the ROC curve of labels 0 or 1: ties count one half; rounded."""
    from scipy.stats import rankdata

    is_positive = labels == 1.0
    positives = int(is_positive.sum())
    negatives = len(labels) - positives

    # Mann-Whitney: a positive's rank counts the scores below it; those of positives are deducted.
    ranks_of_positives = rankdata(scores)[is_positive].sum()
    pairs_in_order = ranks_of_positives - positives * (positives + 1) / 2
    return round(float(pairs_in_order / (positives * negatives)), DECIMALS)


def evaluate_parkinsons(seed: int, task: int, row: FloatArray) -> float:
    """R2 of kernel ridge regression with the kernel exp(-gamma |x - x'|^2), exact."""
    alpha, gamma = row
    data = parkinsons_data(seed, task)
    bandwidth = 1.0 / np.sqrt(2.0 * gamma)  # as gamma = 1 / (2 sigma^2)
    bandwidths = np.full(data.train.features.shape[1], bandwidth)
    return evaluate_ridge(data, np.concatenate([[alpha], bandwidths]))


def evaluate_svm(seed: int, task: int, row: FloatArray) -> float:
    """Accuracy of a support vector machine with the Jaccard kernel and C."""
    data = protein_data(seed, task)
    train_kernel, test_kernel = _protein_kernels(seed, task)
    model: SVC = _import_sklearn("svm").SVC(
        C=float(row[0]), kernel="precomputed", random_state=SKLEARN_SEED
    )
    model.fit(train_kernel, data.train.labels)
    return compute_accuracy(_require_labels(data.test), model.predict(test_kernel))


def evaluate_forest(seed: int, task: int, row: FloatArray) -> float:
    """Accuracy of a random forest."""
    data = protein_data(seed, task)
    n_trees, max_depth, min_samples_split, min_samples_leaf = row.tolist()
    model: RandomForestClassifier = _import_sklearn("ensemble").RandomForestClassifier(
        n_estimators=int(n_trees),
        max_depth=int(max_depth),
        min_samples_split=min_samples_split,
        min_samples_leaf=min_samples_leaf,
        random_state=SKLEARN_SEED,
        n_jobs=1,
    )
    model.fit(data.train.features, data.train.labels)
    return compute_accuracy(_require_labels(data.test), model.predict(data.test.features))


@lru_cache(maxsize=7)
def _protein_kernels(seed: int, task: int) -> tuple[FloatArray, FloatArray]:
    """Similarities of a protein's training points, and of test points with training points."""
    data = protein_data(seed, task)
    train_kernel = compute_jaccard_similarity(data.train.features, data.train.features)
    test_kernel = compute_jaccard_similarity(data.test.features, data.train.features)
    for kernel in (train_kernel, test_kernel):
        kernel.flags.writeable = False  # they are cached
    return train_kernel, test_kernel


def compute_jaccard_similarity(left: FloatArray, right: FloatArray) -> FloatArray:
    """Jaccard similarity of points (a, p) and (b, p), (a, b); 1 for two points without features."""
    intersection = left @ right.T
    union = left.sum(axis=1)[:, None] + right.sum(axis=1) - intersection
    return np.where(union > 0.0, intersection / np.maximum(union, 1.0), 1.0)


def compute_accuracy(labels: FloatArray, predicted: FloatArray) -> float:
    """Share of the points whose class is predicted correctly."""
    return float(np.mean(labels == predicted))


def _require_labels(data: TaskData) -> FloatArray:
    """Return the labels of labelled data."""
    assert data.labels is not None
    return data.labels


def _import_sklearn(module: str) -> Any:
    return import_extra(
        f"sklearn.{module}", package="scikit-learn", extra="generate", purpose="training live"
    )
