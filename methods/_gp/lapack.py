"""The Gaussian process above some 64 observations: the functions of `compiled` around LAPACK.

A compiled function that calls LAPACK cannot be cached, so these are plain Python between compiled
kernels and LAPACK; they take and return what their namesakes in `compiled` do, in its notation.

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
    """Whether K (n, n) is numerically positive definite, and if so R, upper, with K = R^T R.

    Only the upper triangle of K is read.
    """
    if not np.isfinite(K).all():
        return False, K
    L, info = dpotrf(K.T, lower=1, clean=1)
    is_positive_definite = info == 0
    return is_positive_definite, L.T


def negative_log_posterior(
    S: FloatArray, y: FloatArray, theta: FloatArray, mu: FloatArray, w: FloatArray
) -> tuple[float, FloatArray]:
    """Minus log posterior of theta, up to a constant, and its gradient, shaped as theta."""
    K, F = compiled.covariance(S, theta)
    is_positive_definite, R = cholesky(K)
    if not is_positive_definite:
        return math.inf, np.zeros(len(theta))
    alpha = compiled.solve(R, y)
    value = compiled.negative_log_posterior_from(y, R, alpha, theta, mu, w)
    inverse = dpotri(R.T, lower=1)[0].T
    gradient = -compiled.likelihood_gradient(S, K, F, inverse, alpha, theta)
    return value, gradient + w * (theta - mu)


def fit(
    S: FloatArray,
    y: FloatArray,
    start: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    mu: FloatArray,
    w: FloatArray,
    max_iterations: int,
    tolerance: float,
) -> tuple[FloatArray, float]:
    """Minimise the negative log posterior in the box by L-BFGS-B; theta and its value."""

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        return negative_log_posterior(S, y, theta, mu, w)

    options = {
        "maxiter": max_iterations,
        "ftol": tolerance / len(y),  # compared with relative gains; the value grows like n
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
    """Posterior mean (m,) and variance (m,) of the noise-free function at the candidates (m, p)."""
    cross = compiled.cross_covariance(X, candidates, groups, theta, g)
    mean = alpha @ cross
    solved = solve_forward(R.T, cross)
    signal_variance = math.exp(theta[g])
    variance = signal_variance - np.einsum("ji,ji->j", solved, solved)
    return mean, variance


def solve_forward(L: FloatArray, cross: FloatArray) -> FloatArray:
    """L^-1 cross, transposed, (m, n), of a lower factor (n, n) by columns; overwrites cross (n, m).

    Of many columns a product with the inverse takes half the time of solving for each. L, of a
    condition number below 1e6, loses no digits that count.
    """
    # BLAS multiplies or solves from the right (side) by the transpose (trans_a): cross^T L^-T.
    options = {"side": 1, "lower": 1, "trans_a": 1, "overwrite_b": 1}
    has_many_columns = cross.shape[1] > 2 * len(L)
    if has_many_columns:
        inverse = dtrtri(L, lower=1)[0]
        solved: FloatArray = dtrmm(1.0, inverse, cross.T, **options)
    else:
        solved = dtrsm(1.0, L, cross.T, **options)
    return solved
