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
    """Factorise K = R^T R with an upper triangular R (n, n), by LAPACK.

    Only the upper triangle of K (n, n) is read.

    Returns:
        Whether K is numerically positive definite, and R, which is valid only then.
    """
    if not np.isfinite(K).all():  # LAPACK need not notice infinity and NaN
        return False, K
    # LAPACK reads memory by columns, so that K's transpose and its lower factor need no copies.
    L, info = dpotrf(K.T, lower=1, clean=1)
    is_positive_definite = info == 0
    return is_positive_definite, L.T


def negative_log_posterior(
    S: FloatArray, y: FloatArray, theta: FloatArray, mu: FloatArray, w: FloatArray
) -> tuple[float, FloatArray]:
    """Compute minus the log posterior of theta, up to a constant, and its gradient.

    Args:
        S: Squared differences of the features for each of g length scales, shape (g, n, n).
        y: Losses, shape (n,).
        theta: Log length scales, log signal variance, log noise variance, shape (g + 2,).
        mu: Means of the normal priors on theta, shaped as theta.
        w: Precisions of the priors, shaped as theta; 0 for a flat prior.

    Returns:
        The value, infinite where the covariance has no Cholesky factor, and the gradient.
    """
    K, F = compiled.covariance(S, theta)  # F holds what the derivatives of K need
    is_positive_definite, R = cholesky(K)
    if not is_positive_definite:
        return math.inf, np.zeros(len(theta))
    alpha = compiled.solve(R, y)  # K^-1 y
    value = compiled.negative_log_posterior_from(y, R, alpha, theta, mu, w)

    # K^-1, upper triangle; transposed on the way in and out, as LAPACK reads memory by columns.
    lower_inverse, _ = dpotri(R.T, lower=1)
    inverse = lower_inverse.T
    gradient_of_likelihood = -compiled.likelihood_gradient(S, K, F, inverse, alpha, theta)
    gradient_of_priors = w * (theta - mu)
    return value, gradient_of_likelihood + gradient_of_priors


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
    """Minimise the negative log posterior of theta in a box by L-BFGS-B.

    Args:
        S: Squared differences of the features for each of g length scales, shape (g, n, n).
        y: Losses, shape (n,).
        start: theta to start from, shape (g + 2,).
        lower: Smallest values of theta, of its shape.
        upper: Largest values of theta, of its shape.
        mu: Means of the normal priors on theta.
        w: Precisions of the priors; 0 for a flat prior.
        max_iterations: Number of iterations at most.
        tolerance: An iteration that gains less is the last one.

    Returns:
        theta and the value there.
    """

    def objective(theta: FloatArray) -> tuple[float, FloatArray]:
        """Compute what is minimised, and its gradient, as a function of theta alone."""
        return negative_log_posterior(S, y, theta, mu, w)

    options = {
        "maxiter": max_iterations,
        "ftol": tolerance / len(y),  # compared with relative gains; the value grows like n
        "gtol": math.sqrt(tolerance),  # with a curvature of 1, a step gains gradient^2 / 2
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

    Rasmussen and Williams (2006), algorithm 2.1.

    Args:
        X: Features of the observations, shape (n, p).
        R: Upper Cholesky factor of the covariance K of the observations, shape (n, n).
        alpha: K^-1 y with the losses y, shape (n,).
        candidates: Features of the candidates, shape (m, p).
        groups: Index of the length scale of each feature, shape (p,).
        theta: g log length scales, then the log signal variance.
        g: Number of length scales.
    """
    cross = compiled.cross_covariance(X, candidates, groups, theta, g)  # (n, m)
    mean = alpha @ cross
    solved = solve_forward(R.T, cross)  # (m, n)
    signal_variance = math.exp(theta[g])
    explained_variance = np.einsum("ji,ji->j", solved, solved)  # |R^-T k|^2 of each candidate
    variance = signal_variance - explained_variance
    return mean, variance


def solve_forward(L: FloatArray, cross: FloatArray) -> FloatArray:
    """Solve L V = cross for V (n, m), and return its transpose, (m, n); overwrites `cross`.

    With many columns, a product with the inverse of L takes half the time of solving for each.
    Inverting L loses no digits that count: its condition number is below 1e6.

    Args:
        L: Lower triangular Cholesky factor, stored by columns, shape (n, n).
        cross: Covariances of n observations and m candidates, shape (n, m).

    Returns:
        V^T = cross^T L^-T, a row for each candidate, shape (m, n).
    """
    # BLAS reads memory by columns, so that cross^T is passed without a copy. It is multiplied, or
    # the equation is solved, by the transpose (trans_a) of the lower triangle L from the right
    # (side=1).
    options = {"side": 1, "lower": 1, "trans_a": 1, "overwrite_b": 1}
    has_many_columns = cross.shape[1] > 2 * len(L)
    if has_many_columns:
        inverse = dtrtri(L, lower=1)[0]
        solved: FloatArray = dtrmm(1.0, inverse, cross.T, **options)
    else:
        solved = dtrsm(1.0, L, cross.T, **options)
    return solved
