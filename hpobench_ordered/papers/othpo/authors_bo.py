"""Bayesian optimisation as in the experiments of Hellan et al. (2023).

The authors ran Syne Tune's searcher on BoTorch, with four workers. It differs from `bo` in two ways
that are rebuilt here:

- The priors of the model are those of BoTorch at that time, gamma distributions. They allow for
  much more noise than ours.
- The searcher keeps configurations in the order in which they were asked for, and losses in the
  order in which trials ended. It fits the model to the two lists, row by row. Trials that end in
  another order than they began in are therefore paired with each other's losses.

BoTorch's warping of the inputs is not rebuilt, nor how it searches for the best candidate.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hpobench_ordered._typing import Config
from hpobench_ordered.methods.base import MethodFactory, MethodSpec
from hpobench_ordered.methods.bo import BayesianOptimisation
from hpobench_ordered.methods.bounding_box import BoundingBox
from hpobench_ordered.methods.registry import method_spec
from hpobench_ordered.methods.simple_ordered import (
    SimpleOrdered,
    SimpleOrderedShuffled,
    SimplePrevious,
)
from hpobench_ordered.methods.transfer_bo import TransferBO

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import LogPrior, Priors

WORKERS = 4
"""Number of trials in flight."""

OVERTAKING = 1 / 8
"""Probability that a trial ends before the one that began just before it.

We chose it so that profits on newsvendor are near the authors'. How long their trials took is not
published.
"""

LOWEST_NOISE = 1e-4
"""Smallest noise variance in BoTorch."""


class AuthorsPriors(BayesianOptimisation):
    """Bayesian optimisation whose model has BoTorch's priors of 2023."""

    def choose_priors(self) -> "Priors":
        """Choose normal priors of logarithms that are close to BoTorch's gamma distributions."""
        from hpobench_ordered.methods._gp.model import Priors

        noise = approximate_gamma(1.1, 0.05)
        return Priors(
            length_scale=approximate_gamma(3.0, 6.0),
            signal=approximate_gamma(2.0, 0.15),
            noise=replace(noise, lower=math.log(LOWEST_NOISE)),
        )


class AuthorsBO(AuthorsPriors):
    """The same, with a model that is fitted to losses in the order in which trials end.

    Trials that begin together end in random order. Each later one overtakes the one before it with
    the probability `OVERTAKING`. With one trial in flight, the order is that of asking.
    """

    def tell(self, config: Config, loss: float) -> None:
        """Add an evaluation, whose loss takes the place in which its trial ended.

        Configurations stay in the order in which they were asked for.
        """
        in_flight = len(self._pending)
        super().tell(config, loss)

        count = self.evaluation_count
        if count <= in_flight:  # it was asked for before the first result
            overtaken = int(self.rng.integers(count))
        else:
            overtaken = int(in_flight > 1 and self.rng.random() < OVERTAKING)
        self._losses.insert(count - 1 - overtaken, self._losses.pop())


class AuthorsBoundingBox(AuthorsBO, BoundingBox):
    """`bounding-box` on the authors' Bayesian optimisation."""


class AuthorsSimpleOrdered(AuthorsBO, SimpleOrdered):
    """`simple-ordered` on the authors' Bayesian optimisation."""


class AuthorsSimpleOrderedShuffled(AuthorsBO, SimpleOrderedShuffled):
    """`simple-ordered-shuffled` on the authors' Bayesian optimisation."""


class AuthorsSimplePrevious(AuthorsBO, SimplePrevious):
    """`simple-previous` on the authors' Bayesian optimisation."""


class AuthorsTransferBO(AuthorsPriors, TransferBO):
    """`transfer-bo` with the authors' priors.

    Its first trials do not begin together, as the model suggests each of them, which takes time. So
    they end in the order in which they began. Losses of previous tasks are paired correctly.
    """


def approximate_gamma(shape: float, rate: float) -> "LogPrior":
    """Make the normal prior of a logarithm with the mode and curvature of a gamma distribution.

    BoTorch maximises the density of the hyperparameter x itself, x^(shape - 1) exp(-rate x). In
    log x this has its mode at log((shape - 1) / rate), with the curvature 1 - shape.
    """
    from hpobench_ordered.methods._gp.model import LogPrior

    return LogPrior(
        mean=math.log((shape - 1) / rate), sd=1 / math.sqrt(shape - 1), lower=-5.0, upper=5.0
    )


def _replace_methods(methods: Sequence[tuple[str, MethodFactory]]) -> dict[str, MethodSpec]:
    """Describe methods that stand for registered ones, by the names of these."""
    specs = {}
    for name, method in methods:
        registered = method_spec(name)
        specs[name] = replace(registered, name=f"authors-{name}", method=method)
    return specs


METHODS = _replace_methods(
    [
        ("bo", AuthorsBO),
        ("bounding-box", AuthorsBoundingBox),
        ("simple-ordered", AuthorsSimpleOrdered),
        ("simple-ordered-shuffled", AuthorsSimpleOrderedShuffled),
        ("simple-previous", AuthorsSimplePrevious),
        ("transfer-bo", AuthorsTransferBO),
    ]
)
"""They stand for the registered methods of these names, all based on Bayesian optimisation."""
