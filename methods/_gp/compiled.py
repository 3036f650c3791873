"""Compiled kernels of the Gaussian process: covariance, Cholesky, log posterior, fit, prediction.

All compiled code called by compiled code is in this file: numba's cache checks only the file of the
outermost function, so a kernel elsewhere could change without its callers being recompiled. Loops
run along contiguous rows as ``a += scalar * b``, which the compiler vectorises without reordering
sums; results therefore depend only on the input.

==========  ==============  =======================================================================
symbol      shape           meaning
==========  ==============  =======================================================================
n, m        scalars         observations, candidates
p, g        scalars         feature columns, length scales (one for each hyperparameter)
X           (n, p)          features of the observations
y           (n,)            standardised losses
S           (g, n, n)       squared differences of X, summed over a length scale's columns
theta       (g + 2,)        log length scales l, log signal variance s2, log noise variance v
r           (n, n)          scaled distance, r^2 = sum_k S_k / l_k^2
K           (n, n)          s2 * matern(r) + v * I; upper triangle only
F           (n, n)          -2 dK / d(r^2); upper triangle only
R           (n, n)          upper Cholesky factor, K = R^T R
T           (n, n)          lower triangular inverse of R^T, K^-1 = T^T T
alpha       (n,)            K^-1 y
mu, w       as theta        mean and precision of the normal priors on theta (w = 0: flat)
==========  ==============  =======================================================================

Formulas: Rasmussen and Williams (2006), Gaussian Processes for Machine Learning: equation 4.17
(Matern), algorithm 2.1 (prediction, log marginal likelihood), equation 5.9 (its gradient).
"""

import math

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.runtime.compiling import compiled

SQRT5 = math.sqrt(5.0)
LOG_2PI = math.log(2.0 * math.pi)
ARMIJO = 1e-4
"""Smallest gain of a step, as a share of the gain expected from the slope (Armijo's rule)."""
CURVATURE = 6.0
"""Guess of the curvature of minus the log likelihood along a coordinate of theta."""
MAX_STEP = 2.0
"""Largest step along a coordinate of theta in an iteration: a factor of e^2."""
SHORTENING = 0.3
"""Factor of the length of a step that does not gain enough."""
MIN_LENGTH = 1e-6
"""Length of a step, relative to the first one tried, at which the line search stops."""
MIN_CURVATURE = 1e-10
"""Smallest cosine of the angle between a step and the change of the gradient to learn from it."""
CANDIDATES_PER_BLOCK = 64
"""Number of candidates predicted together: a block of n rows stays in the first-level cache."""

LOG2_E = 1.4426950408889634
ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the low bits
LN2_HIGH = 6.93147180369123816490e-01  # ln(2) in two parts: the product of k and this one is exact
LN2_LOW = 1.90821492927058770002e-10
# 1 / k! of Taylor's series
E2, E3, E4, E5, E6, E7, E8, E9, E10, E11, E12, E13 = (1 / math.factorial(k) for k in range(2, 14))


