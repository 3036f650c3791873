"""stacked-gp: a stack of Gaussian processes, each on the residuals of the tasks before.

=======  ======  ==================================================================================
symbol   shape   meaning
=======  ======  ==================================================================================
level            a task's process in the stack: the oldest task is at the bottom, the current on top
n        scalar  evaluations of a task
m        scalar  configurations to predict
p        scalar  features of a configuration
beta     scalar  share of a level in the standard deviation
=======  ======  ==================================================================================

The mean of the stack is the sum of the levels' means. Its standard deviation is, from level to
level, sd_of_level^beta * sd_of_stack_below^(1 - beta), with
beta = alpha n / (alpha n + n of the level below).

Golovin et al. (2017), section 3.3 and algorithm 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.methods._sources import FromSources, Predict
from hpobench_ordered.methods.base import MethodKind, MethodSpec

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import GaussianProcess

LEVEL_IMPORTANCE = 1.0
"""alpha: an evaluation of a level's task counts so many times as much as one of the task below."""


@dataclass(frozen=True, eq=False, slots=True)
class Level:
    """A level of the stack.

    Attributes:
        process: The process of this task's residuals.
        beta: Its share in the standard deviation.
    """

    process: "GaussianProcess"
    beta: float

    @classmethod
    def above(cls, count_below: int, process: "GaussianProcess", count: int) -> "Level":
        """Make a level above another one, or the bottom of the stack.

        Its share beta in the standard deviation is the share of its evaluations, weighted by
        `LEVEL_IMPORTANCE`, in the evaluations of both levels. At the bottom it is 1, as there is no
        level below.

        Args:
            count_below: Evaluations of the level below; 0 at the bottom.
            process: The process of this level.
            count: Its evaluations.
        """
        if not count_below:
            return cls(process, beta=1.0)
        weighted_count = LEVEL_IMPORTANCE * count
        return cls(process, beta=weighted_count / (weighted_count + count_below))


def predict_stack(levels: Sequence[Level], X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Predict mean (m,) and standard deviation (m,) of a stack at features X (m, p).

    Each level predicts the residuals of those below, so means add up. From level to level, the
    standard deviation is the weighted geometric mean of two: the level's own, with its share beta
    as weight, and that of the stack below.
    """
    mean = np.zeros(len(X))
    sd = np.ones(len(X))  # any number: the lowest level has beta = 1, so that it does not count
    for level in levels:
        level_mean, level_sd = level.process.predict(X)
        beta = level.beta
        mean = mean + level_mean
        sd = level_sd**beta * sd ** (1.0 - beta)
    return mean, sd


class StackedGP(FromSources):
    """Bayesian optimisation with a stack of Gaussian processes of residuals.

    The process of the oldest task models its losses; that of each later task models the residuals
    of the stack below. Standard deviations are weighted geometric means: the weight of a level is
    its share of the evaluations of its task and of the task below.
    """

    @cached_property
    def levels(self) -> list[Level]:
        """Levels of the earlier tasks, oldest first, each of the residuals of those below.

        `sources` has features (n, p) and standardised losses (n,) of each earlier task. A level is
        a Gaussian process with its share in the stack's standard deviation.
        """
        levels: list[Level] = []
        count_below = 0  # evaluations of the level below
        for X, y in self.sources:
            stack_mean, _ = predict_stack(levels, X)
            process = self.fit_source(X, y - stack_mean)  # of the residuals
            levels.append(Level.above(count_below, process, len(y)))
            count_below = len(y)
        return levels

    def fit_posterior(self, X: FloatArray, y: FloatArray) -> tuple[Predict, FloatArray]:
        """Fit this task's level, the top one, to the residuals of the earlier tasks' levels.

        Args:
            X: Features of the evaluated configurations, shape (n, p).
            y: Their standardised losses, shape (n,).

        Returns:
            The prediction function, and the losses as they are.
        """
        stack_mean, _ = predict_stack(self.levels, X)
        process = self.fit_target(X, y - stack_mean)
        _, losses_below = self.sources[-1]  # of the last earlier task
        top = Level.above(len(losses_below), process, len(y))
        self._stack = [*self.levels, top]
        return self._predict, y

    def condition_on_pending(self, pending_X: FloatArray) -> Predict:
        """Condition also on pending evaluations at features (k, p), as if they gave the mean.

        The mean of the stack is a sum, so each level is conditioned on its own mean. The levels of
        `_stack` are replaced by the conditioned ones.
        """
        stack = []
        for level in self._stack:
            process, _ = level.process.with_fantasies(pending_X)
            stack.append(Level(process, level.beta))
        self._stack = stack
        return self._predict

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict mean (m,) and standard deviation (m,) of the loss at features X (m, p).

        `_stack` has the levels of the earlier tasks and, on top, the level of this one.
        """
        return predict_stack(self._stack, X)


SPECS = (
    MethodSpec(
        name="stacked-gp",
        method=StackedGP,
        summary="Stack of Gaussian processes, each on the residuals of the tasks before.",
        source="Golovin et al. (2017), section 3.3 and algorithm 2: residuals, alpha = 1",
        min_history=1,
        changed_spaces=True,
        kind=MethodKind.ORDERED,
        version=2,
    ),
)
