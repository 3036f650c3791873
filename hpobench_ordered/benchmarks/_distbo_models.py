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
    compute_toy_mean,
    draw_classification_data,
    draw_counterexample_data,
    read_parkinsons_data,
    read_protein_data,
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
        """Train with each of n configurations, one after another, and return the values, (n,).

        Args:
            values: Configurations coded as values, (n, d).
            task: Index of the task.

        Raises:
            IndexError: There is no such task.
        """
        if not 0 <= task < self.n_tasks:
            raise IndexError(f"task {task} is not one of 0..{self.n_tasks - 1}")
        # With one thread, values do not depend on the number of processors.
        with one_thread():
            return np.array([self.evaluate(task, row) for row in values], dtype=np.float64)

    def predict_one(self, row: FloatArray, task: int) -> float:
        """Train with one configuration, coded as values (d,), and return the value."""
        only_row = row[None]
        return float(self.predict(only_row, task)[0])


def evaluate_toy(seed: int, task: int, row: FloatArray) -> float:
    """Compute exp(-(theta - mean)^2 / 2), where `mean` is that of the task's points (section 5.1).

    Args:
        seed: Seed of the points.
        task: Index of the task.
        row: The configuration, whose only value is theta.
    """
    theta = float(row[0])
    mean = compute_toy_mean(seed, task)
    return math.exp(-0.5 * (theta - mean) ** 2)


def evaluate_counterexample(seed: int, task: int, row: FloatArray) -> float:
    """Train kernel ridge regression on a counterexample task, and return R2 on the test points.

    It is trained on the first 1000 points only, as an exact model of all would take seconds.

    Args:
        seed: Seed of the points.
        task: Index of the task.
        row: The configuration: alpha, and the kernel's bandwidth for each of the six features.
    """
    return evaluate_ridge(draw_counterexample_data(seed, task), row, points=RIDGE_POINTS)


def evaluate_classification(seed: int, experiment: str, task: int, row: FloatArray) -> float:
    """Train kernel logistic regression on a generated task, and return the AUC on the test points.

    The kernel is approximated by Nystroem's method with inducing points, the first training points.

    Args:
        seed: Seed of the points.
        experiment: "a" or "b", as in appendix C.4.
        task: Index of the task.
        row: The configuration: C, and the kernel's bandwidth for each of the six features.
    """
    data = draw_classification_data(seed, experiment, task)
    return evaluate_logistic(data, row, inducing=LOGISTIC_INDUCING)


def evaluate_ridge(data: TrainTestSplit, row: FloatArray, *, points: int | None = None) -> float:
    """Train exact kernel ridge regression, and return R2 on the test points.

    With the kernel matrix K of the training points, the predictions are k(x)' (K + alpha I)^-1 y.

    Args:
        data: Data of the task.
        row: The configuration: alpha, and the bandwidth of each feature, (1 + p,).
        points: Number of training points to use, from the first. Default: all.
    """
    from scipy.linalg import cho_factor, cho_solve

    alpha = row[0]
    sigma = row[1:]
    x = data.train.features[:points]
    y = _require_labels(data.train)[:points]

    regularised_kernel = compute_ard_kernel(x, x, sigma)
    _add_to_diagonal(regularised_kernel, alpha)
    factor = cho_factor(regularised_kernel, lower=True, overwrite_a=True, check_finite=False)
    coefficients = cho_solve(factor, y)
    predicted = coefficients @ compute_ard_kernel(x, data.test.features, sigma)
    return compute_r_squared(_require_labels(data.test), predicted)


def evaluate_logistic(data: TrainTestSplit, row: FloatArray, *, inducing: int) -> float:
    """Train kernel logistic regression on Nystroem features, and return the AUC on the test points.

    The weights w (m,) minimise w'w / 2 + C sum_l log(1 + exp(-(2 y_l - 1) w'Phi_l)), summed over
    the training points l with features Phi_l (m,) and classes y_l. There is no intercept. A point
    x has the score w'Phi(x).

    Args:
        data: Data of the task.
        row: The configuration: C, and the kernel's bandwidth for each of p inputs, (1 + p,).
        inducing: Number of inducing points, m, which are the first training points.
    """
    C = float(row[0])
    sigma = row[1:]
    training_points = data.train.features
    inducing_points = training_points[:inducing]
    nystroem_features, factor = _compute_nystroem_features(training_points, sigma, inducing)
    weights = _fit_logistic_weights(nystroem_features, _require_labels(data.train), C)

    coefficients = _compute_kernel_coefficients(weights, factor)
    kernel_of_test = compute_ard_kernel(inducing_points, data.test.features, sigma)  # (m, tests)
    scores = coefficients @ kernel_of_test
    return compute_auc(_require_labels(data.test), scores)


def _compute_kernel_coefficients(weights: FloatArray, factor: FloatArray) -> FloatArray:
    """Convert weights of Nystroem features to coefficients of the kernel, L'^-1 w, (m,).

    A point's features are Phi = L^-1 k, where k (m,) is its kernel with the inducing points. So
    its score is w'Phi = w'L^-1 k = (L'^-1 w)'k, without computing its features.

    Args:
        weights: Weights w of the features, (m,).
        factor: Cholesky factor L of the inducing points' kernel matrix, (m, m).
    """
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(factor, weights, lower=True, trans="T"))


