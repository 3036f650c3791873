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
    """A level of the stack, the Gaussian process of one task.

    Attributes:
        process: The process of this task's residuals.
        beta: Share of this process in the stack's standard deviation; the stack below has the
            rest.
    """

    process: "GaussianProcess"
    beta: float


def compute_beta(count: int, *, count_below: int) -> float:
    """Compute the share beta of a level in the standard deviation of the stack.

    It is the share of the level's evaluations, weighted by `LEVEL_IMPORTANCE`, in those of this
    level and the level below. At the bottom of the stack it is 1, as there is no level below.

    Args:
        count: Number of evaluations of the level.
        count_below: Number of evaluations of the level below; 0 at the bottom.
    """
    if count_below == 0:
        return 1.0
    weighted_count = LEVEL_IMPORTANCE * count
    return weighted_count / (weighted_count + count_below)


def predict_stack(levels: Sequence[Level], X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Predict mean (m,) and standard deviation (m,) of a stack at features X (m, p).

    A level models the residuals that the levels below leave, so that the means of the levels add
    up. The standard deviation is a weighted geometric mean of the level's own, with the weight
    beta, and that of the stack below, with the weight 1 - beta.

    Args:
        levels: The levels, the lowest one first.
        X: Features of configurations.
    """
    stack_mean = np.zeros(len(X))
    # Any positive number will do: the lowest level has the weight 1, and this one the weight 0.
    stack_sd = np.ones(len(X))
    for level in levels:
        level_mean, level_sd = level.process.predict(X)
        stack_mean = stack_mean + level_mean
        stack_sd = level_sd**level.beta * stack_sd ** (1.0 - level.beta)
    return stack_mean, stack_sd


class StackedGP(FromSources):
    """Bayesian optimisation with a stack of Gaussian processes of residuals.

    The process of the oldest task models its losses; that of each later task models the residuals
    of the stack below. Standard deviations are weighted geometric means: the weight of a level is
    its share of the evaluations of its task and of the task below.
    """

    @cached_property
    def levels(self) -> list[Level]:
        """Levels of the earlier tasks, the oldest task first.

        The process of each level is fitted to the residuals of its task's losses, which are the
        losses minus the mean that the levels below predict.
        """
        levels: list[Level] = []
        count_below = 0  # evaluations of the level below; the lowest level has none
        for X, y in self.sources:  # features (n, p) and standardised losses (n,) of a task
            mean_below, _ = predict_stack(levels, X)
            process = self.fit_source(X, y - mean_below)
            beta = compute_beta(len(y), count_below=count_below)
            levels.append(Level(process, beta))
            count_below = len(y)
        return levels

    def fit_posterior(self, X: FloatArray, y: FloatArray) -> tuple[Predict, FloatArray]:
        """Fit this task's level, and put it on top of the levels of the earlier tasks.

        The level is a Gaussian process of the residuals: the losses minus the mean that the levels
        below predict. Sets `_stack`, the levels of all tasks.

        Args:
            X: Features of the evaluated configurations, shape (n, p).
            y: Their standardised losses, shape (n,).

        Returns:
            The prediction function, and y, as predictions are on its scale.
        """
        mean_below, _ = predict_stack(self.levels, X)
        process = self.fit_target(X, y - mean_below)
        _, losses_of_last_task = self.sources[-1]
        beta = compute_beta(len(y), count_below=len(losses_of_last_task))
        self._stack = [*self.levels, Level(process, beta)]
        return self._predict, y

    def condition_on_pending(self, pending_X: FloatArray) -> Predict:
        """Condition the stack also on pending evaluations, as if they gave its posterior mean.

        The mean of the stack is the sum of the levels' means. Therefore each level is conditioned
        on what it predicts itself. The conditioned levels replace those of `_stack`.

        Args:
            pending_X: Features of the pending configurations, shape (k, p).

        Returns:
            The prediction function of the conditioned stack.
        """
        conditioned_levels = []
        for level in self._stack:
            process, _ = level.process.with_fantasies(pending_X)
            conditioned_levels.append(Level(process, level.beta))
        self._stack = conditioned_levels
        return self._predict

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict mean (m,) and standard deviation (m,) of the loss at features X (m, p).

        The stack has the levels of the earlier tasks and, on top, the level of this task.
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
