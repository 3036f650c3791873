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

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.runtime.compiling import compiled

GRID = 2.0**-20
"""Grid that the momentum is rounded to."""
WORD = 32
"""Random bits in an unsigned integer."""

ROUNDER = 1.5 * 2.0**52
"""Adding it to what is far smaller leaves the nearest integer."""

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
        state: z, v, tau, g and S, each (D,).
    """

    state: tuple[FloatArray, ...]

    @classmethod
    def at(cls, position: FloatArray) -> "Chain":
        """A chain that starts at a position (D,)."""
        z = np.round(position / GRID) * GRID
        zero, one = np.zeros_like(z), np.ones_like(z)
        return cls((z, zero, one, zero, one))


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

    Args:
        gradient: Gradient of the energy.
        chain: Initial state.
        data: Data of the energy, passed to the gradient.
        n: Number of evaluations.
        rng: Source of all randomness.
        sampling: Settings.
        burn_in: Number of rounds of adaptation, each as long as taking the samples.

    Returns:
        Final state of the chain, and samples of z, shape (samples, D).
    """
    z, v, tau, g, S = state = tuple(part.copy() for part in chain.state)
    samples = np.empty((sampling.samples, len(z)))
    estimated = n > sampling.batch
    for adapting in (*[True] * burn_in, False):
        steps = (sampling.samples, sampling.thinning)
        words = rng.integers(2**WORD, size=(*steps, -(-len(z) // WORD)), dtype=np.uint32)
        signs = np.unpackbits(words.astype("<u4", copy=False).view(np.uint8), -1, bitorder="little")
        rows = np.tile(np.arange(min(n, sampling.batch)), (*steps, 1))
        if estimated:
            rows = rng.integers(n, size=rows.shape)
        step_size, noise = np.empty(len(z)), np.empty(len(z))
        for i in range(sampling.samples):
            for j in range(sampling.thinning):
                G = gradient(z, *data, rows[i, j])
                if adapting:
                    _adapt(tau, g, S, G)
                if adapting or not i + j:
                    _scale(step_size, noise, S, sampling.step_size, sampling.friction, estimated)
                _move(z, v, G, step_size, noise, signs[i, j], sampling.friction)
            samples[i] = z
    return Chain(state), samples


@compiled
def _adapt(tau: FloatArray, g: FloatArray, S: FloatArray, G: FloatArray) -> None:
    """Update the running means, in place."""
    for k in range(len(G)):
        r = 1.0 / (1.0 + tau[k])
        tau[k] += 1.0 - tau[k] * g[k] * g[k] / S[k]
        g[k] += r * (G[k] - g[k])
        S[k] += r * (G[k] * G[k] - S[k])


@compiled
def _scale(
    step_size: FloatArray, noise: FloatArray, S: FloatArray, eps: float, a: float, estimated: bool
) -> None:
    """Write eps^2 M and the standard deviation of a step's noise."""
    of_gradient = eps**4 if estimated else 0.0
    for k in range(len(S)):
        M = 1.0 / math.sqrt(S[k])
        step_size[k] = eps**2 * M
        noise[k] = math.sqrt(max(0.0, 2.0 * a * eps**2 * M - of_gradient))


@compiled
def _move(
    z: FloatArray,
    v: FloatArray,
    G: FloatArray,
    step_size: FloatArray,
    noise: FloatArray,
    signs: np.ndarray[Any, np.dtype[np.uint8]],
    a: float,
) -> None:
    """Take a step, in place; `signs` are 1 for noise above 0, else 0."""
    for k in range(len(z)):
        moved = (1.0 - a) * v[k] - step_size[k] * G[k] + noise[k] * (2.0 * signs[k] - 1.0)
        v[k] = ((moved / GRID + ROUNDER) - ROUNDER) * GRID
        z[k] += v[k]