def _compute_nystroem_features(
    x: FloatArray, sigma: FloatArray, inducing: int
) -> tuple[FloatArray, FloatArray]:
    """Compute Nystroem features Phi = L^-1 K_n, whose products Phi'Phi approximate the kernel.

    K_n is the kernel of the m inducing points with all n points, K_m that of the inducing points
    among themselves, and L the Cholesky factor: L L' = K_m.

    Args:
        x: Points, (n, p); the first of them are the inducing points.
        sigma: Bandwidths of the kernel, (p,).
        inducing: Number of inducing points, m.

    Returns:
        The features Phi, (m, n), and the Cholesky factor L, (m, m).
    """
    from scipy.linalg import cholesky, solve_triangular

    kernel = compute_ard_kernel(x[:inducing], x, sigma)  # K_n, (m, n)
    kernel_of_inducing = kernel[:, :inducing].copy()  # K_m, (m, m)
    _add_to_diagonal(kernel_of_inducing, JITTER)  # it is nearly singular with large bandwidths
    factor = cholesky(kernel_of_inducing, lower=True, check_finite=False)
    nystroem_features = solve_triangular(factor, kernel, lower=True, check_finite=False)
    return nystroem_features, factor


def _fit_logistic_weights(features: FloatArray, labels: FloatArray, C: float) -> FloatArray:
    """Fit the weights w (m,) of a logistic regression by Newton's method with a line search.

    The weights minimise the loss w'w / 2 + C (negative log-likelihood).

    Args:
        features: Features of the points, (m, n).
        labels: Their classes, 0 or 1, (n,).
        C: Weight of the likelihood.
    """
    weights = np.zeros(len(features))
    scores = np.zeros(len(labels))  # weights @ features
    for _ in range(NEWTON_STEPS):
        gradient, step = _compute_newton_step(weights, scores, features, labels, C)

        # A whole step lowers the loss by about half of this. The loss grows with C, and so does the
        # gain that is too small to go on.
        newton_decrement = float(gradient @ step)
        if newton_decrement < NEWTON_DECREMENT * C:
            break

        # Halve the step until the loss falls.
        step_in_scores = step @ features
        loss = _compute_logistic_loss(weights, scores, labels, C)
        length = 1.0
        while length > SHORTEST_STEP:
            new_weights = weights - length * step
            new_scores = scores - length * step_in_scores
            if _compute_logistic_loss(new_weights, new_scores, labels, C) <= loss:
                break
            length /= 2.0
        weights = weights - length * step
        scores = scores - length * step_in_scores
    return weights


def _compute_newton_step(
    weights: FloatArray, scores: FloatArray, features: FloatArray, labels: FloatArray, C: float
) -> tuple[FloatArray, FloatArray]:
    """Compute the gradient of the logistic loss, and Newton's step H^-1 gradient, (m,) each.

    With probabilities q of class 1, the Hessian is H = I + C sum_l q_l (1 - q_l) Phi_l Phi_l'.

    Args:
        weights: The current weights, (m,).
        scores: The points' scores with these weights, (n,).
        features: Features Phi of the points, (m, n).
        labels: Their classes, 0 or 1, (n,).
        C: Weight of the likelihood.
    """
    from scipy.linalg import cho_factor, cho_solve
    from scipy.special import expit

    probability = expit(scores)
    gradient = weights + C * (features @ (probability - labels))
    # The factor of Phi_l Phi_l' in the sum is split into two roots, one for each Phi_l.
    scaled_features = features * np.sqrt(C * probability * (1.0 - probability))
    hessian = scaled_features @ scaled_features.T
    _add_to_diagonal(hessian, 1.0)  # I, which comes from the penalty w'w / 2
    factor = cho_factor(hessian, lower=True, check_finite=False)
    return gradient, cho_solve(factor, gradient)


def _compute_logistic_loss(
    weights: FloatArray, scores: FloatArray, labels: FloatArray, C: float
) -> float:
    """Compute w'w / 2 + C (negative log-likelihood) from the points' scores and classes, (n,)."""
    # Minus the log-likelihood of a point with score s and class y is log(1 + exp(s)) - y s, where
    # `logaddexp` computes the logarithm without overflow.
    negative_log_likelihood = np.logaddexp(0.0, scores) - labels * scores
    return float(0.5 * weights @ weights + C * negative_log_likelihood.sum())


def compute_ard_kernel(left: FloatArray, right: FloatArray, sigma: FloatArray) -> FloatArray:
    """Compute the kernel exp(-1/2 sum_j (x_j - x'_j)^2 / sigma_j^2) of all pairs of points, (a, b).

    Args:
        left: Points x, (a, p).
        right: Points x', (b, p).
        sigma: Bandwidths, (p,).
    """
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
    step_along_diagonal = len(matrix) + 1  # in the matrix as a flat array: a row and one column
    matrix.flat[::step_along_diagonal] += value


