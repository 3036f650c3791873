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
from hpobench_ordered.methods._blr.likelihood import compute_likelihood, factorise_smaller_matrix
from hpobench_ordered.methods._products import exponentials

LOG_ALPHA_BOUNDS = (-12.0, 8.0)
"""Bounds of log alpha; at the upper one, the weight of a feature is negligible."""
LOG_BETA_BOUNDS = (0.0, 10.0)
"""Bounds of log beta. Losses have the variance 1, so that the standard deviation of the noise is
between 1 and 0.007."""
START_WITH_FEATURES_ON = (0.0, 4.0)
"""log alpha and log beta that a fit starts from by default."""
START_WITH_FEATURES_OFF = (4.0, 0.0)
"""log alpha and log beta that a fit starts from if each weight has its own log alpha. All features
are off at first, and all variance is noise, so that the fit uses few features. After five
evaluations of a Forrester function the mean error is 0.71 of the function's standard deviation; it
is 0.76 if the fit starts with all features on."""
MAX_EVALUATIONS = 60
"""A fit evaluates the marginal likelihood at most this many times."""
TOLERANCE = 1e-2
"""A fit ends after an iteration that gains less than this, in nats, as that of a process does."""


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
        """Make the precisions that a fit starts from by default.

        A high precision holds the weight of a feature near 0: the feature is off. If each weight
        has its own precision, all features are off at first, so that the fit turns on few of them.
        With a prior on the precisions, all features are on at first: a descent that starts with all
        of them off would end in a local minimum with a larger error.

        Args:
            count: Number of precisions of weights: 1 if all weights have the same precision.
            spread: Standard deviation of the prior on the logarithms of the precisions, as in
                `Head.fit`; infinite without a prior.
        """
        has_separate_precisions = count > 1
        has_prior = math.isfinite(spread)
        if has_separate_precisions and not has_prior:
            log_alpha, log_beta = START_WITH_FEATURES_OFF
        else:
            log_alpha, log_beta = START_WITH_FEATURES_ON
        return cls(np.full(count, log_alpha), log_beta)


class Head:
    """Bayesian linear regression, conditioned on evaluations.

    Args:
        Phi: Features of the evaluations, shape (n, d).
        y: Their standardised losses, shape (n,).
        precisions: Precisions of weights and noise.

    Raises:
        ModelError: A matrix has no Cholesky factor.
    """

    def __init__(self, Phi: FloatArray, y: FloatArray, precisions: Precisions) -> None:
        """Compute the posterior of the weights, given features Phi (n, d) and losses y (n,).

        With scaled features Phi~ = Phi alpha^(-1/2), all weights have the prior precision 1. The
        posterior mean of the weights is beta K^-1 Phi~^T y with the matrix
        K = I + beta Phi~^T Phi~ (d, d), where beta is the precision of the noise. With few
        evaluations, n <= d, it is faster to compute the same as beta Phi~^T E^-1 y with
        E = I + beta Phi~ Phi~^T (n, n).
        """
        self.precisions = precisions
        self._Phi = Phi
        self._y = y
        self._beta = math.exp(precisions.log_beta)
        self._scales = exponentials(-0.5 * precisions.log_alpha)  # alpha^(-1/2)
        scaled_Phi = Phi * self._scales  # Phi~
        n, d = Phi.shape
        self._has_more_evaluations = n > d
        # The upper Cholesky factor of the smaller matrix: of K with more evaluations, else of E.
        self._R = factorise_smaller_matrix(scaled_Phi, self._beta)

        if self._has_more_evaluations:  # K = R^T R
            Phi_y = scaled_Phi.T @ y
            solved = _solve(self._R, _solve_transposed(self._R, Phi_y))  # K^-1 Phi~^T y
        else:  # E = R^T R
            self._V = _solve_transposed(self._R, scaled_Phi)  # R^-T Phi~; `predict` needs it, too
            solved_y = _solve_transposed(self._R, y)  # R^-T y
            solved = solved_y @ self._V  # Phi~^T R^-1 R^-T y = Phi~^T E^-1 y
        self.weights: FloatArray = self._beta * solved  # posterior mean, (d,)

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
                of all log alpha; infinite without a prior.

        Raises:
            ModelError: The fit does not reach a finite value.
        """

        def objective(x: FloatArray) -> tuple[float, FloatArray]:
            """Compute minus the log posterior of the precisions, and its gradient.

            x has the logarithms of the precisions of the weights, and last that of the noise.
            """
            return _negative_log_posterior(Phi, y, x, spread)

        precision_count = len(start.log_alpha)  # 1, or d
        lowest_log_alpha, highest_log_alpha = LOG_ALPHA_BOUNDS
        lowest_log_beta, highest_log_beta = LOG_BETA_BOUNDS
        # A weight's standard deviation, alpha^(-1/2), is at least 1 / n where log alpha is at most
        # 2 log n. A single evaluation counts as two.
        n = max(len(y), 2)
        highest_log_alpha = min(highest_log_alpha, 2.0 * math.log(n))
        lower = np.append(np.full(precision_count, lowest_log_alpha), lowest_log_beta)
        upper = np.append(np.full(precision_count, highest_log_alpha), highest_log_beta)
        _, best = minimise(
            objective,
            np.append(start.log_alpha, start.log_beta),
            (lower, upper),
            evaluations=MAX_EVALUATIONS,
            tolerance=TOLERANCE,
        )
        return cls(Phi, y, Precisions(log_alpha=best[:-1], log_beta=float(best[-1])))

    def predict(self, Phi: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Compute the posterior mean (m,) and standard deviation (m,) of the noise-free losses.

        Args:
            Phi: Features of the configurations to predict, shape (m, d).
        """
        scaled_Phi = Phi * self._scales  # as the features of the evaluations were scaled
        mean = scaled_Phi @ self.weights
        if self._has_more_evaluations:
            variance = self._compute_variance_by_weights(scaled_Phi)
        else:
            variance = self._compute_variance_by_evaluations(scaled_Phi)
        # Rounding may give a variance below 0.
        return mean, np.sqrt(np.maximum(variance, 0.0))

    def _compute_variance_by_weights(self, scaled_Phi: FloatArray) -> FloatArray:
        """Compute posterior variances (m,) with more evaluations than features.

        Then K = R^T R is the inverse covariance of the weights, and the variance at features phi is
        phi^T K^-1 phi = |R^-T phi|^2.

        Args:
            scaled_Phi: Scaled features phi of m configurations, shape (m, d).
        """
        solved = _solve_transposed(self._R, scaled_Phi.T)  # R^-T phi in each column, (d, m)
        variance: FloatArray = np.einsum("ij,ij->j", solved, solved)  # squared length of columns
        return variance

    def _compute_variance_by_evaluations(self, scaled_Phi: FloatArray) -> FloatArray:
        """Compute posterior variances (m,) with at most as many evaluations as features.

        Then the covariance of the weights is I - beta V^T V, by Woodbury's identity, and the
        variance at features phi is |phi|^2 - beta |V phi|^2. beta is the precision of the noise. V
        is R^-T Phi~, with the scaled features Phi~ of the evaluations, whose matrix
        I + beta Phi~ Phi~^T is R^T R.

        Args:
            scaled_Phi: Scaled features phi of m configurations, shape (m, d).
        """
        projected = self._V @ scaled_Phi.T  # V phi in each column, (n, m)
        prior_variance = np.einsum("ij,ij->i", scaled_Phi, scaled_Phi)  # |phi|^2
        explained_variance = self._beta * np.einsum("ij,ij->j", projected, projected)
        variance: FloatArray = prior_variance - explained_variance
        return variance

    @property
    def noise_variance(self) -> float:
        """Variance of the noise, 1 / beta."""
        return 1.0 / self._beta

    def with_fantasies(self, Phi: FloatArray) -> tuple[Self, FloatArray]:
        """Condition also on pending evaluations, as if they gave the posterior mean.

        They are appended to the evaluations that this head is conditioned on.

        Args:
            Phi: Features of the k pending evaluations, shape (k, d).

        Returns:
            The new head, with the same precisions, and the losses that the pending evaluations
            are assumed to give, (k,).
        """
        assumed_losses, _ = self.predict(Phi)
        all_Phi = np.concatenate([self._Phi, Phi])
        all_y = np.concatenate([self._y, assumed_losses])
        return type(self)(all_Phi, all_y, self.precisions), assumed_losses


