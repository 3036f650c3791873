"""Bayesian linear regression on fixed features: fit of the precisions, prediction.

Notation as in `likelihood`, and

========  ===============  ========================================================================
symbol    shape            meaning
========  ===============  ========================================================================
w         (d,)             posterior mean of the weights of Phi~
C         (d, d)           their posterior covariance, K^-1
V         (n, d)           R^-T Phi~, with at most as many evaluations as features
phi*      (m, d)           features of candidates; phi~* are scaled as Phi~ is
========  ===============  ========================================================================

Perrone et al. (2018), supplement, section A, with r_t = beta, alpha = 1, the features being scaled.
With n > d, K = R^T R:      w = beta C Phi~^T y,          C = R^-1 R^-T,
                            mean = phi~*^T w,             variance = |R^-T phi~*|^2.
With n <= d, E = R^T R:     w = beta V^T R^-T y,          C = I - beta V^T V,
                            mean = phi~*^T w,             variance = |phi~*|^2 - beta |V phi~*|^2.
The last formula follows from Woodbury's identity: K^-1 = (I + beta Phi~^T Phi~)^-1
= I - beta Phi~^T (I + beta Phi~ Phi~^T)^-1 Phi~ = I - beta V^T V, and phi~*^T K^-1 phi~* is what is
stated. The supplement prints |y|^2 instead of |phi~*|^2: a variance that does not depend on
the losses cannot contain them.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.linalg.lapack import dtrtrs

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._blr.descent import minimise
from hpobench_ordered.methods._blr.likelihood import factor, likelihood
from hpobench_ordered.methods._products import exponentials

LOG_ALPHA = (-12.0, 8.0)
"""Bounds of log alpha; at the upper one, the weight of a feature is negligible."""
LOG_BETA = (0.0, 10.0)
"""Bounds of log beta, for losses of variance 1: noise between that and 0.7% of their sd."""
START = (0.0, 4.0)
"""log alpha and log beta that a fit starts from by default."""
ADAPTIVE_START = (4.0, 0.0)
"""The same with one log alpha for each weight: all features are off and all is noise, so that few
are used. From `START`, where all are on, five evaluations of a Forrester function leave a mean
error of 0.76 of its standard deviation, from here 0.71."""
MAX_EVALUATIONS = 60
TOLERANCE = 1e-2  # nats, as of the Gaussian process


@dataclass(frozen=True, eq=False, slots=True)
class Precisions:
    """Fitted parameters of a head.

    Attributes:
        log_alpha: Logarithm of the weights' precision, one for all (1,) or one for each (d,).
        log_beta: Logarithm of the noise's precision.
    """

    log_alpha: FloatArray
    log_beta: float

    @classmethod
    def initial(cls, count: int, *, spread: float = math.inf) -> Self:
        """Precisions that a fit of `count` precisions of weights starts from by default.

        With a prior (`Head.fit`) all features are on: from where all are off, the descent ends
        in a local minimum with a larger error.
        """
        has_prior = math.isfinite(spread)
        log_alpha, log_beta = START if count == 1 or has_prior else ADAPTIVE_START
        return cls(np.full(count, log_alpha), log_beta)


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
        self._R = factor(scaled, self._beta)
        if self._is_many:
            solved = _solve(self._R, _solve(self._R, scaled.T @ y), transposed=False)
        else:
            self._V = _solve(self._R, scaled)
            solved = _solve(self._R, y) @ self._V
        self.weights: FloatArray = self._beta * solved

    @classmethod
    def fit(
        cls, Phi: FloatArray, y: FloatArray, start: Precisions, *, spread: float = math.inf
    ) -> Self:
        """Fit the precisions by L-BFGS on the marginal likelihood, and condition on evaluations.

        Every weight keeps a standard deviation of at least 1 / n: a few evaluations do not show
        that a feature is useless, and a model without it would be overconfident.

        Args:
            Phi: Features, shape (n, d).
            y: Standardised losses, shape (n,).
            start: Starting point, with the number of precisions of weights to fit.
            spread: Standard deviation of a normal prior on each log alpha, whose mean is the mean
                of all log alpha.

        Raises:
            ModelError: The fit does not reach a finite value.
        """

        def objective(x: FloatArray) -> tuple[float, FloatArray]:
            of = likelihood(Phi, y, x[:-1], float(x[-1]))
            by_alpha = of.by_alpha if len(x) > 2 else of.by_alpha.sum(keepdims=True)
            apart = (x[:-1] - x[:-1].mean()) / spread
            # The derivative with respect to the mean is the sum of all `apart`, 0.
            return (
                of.rho + 0.5 * float(np.sum(apart**2)),
                np.append(by_alpha + apart / spread, of.by_beta),
            )

        count, unseen = len(start.log_alpha), 2.0 * math.log(max(len(y), 2))
        lower = np.append(np.full(count, LOG_ALPHA[0]), LOG_BETA[0])
        upper = np.append(np.full(count, min(LOG_ALPHA[1], unseen)), LOG_BETA[1])
        _, best = minimise(
            objective,
            np.append(start.log_alpha, start.log_beta),
            (lower, upper),
            evaluations=MAX_EVALUATIONS,
            tolerance=TOLERANCE,
        )
        return cls(Phi, y, Precisions(best[:-1], float(best[-1])))

    def predict(self, Phi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior mean (m,) and standard deviation (m,) of the noise-free losses.

        Args:
            Phi: Features phi* of the configurations to predict, shape (m, d).
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

    def with_fantasies(self, Phi: FloatArray) -> tuple[Self, FloatArray]:
        """Condition also on pending evaluations, as if they gave the posterior mean.

        Args:
            Phi: Their features, shape (k, d).

        Returns:
            The head, and the losses the pending evaluations are taken to give, (k,).
        """
        mean, _ = self.predict(Phi)
        y = np.concatenate([self._y, mean])
        return type(self)(np.concatenate([self._Phi, Phi]), y, self.precisions), mean


def _solve(R: FloatArray, B: FloatArray, *, transposed: bool = True) -> FloatArray:
    """Solve R^T X = B, or R X = B, for upper R."""
    solution: FloatArray = dtrtrs(R, B, trans=int(transposed))[0]
    return solution
