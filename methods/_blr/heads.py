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
"""Largest number of evaluations of the marginal likelihood in a fit."""
TOLERANCE = 1e-2
"""Smallest gain of an iteration of a fit to continue, in nats, as of the Gaussian process."""


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
        self._Phi = Phi
        self._y = y
        self._beta = math.exp(precisions.log_beta)
        self._scales = exponentials(-0.5 * precisions.log_alpha)
        scaled_Phi = Phi * self._scales
        n, d = Phi.shape
        self._has_more_evaluations = n > d
        self._R = factor(scaled_Phi, self._beta)  # of K with more evaluations, else of E
        if self._has_more_evaluations:
            half_solved = _solve_transposed(self._R, scaled_Phi.T @ y)
            solved = _solve(self._R, half_solved)  # C Phi~^T y
        else:
            self._V = _solve_transposed(self._R, scaled_Phi)
            solved = _solve_transposed(self._R, y) @ self._V
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
        count = len(start.log_alpha)

        def objective(x: FloatArray) -> tuple[float, FloatArray]:
            """Compute minus the log posterior of x, log alpha followed by log beta, and gradient.

            rho is minus the log likelihood.
            """
            log_alpha, log_beta = x[:-1], float(x[-1])
            task = likelihood(Phi, y, log_alpha, log_beta)
            by_alpha = task.by_alpha if count > 1 else task.by_alpha.sum(keepdims=True)
            # The prior's mean depends on log alpha, too, but its derivative has the factor
            # sum(deviations), which is 0.
            deviations = (log_alpha - log_alpha.mean()) / spread
            value = task.rho + 0.5 * float(np.sum(deviations**2))
            return value, np.append(by_alpha + deviations / spread, task.by_beta)

        # Standard deviations of weights are alpha^(-1/2), here at least 1 / n.
        log_alpha_limit = 2.0 * math.log(max(len(y), 2))
        lower = np.append(np.full(count, LOG_ALPHA[0]), LOG_BETA[0])
        upper = np.append(np.full(count, min(LOG_ALPHA[1], log_alpha_limit)), LOG_BETA[1])
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
        scaled_Phi = Phi * self._scales
        mean = scaled_Phi @ self.weights
        # The weights' posterior covariance is C = (I + beta Phi~^T Phi~)^-1, with the scaled
        # features Phi~ of the evaluations; the variance of a prediction is phi*^T C phi*.
        if self._has_more_evaluations:  # C = (R^T R)^-1
            solved = _solve_transposed(self._R, scaled_Phi.T)
            variance = np.einsum("ij,ij->j", solved, solved)
        else:  # C = I - beta V^T V
            projected = self._V @ scaled_Phi.T
            prior_variance = np.einsum("ij,ij->i", scaled_Phi, scaled_Phi)
            variance = prior_variance - self._beta * np.einsum("ij,ij->j", projected, projected)
        return mean, np.sqrt(np.maximum(variance, 0.0))

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


def _solve(R: FloatArray, B: FloatArray) -> FloatArray:
    """Solve R X = B for upper R."""
    solution: FloatArray = dtrtrs(R, B, trans=0)[0]
    return solution


def _solve_transposed(R: FloatArray, B: FloatArray) -> FloatArray:
    """Solve R^T X = B for upper R."""
    solution: FloatArray = dtrtrs(R, B, trans=1)[0]
    return solution
