"""Marginal likelihood of Bayesian linear regression, and its gradient, also for the features.

========  ===============  ========================================================================
symbol    shape            meaning
========  ===============  ========================================================================
n         scalar           evaluations of a task
d         scalar           features
y         (n,)             standardised losses
Phi       (n, d)           features of the evaluations
alpha     () or (d,)       precision of the weights: one for all, or one for each (ARD)
beta      scalar           precision of the noise
Phi~      (n, d)           Phi diag(alpha)^(-1/2): with these features all weights have precision 1
Sigma     (n, n)           covariance of y, I / beta + Phi~ Phi~^T
K         (d, d)           I + beta Phi~^T Phi~
E         (n, n)           I + beta Phi~ Phi~^T = beta Sigma
R         (d or n,) ^2     upper Cholesky factor of K with more evaluations than features, else of E
w         (d,)             posterior mean of the weights of Phi~, beta K^-1 Phi~^T y
r         (n,)             residuals, y - Phi~ w
rho       scalar           minus log marginal likelihood without n/2 log(2 pi)
========  ===============  ========================================================================

Perrone et al. (2018), supplement, section A, with r_t = beta, the features being scaled by alpha;
its one precision becomes one a weight (Horvath et al. 2021, equation 5). As beta r = Sigma^-1 y,

    rho = -n/2 log beta + sum_i log R_ii + beta/2 y^T r

in both forms, log |K| being log |E|: r = y - Phi~ w with more evaluations than features, and
r = E^-1 y, w = beta Phi~^T r with at most as many.

As d rho = 1/2 tr(Sigma^-1 dSigma) - 1/2 (beta r)^T dSigma (beta r) and w = Phi~^T Sigma^-1 y,

    d rho / d Phi~        = beta (M - r w^T),     M = Phi~ K^-1 = E^-1 Phi~
    d rho / d log alpha_i = -1/2 sum_n Phi~_ni (d rho / d Phi~)_ni,     summed where one is for all
    d rho / d log beta    = 1/2 (beta |r|^2 + gamma - n),  gamma = d - tr K^-1 = n - tr E^-1

gamma being MacKay's (1992) effective number of parameters (`effective_parameters`).
"""

import math
from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._gp.compiled import cholesky, inverse_from_factor
from hpobench_ordered.methods._model_based import ModelError
from hpobench_ordered.methods._products import (
    exponentials,
    gram,
    mirror_upper_triangle,
    product,
    sum_log_diagonal,
)
from hpobench_ordered.runtime.compiling import compiled


@dataclass(frozen=True, eq=False, slots=True)
class Likelihood:
    """rho and its gradient.

    Attributes:
        rho: Minus log marginal likelihood.
        grad_features: d rho / d Phi, shape (n, d).
        grad_alpha: d rho / d log alpha_i, shape (d,).
        grad_beta: d rho / d log beta.
        grad_losses: d rho / d y, beta r, shape (n,).
    """

    rho: float
    grad_features: FloatArray
    grad_alpha: FloatArray
    grad_beta: float
    grad_losses: FloatArray


