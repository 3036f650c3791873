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
CURVATURE = 6.0  # of minus the log likelihood along a coordinate of theta, roughly: first guess
MAX_STEP = 2.0  # per coordinate of theta and iteration: a factor of e^2
BLOCK = 64  # candidates predicted together: a block of n rows stays in the first-level cache

LOG2_E = 1.4426950408889634
ROUNDER = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest integer in the low bits
LN2_HIGH, LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
E2, E3, E4, E5, E6, E7, E8, E9, E10, E11, E12, E13 = (1 / math.factorial(k) for k in range(2, 14))


@compiled
def exp_in_place(x: FloatArray, scratch: FloatArray) -> None:
    """Replace x (m,), values of at most 0, by exp(x), to within two units in the last place.

    exp(x) = 2^k exp(r) with |r| <= ln(2) / 2 and Taylor's series for exp(r). There is no branch, so
    that the compiler vectorises it: it takes a third of the time of the library's exp. Below -700
    it is exp(-700).
    """
    bits, power = x.view(np.int64), scratch.view(np.int64)
    for j in range(x.shape[0]):
        s = max(x[j], -700.0)
        scratch[j] = s * LOG2_E + ROUNDER
        k = scratch[j] - ROUNDER
        r = (s - k * LN2_HIGH) - k * LN2_LOW
        high = E8 + r * (E9 + r * (E10 + r * (E11 + r * (E12 + r * E13))))
        low = E2 + r * (E3 + r * (E4 + r * (E5 + r * (E6 + r * (E7 + r * high)))))
        x[j] = 1.0 + r * (1.0 + r * low)
    for j in range(x.shape[0]):
        bits[j] += power[j] << 52


@compiled
def _decay(row: FloatArray, decay: FloatArray, scratch: FloatArray) -> None:
    """Replace r^2 in row (m,) by a = sqrt(5) r, and write exp(-a) to decay (m,)."""
    for j in range(row.shape[0]):
        a = SQRT5 * math.sqrt(row[j])
        row[j] = a
        decay[j] = -a
    exp_in_place(decay, scratch)


@compiled
def _correlation(row: FloatArray, decay: FloatArray) -> None:
    """Replace a in row (m,) by the Matern-5/2 correlation; decay (m,) is exp(-a)."""
    for j in range(row.shape[0]):
        row[j] = (1.0 + row[j] + row[j] * row[j] / 3.0) * decay[j]


@compiled
def _slope(row: FloatArray, decay: FloatArray, slopes: FloatArray) -> None:
    """Write -2 d correlation / d(r^2) to slopes (m,); row (m,) is a, decay (m,) exp(-a)."""
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
    """S (g, n, n) of the features X (n, p), whose columns belong to length scales `groups` (p,)."""
    n, p = X.shape
    S = np.zeros((g, n, n))
    for c in range(p):
        k = groups[c]
        for i in range(n):
            for j in range(n):
                S[k, i, j] += (X[i, c] - X[j, c]) ** 2
    return S


