"""Bayesian linear regression on fixed features: fit of the precisions, prediction.

Notation as in `likelihood`, and

========  ===============  ========================================================================
symbol    shape            meaning
========  ===============  ========================================================================
w         (d,)             posterior mean of the weights of Phi~
C         (d, d)           their posterior covariance, K^-1
R         (n or d,) ^2     lower factor: L with more evaluations than features, else E
V         (n, d)           E^-1 Phi~
phi*      (m, d)           features of candidates; phi~* are scaled as Phi~ is
========  ===============  ========================================================================

Perrone et al. (2018), supplement, section A, with r = beta, alpha = 1, the features being scaled.
With n > d, K = L L^T:      w = beta L^-T e,              C = L^-T L^-1,
                            mean = phi~*^T w,             variance = |L^-1 phi~*|^2.
With n <= d, E as above:    w = beta V^T E^-1 y,          C = I - beta V^T V,
                            mean = phi~*^T w,             variance = |phi~*|^2 - beta |V phi~*|^2.
The last formula follows from Woodbury's identity: K^-1 = (I + beta Phi~^T Phi~)^-1
= I - beta Phi~^T (I + beta Phi~ Phi~^T)^-1 Phi~ = I - beta V^T V, and phi~*^T K^-1 phi~* is what is
stated. The supplement prints |y|^2 in the place of |phi~*|^2: a variance that does not depend on
the losses cannot contain them.

The gradient needs w and diag(C) alone. As d log|Sigma| = tr(Sigma^-1 dSigma) and
Phi~^T Sigma^-1 y = w, Phi~^T Sigma^-1 Phi~ = I - C,

    d rho / d log alpha_i = 1/2 (w_i^2 + C_ii - 1),          summed where one alpha is for all
    d rho / d log beta    = 1/2 (beta |y - Phi~ w|^2 + d - tr C - n),

MacKay's (1992) and Tipping's (2001) effective number of parameters being d - tr C.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg.lapack import dpotrf, dtrtri, dtrtrs
from scipy.optimize import minimize

from hpobench_ordered._compile import compiled
from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._model_based import ModelError

LOG_ALPHA = (-12.0, 8.0)
"""Bounds of log alpha; a feature at the upper one has no weight worth mentioning."""
LOG_BETA = (0.0, 10.0)
"""Bounds of log beta, for losses of variance 1: noise between that and 0.25% of the losses' sd."""
START = (0.0, 4.0)
"""log alpha and log beta from which a fit starts where nothing is known."""
MAX_EVALUATIONS = 60
TOLERANCE = 1e-2  # nats, as of the Gaussian process


@dataclass(frozen=True, eq=False, slots=True)
class Precisions:
    """What a head is fitted by.

    Attributes:
        log_alpha: Logarithm of the weights' precision, one for all (1,) or one for each (d,).
        log_beta: Logarithm of the noise's precision.
    """

    log_alpha: FloatArray
    log_beta: float

    @classmethod
    def initial(cls, count: int) -> Self:
        """Precisions from which a fit of so many of weights starts where nothing is known."""
        return cls(np.full(count, START[0]), START[1])


