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
from hpobench_ordered.methods._model_based import Scorer, replace_failed_evaluations
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
        """Choose the evaluations of earlier tasks to use.

        They are `max_per_task` ones of each task at random, with standardised losses, in the
        current search space.
        """
        tasks = replace_failed_evaluations(convert_history(self.history, self.space, self.rng))
        counts = [self.max_per_task] * len(tasks)  # a task with fewer gives all
        self._tasks = sample_standardised(tasks, counts, self.rng)
        super().prepare()  # chooses initial configurations, for which methods may use `_tasks`
        if tasks:  # they take the place of initial random trials
            self.random_trials = 0

    @cached_property
    def sources(self) -> list[tuple[FloatArray, FloatArray]]:
        """Features (n, p) and standardised losses (n,) of every earlier task, oldest first.

        They belong to the evaluations that `prepare` has chosen.
        """
        sources = []
        for task in self._tasks:
            # In the unit cube, discrete values in the middle of their bins, NaN where inactive.
            unit = self.space.canonical(self.space.encode(task.values))
            sources.append((self.features(unit), task.losses))
        return sources

    @cached_property
    def kernel(self) -> "Kernel":
        """The kernel of the processes of all tasks: which length scale each feature has."""
        from hpobench_ordered.methods._gp.model import Kernel

        return Kernel(self.group_features())

    def fit_source(self, X: FloatArray, y: FloatArray) -> "GaussianProcess":
        """Fit the process of an earlier task to features (n, p) and losses (n,).

        The search for its hyperparameters starts at the means of their priors.
        """
        from hpobench_ordered.methods._gp.model import GaussianProcess, Priors, stack_priors

        prior_mean = stack_priors(Priors(), self.kernel.length_scales).mean
        return GaussianProcess.fit(X, y, kernel=self.kernel, starts=[prior_mean], priors=Priors())

    def fit_target(self, X: FloatArray, y: FloatArray) -> "GaussianProcess":
        """Fit the process of this task to features (n, p) and losses (n,); n may be 0.

        A fit starts at the hyperparameters that the last one has found, `_theta`.
        """
        if not len(y):
            # Without evaluations the priors alone decide. What they give is not remembered, so
            # that the first fit to evaluations starts from the mean of the priors.
            return self.fit_source(X, y)
        target = self._fit(X, y)
        self._theta = target.theta  # the next fit starts here
        return target

    def make_scorer(self) -> Scorer:
        """Fit this task's part of the model, and make the function that scores candidates.

        The score is the log expected improvement. For the first suggestion there is no loss to
        improve on, so that it is minus the predicted mean. Without evaluations of earlier tasks it
        is the score of `bo`.
        """
        has_earlier_evaluations = bool(self._tasks)
        if not has_earlier_evaluations:
            return super().make_scorer()

        X, y = self.observations()  # features and standardised losses of this task
        predict, losses = self.fit_posterior(X, y)
        is_first_suggestion = not self.evaluation_count and not self._pending
        if is_first_suggestion:

            def score_by_mean(unit: FloatArray) -> FloatArray:
                """Compute minus the predicted mean (m,) of candidates in the unit cube, (m, d)."""
                mean, _ = predict(self.features(unit))
                return -mean

            return score_by_mean

        # Pending evaluations, asked for but not told yet, are assumed to give the predicted mean.
        pending_X = self.features(self.pending_units())
        pending_losses, _ = predict(pending_X)
        if self._pending:
            predict = self.condition_on_pending(pending_X)
        best = float(np.concatenate([losses, pending_losses]).min())
        return self.make_acquisition(predict, best)

    def make_acquisition(self, predict: Predict, best: float) -> Scorer:
        """Make the function that scores candidates by their log expected improvement.

        Args:
            predict: Predicts mean (m,) and standard deviation (m,) at features (m, p).
            best: Lowest loss so far, in the predictions' units.
        """
        from hpobench_ordered.methods._gp.acquisition import log_expected_improvement

        def score(unit: FloatArray) -> FloatArray:
            """Compute log expected improvement (m,) of candidates in the unit cube, (m, d)."""
            mean, sd = predict(self.features(unit))
            return log_expected_improvement(mean, sd, best)

        return score

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
        """Compute how much each task's process counts in the ensemble; each method has its rule.

        Returns:
            Weights of the T tasks, the earlier ones and, last, this one, shape (T,).

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
        """Fit this task's process and compute all weights.

        Sets `used_processes`, those with a positive weight, this task's last, and `used_weights`,
        their weights divided by their sum.

        Args:
            X: Features of this task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).

        Returns:
            The ensemble's prediction function, and y: predictions are in its units.
        """
        target = self.fit_target(X, y)
        weights = self.compute_weights(X, y, target)  # this task's comes last
        processes = [*self.processes, target]
        used = np.flatnonzero(weights)  # indices; predictions of the others are not needed
        self.used_weights = weights[used] / weights.sum()
        self.used_processes = [processes[i] for i in used]
        return self._predict, y

    def condition_on_pending(self, pending_X: FloatArray) -> Predict:
        """Condition every process on pending evaluations, as if they gave what it predicts.

        Args:
            pending_X: Features of the pending configurations, shape (k, p).

        Returns:
            The prediction function of the ensemble of these processes.
        """
        conditioned = []
        for process in self.used_processes:  # those with a positive weight
            with_pending, _ = process.with_fantasies(pending_X)
            conditioned.append(with_pending)
        self.used_processes = conditioned
        return self._predict

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict the ensemble's mean (m,) and standard deviation (m,) at features X (m, p).

        The mean is the weighted sum of the means of the processes with a positive weight.
        """
        predictions = [process.predict(X) for process in self.used_processes]
        means, sds = np.stack(predictions, axis=1)  # of every process, (processes, m) each
        return self.used_weights @ means, self.combine_sds(self.used_weights, sds)


def find_ordered_pairs(y: FloatArray) -> tuple[IntArray, IntArray]:
    """Find all pairs (j, k) of losses y (n,) with y_j < y_k; equal losses are no pair.

    Returns:
        Indices j and indices k, each of shape (number of pairs,).
    """
    is_ordered = y[:, None] < y  # entry (j, k): whether y_j < y_k
    lower, higher = np.nonzero(is_ordered)
    return lower, higher