@compiled
def exp_in_place(x: FloatArray, scratch: FloatArray) -> None:
    """Replace x (m,), values of at most 0, by exp(x), to within two units in the last place.

    As the compiler vectorises these loops, which have no branch, they take a third of the time of
    the library's exp. They use that exp(x) = 2^k exp(r) for any integer k and r = x - k ln(2):

    1. Take for k the integer nearest to x / ln(2), so that |r| is at most ln(2) / 2.
    2. Compute exp(r) by its Taylor series, of which 13 terms suffice for so small an r.
    3. Multiply by 2^k, by adding k to the exponent in the bits of the result.

    Values below -700 are treated as -700.

    Args:
        x: The values.
        scratch: Working space, shape (m,).
    """
    for j in range(x.shape[0]):
        s = max(x[j], -700.0)  # below -708, adding k would leave the range of exponents

        # Step 1: k. A float as large as ROUNDER, 1.5 * 2^52, has no digits after the point. Adding
        # it to x / ln(2) therefore rounds to an integer, which is then in the low bits of the sum.
        # LOG2_E is 1 / ln(2).
        scratch[j] = s * LOG2_E + ROUNDER
        k = scratch[j] - ROUNDER
        # LN2_HIGH + LN2_LOW is ln(2), in two parts, so that the subtraction loses no digits.
        r = (s - k * LN2_HIGH) - k * LN2_LOW

        # Step 2: 1 + r + r^2 / 2! + ... + r^13 / 13! by Horner's rule, which needs no powers. E2 is
        # 1 / 2!, and so on to E13.
        high = E8 + r * (E9 + r * (E10 + r * (E11 + r * (E12 + r * E13))))
        low = E2 + r * (E3 + r * (E4 + r * (E5 + r * (E6 + r * (E7 + r * high)))))
        x[j] = 1.0 + r * (1.0 + r * low)

    # Step 3: add k to the exponent of the float x, which begins at bit 52 of its 64 bits. For this,
    # both arrays are read as integers. The low bits of scratch are k. Shifting left by 52 moves k
    # to the exponent, and all higher bits out of the integer.
    bits_of_x = x.view(np.int64)
    bits_with_k = scratch.view(np.int64)
    for j in range(x.shape[0]):
        bits_of_x[j] += bits_with_k[j] << 52


@compiled
def _scale_distances(row: FloatArray, decay: FloatArray, scratch: FloatArray) -> None:
    """Replace squared distances r^2 in row (m,) by a = sqrt(5) r, and write exp(-a) to decay (m,).

    The Matern-5/2 kernel and its derivative are functions of both. `scratch` (m,) is working space.
    """
    for j in range(row.shape[0]):
        a = SQRT5 * math.sqrt(row[j])
        row[j] = a
        decay[j] = -a
    exp_in_place(decay, scratch)


@compiled
def _correlate(row: FloatArray, decay: FloatArray) -> None:
    """Replace a = sqrt(5) r in row (m,) by the Matern-5/2 correlation, (1 + a + a^2 / 3) exp(-a).

    r is a scaled distance, and decay (m,) is exp(-a), which the caller computed.
    """
    for j in range(row.shape[0]):
        row[j] = (1.0 + row[j] + row[j] * row[j] / 3.0) * decay[j]


@compiled
def _differentiate(row: FloatArray, decay: FloatArray, slopes: FloatArray) -> None:
    """Write slopes of the Matern-5/2 correlation at distances r: -2 times its derivative in r^2.

    A slope is 5/3 (1 + a) exp(-a) with a = sqrt(5) r. It has the factor -2 for derivatives in the
    logarithm of a length scale l: r^2 is a sum of terms S / l^2, where S are squared differences of
    features, and the derivative of S / l^2 in log l is -2 S / l^2. So the derivative of the
    correlation in log l is the slope times S / l^2.

    Args:
        row: a, shape (m,).
        decay: exp(-a), shape (m,).
        slopes: Written here, shape (m,).
    """
    for j in range(row.shape[0]):
        slopes[j] = (5.0 / 3.0) * (1.0 + row[j]) * decay[j]


@compiled
def standardise(losses: FloatArray) -> FloatArray:
    """Shift and scale finite losses (n,) to mean 0 and variance 1; zeros if they are all equal.

    The smallest loss is subtracted first and the result divided by the range, so that large offsets
    lose few digits; halved losses are used, so that the range does not overflow.
    """
    n = losses.shape[0]
    if n == 0:
        return np.empty(0)
    halves = losses / 2.0 - np.min(losses) / 2.0
    spread = np.max(halves)
    if not spread > 0.0:
        return np.zeros(n)
    scaled = halves / spread
    scaled -= np.sum(scaled) / n
    return scaled / math.sqrt(np.sum(scaled * scaled) / n)


