"""Marginal likelihood of Bayesian linear regression, differentiable by JAX.

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
K, L      (d, d)           I + beta Phi~^T Phi~ = L L^T
E         (n, n)           I + beta Phi~ Phi~^T = E E^T (E is the factor)
e         (d,)             L^-1 Phi~^T y
rho       scalar           minus log marginal likelihood without n/2 log(2 pi)
========  ===============  ========================================================================

Perrone et al. (2018), supplement, section A, whose r = beta / alpha, K and E are the ones here; its
one precision becomes one a weight (Horvath et al. 2021, equation 5) by scaling the features.

With more evaluations than features:  rho = -n/2 log beta + beta/2 (|y|^2 - beta |e|^2)
                                            + sum_i log L_ii
with at most as many:                 rho = -n/2 log beta + beta/2 |E^-1 y|^2 + sum_i log E_ii
"""

from typing import Any

from hpobench_ordered.methods._networks.runtime import jax

jnp = jax.numpy


def rho_many(gram: Any, projected: Any, squares: Any, n: Any, log_beta: Any) -> Any:
    """Compute rho of a task with more evaluations than features, from sums over its evaluations.

    Args:
        gram: Phi~^T Phi~, shape (d, d).
        projected: Phi~^T y, shape (d,).
        squares: |y|^2.
        n: Number of evaluations.
        log_beta: Logarithm of beta.
    """
    beta = jnp.exp(log_beta)
    L = jnp.linalg.cholesky(jnp.eye(len(gram)) + beta * gram)
    e = jax.scipy.linalg.solve_triangular(L, projected, lower=True)
    fit = squares - beta * jnp.sum(e**2)
    return -0.5 * n * log_beta + 0.5 * beta * fit + jnp.sum(jnp.log(jnp.diagonal(L)))


def rho_few(Phi: Any, y: Any, n: Any, log_beta: Any) -> Any:
    """Compute rho of a task with at most as many evaluations as features.

    Args:
        Phi: Phi~, shape (rows, d), zeros in the rows that are padding.
        y: Losses, shape (rows,), zeros in the padding.
        n: Number of evaluations.
        log_beta: Logarithm of beta.
    """
    beta = jnp.exp(log_beta)
    E = jnp.linalg.cholesky(jnp.eye(len(y)) + beta * (Phi @ Phi.T))
    solved = jax.scipy.linalg.solve_triangular(E, y, lower=True)
    return -0.5 * n * log_beta + 0.5 * beta * jnp.sum(solved**2) + jnp.sum(jnp.log(jnp.diagonal(E)))
