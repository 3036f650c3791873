"""The Gaussian process above some 64 observations: the functions of `compiled` around LAPACK.

A compiled function that calls LAPACK cannot be cached, so these are plain Python between compiled
kernels and LAPACK. They take and return what their namesakes in `compiled` do, in its notation,
except that mu and w are called prior_mean and prior_precision.

BLAS reads memory by columns: the transpose of a row-wise upper factor R is a column-wise lower one,
which is how R goes in and out without being copied.
"""

import math

import numpy as np
from scipy.linalg.blas import dtrmm, dtrsm  # made by f2py
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri
from scipy.optimize import minimize

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._gp import compiled


def cholesky(K: FloatArray) -> tuple[bool, FloatArray]:
    """Factorise K = R^T R with an upper triangular R (n, n), by LAPACK.

    Only the upper triangle of K (n, n) is read.

    Returns:
        Whether K is numerically positive definite, and R, which is valid only then.
    """
    if not np.isfinite(K).all():  # LAPACK need not notice infinity and NaN
        return False, K
    # LAPACK reads memory by columns. Read so, the upper triangle of K is a lower one, and the lower
    # factor L is R^T: nothing needs to be copied.
    L, error_code = dpotrf(K.T, lower=1, clean=1)
    is_positive_definite = error_code == 0
    return is_positive_definite, L.T


def negative_log_posterior(
    S: FloatArray,
    y: FloatArray,
    theta: FloatArray,
    prior_mean: FloatArray,
    prior_precision: FloatArray,
) -> tuple[float, FloatArray]:
    """Compute minus the log posterior of hyperparameters theta, and its gradient.

    A constant of the priors is left out.

    Args:
        S: Squared differences of the features for each of g length scales, shape (g, n, n).
        y: Losses, shape (n,).
        theta: Log length scales, log signal variance, log noise variance, shape (g + 2,).
        prior_mean: Means of the normal priors on theta, shaped as theta.
        prior_precision: Precisions of the priors, shaped as theta; 0 for a flat prior.

    Returns:
        The value, infinite where the covariance has no Cholesky factor, and the gradient.
    """
    K, derivative_factor = compiled.covariance(S, theta)
    is_positive_definite, R = cholesky(K)
    if not is_positive_definite:
        return math.inf, np.zeros(len(theta))
    alpha = compiled.solve(R, y)  # K^-1 y
    value = compiled.negative_log_posterior_from(y, R, alpha, theta, prior_mean, prior_precision)

    inverse = invert_from_factor(R)
    grad_likelihood = compiled.likelihood_gradient(S, K, derivative_factor, inverse, alpha, theta)
    grad_minus_log_prior = prior_precision * (theta - prior_mean)
    return value, -grad_likelihood + grad_minus_log_prior


def invert_from_factor(R: FloatArray) -> FloatArray:
    """Compute the upper triangle of K^-1 (n, n) from the upper Cholesky factor R of K = R^T R.

    LAPACK reads memory by columns, so matrices are transposed on the way in and out.
    """
    lower_triangle, _ = dpotri(R.T, lower=1)
    upper_triangle: FloatArray = lower_triangle.T
    return upper_triangle


def fit(
    S: FloatArray,
    y: FloatArray,
    start: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    prior_mean: FloatArray,
    prior_precision: FloatArray,
    max_iterations: int,
    tolerance: float,
) -> tuple[FloatArray, float]:
    """Fit hyperparameters theta: minimise minus their log posterior in a box, by L-BFGS-B.

    Args:
        S: Squared differences of the features for each of g length scales, shape (g, n, n).
        y: Losses, shape (n,).
        start: theta to start from, shape (g + 2,).
        lower: Smallest values of theta, of its shape.
        upper: Largest values of theta, of its shape.
        prior_mean: Means of the normal priors on theta.
        prior_precision: Precisions of the priors; 0 for a flat prior.
        max_iterations: Number of iterations at most.
        tolerance: An iteration that gains less is the last one.

    Returns:
        The best theta, and minus the log posterior there.
    """

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        """Compute minus the log posterior of theta, and its gradient."""
        return negative_log_posterior(S, y, theta, prior_mean, prior_precision)

    options = {
        "maxiter": max_iterations,
        # scipy compares this with gains relative to the value, which is of the order of n.
        "ftol": tolerance / len(y),
        # It stops at smaller gradients. If the curvature is 1, a step gains gradient^2 / 2.
        "gtol": math.sqrt(tolerance),
    }
    result = minimize(
        objective,
        np.clip(start, lower, upper),
        jac=True,
        method="L-BFGS-B",
        bounds=list(zip(lower, upper, strict=True)),
        options=options,
    )
    return result.x, float(result.fun)


def predict(
    X: FloatArray,
    R: FloatArray,
    alpha: FloatArray,
    candidates: FloatArray,
    groups: IntArray,
    theta: FloatArray,
    g: int,
) -> tuple[FloatArray, FloatArray]:
    """Predict posterior mean (m,) and variance (m,) of the noise-free function at candidates.

    With the signal variance s2, and the covariances k (n,) of the observations and a candidate, the
    mean is alpha^T k and the variance s2 - |R^-T k|^2 (Rasmussen and Williams 2006, algorithm 2.1).

    Args:
        X: Features of the observations, shape (n, p).
        R: Upper Cholesky factor of the covariance K of the observations, shape (n, n).
        alpha: K^-1 y with the losses y, shape (n,).
        candidates: Features of the candidates, shape (m, p).
        groups: Index of the length scale of each feature, shape (p,).
        theta: g log length scales, then the log signal variance.
        g: Number of length scales.
    """
    cross = compiled.cross_covariance(X, candidates, groups, theta, g)  # a column k a candidate
    mean = alpha @ cross
    solved = solve_forward(R.T, cross)  # R^-T k in a row for each candidate, (m, n)
    signal_variance = math.exp(theta[g])
    explained_variance = np.einsum("ji,ji->j", solved, solved)  # squared length of each row
    variance = signal_variance - explained_variance
    return mean, variance


def solve_forward(L: FloatArray, cross: FloatArray) -> FloatArray:
    """Compute (L^-1 cross)^T (m, n) with a lower triangular L; overwrites `cross`.

    With many columns, a product with the inverse of L takes half the time of solving an equation
    for each column. Inverting L loses no digits that count: its condition number is below 1e6.

    Args:
        L: Lower Cholesky factor of the observations' covariance, stored by columns, shape (n, n).
        cross: Covariances of n observations and m candidates, shape (n, m).

    Returns:
        A row for each candidate, shape (m, n).
    """
    # BLAS reads memory by columns, so cross^T is passed without a copy. What is computed is
    # cross^T times L^-T: L is on the right (side=1), lower, and transposed (trans_a).
    options = {"side": 1, "lower": 1, "trans_a": 1, "overwrite_b": 1}
    has_many_columns = cross.shape[1] > 2 * len(L)
    if has_many_columns:
        inverse, _ = dtrtri(L, lower=1)
        solved: FloatArray = dtrmm(1.0, inverse, cross.T, **options)  # a product
    else:
        solved = dtrsm(1.0, L, cross.T, **options)  # a solution
    return solved