def _negative_log_posterior(
    Phi: FloatArray, y: FloatArray, x: FloatArray, spread: float
) -> tuple[float, FloatArray]:
    """Compute minus the log posterior of the precisions, up to a constant, and its gradient.

    Args:
        Phi: Features, shape (n, d).
        y: Standardised losses, shape (n,).
        x: Logarithms of the precisions: log alpha of the weights, one for all or one for each, and
            last log beta of the noise.
        spread: Standard deviation of a normal prior on each log alpha, whose mean is the mean of
            all log alpha; infinite without a prior.

    Returns:
        The value, and the gradient, shaped as x.
    """
    log_alpha = x[:-1]
    log_beta = float(x[-1])
    likelihood = compute_likelihood(Phi, y, log_alpha, log_beta)
    grad_alpha = likelihood.grad_alpha  # one derivative for each feature
    has_common_precision = len(log_alpha) == 1
    if has_common_precision:
        grad_alpha = grad_alpha.sum(keepdims=True)

    # Without a prior, the spread is infinite and the deviations are 0.
    deviations = (log_alpha - log_alpha.mean()) / spread
    minus_log_prior = 0.5 * float(np.sum(deviations**2))
    # The mean depends on log alpha, too. This adds nothing to the gradient, as deviations from a
    # mean sum to 0.
    grad_prior = deviations / spread

    value = likelihood.rho + minus_log_prior  # rho is minus the log likelihood
    return value, np.append(grad_alpha + grad_prior, likelihood.grad_beta)


def _solve(R: FloatArray, B: FloatArray) -> FloatArray:
    """Solve R X = B for X, with an upper triangular R (k, k) and B of k rows, by LAPACK."""
    solution: FloatArray
    solution, _ = dtrtrs(R, B, trans=0)
    return solution


def _solve_transposed(R: FloatArray, B: FloatArray) -> FloatArray:
    """Solve R^T X = B for X, with an upper triangular R (k, k) and B of k rows, by LAPACK."""
    solution: FloatArray
    solution, _ = dtrtrs(R, B, trans=1)  # 1: with R transposed
    return solution
