"""Expected improvement in log space.

========  =====  =================================================================
symbol    shape  meaning
========  =====  =================================================================
mean, sd  (m,)   posterior mean and standard deviation of the loss at the candidates
best      ()     smallest loss so far, in the same units
z         (m,)   (best - mean) / sd
h(z)      (m,)   phi(z) + z Phi(z), so that EI = sd * h(z)
========  =====  =================================================================

Jones, Schonlau and Welch (1998), equation 15. EI underflows where log EI still tells candidates
apart (Ament et al. 2023, Unexpected Improvements to Expected Improvement); far in the left tail
h is computed as phi(t) * c / (t + c) with t = -z, where t R(t) = t / (t + c) and
c = 1/(t + 2/(t + 3/(t + ...))) is the tail of the continued fraction of the Mills ratio R
(Abramowitz and Stegun 26.2.14): nothing cancels.
"""

import math

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.runtime.compiling import compiled

SQRT_HALF = math.sqrt(0.5)
LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
INVERSE_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
LEFT_TAIL_END = -10.0
"""Largest z that is far in the left tail; the direct formula still has 13 digits there."""
FRACTION_TERMS = 12
"""Number of terms in which the continued fraction converges in the tail."""


@compiled
def log_expected_improvement(mean: FloatArray, sd: FloatArray, best: float) -> FloatArray:
    """Compute the log expected improvement (m,) below `best`, the smallest loss so far.

    With z = (best - mean) / sd, it is log(sd (phi(z) + z Phi(z))), the normal density phi and
    distribution function Phi (Jones et al. 1998, equation 15). Far in the left tail the two terms
    cancel. There the sum is phi(t) c / (t + c) with t = -z and a continued fraction
    c = 1 / (t + 2 / (t + 3 / (t + ...))) (Abramowitz and Stegun 26.2.14).

    Args:
        mean: Posterior mean of the loss at each candidate, shape (m,).
        sd: Posterior standard deviation, shape (m,); where it is not positive, the result is -inf.
        best: The smallest loss, in the same units.
    """
    log_ei = np.empty(len(mean))
    for j in range(len(mean)):
        if not sd[j] > 0.0:  # also if it is NaN
            log_ei[j] = -math.inf
            continue
        z = (best - mean[j]) / sd[j]
        if z > LEFT_TAIL_END:
            density = math.exp(-0.5 * z * z) * INVERSE_SQRT_2PI
            probability = 0.5 * math.erfc(-z * SQRT_HALF)
            log_ei[j] = math.log(sd[j] * (density + z * probability))
        else:  # far in the left tail
            t = -z
            c = 0.0  # the continued fraction, computed from its last term to its first
            for k in range(FRACTION_TERMS, 0, -1):
                c = k / (t + c)
            log_density = -0.5 * z * z - LOG_SQRT_2PI
            log_ei[j] = log_density + math.log(c / (t + c)) + math.log(sd[j])
    return log_ei