@compiled
def covariance(S: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """K and F, upper triangles (n, n), with dK / d log l_k = F * S_k / l_k^2 elementwise."""
    g, n, _ = S.shape
    variance = math.exp(theta[g])
    inverses = np.exp(-2.0 * theta[:g])
    K = np.zeros((n, n))
    F = np.zeros((n, n))
    decay, scratch = np.empty(n), np.empty(n)
    for i in range(n):
        row = K[i, i:]
        slopes = F[i, i:]
        width = n - i
        for k in range(g):
            squared = S[k, i, i:]
            for j in range(width):
                row[j] += inverses[k] * squared[j]
        _decay(row, decay[:width], scratch[:width])
        _slope(row, decay[:width], slopes)
        _correlation(row, decay[:width])
        for j in range(width):
            row[j] *= variance
            slopes[j] *= variance
        row[0] += math.exp(theta[g + 1])
    return K, F


@compiled
def cholesky(K: FloatArray) -> tuple[bool, FloatArray]:
    """Whether K (n, n) is numerically positive definite, and if so R, upper, with K = R^T R.

    Only the upper triangle of K is read.
    """
    n = K.shape[0]
    R = np.zeros((n, n))
    for i in range(n):
        R[i, i:] = K[i, i:]
    for k in range(n):
        pivot = R[k, k]
        if not pivot > 0.0 or not math.isfinite(pivot):
            return False, R
        R[k, k:] /= math.sqrt(pivot)
        for i in range(k + 1, n):
            factor = R[k, i]
            source = R[k, i:]
            target = R[i, i:]
            for j in range(n - i):
                target[j] -= factor * source[j]
    return True, R


@compiled
def solve(R: FloatArray, y: FloatArray) -> FloatArray:
    """K^-1 y (n,) from the Cholesky factor R of K."""
    n = y.shape[0]
    x = y.copy()
    for k in range(n):
        x[k] /= R[k, k]
        for j in range(k + 1, n):
            x[j] -= x[k] * R[k, j]
    for i in range(n - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, n):
            total -= R[i, j] * x[j]
        x[i] = total / R[i, i]
    return x


@compiled
def inverse_from_factor(R: FloatArray) -> FloatArray:
    """K^-1 (n, n), its upper triangle only, from the Cholesky factor R of K."""
    n = R.shape[0]
    T = np.zeros((n, n))
    for i in range(n):
        row = T[i]
        row[i] = 1.0
        for k in range(i):
            factor = R[k, i]
            above = T[k]
            for j in range(k + 1):
                row[j] -= factor * above[j]
        scale = 1.0 / R[i, i]
        for j in range(i + 1):
            row[j] *= scale
    inverse = np.zeros((n, n))
    for k in range(n):
        for i in range(k + 1):
            factor = T[k, i]
            source = T[k, i:]
            target = inverse[i, i:]
            for j in range(k + 1 - i):
                target[j] += factor * source[j]
    return inverse


@compiled
def likelihood_gradient(
    S: FloatArray,
    K: FloatArray,
    F: FloatArray,
    inverse: FloatArray,
    alpha: FloatArray,
    theta: FloatArray,
) -> FloatArray:
    """Gradient of the log marginal likelihood: 1/2 tr((alpha alpha^T - K^-1) dK/dtheta).

    `inverse` is K^-1; only its upper triangle is read. Shaped as theta.
    """
    g, n, _ = S.shape
    noise = math.exp(theta[g + 1])
    gradient = np.zeros(theta.shape[0])
    weighted = np.empty(n)
    by_column = np.zeros((g, n))
    for i in range(n):
        diagonal = 0.5 * (alpha[i] * alpha[i] - inverse[i, i])
        gradient[g] += diagonal * (K[i, i] - noise)
        gradient[g + 1] += diagonal * noise
        width = n - i - 1
        row, inverses, slopes = K[i, i + 1 :], inverse[i, i + 1 :], F[i, i + 1 :]
        others = alpha[i + 1 :]
        for j in range(width):
            weight = alpha[i] * others[j] - inverses[j]
            gradient[g] += weight * row[j]
            weighted[j] = weight * slopes[j]
        for k in range(g):
            squared, sums = S[k, i, i + 1 :], by_column[k, i + 1 :]
            for j in range(width):
                sums[j] += weighted[j] * squared[j]
    for k in range(g):
        gradient[k] = math.exp(-2.0 * theta[k]) * np.sum(by_column[k])
    return gradient


@compiled
def negative_log_posterior_from(
    y: FloatArray,
    R: FloatArray,
    alpha: FloatArray,
    theta: FloatArray,
    mu: FloatArray,
    w: FloatArray,
) -> float:
    """Minus log marginal likelihood minus log prior (up to its constant), from K's factor."""
    value: float = 0.5 * y.shape[0] * LOG_2PI
    for i in range(y.shape[0]):
        value += 0.5 * y[i] * alpha[i] + math.log(R[i, i])
    for k in range(theta.shape[0]):
        value += 0.5 * w[k] * (theta[k] - mu[k]) ** 2
    return value


@compiled
def negative_log_posterior(
    S: FloatArray, y: FloatArray, theta: FloatArray, mu: FloatArray, w: FloatArray
) -> tuple[float, FloatArray]:
    """Minus log posterior of theta, up to a constant, and its gradient, shaped as theta.

    The value is infinite where K has no Cholesky factor.
    """
    K, F = covariance(S, theta)
    positive, R = cholesky(K)
    if not positive:
        return math.inf, np.zeros(theta.shape[0])
    alpha = solve(R, y)
    value = negative_log_posterior_from(y, R, alpha, theta, mu, w)
    inverse = inverse_from_factor(R)
    gradient = -likelihood_gradient(S, K, F, inverse, alpha, theta)
    return value, gradient + w * (theta - mu)


@compiled
def _descent_direction(
    H: FloatArray, x: FloatArray, gradient: FloatArray, lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, float]:
    """Quasi-Newton direction among the free coordinates, and its slope; 0 at a stationary x."""
    size = x.shape[0]
    direction = np.zeros(size)
    slope = 0.0
    for i in range(size):
        if _blocked(x[i], gradient[i], lower[i], upper[i]):
            continue
        for j in range(size):
            if not _blocked(x[j], gradient[j], lower[j], upper[j]):
                direction[i] -= H[i, j] * gradient[j]
        direction[i] = min(max(direction[i], -MAX_STEP), MAX_STEP)
        slope += direction[i] * gradient[i]
    return direction, slope


@compiled
def _blocked(x: float, slope: float, lower: float, upper: float) -> bool:
    """Whether a descent along this coordinate would leave the box."""
    return (x <= lower and slope > 0.0) or (x >= upper and slope < 0.0)


@compiled
def update_inverse_hessian(H: FloatArray, step: FloatArray, change: FloatArray) -> None:
    """BFGS update of H in place (Nocedal and Wright 2006, equation 6.17); skipped if not convex."""
    curvature = np.sum(step * change)
    if curvature <= 1e-10 * math.sqrt(np.sum(step * step) * np.sum(change * change)):
        return
    size = step.shape[0]
    product = np.zeros(size)
    for i in range(size):
        for j in range(size):
            product[i] += H[i, j] * change[j]
    scale = (1.0 + np.sum(change * product) / curvature) / curvature
    for i in range(size):
        for j in range(size):
            H[i, j] += (
                scale * step[i] * step[j]
                - (product[i] * step[j] + step[i] * product[j]) / curvature
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
    """Minimise the negative log posterior in the box by projected BFGS; theta and its value.

    Stops after an iteration that gains less than `tolerance`; the value is infinite if the start
    itself has no Cholesky factor.
    """
    x = np.minimum(np.maximum(start, lower), upper)
    value, gradient = negative_log_posterior(S, y, x, mu, w)
    H = np.diag(1.0 / (w + CURVATURE))
    for _ in range(max_iterations):
        direction, slope = _descent_direction(H, x, gradient, lower, upper)
        if slope >= 0.0:
            H = np.diag(1.0 / (w + CURVATURE))
            direction, slope = _descent_direction(H, x, gradient, lower, upper)
        if slope > -tolerance * 1e-3:
            break
        length = 1.0
        while True:
            trial = np.minimum(np.maximum(x + length * direction, lower), upper)
            new_value, new_gradient = negative_log_posterior(S, y, trial, mu, w)
            if new_value <= value + ARMIJO * length * slope or length < 1e-6:
                break
            length *= 0.3
        if not new_value < value:
            break
        gain = value - new_value
        update_inverse_hessian(H, trial - x, new_gradient - gradient)
        x, value, gradient = trial, new_value, new_gradient
        if gain < tolerance:
            break
    return x, value


@compiled
def _scaled(X: FloatArray, groups: IntArray, theta: FloatArray) -> FloatArray:
    """Features (p, rows) divided by their length scales, one row a feature."""
    rows, p = X.shape
    scaled = np.empty((p, rows))
    for c in range(p):
        inverse = math.exp(-theta[groups[c]])
        for i in range(rows):
            scaled[c, i] = X[i, c] * inverse
    return scaled


@compiled
def _squared_distances(row: FloatArray, x: FloatArray, scaled: FloatArray, begin: int) -> None:
    """Write r^2 between one scaled observation x (p,) and the candidates from `begin` on to row."""
    width = row.shape[0]
    for j in range(width):
        row[j] = 0.0
    for k in range(x.shape[0]):
        others = scaled[k, begin : begin + width]
        for j in range(width):
            row[j] += (x[k] - others[j]) ** 2


@compiled
def cross_covariance(
    X: FloatArray, candidates: FloatArray, groups: IntArray, theta: FloatArray, g: int
) -> FloatArray:
    """Covariance (n, m) between the observations X (n, p) and candidates (m, p)."""
    variance = math.exp(theta[g])
    scaled = _scaled(candidates, groups, theta)
    points = _scaled(X, groups, theta).T.copy()
    m = candidates.shape[0]
    cross = np.empty((X.shape[0], m))
    decay, scratch = np.empty(m), np.empty(m)
    for i in range(X.shape[0]):
        _squared_distances(cross[i], points[i], scaled, 0)
        _decay(cross[i], decay, scratch)
        _correlation(cross[i], decay)
        for j in range(m):
            cross[i, j] *= variance
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
    """Posterior mean (m,) and variance (m,) of the noise-free function at the candidates (m, p)."""
    n, m = X.shape[0], candidates.shape[0]
    variance = math.exp(theta[g])
    scaled = _scaled(candidates, groups, theta)
    points = _scaled(X, groups, theta).T.copy()
    mean = np.zeros(m)
    remaining = np.full(m, variance)
    block = np.empty((n, BLOCK))
    decay, scratch = np.empty(BLOCK), np.empty(BLOCK)
    for begin in range(0, m, BLOCK):
        width = min(BLOCK, m - begin)
        block_mean = mean[begin : begin + width]
        block_remaining = remaining[begin : begin + width]
        for i in range(n):
            row = block[i, :width]
            _squared_distances(row, points[i], scaled, begin)
            _decay(row, decay[:width], scratch[:width])
            _correlation(row, decay[:width])
            for j in range(width):
                row[j] *= variance
                block_mean[j] += alpha[i] * row[j]
            done = i - i % 4  # four rows at a time are read and written once
            for k in range(0, done, 4):
                c0, c1, c2, c3 = R[k, i], R[k + 1, i], R[k + 2, i], R[k + 3, i]
                r0, r1 = block[k, :width], block[k + 1, :width]
                r2, r3 = block[k + 2, :width], block[k + 3, :width]
                for j in range(width):
                    row[j] -= c0 * r0[j] + c1 * r1[j] + c2 * r2[j] + c3 * r3[j]
            for k in range(done, i):
                factor, other = R[k, i], block[k, :width]
                for j in range(width):
                    row[j] -= factor * other[j]
            scale = 1.0 / R[i, i]
            for j in range(width):
                row[j] *= scale
                block_remaining[j] -= row[j] * row[j]
    return mean, remaining