def compute_r_squared(labels: FloatArray, predicted: FloatArray) -> float:
    """Compute the coefficient of determination of predicted labels, (n,), rounded to 6 decimals."""
    residual = np.sum((labels - predicted) ** 2)
    total = np.sum((labels - labels.mean()) ** 2)
    # Rounded, as the last digits depend on the linear algebra library.
    return round(float(1.0 - residual / total), DECIMALS)


def compute_auc(labels: FloatArray, scores: FloatArray) -> float:
    """Compute the area under the ROC curve of scores, (n,), rounded to 6 decimals.

    The labels, (n,), are 0 or 1. A pair of points with equal scores counts one half.
    """
    from scipy.stats import rankdata

    is_positive = labels == 1.0
    positives = int(is_positive.sum())
    negatives = len(labels) - positives

    # The area is the share of pairs of a positive and a negative in which the positive scores
    # higher (Mann and Whitney). The rank of a positive is the number of points, itself included,
    # that do not score higher. Some of these are positives: 1 for the lowest positive, 2 for the
    # next one, and so on. Without them, the sum of ranks is the number of such pairs.
    sum_of_ranks = rankdata(scores)[is_positive].sum()
    pairs_in_order = sum_of_ranks - positives * (positives + 1) / 2
    # Rounded, as the last digits depend on the linear algebra library.
    return round(float(pairs_in_order / (positives * negatives)), DECIMALS)


def evaluate_parkinsons(seed: int, task: int, row: FloatArray) -> float:
    """Train kernel ridge regression on a patient's recordings, and return R2 on the test points.

    The kernel is exp(-gamma |x - x'|^2), with the same bandwidth for all features.

    Args:
        seed: Seed of the split into training and test points.
        task: Index of the patient.
        row: The configuration: alpha and gamma.
    """
    alpha, gamma = row
    data = read_parkinsons_data(seed, task)
    bandwidth = 1.0 / np.sqrt(2.0 * gamma)  # as gamma = 1 / (2 sigma^2)
    number_of_features = data.train.features.shape[1]
    bandwidths = np.full(number_of_features, bandwidth)
    return evaluate_ridge(data, np.concatenate([[alpha], bandwidths]))


def evaluate_svm(seed: int, task: int, row: FloatArray) -> float:
    """Train a support vector machine on a protein, and return its accuracy on the test points.

    Args:
        seed: Seed of the split into training and test points.
        task: Index of the protein.
        row: The configuration, whose only value is C. The kernel is the Jaccard similarity.
    """
    data = read_protein_data(seed, task)
    train_kernel, test_kernel = _compute_protein_kernels(seed, task)
    model: SVC = _import_sklearn("svm").SVC(
        C=float(row[0]), kernel="precomputed", random_state=SKLEARN_SEED
    )
    model.fit(train_kernel, data.train.labels)
    return compute_accuracy(_require_labels(data.test), model.predict(test_kernel))


def evaluate_forest(seed: int, task: int, row: FloatArray) -> float:
    """Train a random forest on a protein, and return its accuracy on the test points.

    Args:
        seed: Seed of the split into training and test points.
        task: Index of the protein.
        row: The configuration: number of trees, largest depth, and the smallest shares of the
            points that a node is split with and that a leaf has.
    """
    data = read_protein_data(seed, task)
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
def _compute_protein_kernels(seed: int, task: int) -> tuple[FloatArray, FloatArray]:
    """Compute a protein's kernel matrices for a support vector machine, by Jaccard similarity.

    Returns:
        The similarities of each training point with all training points, (n, n), and of each test
        point with all training points, (test points, n).
    """
    data = read_protein_data(seed, task)
    train_kernel = compute_jaccard_similarity(data.train.features, data.train.features)
    test_kernel = compute_jaccard_similarity(data.test.features, data.train.features)
    for kernel in (train_kernel, test_kernel):
        kernel.flags.writeable = False  # all later calls get the same arrays, from the cache
    return train_kernel, test_kernel


def compute_jaccard_similarity(left: FloatArray, right: FloatArray) -> FloatArray:
    """Compute the Jaccard similarity of all pairs of points, (a, b).

    Points have features 0 or 1. The similarity is the number of features that both points have, as
    a share of those that either has; two points without any feature have similarity 1.

    Args:
        left: Points, (a, p).
        right: Points, (b, p).
    """
    in_both = left @ right.T
    in_either = left.sum(axis=1)[:, None] + right.sum(axis=1) - in_both
    divisor = np.maximum(in_either, 1.0)  # avoids a division by 0, whose result is not used
    return np.where(in_either > 0.0, in_both / divisor, 1.0)


def compute_accuracy(labels: FloatArray, predicted: FloatArray) -> float:
    """Compute the share of points whose class is predicted correctly, from classes (n,) of both."""
    return float(np.mean(labels == predicted))


def _require_labels(data: TaskData) -> FloatArray:
    """Return the labels of data that must have labels, for type checkers."""
    assert data.labels is not None
    return data.labels


def _import_sklearn(module: str) -> Any:
    """Import a module of scikit-learn; if it is missing, the error says how to install it."""
    return import_extra(
        f"sklearn.{module}", package="scikit-learn", extra="generate", purpose="training live"
    )
