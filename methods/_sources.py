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
        """Draw the evaluations of earlier tasks that the models use.

        Of each task at most `max_per_task` evaluations are drawn, with standardised losses. They
        are converted to the current search space before.
        """
        converted = convert_history(self.history, self.space, self.rng)
        tasks = replace_failed_evaluations(converted)  # of each task with a finite loss
        counts = [self.max_per_task] * len(tasks)  # a task with fewer gives all
        # The chosen evaluations of each earlier task, oldest first.
        self._tasks = sample_standardised(tasks, counts, self.rng)
        # This chooses the initial configurations, for which some methods need `_tasks`.
        super().prepare()
        if tasks:
            # Models of earlier tasks make initial random trials unnecessary.
            self.random_trials = 0

    @cached_property
    def sources(self) -> list[tuple[FloatArray, FloatArray]]:
        """Features (n, p) and standardised losses (n,) of every earlier task, oldest first.

        They are those of the evaluations that `prepare` has drawn. The features are computed when
        they are first used, and only once.
        """
        features_and_losses = []
        for task in self._tasks:
            # Points of the unit cube: discrete values are in the middle of their bins, and inactive
            # hyperparameters are NaN.
            unit = self.space.canonical(self.space.encode(task.values))
            features_and_losses.append((self.features(unit), task.losses))
        return features_and_losses

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
        """Fit the Gaussian process of the current task, which may have no evaluations yet.

        The search for the kernel's hyperparameters starts at those of the last fit, `_theta`.

        Args:
            X: Features of the evaluated configurations, shape (n, p).
            y: Their standardised losses, shape (n,).
        """
        if len(y) == 0:
            # The priors alone decide. What they give is not remembered, so that the first fit to
            # evaluations starts at the means of the priors.
            return self.fit_source(X, y)
        process = self._fit(X, y)  # the fit of `bo`, which starts at `_theta`
        self._theta = process.theta
        return process

    def make_scorer(self) -> Scorer:
        """Fit this task's part of the model, and make the function that scores candidates.

        The score is the log expected improvement on the lowest loss so far. For the first
        suggestion there is no loss to improve on, so that the score is minus the predicted mean.
        Without evaluations of earlier tasks it is the score of `bo`.
        """
        has_earlier_evaluations = bool(self._tasks)
        if not has_earlier_evaluations:
            return super().make_scorer()

        X, y = self.observations()  # features and standardised losses of this task
        predict, losses = self.fit_posterior(X, y)
        is_first_suggestion = self.evaluation_count == 0 and not self._pending
        if is_first_suggestion:
            return self._make_mean_scorer(predict)

        # Pending evaluations, asked for but not told yet, are assumed to give the predicted mean.
        pending_X = self.features(self.pending_units())
        pending_losses, _ = predict(pending_X)
        lowest_loss = float(np.concatenate([losses, pending_losses]).min())
        if self._pending:
            predict = self.condition_on_pending(pending_X)
        return self.make_acquisition(predict, lowest_loss)

    def _make_mean_scorer(self, predict: Predict) -> Scorer:
        """Make the function that scores candidates by minus their predicted mean loss."""

        def score(unit: FloatArray) -> FloatArray:
            """Compute minus the predicted mean (m,) of candidates in the unit cube, (m, d)."""
            mean, _ = predict(self.features(unit))
            return -mean

        return score

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
        """Fit the part of the model that depends on the current task.

        Args:
            X: Features of this task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).

        Returns:
            A function that predicts means and standard deviations at features (m, p), and the
            losses (n,) on the scale of these predictions, which may differ from that of y.
        """

    @abstractmethod
    def condition_on_pending(self, pending_X: FloatArray) -> Predict:
        """Condition the model of the last `fit_posterior` also on pending evaluations.

        These were asked for and not told yet. They are assumed to give the posterior mean.

        Args:
            pending_X: Features of the pending configurations, shape (k, p).

        Returns:
            The prediction function of the model that is conditioned on both.
        """


class Ensemble(FromSources):
    """A weighted mean of the processes of the earlier tasks and of this one."""

    @cached_property
    def processes(self) -> "list[GaussianProcess]":
        """The Gaussian process of every earlier task, oldest first; fitted only once."""
        return [self.fit_source(X, y) for X, y in self.sources]

    @abstractmethod
    def compute_weights(
        self, X: FloatArray, y: FloatArray, target: "GaussianProcess"
    ) -> FloatArray:
        """Compute the weight of each task's process in the ensemble, by the rule of the method.

        Args:
            X: Features of this task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).
            target: The process of this task.

        Returns:
            Weights of the processes of the earlier tasks, oldest first, and of this task, last,
            shape (T,). They need not have the sum 1.
        """

    @abstractmethod
    def combine_sds(self, weights: FloatArray, sds: FloatArray) -> FloatArray:
        """Compute the ensemble's standard deviation (m,) from those of its processes.

        Args:
            weights: Weights of the K processes whose weight is positive, of sum 1; this task's
                process comes last. Shape (K,).
            sds: Their standard deviations at m configurations, shape (K, m).
        """

    def fit_posterior(self, X: FloatArray, y: FloatArray) -> tuple[Predict, FloatArray]:
        """Fit this task's process, and weigh the processes of all tasks.

        The method sets `used_processes`, the processes with a positive weight, of which this task's
        is the last one, and `used_weights`, their weights divided by the sum of the weights.

        Args:
            X: Features of this task's evaluations, shape (n, p).
            y: Their standardised losses, shape (n,).

        Returns:
            The ensemble's prediction function, and the losses on the scale of its predictions, here
            y itself.
        """
        target = self.fit_target(X, y)
        weights = self.compute_weights(X, y, target)  # earlier tasks, then this one
        processes = [*self.processes, target]  # in the same order
        # Processes of weight 0 need not predict.
        used_indices = np.flatnonzero(weights)
        self.used_weights = weights[used_indices] / weights.sum()
        self.used_processes = [processes[i] for i in used_indices]
        return self._predict, y

    def condition_on_pending(self, pending_X: FloatArray) -> Predict:
        """Condition every process on pending evaluations, as if they gave the mean it predicts.

        The conditioned processes replace `used_processes`, those with a positive weight.

        Args:
            pending_X: Features of the pending configurations, shape (k, p).

        Returns:
            The prediction function of the ensemble of the conditioned processes.
        """
        conditioned_processes = []
        for process in self.used_processes:
            conditioned, _ = process.with_fantasies(pending_X)
            conditioned_processes.append(conditioned)
        self.used_processes = conditioned_processes
        return self._predict

    def _predict(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict the ensemble's mean (m,) and standard deviation (m,) at features X (m, p).

        The mean is the weighted sum of the means of the processes with a positive weight,
        `used_processes`. Each method has a rule of its own for the standard deviation.
        """
        means = []
        sds = []
        for process in self.used_processes:
            mean, sd = process.predict(X)
            means.append(mean)
            sds.append(sd)
        ensemble_mean = self.used_weights @ np.stack(means)
        ensemble_sd = self.combine_sds(self.used_weights, np.stack(sds))
        return ensemble_mean, ensemble_sd


def find_ordered_pairs(y: FloatArray) -> tuple[IntArray, IntArray]:
    """Find all pairs of losses y (n,) of which one is lower than the other.

    Returns:
        For each pair the index of the lower loss and the index of the higher loss, two arrays of
        shape (number of pairs,). Equal losses are not a pair.
    """
    is_lower = y[:, None] < y[None, :]  # entry (j, k): whether y_j < y_k
    lower, higher = np.nonzero(is_lower)
    return lower, higher
