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

The first line is for the burn-in alone: S stays as it is while samples are taken. eps^4 is for the
noise of the gradient, whose variance is taken to be S; where mini-batches have all evaluations
there is no noise, and nothing is subtracted.

The elements of xi are 1 or -1: with the mean and variance of normal numbers they make steps of the
same weak order (Kloeden and Platen 1992, section 14.1), from one random bit each.

Chains are chaotic: after a thousand steps, differences in the last bit have grown to differences in
the first, and processors and compilers differ in last bits. The momentum is therefore rounded, far
below its noise, so that hardly any such difference survives a step: chains are the same everywhere.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._networks import runtime
from hpobench_ordered.methods._networks.runtime import jax

GRID = 2.0**-20
"""What the momentum is rounded to multiples of."""
WORD = 32
"""Random bits in an unsigned integer."""

Gradient = Callable[..., Any]
"""Gradient(z, *data, rows, n) (D,) of the energy: a mini-batch has the evaluations `rows` (b,).
Of these rows, those from n on are padding."""


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
    """Where a chain is.

    Attributes:
        state: z, v, tau, g and S, each (D,).
    """

    state: tuple[Any, ...]

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
    static: tuple[Hashable, ...] = (),
) -> tuple[Chain, Any]:
    """Let a chain adapt its scales, then take samples.

    Args:
        gradient: Gradient of the energy; `static` comes before its other arguments.
        chain: Where it starts.
        data: Arrays, padded, that the energy is of.
        n: How many evaluations there are in these.
        rng: Source of all randomness.
        sampling: Settings.
        burn_in: Number of rounds of adaptation, each as long as taking the samples.
        static: What belongs to the compiled program.

    Returns:
        Where the chain is then, and samples of z, shape (samples, D).
    """
    for adapting in (*[True] * burn_in, False):
        steps = (sampling.samples, sampling.thinning)
        words = -(-chain.state[0].shape[0] // WORD)
        bits = rng.integers(2**WORD, size=(*steps, words), dtype=np.uint32)
        rows = np.broadcast_to(np.arange(sampling.batch), (*steps, sampling.batch))
        if n > sampling.batch:
            rows = rng.integers(n, size=rows.shape)
        *state, samples = runtime.call(
            _round,
            *chain.state,
            bits,
            rows.astype(np.int32),
            np.array(float(adapting)),
            np.array(n, dtype=np.int32),
            *data,
            static=(gradient, static, sampling.step_size, sampling.friction),
        )
        chain = Chain(tuple(state))
    return chain, samples


def _round(
    gradient: Gradient,
    static: tuple[Hashable, ...],
    eps: float,
    friction: float,
    z: Any,
    v: Any,
    tau: Any,
    g: Any,
    S: Any,
    bits: Any,
    rows: Any,
    adapting: Any,
    n: Any,
    *data: Any,
) -> tuple[Any, ...]:
    """So many times so many steps, as `bits` (samples, thinning, words) and `rows` have."""
    np_ = jax.numpy

    def step(state: tuple[Any, ...], drawn: tuple[Any, Any]) -> tuple[tuple[Any, ...], None]:
        z, v, tau, g, S = state
        G = gradient(*static, z, *data, drawn[1], n)
        r = adapting / (1.0 + tau)
        tau = tau + adapting * (1.0 - tau * g * g / S)
        g, S = g + r * (G - g), S + r * (G * G - S)
        M = 1.0 / np_.sqrt(S)
        variance = np_.maximum(0.0, 2.0 * friction * eps**2 * M - estimated * eps**4)
        v = (
            (1.0 - friction) * v
            - eps**2 * M * G
            + np_.sqrt(variance) * _signs(drawn[0], z.shape[0])
        )
        v = np_.round(v / GRID) * GRID
        return (z + v, v, tau, g, S), None

    def steps(state: tuple[Any, ...], drawn: tuple[Any, Any]) -> tuple[tuple[Any, ...], Any]:
        state, _ = jax.lax.scan(step, state, drawn)
        return state, state[0]

    estimated = n > rows.shape[-1]
    state, samples = jax.lax.scan(steps, (z, v, tau, g, S), (bits, rows))
    return (*state, samples)


def _signs(words: Any, size: int) -> Any:
    """Numbers 1 and -1, shape (size,), from the bits of unsigned integers."""
    shifts = jax.numpy.arange(WORD, dtype=words.dtype)
    bits = (words[:, None] >> shifts) & jax.numpy.ones((), words.dtype)
    return 2.0 * bits.ravel()[:size].astype(float) - 1.0
