"""Base of the methods that fit a Gaussian process to every earlier task once.

=======  ======  ==================================================================================
symbol   shape   meaning
=======  ======  ==================================================================================
T        scalar  tasks: the earlier ones, then the current one
n, m, k  scalar  evaluations, candidates, pending evaluations of the current task
d, p     scalar  hyperparameters, features of a configuration
X        (n, p)  features of evaluated configurations
y        (n,)    their losses, standardised task by task
=======  ======  ==================================================================================
"""

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

MAX_PER_TASK = 100
"""Largest number of evaluations used of an earlier task, drawn at random."""

Predict = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Mean (m,) and standard deviation (m,) of the loss at features (m, p)."""


class FromSources(BayesianOptimisation):
    """`bo` with models that were fitted to each earlier task separately.

    Losses are standardised task by task. There are no random initial trials: the first suggestion
    is the candidate of lowest mean. Configurations of another search space are converted to the
    current one. Without a finite evaluation of an earlier task it is `bo`.

    Attributes:
        max_per_task: Largest number of evaluations used of an earlier task, drawn at random.
    """

    max_per_task = MAX_PER_TASK

    def prepare(self) -> None:
        """Choose the evaluations of earlier tasks to use."""
        tasks = remove_failed_evaluations(convert_history(self.history, self.space, self.rng))
        self._tasks = sample_standardised(tasks, [self.max_per_task] * len(tasks), self.rng)
        super().prepare()
        if tasks:
            self.random_trials = 0

    @cached_property
    def sources(self) -> list[tuple[FloatArray, FloatArray]]:
        """Features (n, p) and standardised losses (n,) of every earlier task, oldest first."""
        sources = []
        for task in self._tasks:
            unit = self.space.canonical(self.space.encode(task.values))
            sources.append((self.features(unit), task.losses))
        return sources

    @cached_property
    def kernel(self) -> "Kernel":
        """The kernel of all processes."""
        from hpobench_ordered.methods._gp.model import Kernel

        return Kernel(self.group_features())

    def fit_source(self, X: FloatArray, y: FloatArray) -> "GaussianProcess":
        """Fit the process of an earlier task to features (n, p) and losses (n,)."""
        from hpobench_ordered.methods._gp.model import GaussianProcess, Priors, stack_priors

        start = stack_priors(Priors(), self.kernel.length_scales).mean
        return GaussianProcess.fit(X, y, kernel=self.kernel, starts=[start], priors=Priors())

    def fit_target(self, X: FloatArray, y: FloatArray) -> "GaussianProcess":
        """Fit the process of this task to features (n, p) and losses (n,); n may be 0."""
        if not len(y):
            return self.fit_source(X, y)
        target = self._fit(X, y)
        self._theta = target.theta  # where the next fit starts
        return target

    def make_scorer(self) -> Scorer:
        """Fit this task's part; score by log expected improvement, at first by minus the mean."""
        if not self._tasks:
            return super().make_scorer()

        X, y = self.observations()
        predict, y_of_predictions = self.fit_posterior(X, y)
        if not self.evaluation_count and not self._pending:
            return lambda unit: -predict(self.features(unit))[0]

        pending_X = self.features(self.pending_units())
        pending_means, _ = predict(pending_X)
        if self._pending:
            predict = self.condition_on_pending(pending_X)
        best = float(np.concatenate([y_of_predictions, pending_means]).min())
        return self.make_acquisition(predict, best)

    def make_acquisition(self, predict: Predict, best: float) -> Scorer:
        """Make the function that scores candidates.

        Args:
            predict: The prediction function.
            best: Lowest loss so far, in the predictions' units.
        """
        from hpobench_ordered.methods._gp.acquisition import log_expected_improvement

        return lambda unit: log_expected_improvement(*predict(self.features(unit)), best)

    @abstractmethod
    def fit_posterior(self, X: FloatArray, y: FloatArray) -> tuple[Predict, FloatArray]:
        """Fit the part of the model that depends on this task.

        Args:
            X: Features of its evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).

        Returns:
            The prediction function, and the losses (n,) in the predictions' units.
        """

    @abstractmethod
    def condition_on_pending(self, pending_X: FloatArray) -> Predict:
        """Condition also on pending evaluations, as if they gave the posterior mean.

        Args:
            pending_X: Features of the pending configurations, shape (k, p).

        Returns:
            The prediction function.
        """


class Ensemble(FromSources):
    """A weighted mean of the processes of the earlier tasks and of this one."""

    @cached_property
    def processes(self) -> "list[GaussianProcess]":
        """The process of every earlier task."""
        return [self.fit_source(X, y) for X, y in self.sources]

    @abstractmethod
    def compute_weights(
        self, X: FloatArray, y: FloatArray, target: "GaussianProcess"
    ) -> FloatArray:
        """Compute weights of the earlier tasks and, last, of this one, shape (T,).

        Args:
            X: Features of this task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).
            target: The process of this task.
        """

    @abstractmethod
    def combine_sds(self, weights: FloatArray, sds: FloatArray) -> FloatArray:
        """Compute the standard deviation (m,) of the ensemble.

        Only processes with a positive weight are passed, K of them, this task's last.

        Args:
            weights: Their weights, shape (K,).
            sds: Their standard deviations at m configurations, shape (K, m).
        """

    def fit_posterior(self, X: FloatArray, y: FloatArray) -> tuple[Predict, FloatArray]:
        """Fit this task's process and compute all weights."""
        target = self.fit_target(X, y)
        weights = self.compute_weights(X, y, target)
        processes = [*self.processes, target]
        used = np.flatnonzero(weights)
        self.used_weights = weights[used] / weights.sum()
        self.used_processes = [processes[i] for i in used]
        return self._predict, y

    def condition_on_pending(self, pending_X: FloatArray) -> Predict:
        """Condition every process on pending evaluations, as if each gave what it predicts."""
        conditioned = []
        for process in self.used_processes:
            with_pending, _ = process.with_fantasies(pending_X)
            conditioned.append(with_pending)
        self.used_processes = conditioned
        return self._predict

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict the ensemble's mean (m,) and standard deviation (m,) at features (m, p)."""
        predictions = [process.predict(X) for process in self.used_processes]
        means, sds = np.stack(predictions, axis=1)
        return self.used_weights @ means, self.combine_sds(self.used_weights, sds)


def find_ordered_pairs(y: FloatArray) -> tuple[IntArray, IntArray]:
    """Find all pairs (j, k) of losses y (n,) with y_j < y_k; equal losses are no pair.

    Returns:
        Indices j and indices k, each of shape (number of pairs,).
    """
    lower, higher = np.nonzero(y[:, None] < y)
    return lower, higher
