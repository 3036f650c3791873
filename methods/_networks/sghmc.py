"""Stochastic-gradient Hamiltonian Monte Carlo with scale adaptation.

Springenberg, Klein, Falkner and Hutter (2016), section 4. All operations are elementwise over the
parameters.

=======  =======  ================================================================================
symbol   shape    meaning
=======  =======  ================================================================================
D        scalar   parameters
n, b     scalars  evaluations, those in a mini-batch
z        (D,)     parameters: the position
v        (D,)     momentum, a multiple of `GRID`
U(z)     scalar   energy: minus the log posterior, up to a constant
G        (D,)     gradient of U, estimated on a mini-batch
S        (D,)     running mean of G^2
g        (D,)     running mean of G
tau      (D,)     length of the running means, in steps
M        (D,)     S^(-1/2), the preconditioner
eps      scalar   step size
a        scalar   friction: the part of the momentum that a step loses
xi       (D,)     noise of mean 0 and variance 1
=======  =======  ================================================================================

A step, the friction C of the paper being such that eps M C = a:

    r = 1 / (1 + tau),  tau <- 1 + tau (1 - g^2 / S),  g <- g + r (G - g),  S <- S + r (G^2 - S),
    v <- v - eps^2 M G - a v + sqrt(max(0, 2 a eps^2 M - eps^4)) xi,
    z <- z + v.

The first line is used only in the burn-in: S is fixed while samples are taken. eps^4 accounts for
the noise of the gradient, whose variance is assumed to be S; if mini-batches have all evaluations
there is no noise, and nothing is subtracted.

The elements of xi are 1 or -1: with the mean and variance of normal numbers they give steps of the
same weak order (Kloeden and Platen 1992, section 14.1), from one random bit each.

Chains are chaotic: differences in the last bit, which depends on processor and compiler, grow to
differences in the first after a thousand steps. The momentum is therefore rounded, far below its
noise, which removes almost all such differences in each step: chains are the same everywhere.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.runtime.compiling import compiled

GRID = 2.0**-20
"""Grid that the momentum is rounded to."""
WORD_BITS = 32
"""Random bits in an unsigned integer."""
ROUNDER = 1.5 * 2.0**52
"""Adding and then subtracting it rounds a far smaller number to the nearest integer."""

Gradient = Callable[..., FloatArray]
"""Gradient(z, *data, rows) (D,) of the energy: a mini-batch has the evaluations `rows` (b,)."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Settings of the sampler.

    Attributes:
        step_size: eps.
        friction: a.
        batch: Evaluations in a mini-batch, b; of no more than these, a mini-batch has all.
        samples: Number of samples.
        thinning: Steps from one sample to the next.
    """

    step_size: float
    friction: float
    batch: int
    samples: int
    thinning: int


@dataclass(frozen=True, eq=False, slots=True)
class Chain:
    """State of a chain.

    Attributes:
        state: Position z, momentum v, length tau of the running means, and running means g of the
            gradient and S of its square; each (D,).
    """

    state: tuple[FloatArray, ...]

    @classmethod
    def start(cls, position: FloatArray) -> "Chain":
        """Start a chain near a position (D,), with neutral running means.

        The position is rounded to a multiple of `GRID`, as the momentum is: chains are chaotic, and
        rounding makes them the same on every processor.
        """
        z = np.round(position / GRID) * GRID
        momentum = np.zeros_like(z)
        length_of_means = np.ones_like(z)
        mean_gradient = np.zeros_like(z)
        mean_squared_gradient = np.ones_like(z)
        return cls((z, momentum, length_of_means, mean_gradient, mean_squared_gradient))


def sample(
    gradient: Gradient,
    chain: Chain,
    data: tuple[Any, ...],
    n: int,
    rng: np.random.Generator,
    *,
    sampling: Sampling,
    burn_in: int,
) -> tuple[Chain, FloatArray]:
    """Let a chain adapt its scales, then take samples.

    It runs in rounds, each of as many steps as taking the samples needs: `burn_in` rounds in which
    the scales adapt, then one in which they stay and whose samples are returned.

    Args:
        gradient: Function (z, *data, rows) that estimates the gradient (D,) of the energy on the
            evaluations `rows`.
        chain: State to start from.
        data: Arguments of the gradient between the position z and the rows.
        n: Number of evaluations that rows are drawn from.
        rng: Source of all randomness.
        sampling: Settings.
        burn_in: Number of rounds of adaptation.

    Returns:
        Final state of the chain, and samples of z, shape (samples, D).
    """
    state = tuple(part.copy() for part in chain.state)
    # Position and momentum; the length of the running means, and the running means of the gradient
    # and of its square. All are updated in place.
    z, v, tau, g, S = state
    samples = np.empty((sampling.samples, len(z)))  # each round overwrites them; the last counts
    is_estimated = n > sampling.batch  # otherwise every batch has all evaluations
    # Factor of the gradient in a step, and standard deviation of the step's noise, by parameter.
    step_size = np.empty(len(z))
    noise_sd = np.empty(len(z))

    def update_step_sizes() -> None:
        """Write the arrays `step_size` and `noise_sd` again, which follow from S.

        S is the running mean of the squared gradient: parameters of large gradients move less.
        """
        _write_step_sizes(
            step_size, noise_sd, S, sampling.step_size, sampling.friction, is_estimated
        )

    rounds_adapt = [True] * burn_in + [False]
    for is_adapting in rounds_adapt:
        signs_of_noise = _draw_signs(rng, sampling, len(z))
        batches = _draw_batches(rng, sampling, n)
        update_step_sizes()  # if S stays in this round, step sizes do, too
        for i in range(sampling.samples):
            for j in range(sampling.thinning):
                G = gradient(z, *data, batches[i, j])
                if is_adapting:
                    _adapt_running_means(tau, g, S, G)
                    update_step_sizes()
                _move(z, v, G, step_size, noise_sd, signs_of_noise[i, j], sampling.friction)
            samples[i] = z
    return Chain(state), samples


def _draw_signs(
    rng: np.random.Generator, sampling: Sampling, parameter_count: int
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Draw the signs of the noise of all steps of one round, a random bit for each parameter.

    A round takes `sampling.samples` samples, one every `sampling.thinning` steps.

    Returns:
        1 for a positive sign and 0 for a negative one, shape (samples, thinning, at least
        parameter_count): whole words of 32 bits are drawn, and the last bits are not used.
    """
    word_count = math.ceil(parameter_count / WORD_BITS)
    shape = (sampling.samples, sampling.thinning, word_count)
    words = rng.integers(2**WORD_BITS, size=shape, dtype=np.uint32)
    # The order of bytes in memory depends on the processor; here it is always little-endian.
    little_endian = words.astype("<u4", copy=False)
    return np.unpackbits(little_endian.view(np.uint8), axis=-1, bitorder="little")


