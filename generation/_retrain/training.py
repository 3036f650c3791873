"""Trains a learner anew every period.

The model of a period is trained on the last few periods before it and measured on the period.
Two hyperparameters are not passed to the model: the window, the number of periods to train on, and
the half-life, the number of periods after which the weight of a row halves.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.identity import hash_arrays
from hpobench_ordered.generation._retrain.learners import HALF_LIFE, WINDOW, Learner
from hpobench_ordered.generation._retrain.streams import Stream
from hpobench_ordered.generation._retrain.tables import (
    DataSplit,
    code_target,
    make_features,
)


@dataclass(frozen=True)
class RetrainTrainer:
    """Trains a configuration for every task; a job's `where` is the seed of the model, as text.

    Attributes:
        stream: The stream.
        learner: The learner.
        is_regression: Whether the target is a number, measured by the mean absolute error, else one
            of two classes, measured by the area under the ROC curve.
        longest_window: Most periods that a model is trained on.
    """

    stream: Stream
    learner: Learner
    is_regression: bool
    longest_window: int

    @cached_property
    def coded_target(self) -> NDArray[Any]:
        """The target of all rows: numbers, or the classes' indices, (n,)."""
        return code_target(self.stream.rows.target, is_regression=self.is_regression)

    @property
    def tasks(self) -> range:
        """Numbers of the predicted periods: all with enough periods before them to train on."""
        return range(self.longest_window, len(self.stream.names))

    @property
    def contexts(self) -> dict[str, dict[str, float]]:
        """Context of every task, the number of its period, by the task's name."""
        return {self.stream.names[task]: {"period": float(task)} for task in self.tasks}

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """What determines the values of a training besides configuration and seed."""
        rows = self.stream.rows
        return {
            "learner": self.learner.identity,
            "data": hash_arrays(rows.numbers, rows.categories, self.coded_target),
            "periods": list(self.stream.starts),
            "longest": self.longest_window,
        }

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Train a configuration for every task with one seed.

        Args:
            config: The configuration.
            where: The seed, as text: it also names the folder of stored trainings.

        Returns:
            "values", the value of the metric on every task.
        """
        from threadpoolctl import threadpool_limits

        seed = int(where)
        # Several trainings may run at once, so each has one thread. Setting this limit is slow, so
        # that it is set once for all tasks.
        with threadpool_limits(1):
            values = [self.train(config, task, seed=seed) for task in self.tasks]
        return {"values": values}

    def train(self, config: Mapping[str, Any], task: int, *, seed: int) -> float:
        """Train on the periods before a task's period, and return the value of the metric on this.

        Args:
            config: The configuration. Without a window it is trained on the longest one; without a
                half-life, all rows have the same weight.
            task: Number of the period.
            seed: Seed of the model.
        """
        # Window and half-life choose and weight the rows; the other values are the model's.
        config_of_model = dict(config)
        window = int(config_of_model.pop(WINDOW, self.longest_window))
        half_life = config_of_model.pop(HALF_LIFE, None)
        split = self.split_rows(task, window)
        fit_arguments = {}
        if half_life is not None:
            n_training = len(split.training)
            fit_arguments["sample_weight"] = self._compute_weights(half_life, task, n_training)

        estimator = self.learner.make_estimator(
            config_of_model, is_regression=self.is_regression, seed=seed
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as warnings on convergence
            estimator.fit(split.training, split.training_target, **fit_arguments)
        return self._measure(estimator, split)

    def _measure(self, estimator: Any, split: DataSplit) -> float:
        """Measure a fitted estimator on the test rows, by mean absolute error or AUC."""
        from sklearn.metrics import get_scorer

        if self.is_regression:
            # scikit-learn's scorers are to be maximised, so that of an error is negated.
            scorer = get_scorer("neg_mean_absolute_error")
            return -float(scorer(estimator, split.test, split.test_target))
        return float(get_scorer("roc_auc")(estimator, split.test, split.test_target))

    def split_rows(self, task: int, window: int) -> DataSplit:
        """Select the rows that a model is trained on and measured on, and make their features.

        Args:
            task: Number of the period that it is measured on.
            window: Number of periods before it, on which it is trained.
        """
        training_rows = self.stream.select(task - window, task - 1)
        test_rows = self.stream.select(task, task)
        all_rows = slice(
            training_rows.start, test_rows.stop
        )  # the test rows follow the training rows
        n_training = training_rows.stop - training_rows.start

        # Codes and scales are those of the training rows: the period's are not known in training.
        rows = self.stream.rows
        features = make_features(rows.numbers[all_rows], rows.categories[all_rows], n_training)
        return DataSplit(
            training=features[:n_training],
            training_target=self.coded_target[training_rows],
            test=features[n_training:],
            test_target=self.coded_target[test_rows],
        )

    def _compute_weights(self, half_life: float, task: int, n_training: int) -> FloatArray:
        """Compute the weights of the rows that a model is trained on, (n_training,).

        A row has the weight 0.5^(age / half_life), where age counts the periods after the row's
        own, up to the last one before the predicted period.

        Args:
            half_life: Number of periods after which the weight of a row halves.
            task: Number of the predicted period.
            n_training: Number of rows; they are the last ones before the predicted period.
        """
        starts = np.asarray(self.stream.starts)
        end = self.stream.starts[task]
        rows = np.arange(end - n_training, end)
        # The number of periods that start at a row or before it, less one, is the row's period.
        period_of_row = np.searchsorted(starts, rows, side="right") - 1
        last_period = task - 1
        age = last_period - period_of_row
        weights: FloatArray = 0.5 ** (age / half_life)
        return weights
