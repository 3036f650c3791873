"""Base of the methods that fit a Gaussian process to every earlier task once."""

from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._carry_over import convert_history
from hpobench_ordered.methods._model_based import Scorer, remove_failed_evaluations
from hpobench_ordered.methods._multi_task import sample_standardised
from hpobench_ordered.methods.bo import BayesianOptimisation

if TYPE_CHECKING:
    from hpobench_ordered.methods._gp.model import GaussianProcess, Kernel

EACH = 100
"""Largest number of evaluations used of an earlier task, drawn at random."""

Predict = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Mean (m,) and standard deviation (m,) of the loss at features (m, p)."""


class FromSources(BayesianOptimisation):
    """`bo` with models that were fitted to each earlier task separately.

    Losses are standardised task by task. There are no random initial trials: the first suggestion
    is the candidate of lowest mean. Configurations of another search space are converted to the
    current one. Without a finite evaluation of an earlier task it is `bo`.

    Attributes:
        each: Largest number of evaluations used of an earlier task, drawn at random.
    """

    each = EACH

    def prepare(self) -> None:
        """Choose the evaluations of earlier tasks to use."""
        tasks = remove_failed_evaluations(convert_history(self.history, self.space, self.rng))
        self._tasks = sample_standardised(tasks, [self.each] * len(tasks), self.rng)
        super().prepare()
        if tasks:
            self.random_trials = 0

    @cached_property
    def sources(self) -> list[tuple[FloatArray, FloatArray]]:
        """Features (n, p) and standardised losses (n,) of every earlier task, oldest first."""
        return [
            (self.features(self.space.canonical(self.space.encode(task.values))), task.losses)
            for task in self._tasks
        ]

    @cached_property
    def kernel(self) -> "Kernel":
        """The kernel of all processes."""
        from hpobench_ordered.methods._gp.model import Kernel

        return Kernel(self.feature_groups())

    def of_source(self, X: FloatArray, y: FloatArray) -> "GaussianProcess":
        """Fit the process of an earlier task to features (n, p) and losses (n,)."""
        from hpobench_ordered.methods._gp.model import GaussianProcess, Priors, prior_arrays

        start = prior_arrays(Priors(), self.kernel.length_scales).mean
        return GaussianProcess.fitted(X, y, kernel=self.kernel, starts=[start], priors=Priors())

    def of_target(self, X: FloatArray, y: FloatArray) -> "GaussianProcess":
        """Fit the process of this task; the prior if there are no evaluations."""
        if not len(y):
            return self.of_source(X, y)
        target = self._fit(X, y)
        self._theta = target.theta
        return target

    def make_scorer(self) -> Scorer:
        """Fit this task's part; score by log expected improvement, at first by minus the mean."""
        if not self._tasks:
            return super().make_scorer()
        X, y = self.observations()
        predict, y = self.posterior(X, y)
        if not self.evaluation_count and not self._pending:
            return lambda unit: -predict(self.features(unit))[0]
        pending = self.features(self.pending_units())
        seen = np.concatenate([y, predict(pending)[0]])
        if self._pending:
            predict = self.fantasised(pending)
        return self.acquisition(predict, float(seen.min()))

    def acquisition(self, predict: Predict, best: float) -> Scorer:
        """Score by the predictions and the lowest loss so far."""
        from hpobench_ordered.methods._gp.acquisition import log_expected_improvement

        return lambda unit: log_expected_improvement(*predict(self.features(unit)), best)

    @abstractmethod
    def posterior(self, X: FloatArray, y: FloatArray) -> tuple[Predict, FloatArray]:
        """Fit the part of the model that depends on this task.

        Args:
            X: Features of its evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).

        Returns:
            The prediction function, and the losses (n,) in the predictions' units.
        """

    @abstractmethod
    def fantasised(self, pending: FloatArray) -> Predict:
        """Last prediction function, if pending evaluations (k, p) give the posterior mean."""


class Ensemble(FromSources):
    """A weighted mean of the processes of the earlier tasks and of this one."""

    @cached_property
    def processes(self) -> "list[GaussianProcess]":
        """The process of every earlier task."""
        return [self.of_source(X, y) for X, y in self.sources]

    @abstractmethod
    def weights(self, X: FloatArray, y: FloatArray, target: "GaussianProcess") -> FloatArray:
        """Weights of the earlier tasks and, last, of this one, shape (T,).

        Args:
            X: Features of this task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).
            target: The process of this task.
        """

    @abstractmethod
    def spread(self, weights: FloatArray, sds: FloatArray) -> FloatArray:
        """Standard deviation (m,) of the ensemble.

        Args:
            weights: Weights of the processes with a positive one, this task's last, shape (k,).
            sds: Standard deviations of these processes, shape (k, m).
        """

    def posterior(self, X: FloatArray, y: FloatArray) -> tuple[Predict, FloatArray]:
        """Fit this task's process and compute all weights."""
        target = self.of_target(X, y)
        weights = self.weights(X, y, target)
        used = np.flatnonzero(weights)
        self.used_weights = weights[used] / weights.sum()
        self.used = [[*self.processes, target][i] for i in used]
        return self._predict, y

    def fantasised(self, pending: FloatArray) -> Predict:
        """Condition every process on its own mean as the loss of pending evaluations."""
        self.used = [process.fantasised(pending)[0] for process in self.used]
        return self._predict

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        means, sds = np.stack([process.predict(X) for process in self.used], axis=1)
        return self.used_weights @ means, self.spread(self.used_weights, sds)


def ordered_pairs(y: FloatArray) -> tuple[IntArray, IntArray]:
    """Pairs (j, k) of losses (n,) with y_j < y_k; equal losses are not ranked."""
    lower, higher = np.nonzero(y[:, None] < y)
    return lower, higher