@compiled
def squared_differences(X: FloatArray, groups: IntArray, g: int) -> FloatArray:
    """Compute squared differences S (g, n, n) of all pairs of rows of the features X (n, p).

    Args:
        X: Features, shape (n, p).
        groups: Index of the length scale that each column belongs to, shape (p,).
        g: Number of length scales; S[k] is the sum over the columns of length scale k.
    """
    n, p = X.shape
    S = np.zeros((g, n, n))
    for column in range(p):
        k = groups[column]
        for i in range(n):
            for j in range(n):
                S[k, i, j] += (X[i, column] - X[j, column]) ** 2
    return S


@compiled
def covariance(S: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute the covariance K of noisy observations, and F, a factor of its derivatives.

    K is the signal variance times the Matern-5/2 correlation at the distance r, plus the noise
    variance on the diagonal, where r^2 = sum_k S_k / l_k^2 with the length scales l_k. F is
    -2 dK / d r^2, so that dK / d log l_k = F S_k / l_k^2, elementwise. Both are upper triangles,
    (n, n).

    Args:
        S: Squared differences of the features for each of g length scales, shape (g, n, n).
        theta: Log length scales, log signal variance, log noise variance, shape (g + 2,).
    """
    g, n, _ = S.shape
    inverse_squared_scales = np.exp(-2.0 * theta[:g])
    signal_variance = math.exp(theta[g])
    noise_variance = math.exp(theta[g + 1])
    K = np.zeros((n, n))
    F = np.zeros((n, n))
    decay = np.empty(n)
    scratch = np.empty(n)  # working space
    for i in range(n):
        K_row = K[i, i:]  # at first r^2, then sqrt(5) r, the correlation, and the covariance
        F_row = F[i, i:]
        width = n - i
        for k in range(g):
            S_row = S[k, i, i:]
            for j in range(width):
                K_row[j] += inverse_squared_scales[k] * S_row[j]

        _scale_distances(K_row, decay[:width], scratch[:width])  # decay is exp(-sqrt(5) r)
        _differentiate(K_row, decay[:width], F_row)
        _correlate(K_row, decay[:width])
        for j in range(width):
            K_row[j] *= signal_variance
            F_row[j] *= signal_variance
        K_row[0] += noise_variance  # the first entry is on the diagonal
    return K, F


@compiled
def couple_by_tasks(matrix: FloatArray, B: FloatArray, tasks: IntArray) -> None:
    """Multiply the entries for pairs of observations by those of B for their tasks, in place.

    Args:
        matrix: Only its upper triangle is read and changed, shape (n, n).
        B: An entry for each pair of T tasks, shape (T, T).
        tasks: Index of the task of each observation, shape (n,).
    """
    n = matrix.shape[0]
    for i in range(n):
        B_row = B[tasks[i]]
        for j in range(i, n):
            other_task = tasks[j]
            matrix[i, j] *= B_row[other_task]


@compiled
def add_levels_and_noise(
    matrix: FloatArray, tasks: IntArray, level: float, noise_variance: float
) -> None:
    """Add the variances of the tasks' levels and of the noise to a covariance, in place.

    Args:
        matrix: Covariance of observations, of which only the upper triangle is changed, (n, n).
        tasks: Index of the task of each observation, ascending, shape (n,).
        level: Variance of a task's level, which all its observations share.
        noise_variance: Variance of the noise, which each observation has for itself.
    """
    n = matrix.shape[0]
    for i in range(n):
        j = i
        while j < n and tasks[j] == tasks[i]:
            matrix[i, j] += level
            j += 1
        matrix[i, i] += noise_variance


@compiled
def differentiate_by_tasks(
    M: FloatArray, inverse: FloatArray, alpha: FloatArray, tasks: IntArray, task_count: int
) -> FloatArray:
    """Compute the derivatives of the log likelihood in the entries of B, where K = B M + ....

    They are half the sums of Q M, elementwise, with Q = alpha alpha^T - K^-1, over the pairs of
    observations of two tasks (see `likelihood_gradient`). An entry above the diagonal stands for
    two, and is added to the pair of tasks in the order of its row and column.

    Args:
        M: Correlation of the configurations, of which only the upper triangle is read, (n, n).
        inverse: K^-1, of which only the upper triangle is read, shape (n, n).
        alpha: K^-1 z with the losses z, shape (n,).
        tasks: Index of the task of each observation, shape (n,).
        task_count: T, the number of tasks.

    Returns:
        Shape (T, T); 0 for tasks without observations.
    """
    n = M.shape[0]
    sums = np.zeros((task_count, task_count))
    for i in range(n):
        task = tasks[i]
        row = sums[task]
        diagonal_weight = 0.5 * (alpha[i] * alpha[i] - inverse[i, i])
        row[task] += diagonal_weight * M[i, i]
        for j in range(i + 1, n):
            weight = alpha[i] * alpha[j] - inverse[i, j]  # entry of Q
            row[tasks[j]] += weight * M[i, j]
    return sums


@compiled
def cholesky(K: FloatArray) -> tuple[bool, FloatArray]:
    """Factorise K = R^T R with an upper triangular R (n, n).

    Only the upper triangle of K (n, n) is read.

    Returns:
        Whether K is numerically positive definite, and R, which is valid only then.
    """
    n = K.shape[0]
    R = np.zeros((n, n))
    for i in range(n):
        R[i, i:] = K[i, i:]

    for k in range(n):
        pivot = R[k, k]  # K_kk minus what the rows above have subtracted
        if not pivot > 0.0 or not math.isfinite(pivot):
            return False, R
        R[k, k:] /= math.sqrt(pivot)  # row k is complete

        for i in range(k + 1, n):  # subtract the outer product of row k from the rows below
            factor = R[k, i]
            row_k = R[k, i:]
            row_i = R[i, i:]
            for j in range(n - i):
                row_i[j] -= factor * row_k[j]
    return True, R


@compiled
def solve(R: FloatArray, y: FloatArray) -> FloatArray:
    """Compute K^-1 y (n,) from the upper Cholesky factor R of K = R^T R.

    It solves R^T z = y by forward substitution, then R x = z by backward substitution; x holds y,
    z and the result, one after the other.
    """
    n = y.shape[0]
    x = y.copy()
    for k in range(n):  # R^T z = y
        x[k] /= R[k, k]
        for j in range(k + 1, n):
            x[j] -= x[k] * R[k, j]

    for i in range(n - 1, -1, -1):  # R x = z
        total = x[i]
        for j in range(i + 1, n):
            total -= R[i, j] * x[j]
        x[i] = total / R[i, i]
    return x


@compiled
def inverse_from_factor(R: FloatArray) -> FloatArray:
    """Compute the upper triangle of K^-1 (n, n) from the upper Cholesky factor R of K = R^T R.

    With T, the inverse of R^T, it is K^-1 = T^T T: the sum of the outer products of T's rows.
    """
    n = R.shape[0]
    T = _invert_transposed(R)  # lower triangular: row k has k + 1 entries
    inverse = np.zeros((n, n))
    for k in range(n):  # add the outer product of row k of T
        for i in range(k + 1):
            factor = T[k, i]
            T_row = T[k, i:]
            inverse_row = inverse[i, i:]
            for j in range(k + 1 - i):
                inverse_row[j] += factor * T_row[j]
    return inverse


@compiled
def _invert_transposed(R: FloatArray) -> FloatArray:
    """Invert R^T, for upper triangular R (n, n); the inverse T (n, n) is lower triangular.

    By R^T T = I, row i of T is (row i of I - sum over k < i of R_ki times row k of T) / R_ii.
    """
    n = R.shape[0]
    T = np.zeros((n, n))
    for i in range(n):
        row_i = T[i]
        row_i[i] = 1.0
        for k in range(i):
            factor = R[k, i]
            row_k = T[k]
            for j in range(k + 1):
                row_i[j] -= factor * row_k[j]
        scale = 1.0 / R[i, i]
        for j in range(i + 1):
            row_i[j] *= scale
    return T


@compiled
def likelihood_gradient(
    S: FloatArray,
    K: FloatArray,
    F: FloatArray,
    inverse: FloatArray,
    alpha: FloatArray,
    theta: FloatArray,
) -> FloatArray:
    """Compute the gradient of the log marginal likelihood, shaped as theta.

    It is 1/2 tr(Q dK/dtheta) with Q = alpha alpha^T - K^-1 (Rasmussen and Williams 2006, equation
    5.9): half the sum over all entries of the elementwise product of Q and dK/dtheta. Both matrices
    are symmetric, so an entry above the diagonal stands for two, which cancels the 1/2.

    Args:
        S: Squared differences for each of g length scales, shape (g, n, n).
        K: Covariance of the noisy observations, upper triangle, shape (n, n).
        F: dK / d log l_k = F S_k / l_k^2 with the length scales l_k, upper triangle, shape (n, n).
        inverse: K^-1, of which only the upper triangle is read, shape (n, n).
        alpha: K^-1 y with the losses y, shape (n,).
        theta: Log length scales, log signal variance, log noise variance, shape (g + 2,).
    """
    g, n, _ = S.shape
    noise_variance = math.exp(theta[g + 1])
    gradient = np.zeros(theta.shape[0])
    weighted_F = np.empty(n)
    sums_by_column = np.zeros((g, n))  # of Q F S_k, elementwise
    for i in range(n):
        # dK / d log signal variance is K without noise; dK / d log noise variance is the noise
        # variance, on the diagonal only, where S is 0.
        diagonal_weight = 0.5 * (alpha[i] * alpha[i] - inverse[i, i])
        gradient[g] += diagonal_weight * (K[i, i] - noise_variance)
        gradient[g + 1] += diagonal_weight * noise_variance

        # Entries above the diagonal: rows from column i + 1 on.
        width = n - i - 1
        K_row = K[i, i + 1 :]
        F_row = F[i, i + 1 :]
        inverse_row = inverse[i, i + 1 :]
        alpha_row = alpha[i + 1 :]
        for j in range(width):
            weight = alpha[i] * alpha_row[j] - inverse_row[j]  # entry of Q
            gradient[g] += weight * K_row[j]
            weighted_F[j] = weight * F_row[j]
        for k in range(g):
            S_row = S[k, i, i + 1 :]
            sums = sums_by_column[k, i + 1 :]
            for j in range(width):
                sums[j] += weighted_F[j] * S_row[j]

    for k in range(g):  # dK / d log l_k = F S_k / l_k^2
        gradient[k] = math.exp(-2.0 * theta[k]) * np.sum(sums_by_column[k])
    return gradient


@compiled
def negative_log_likelihood(y: FloatArray, R: FloatArray, alpha: FloatArray) -> float:
    """Compute minus the log likelihood of losses y, whose covariance is K.

    Rasmussen and Williams (2006), equation 2.30: y^T alpha / 2 + sum_i log R_ii + n / 2 log(2 pi),
    where the sum is half the log determinant of K.

    Args:
        y: Losses, shape (n,).
        R: Upper Cholesky factor of K, shape (n, n).
        alpha: K^-1 y, shape (n,).
    """
    value: float = 0.5 * y.shape[0] * LOG_2PI
    for i in range(y.shape[0]):
        value += 0.5 * y[i] * alpha[i] + math.log(R[i, i])
    return value


@compiled
def negative_log_posterior_from(
    y: FloatArray,
    R: FloatArray,
    alpha: FloatArray,
    theta: FloatArray,
    mu: FloatArray,
    w: FloatArray,
) -> float:
    """Compute minus the log posterior of theta, up to the prior's constant.

    To minus the log likelihood, each prior adds w (theta - mu)^2 / 2.

    Args:
        y: Losses, shape (n,).
        R: Upper Cholesky factor of their covariance K, shape (n, n).
        alpha: K^-1 y, shape (n,).
        theta: Log hyperparameters.
        mu: Means of their normal priors, shaped as theta.
        w: Precisions of the priors, shaped as theta; 0 for a flat prior.
    """
    value = negative_log_likelihood(y, R, alpha)
    for k in range(theta.shape[0]):
        value += 0.5 * w[k] * (theta[k] - mu[k]) ** 2
    return value


@compiled
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
    K, F = covariance(S, theta)  # F holds what the derivatives of K need
    is_positive_definite, R = cholesky(K)
    if not is_positive_definite:
        return math.inf, np.zeros(theta.shape[0])
    alpha = solve(R, y)  # K^-1 y
    value = negative_log_posterior_from(y, R, alpha, theta, mu, w)

    inverse = inverse_from_factor(R)  # K^-1
    gradient_of_likelihood = -likelihood_gradient(S, K, F, inverse, alpha, theta)
    gradient_of_priors = w * (theta - mu)
    return value, gradient_of_likelihood + gradient_of_priors


@compiled
def _descent_direction(
    H: FloatArray, x: FloatArray, gradient: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, float]:
    """Compute a quasi-Newton direction of descent from x, and the objective's slope along it.

    The direction is -H gradient, where `H` estimates the inverse Hessian matrix. Coordinates that
    are at a bound, `lower` or `upper`, and would cross it stay as they are, and none changes by
    more than `MAX_STEP`. The slope is direction^T gradient, negative where the direction leads
    down; direction and slope are 0 at a stationary point.
    """
    size = x.shape[0]
    direction = np.zeros(size)
    slope = 0.0
    for i in range(size):
        if _is_blocked(x[i], gradient[i], lower[i], upper[i]):
            continue
        for j in range(size):
            if not _is_blocked(x[j], gradient[j], lower[j], upper[j]):
                direction[i] -= H[i, j] * gradient[j]
        direction[i] = min(max(direction[i], -MAX_STEP), MAX_STEP)
        slope += direction[i] * gradient[i]
    return direction, slope


@compiled
def _is_blocked(x: float, slope: float, lower: float, upper: float) -> bool:
    """Whether a coordinate is at a bound that a descent along it would cross.

    A descent goes up where the objective's slope along the coordinate is negative, else down.
    """
    return (x <= lower and slope > 0.0) or (x >= upper and slope < 0.0)


@compiled
def update_inverse_hessian(H: FloatArray, step: FloatArray, change: FloatArray) -> None:
    """Update an estimate H (k, k) of the inverse Hessian matrix in place, by BFGS.

    Nocedal and Wright (2006), equation 6.17: with the step s, the change y of the gradient, and the
    curvature s^T y, H becomes

        H + (1 + y^T H y / curvature) s s^T / curvature - (H y s^T + s y^T H) / curvature

    Where the objective is not convex along the step, the update would make H indefinite and is
    skipped.

    Args:
        H: The estimate.
        step: The last step, shape (k,).
        change: Change of the gradient over this step, shape (k,).
    """
    curvature = np.sum(step * change)  # step^T change, positive where the objective is convex
    norms = math.sqrt(np.sum(step * step) * np.sum(change * change))
    if curvature <= MIN_CURVATURE * norms:  # not convex, or not beyond rounding errors
        return

    size = step.shape[0]
    H_change = np.zeros(size)  # H times the change
    for i in range(size):
        for j in range(size):
            H_change[i] += H[i, j] * change[j]

    scale = (1.0 + np.sum(change * H_change) / curvature) / curvature
    for i in range(size):
        for j in range(size):
            H[i, j] += (
                scale * step[i] * step[j]
                - (H_change[i] * step[j] + step[i] * H_change[j]) / curvature
            )


@compiled
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
    """Minimise the negative log posterior of theta in a box by projected BFGS.

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
        theta and the value there, which is infinite if the start itself has no Cholesky factor.
    """
    x = np.minimum(np.maximum(start, lower), upper)
    value, gradient = negative_log_posterior(S, y, x, mu, w)
    # A guess of the inverse Hessian matrix, one over the curvature: w of the priors, and an assumed
    # constant of the likelihood.
    H = np.diag(1.0 / (w + CURVATURE))
    for _ in range(max_iterations):
        direction, slope = _descent_direction(H, x, gradient, lower, upper)
        if slope >= 0.0:  # the estimate H is bad: begin again with the guess
            H = np.diag(1.0 / (w + CURVATURE))
            direction, slope = _descent_direction(H, x, gradient, lower, upper)
        if slope > -tolerance * 1e-3:  # nearly stationary
            break

        length = 1.0
        while True:  # shorten the step until it gains enough
            trial = np.minimum(np.maximum(x + length * direction, lower), upper)
            new_value, new_gradient = negative_log_posterior(S, y, trial, mu, w)
            gains_enough = new_value <= value + ARMIJO * length * slope  # Armijo's rule
            if gains_enough or length < MIN_LENGTH:
                break
            length *= SHORTENING
        if not new_value < value:  # even the shortest step gains nothing, or gives NaN
            break

        gain = value - new_value
        update_inverse_hessian(H, trial - x, new_gradient - gradient)
        x, value, gradient = trial, new_value, new_gradient
        if gain < tolerance:
            break
    return x, value


@compiled
def _scale_features(X: FloatArray, groups: IntArray, theta: FloatArray) -> FloatArray:
    """Divide features X (rows, p) by their length scales, and transpose them to (p, rows).

    So the values of one feature lie together in memory, where loops over rows are fast.

    Args:
        X: Features.
        groups: Index of the length scale of each column, shape (p,).
        theta: Hyperparameters, of which the log length scales come first.
    """
    rows, p = X.shape
    scaled = np.empty((p, rows))
    for column in range(p):
        inverse_scale = math.exp(-theta[groups[column]])
        for i in range(rows):
            scaled[column, i] = X[i, column] * inverse_scale
    return scaled


@compiled
def _write_squared_distances(
    row: FloatArray, x: FloatArray, scaled_candidates: FloatArray, begin: int
) -> None:
    """Write squared distances of an observation from some candidates to row.

    Args:
        row: Written here, for as many candidates as it is long, shape (width,).
        x: Features of the observation, divided by their length scales, shape (p,).
        scaled_candidates: Features of all candidates, divided by the length scales, too; one column
            a candidate, shape (p, m).
        begin: Column of the first candidate.
    """
    width = row.shape[0]
    for j in range(width):
        row[j] = 0.0
    for k in range(x.shape[0]):  # over the features
        features = scaled_candidates[k, begin : begin + width]
        for j in range(width):
            row[j] += (x[k] - features[j]) ** 2


@compiled
def cross_covariance(
    X: FloatArray, candidates: FloatArray, groups: IntArray, theta: FloatArray, g: int
) -> FloatArray:
    """Compute the covariance (n, m) between observations and candidates, without noise.

    It is the signal variance times the Matern-5/2 correlation at the scaled distance r. r^2 is the
    sum over the features of squared differences, divided by squared length scales.

    Args:
        X: Features of the observations, shape (n, p).
        candidates: Features of the candidates, shape (m, p).
        groups: Index of the length scale of each feature, shape (p,).
        theta: g log length scales, then the log signal variance.
        g: Number of length scales.
    """
    variances = np.full(X.shape[0], math.exp(theta[g]))
    return scale_correlations(X, candidates, groups, theta, variances)


@compiled
def scale_correlations(
    X: FloatArray,
    candidates: FloatArray,
    groups: IntArray,
    log_lengths: FloatArray,
    variances: FloatArray,
) -> FloatArray:
    """Compute the Matern-5/2 correlation of observations and candidates times a variance, (n, m).

    Args:
        X: Features of the observations, shape (n, p).
        candidates: Features of the candidates, shape (m, p).
        groups: Index of the length scale of each feature, shape (p,).
        log_lengths: The log length scales come first.
        variances: What the correlations of each observation are multiplied by, shape (n,).
    """
    n, m = X.shape[0], candidates.shape[0]
    scaled_candidates = _scale_features(candidates, groups, log_lengths)
    scaled_X = _scale_features(X, groups, log_lengths).T.copy()
    cross = np.empty((n, m))
    decay = np.empty(m)
    scratch = np.empty(m)  # working space
    for i in range(n):
        row = cross[i]  # at first r^2, then sqrt(5) r, then the correlation, then the covariance
        _write_squared_distances(row, scaled_X[i], scaled_candidates, 0)
        _scale_distances(row, decay, scratch)  # decay is exp(-sqrt(5) r)
        _correlate(row, decay)
        for j in range(m):
            row[j] *= variances[i]
    return cross


@compiled
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

    With the signal variance s2 and the covariances k of the observations and a candidate, the mean
    is k^T alpha and the variance s2 - |R^-T k|^2. Candidates are predicted in blocks. Forward
    substitution computes row i of R^-T k from those above it; it stands here and not in a function
    of its own, which takes longer.

    Args:
        X: Features of the observations, shape (n, p).
        R: Upper Cholesky factor of the covariance K of the observations, shape (n, n).
        alpha: K^-1 y with the losses y, shape (n,).
        candidates: Features of the candidates, shape (m, p).
        groups: Index of the length scale of each feature, shape (p,).
        theta: g log length scales, then the log signal variance.
        g: Number of length scales.
    """
    n, m = X.shape[0], candidates.shape[0]
    signal_variance = math.exp(theta[g])
    scaled_candidates = _scale_features(candidates, groups, theta)
    scaled_X = _scale_features(X, groups, theta).T.copy()
    mean = np.zeros(m)
    variance = np.full(m, signal_variance)
    solved = np.empty((n, CANDIDATES_PER_BLOCK))
    decay = np.empty(CANDIDATES_PER_BLOCK)
    scratch = np.empty(CANDIDATES_PER_BLOCK)
    for begin in range(0, m, CANDIDATES_PER_BLOCK):
        width = min(CANDIDATES_PER_BLOCK, m - begin)
        block_mean = mean[begin : begin + width]
        block_variance = variance[begin : begin + width]
        for i in range(n):
            row = solved[i, :width]
            _write_squared_distances(row, scaled_X[i], scaled_candidates, begin)
            _scale_distances(row, decay[:width], scratch[:width])
            _correlate(row, decay[:width])
            for j in range(width):
                row[j] *= signal_variance
                block_mean[j] += alpha[i] * row[j]

            whole = i - i % 4  # four rows at a time are read and written once
            for k in range(0, whole, 4):
                c0, c1, c2, c3 = R[k, i], R[k + 1, i], R[k + 2, i], R[k + 3, i]
                row0, row1 = solved[k, :width], solved[k + 1, :width]
                row2, row3 = solved[k + 2, :width], solved[k + 3, :width]
                for j in range(width):
                    row[j] -= c0 * row0[j] + c1 * row1[j] + c2 * row2[j] + c3 * row3[j]
            for k in range(whole, i):
                factor = R[k, i]
                row_k = solved[k, :width]
                for j in range(width):
                    row[j] -= factor * row_k[j]
            scale = 1.0 / R[i, i]
            for j in range(width):
                row[j] *= scale
                block_variance[j] -= row[j] * row[j]
    return mean, variance