class Head:
    """Bayesian linear regression, conditioned on evaluations.

    Args:
        Phi: Features of the evaluations, shape (n, d).
        y: Their standardised losses, shape (n,).
        precisions: Of weights and noise.

    Raises:
        ModelError: A matrix has no Cholesky factor.
    """

    def __init__(self, Phi: FloatArray, y: FloatArray, precisions: Precisions) -> None:
        self.precisions = precisions
        self._Phi, self._y = Phi, y
        self._beta = math.exp(precisions.log_beta)
        self._scales = exponentials(-0.5 * precisions.log_alpha)
        scaled = Phi * self._scales
        n, d = Phi.shape
        self._is_many = n > d
        inner = scaled.T @ scaled if self._is_many else scaled @ scaled.T
        self._R = _factor(self._beta * inner)
        if self._is_many:
            self._e = _solve(self._R, scaled.T @ y)
            self.weights: FloatArray = self._beta * _solve(self._R, self._e, transposed=True)
        else:
            self._V = _solve(self._R, scaled)
            self._e = _solve(self._R, y)
            self.weights = self._beta * (self._e @ self._V)
        self._scaled = scaled

    @classmethod
    def fitted(cls, Phi: FloatArray, y: FloatArray, start: Precisions) -> Self:
        """Fit the precisions by L-BFGS on the marginal likelihood, and condition on evaluations.

        Args:
            Phi: Features, shape (n, d).
            y: Standardised losses, shape (n,).
            start: Where to start: as many precisions of weights are fitted as it has.

        Raises:
            ModelError: The fit leads nowhere.
        """

        def objective(x: FloatArray) -> tuple[float, FloatArray]:
            return cls(Phi, y, Precisions(x[:-1], float(x[-1]))).value_and_gradient()

        result = minimize(
            objective,
            np.append(start.log_alpha, start.log_beta),
            jac=True,
            method="L-BFGS-B",
            bounds=[LOG_ALPHA] * len(start.log_alpha) + [LOG_BETA],
            options={"maxfun": MAX_EVALUATIONS, "ftol": TOLERANCE / max(1, len(y))},
        )
        return cls(Phi, y, Precisions(result.x[:-1], float(result.x[-1])))

    def value_and_gradient(self) -> tuple[float, FloatArray]:
        """rho, and its gradient by log alpha, (1,) or (d,), and then log beta."""
        n, d = self._Phi.shape
        beta, log_beta = self._beta, self.precisions.log_beta
        fit = float(self._e @ self._e)
        if self._is_many:
            fit = float(self._y @ self._y) - beta * fit
            inverse, _ = dtrtri(self._R, lower=1)
            covariances = np.einsum("ij,ij->j", inverse, inverse)
        else:
            covariances = 1.0 - beta * np.einsum("ij,ij->j", self._V, self._V)
        value = -0.5 * n * log_beta + 0.5 * beta * fit + log_diagonal(self._R)
        by_alpha = 0.5 * (self.weights**2 + covariances - 1.0)
        if len(self.precisions.log_alpha) == 1:
            by_alpha = by_alpha.sum(keepdims=True)
        residuals = self._y - self._scaled @ self.weights
        unexplained = beta * float(residuals @ residuals)
        by_beta = 0.5 * (unexplained + d - float(covariances.sum()) - n)
        return value, np.append(by_alpha, by_beta)

    def predict(self, Phi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean (m,) and standard deviation (m,) of the noise-free losses.

        Args:
            Phi: Features phi*, shape (m, d).
        """
        scaled = Phi * self._scales
        if self._is_many:
            solved = _solve(self._R, scaled.T)
            variance = np.einsum("ij,ij->j", solved, solved)
        else:
            reduction = self._V @ scaled.T
            variance = np.einsum("ij,ij->i", scaled, scaled)
            variance -= self._beta * np.einsum("ij,ij->j", reduction, reduction)
        return scaled @ self.weights, np.sqrt(np.maximum(variance, 0.0))

    @property
    def noise_variance(self) -> float:
        """Variance of the noise, 1 / beta."""
        return 1.0 / self._beta

    def fantasised(self, Phi: FloatArray) -> tuple[Self, FloatArray]:
        """Condition also on pending evaluations, as if they gave the posterior mean.

        Args:
            Phi: Their features, shape (k, d).

        Returns:
            The head, and the losses the pending evaluations are taken to give, (k,).
        """
        mean, _ = self.predict(Phi)
        y = np.concatenate([self._y, mean])
        return type(self)(np.concatenate([self._Phi, Phi]), y, self.precisions), mean


@compiled
def exponentials(x: FloatArray) -> FloatArray:
    """exp(x) (k,); numpy's own depends on the processor."""
    result = np.empty(len(x))
    for i in range(len(x)):
        result[i] = math.exp(x[i])
    return result


@compiled
def log_diagonal(R: FloatArray) -> float:
    """Sum of the logarithms of a diagonal."""
    total = 0.0
    for i in range(len(R)):
        total += math.log(R[i, i])
    return total


def _factor(inner: FloatArray) -> FloatArray:
    """Lower Cholesky factor of I + inner, shape (k, k).

    Raises:
        ModelError: There is none.
    """
    inner.flat[:: len(inner) + 1] += 1.0
    R, info = dpotrf(inner, lower=1, clean=1)
    if info != 0 or not math.isfinite(float(R.sum())):
        raise ModelError("the precision matrix is not numerically positive definite")
    factor: FloatArray = R
    return factor


def _solve(R: FloatArray, B: FloatArray, *, transposed: bool = False) -> FloatArray:
    """Solve R X = B, or R^T X = B, for lower R."""
    solution: FloatArray = dtrtrs(R, B, lower=1, trans=int(transposed))[0]
    return solution