def _draw_batches(rng: np.random.Generator, sampling: Sampling, n: int) -> IntArray:
    """Draw a mini-batch for each step of a round, from n evaluations.

    A round takes `sampling.samples` samples, one every `sampling.thinning` steps. A mini-batch has
    `sampling.batch` evaluations, drawn with repeats; if there are no more evaluations than that,
    every mini-batch consists of all of them, and nothing is drawn.

    Returns:
        Indices of evaluations, shape (samples, thinning, evaluations of a mini-batch).
    """
    shape = (sampling.samples, sampling.thinning)
    if n <= sampling.batch:
        return np.tile(np.arange(n), (*shape, 1))
    return rng.integers(n, size=(*shape, sampling.batch))


@compiled
def _adapt_running_means(tau: FloatArray, g: FloatArray, S: FloatArray, G: FloatArray) -> None:
    """Update running means of the gradient by a new gradient, in place.

    They are exponential means over about tau steps. tau itself is adapted: where noise dominates
    the gradient, its squared mean g^2 is small relative to the mean S of its square, and tau grows
    (Springenberg et al. 2016, section 4).

    Args:
        tau: Length of the running means in steps, shape (D,).
        g: Running mean of the gradient, shape (D,).
        S: Running mean of its square, shape (D,).
        G: The new gradient, shape (D,).
    """
    for k in range(len(G)):
        weight = 1.0 / (1.0 + tau[k])  # of the new gradient
        tau[k] += 1.0 - tau[k] * g[k] * g[k] / S[k]
        g[k] += weight * (G[k] - g[k])
        S[k] += weight * (G[k] * G[k] - S[k])


@compiled
def _write_step_sizes(
    step_size: FloatArray,
    noise_sd: FloatArray,
    S: FloatArray,
    eps: float,
    a: float,
    is_estimated: bool,
) -> None:
    """Write the factor of the gradient in a step, eps^2 M, and the sd of the step's noise.

    M = S^(-1/2) scales each parameter by the typical size of its gradient. The variance of the
    noise is 2 a eps^2 M, which balances the friction. A gradient that is estimated brings noise of
    its own: its variance is assumed to be S, which a step scales to (eps^2 M)^2 S = eps^4, and
    which is subtracted (Springenberg et al. 2016, section 4).

    Args:
        step_size: Where eps^2 M is written, shape (D,).
        noise_sd: Where the standard deviation is written, shape (D,).
        S: Running mean of G^2, shape (D,).
        eps: Step size.
        a: Friction.
        is_estimated: Whether gradients are estimated on mini-batches, and so have noise.
    """
    variance_of_gradient = eps**4 if is_estimated else 0.0
    for k in range(len(S)):
        M = 1.0 / math.sqrt(S[k])
        step_size[k] = eps**2 * M
        variance = 2.0 * a * eps**2 * M - variance_of_gradient
        noise_sd[k] = math.sqrt(max(0.0, variance))


@compiled
def _move(
    z: FloatArray,
    v: FloatArray,
    G: FloatArray,
    step_size: FloatArray,
    noise_sd: FloatArray,
    signs: np.ndarray[Any, np.dtype[np.uint8]],
    a: float,
) -> None:
    """Take a step of the chain, in place: v <- (1 - a) v - eps^2 M G + noise xi, z <- z + v.

    Args:
        z: Position, shape (D,).
        v: Momentum, shape (D,).
        G: Gradient, shape (D,).
        step_size: eps^2 M, shape (D,).
        noise_sd: Standard deviation of the noise, shape (D,).
        signs: 1 where xi is 1, 0 where it is -1; shape (at least D,).
        a: Friction.
    """
    for k in range(len(z)):
        xi = 2.0 * signs[k] - 1.0
        momentum = (1.0 - a) * v[k] - step_size[k] * G[k] + noise_sd[k] * xi
        # The momentum is rounded to a multiple of GRID: chaos would amplify differences in the last
        # bits between processors. ROUNDER is so large that a sum with it has no digits after the
        # point; subtracting it leaves the rounded number.
        v[k] = ((momentum / GRID + ROUNDER) - ROUNDER) * GRID
        z[k] += v[k]