def compute_likelihood(
    Phi: FloatArray, y: FloatArray, log_alpha: FloatArray, log_beta: float
) -> Likelihood:
    """Compute minus the log marginal likelihood of one task, rho, and its gradient.

    Bayesian linear regression on scaled features Phi~ = Phi alpha^(-1/2) has two forms, with the
    matrices K = I + beta Phi~^T Phi~ (d, d) and E = I + beta Phi~ Phi~^T (n, n). The smaller matrix
    is inverted. The gradient follows from the posterior mean w of the weights, the residuals
    r = y - Phi~ w, and M = Phi~ K^-1 = E^-1 Phi~. The head of this module has the formulas.

    Args:
        Phi: Features, shape (n, d).
        y: Standardised losses, shape (n,).
        log_alpha: Logarithm of the weights' precision, one for all (1,) or one for each (d,).
        log_beta: Logarithm of the noise's precision.

    Raises:
        ModelError: A matrix has no Cholesky factor.
    """
    beta = math.exp(log_beta)
    scales = exponentials(-0.5 * log_alpha)  # alpha^(-1/2), (1,) or (d,)
    scaled_Phi = Phi * scales
    n, d = scaled_Phi.shape
    R = factorise_smaller_matrix(scaled_Phi, beta)
    inverse = inverse_from_factor(R)  # of K with more evaluations than features, else of E
    mirror_upper_triangle(inverse)

    y_row = y[None]
    y_column = y[:, None]
    if n > d:  # the inverse is K^-1
        M = product(scaled_Phi, inverse)
        w = beta * product(product(y_row, scaled_Phi), inverse)  # a row, beta y^T Phi~ K^-1
        r = y_column - product(scaled_Phi, w.T)
    else:  # the inverse is E^-1
        M = product(inverse, scaled_Phi)
        r = product(inverse, y_column)
        w = beta * product(r.T, scaled_Phi)

    scale_of_feature = np.full(d, scales)  # also where all features have the same scale
    grad_features, grad_alpha = _compute_gradient(scaled_Phi, M, r, w, beta, scale_of_feature)

    y_times_r = float(product(y_row, r)[0, 0])
    squared_r = float(product(r.T, r)[0, 0])
    half_log_determinant = sum_log_diagonal(R)  # of K, which is that of E
    # MacKay's effective number of parameters is d - tr K^-1, or, which is the same, n - tr E^-1.
    effective_parameters = len(inverse) - float(np.trace(inverse))
    return Likelihood(
        rho=-0.5 * n * log_beta + half_log_determinant + 0.5 * beta * y_times_r,
        grad_features=grad_features,
        grad_alpha=grad_alpha,
        grad_beta=0.5 * (beta * squared_r + effective_parameters - n),
        grad_losses=beta * r[:, 0],
    )


@compiled
def _compute_gradient(
    scaled_Phi: FloatArray,
    M: FloatArray,
    r: FloatArray,
    w: FloatArray,
    beta: float,
    scales: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Compute the gradient of minus the log likelihood, rho, with respect to Phi and log alpha.

    Phi are the features, and alpha are the precisions of their weights. With respect to the scaled
    features Phi~ = Phi alpha^(-1/2), the gradient is beta (M - r w), by the formulas at the head of
    this module. The chain rule gives the others.

    Args:
        scaled_Phi: Phi~, shape (n, d).
        M: Phi~ (I + beta Phi~^T Phi~)^-1, shape (n, d).
        r: Residuals of the losses, a column, shape (n, 1).
        w: Mean of the weights of Phi~, a row, shape (1, d).
        beta: Precision of the noise.
        scales: alpha^(-1/2) of each feature, shape (d,).

    Returns:
        The gradient with respect to Phi (n, d), and to log alpha of each feature (d,).
    """
    grad_features = np.empty(scaled_Phi.shape)
    grad_alpha = np.zeros(len(scales))
    weights = w[0]
    for i in range(len(scaled_Phi)):
        scaled_row, M_row, grad_row = scaled_Phi[i], M[i], grad_features[i]
        residual = r[i, 0]
        for j in range(len(scales)):
            grad_scaled = beta * (M_row[j] - residual * weights[j])  # for an entry of Phi~
            grad_row[j] = grad_scaled * scales[j]  # d Phi~ / d Phi is the scale
            grad_alpha[j] += scaled_row[j] * grad_scaled  # summed over evaluations
    # d Phi~ / d log alpha is -1/2 Phi~; Phi~ is in the sums.
    return grad_features, -0.5 * grad_alpha


def factorise_smaller_matrix(scaled_Phi: FloatArray, beta: float) -> FloatArray:
    """Compute the upper Cholesky factor R of the smaller one of two matrices, K and E.

    Both have the same determinant, and predictions can be computed from either.

    With more evaluations than features, n > d, the matrix is K = I + beta Phi~^T Phi~, shape
    (d, d), else E = I + beta Phi~ Phi~^T, shape (n, n).

    Args:
        scaled_Phi: Phi~, features divided by the square roots of their weights' precisions, shape
            (n, d).
        beta: Precision of the noise.

    Raises:
        ModelError: The matrix has no Cholesky factor.
    """
    n, d = scaled_Phi.shape
    has_more_evaluations = n > d
    A = scaled_Phi if has_more_evaluations else scaled_Phi.T.copy()
    K_or_E = gram(A)  # A^T A: Phi~^T Phi~ or Phi~ Phi~^T
    K_or_E *= beta
    K_or_E.flat[:: len(K_or_E) + 1] += 1.0  # the diagonal of the identity matrix
    is_positive_definite, R = cholesky(K_or_E)
    if not is_positive_definite:
        raise ModelError("the precision matrix is not numerically positive definite")
    return R
