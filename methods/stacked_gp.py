"""stacked-gp: a stack of Gaussian processes, each on the residuals of the tasks before.

=========  ======  ==================================================================
symbol     shape   meaning
=========  ======  ==================================================================
i          scalar  level: a task, the oldest first, the current one on top
n_i        scalar  evaluations of the task
mu_i, s_i  (m,)    mean and standard deviation of the stack up to level i
r_i, t_i   (m,)    mean and standard deviation of the level's own process
=========  ======  ==================================================================

Golovin et al. (2017), section 3.3 and algorithm 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._sources import FromSources, Predict
from hpobench_ordered.methods.base import MethodSpec

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import GaussianProcess

ALPHA = 1.0
"""Importance of a level relative to the one below, in addition to their sample sizes."""


@dataclass(frozen=True, eq=False, slots=True)
class Level:
    """A level of the stack: a process of residuals, and its share in the standard deviation."""

    process: "GaussianProcess"
    beta: float

    @classmethod
    def over(cls, below: int, process: "GaussianProcess", n: int) -> "Level":
        """The level of n evaluations over one of `below` evaluations, which may be 0."""
        beta = ALPHA * n / (ALPHA * n + below) if below else 1.0
        return cls(process, beta)


def stacked(levels: Sequence[Level], X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sum of means (m,), geometric mean of standard deviations (m,), at features (m, p)."""
    mean, sd = np.zeros(len(X)), np.ones(len(X))
    for level in levels:
        own_mean, own_sd = level.process.predict(X)
        mean, sd = mean + own_mean, own_sd**level.beta * sd ** (1.0 - level.beta)
    return mean, sd


class StackedGP(FromSources):
    """Bayesian optimisation with a stack of Gaussian processes of residuals.

    The process of the oldest task models its losses; that of each later task models the residuals
    of the stack below. Standard deviations are weighted geometric means: the weight of a level is
    its share of the evaluations of its task and of the task below.
    """

    @cached_property
    def levels(self) -> list[Level]:
        """The levels of the earlier tasks."""
        levels: list[Level] = []
        below = 0
        for X, y in self.sources:
            residuals = y - stacked(levels, X)[0]
            levels.append(Level.over(below, self.of_source(X, residuals), len(y)))
            below = len(y)
        return levels

    def posterior(self, X: FloatArray, y: FloatArray) -> tuple[Predict, FloatArray]:
        """Fit the level of this task."""
        residuals = y - stacked(self.levels, X)[0]
        top = Level.over(len(self.sources[-1][1]), self.of_target(X, residuals), len(y))
        self._stack = [*self.levels, top]
        return self._predict, y

    def fantasised(self, pending: FloatArray) -> Predict:
        """Condition every level on its own mean as the residual of pending evaluations."""
        self._stack = [
            Level(level.process.fantasised(pending)[0], level.beta) for level in self._stack
        ]
        return self._predict

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        return stacked(self._stack, X)


SPECS = (
    MethodSpec(
        name="stacked-gp",
        method=StackedGP,
        summary="Stack of Gaussian processes, each on the residuals of the tasks before.",
        source="Golovin et al. (2017), section 3.3 and algorithm 2: residuals, alpha = 1",
        min_history=1,
        changed_spaces=True,
        version=2,
    ),
)
