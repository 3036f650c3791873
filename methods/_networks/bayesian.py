"""A Bayesian neural network for regression: prior, posterior samples, prediction.

=========  ============  ==========================================================================
symbol     shape         meaning
=========  ============  ==========================================================================
n, m       scalars       evaluations, configurations to predict
p          scalar        inputs, padding included
X          (n, p)        inputs, in [0, 1]
y          (n,)          standardised losses
z          (D,)          parameters of the network, then that of the noise: all standard normal
W, c       (i, o), (o,)  weights and biases of a layer of o units: W = s z / sqrt(i), c = z
f(x)       scalar        output of the network
nu         scalar        log of the noise variance: NOISE_MEAN + NOISE_SD z
=========  ============  ==========================================================================

    U(z) = sum_i (y_i - f(x_i))^2 / (2 exp(nu)) + n nu / 2 + |z|^2 / 2

Springenberg et al. (2016), section 3: the noise is learned, and the prediction is the mean and the
variance of f over samples of the posterior. All parameters have the same prior, a standard normal
distribution, and the weights are scaled instead: as the paper's sampler works elementwise, this
suits it, and functions vary as much whatever the width of the network (Neal 1996, chapter 2).
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._networks.runtime import jax
from hpobench_ordered.methods._networks.sghmc import Chain, Sampling, sample
from hpobench_ordered.methods._products import product, tanh_in_place

HIDDEN = (50, 50, 50)
"""Units of tanh layers."""
FIRST, INNER, LAST = 0.5, 5.0, 1.0
"""s of the first layer, of those after it and of the output."""
NOISE_MEAN, NOISE_SD = -6.0, 1.0
"""Mean and standard deviation of nu: losses of variance 1 have hardly any noise."""
SAMPLING = Sampling(step_size=0.03, friction=0.05, batch=32, samples=20, thinning=20)
"""With the step size of the paper's code, 0.01, so few steps hardly leave where they start."""
FIRST_BURN_IN, BURN_IN = 6, 1
"""Rounds of 400 steps before samples are taken, of the first fit and of later ones."""
ROWS = 4096
"""Evaluations that the arrays have room for, so that nothing is compiled twice in a run."""
INPUT_MULTIPLE = 8
"""Inputs are padded with zeros to a multiple of this."""
WIDTH = 12.0**0.5
"""Factor that gives numbers spread evenly over [0, 1] a variance of 1."""


class BayesianNetwork:
    """A network whose posterior is sampled by one chain, which later fits continue."""

    def __init__(self, inputs: int, rng: np.random.Generator) -> None:
        self._rng, self._inputs = rng, inputs
        self._p = -(-max(inputs, 1) // INPUT_MULTIPLE) * INPUT_MULTIPLE
        self._chain: Chain | None = None

    def fit(self, X: FloatArray, y: FloatArray) -> None:
        """Sample the posterior.

        Args:
            X: Inputs, shape (n, inputs); of more than `ROWS` the last ones are used.
            y: Standardised losses, shape (n,).
        """
        X, y = X[-ROWS:], y[-ROWS:]
        first = self._chain is None
        if self._chain is None:
            self._chain = Chain.at(self._rng.standard_normal(_size(self._p)))
        self._chain, samples = sample(
            _gradient,
            self._chain,
            (_padded(self._scaled(X), ROWS), _padded(y, ROWS)),
            len(y),
            self._rng,
            sampling=SAMPLING,
            burn_in=FIRST_BURN_IN if first else BURN_IN,
            static=(self._p,),
        )
        self._samples = np.array(samples)

    def predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean (m,) and standard deviation (m,) of the function at inputs (m, inputs)."""
        X = self._scaled(X)
        outputs = np.stack([_output_compiled(_parts(self._p, z), X) for z in self._samples])
        return outputs.mean(axis=0), outputs.std(axis=0)

    def _scaled(self, X: FloatArray) -> FloatArray:
        """Inputs (m, p) of the first layer: of mean 0 and variance 1 over [0, 1], and padding."""
        scaled = np.zeros((len(X), self._p))
        scaled[:, : self._inputs] = (X - 0.5) * WIDTH * (FIRST / self._inputs**0.5)
        return scaled


def _padded(array: FloatArray, rows: int) -> FloatArray:
    return np.concatenate([array, np.zeros((rows - len(array), *array.shape[1:]))])


def _shapes(p: int) -> list[tuple[int, int]]:
    return list(pairwise((p, *HIDDEN, 1)))


def _size(p: int) -> int:
    """Number of parameters, D."""
    return sum(i * o + o for i, o in _shapes(p)) + 1


def _parts(p: int, z: Any) -> list[Any]:
    """Split z (D,) into weights and biases of each layer, and the parameter of the noise."""
    parts, begin = [], 0
    for i, o in _shapes(p):
        parts += [z[begin : begin + i * o].reshape(i, o), z[begin + i * o : begin + (i + 1) * o]]
        begin += (i + 1) * o
    return [*parts, z[begin]]


def _layers(parts: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Weights, scaled, and biases of each layer."""
    for layer, (W, c) in enumerate(zip(parts[:-1:2], parts[1::2], strict=True)):
        scale = INNER if layer < len(HIDDEN) else LAST
        yield W * (scale / W.shape[0] ** 0.5) if layer else W, c


def _output(parts: list[Any], X: Any) -> Any:
    """Compute f (m,) at scaled inputs (m, p), as JAX traces it."""
    for layer, (W, c) in enumerate(_layers(parts)):
        X = (jax.numpy.tanh(X) if layer else X) @ W + c
    return X[:, 0]


def _output_compiled(parts: list[FloatArray], X: FloatArray) -> FloatArray:
    """Compute f (m,) at scaled inputs (m, p)."""
    for layer, (W, c) in enumerate(_layers(parts)):
        if layer:
            tanh_in_place(X)
        X = product(X, W) + c
    return X[:, 0]


def _energy(parts: list[Any], X: Any, y: Any, weight: Any, n: Any) -> Any:
    np_ = jax.numpy
    nu = NOISE_MEAN + NOISE_SD * parts[-1]
    squares = np_.sum(weight * (y - _output(parts, X)) ** 2)
    prior = sum(np_.sum(part * part) for part in parts)
    return 0.5 * (squares * np_.exp(-nu) + n * nu + prior)


def _gradient(p: int, z: Any, X: Any, y: Any, rows: Any, n: Any) -> Any:
    """Gradient (D,) of the energy, from a mini-batch."""
    np_ = jax.numpy
    exists = (rows < n).astype(float)
    weight = exists * (n / np_.sum(exists))
    parts = jax.grad(_energy)(_parts(p, z), X[rows], y[rows], weight, n.astype(float))
    return np_.concatenate([part.ravel() for part in parts])
