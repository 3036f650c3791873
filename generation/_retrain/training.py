"""Trains any estimator anew every period.

The model of a period is trained on the last few periods before it and measured on the period.
Features are made from its training rows alone, as in `_custom.split`; a numeric target is
standardised by these rows for training, and predictions are transformed back.

Two hyperparameters are not passed to the model:

    window      number of periods to train on; default: all that every task has
    half_life   number of periods after which the weight of a row halves; default: equal weights
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation._custom.data import hash_arrays
from hpobench_ordered.generation._custom.model import Model
from hpobench_ordered.generation._custom.split import (
    DataSplit,
    PredictionKind,
    code_features,
    code_target,
    standardise,
)
from hpobench_ordered.generation._custom.training import (
    Failures,
    Metric,
    TrainingError,
    describe_failure,
    fit_and_measure,
    model_identity,
)
from hpobench_ordered.generation._retrain.streams import Stream

WINDOW = "window"
HALF_LIFE = "half_life"
HYPERPARAMETERS_OF_DATA = (WINDOW, HALF_LIFE)
"""Hyperparameters that choose and weight the training rows; the others are the model's."""
SEED = "random_state"
"""Keyword of a model's seed."""


@dataclass(frozen=True)
class RetrainTrainer:
    """Trains a configuration for every task; a job's `where` is the seed of the model, as text.

    Attributes:
        stream: The stream.
        model: The model.
        metric: The metric on a period.
        longest_window: Most periods that a model is trained on.
        failures: Treatment of configurations that cannot be trained.
    """

    stream: Stream
    model: Model
    metric: Metric
    longest_window: int
    failures: Failures = Failures.STOP

    def __post_init__(self) -> None:
        """Check that two periods can be predicted after the longest window."""
        number_of_periods = len(self.stream.names)
        most = max(number_of_periods - 2, 0)  # at least two periods are predicted: two tasks
        if not 1 <= self.longest_window <= most:
            raise ExperimentError(
                f"{self.stream.data.name} has {number_of_periods} periods; with two to predict, a "
                f"model must be trained on 1 to {most} of them, but got {self.longest_window}"
            )

    @cached_property
    def coded_target(self) -> tuple[NDArray[Any], tuple[str, ...]]:
        """The target as numbers, (n,), and the names of classes."""
        return code_target(self.stream.data, self.metric.kind)

    @property
    def tasks(self) -> range:
        """Numbers of the periods that are predicted."""
        return range(self.longest_window, len(self.stream.names))

    @property
    def contexts(self) -> dict[str, dict[str, float]]:
        """Context of every task by its name."""
        return {self.stream.names[task]: {"period": float(task)} for task in self.tasks}

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """What determines the values of a training: data, model, metric and versions.

        The treatment of failures is no part of it, so that it may change between two runs.
        """
        data = self.stream.data
        target, _ = self.coded_target
        return {
            **model_identity(self.model, self.metric),
            "data": hash_arrays(data.numbers, data.categories, target),
            "periods": list(self.stream.starts),
            "longest": self.longest_window,
        }

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Train for every task with one seed.

        Args:
            config: The configuration.
            where: The seed, as text: it also names the folder of stored trainings.

        Returns:
            "values" and "seconds" of the tasks, with None where a training failed; and "failure",
            the first failure, if there is any.

        Raises:
            TrainingError: A training failed, and failures stop the generation.
        """
        from threadpoolctl import threadpool_limits

        values: list[float | None] = []
        seconds: list[float] = []
        failures: list[str] = []
        # Several trainings may run at once, so each has one thread. Setting this limit is slow, so
        # that it is set once for all tasks.
        with threadpool_limits(1):
            for task in self.tasks:  # numbers of the periods that are predicted
                try:
                    value, seconds_of_task = self.train(config, task, seed=int(where))
                except Exception as error:  # an estimator may raise anything
                    failures.append(f"{type(error).__name__}: {error}")
                    if self.failures is Failures.STOP:
                        raise self._make_error(config, task, failures[0]) from error
                    values.append(None)
                    seconds.append(0.0)
                else:
                    values.append(value)
                    seconds.append(seconds_of_task)

        outcome: dict[str, Any] = {"values": values, "seconds": seconds}
        if failures:
            outcome["failure"] = failures[0]
        return outcome

    def _make_error(self, config: Mapping[str, Any], task: int, failure: str) -> TrainingError:
        """Make the error of a failed training, which names the period it was for."""
        training_set = f"the rows before {self.stream.names[task]}"
        return TrainingError(describe_failure(self.model, config, training_set, failure))

    def split_rows(self, task: int, window: int) -> DataSplit:
        """Select the rows that a model is trained on, and those that it is measured on.

        Args:
            task: Number of the period that it is measured on.
            window: Number of periods before it, on which it is trained.
        """
        training_rows = self.stream.rows(task - window, task - 1)
        rows_of_period = self.stream.rows(task, task)
        rows = slice(training_rows.start, rows_of_period.stop)
        pool_size = training_rows.stop - training_rows.start  # training rows, which come first

        # Codes and scales are those of the training rows: the period's are not known in training.
        data = self.stream.data
        features = code_features(data.numbers[rows], data.categories[rows], pool_size)
        features = standardise(features, pool_size)
        target_of_stream, classes = self.coded_target
        target = target_of_stream[rows]
        return DataSplit(
            kind=self.metric.kind,
            classes=classes,
            pool=features[:pool_size],
            pool_target=target[:pool_size],
            validation=features[pool_size:],
            validation_target=target[pool_size:],
            digest="",  # not used here: `identity` hashes the data of all periods
        )

    def train(self, config: Mapping[str, Any], task: int, *, seed: int) -> tuple[float, float]:
        """Train for the period of number `task`, and return the value and the seconds it took.

        A configuration without a window is trained on the longest one; without a half-life, all
        rows have the same weight.
        """
        window = int(config.get(WINDOW, self.longest_window))
        split = self.split_rows(task, window)
        config_of_model = select_model_config(config)

        fit_arguments = {}
        if HALF_LIFE in config:
            weights = self._compute_weights(config[HALF_LIFE], task, len(split.pool))
            fit_arguments["sample_weight"] = weights
        return fit_and_measure(
            lambda: self._make_estimator(config_of_model, seed),
            split,
            self.metric,
            **fit_arguments,
        )

    def _make_estimator(self, config: Mapping[str, Any], seed: int) -> Any:
        """Make a seeded estimator, for which a numeric target is standardised."""
        from sklearn.compose import TransformedTargetRegressor
        from sklearn.preprocessing import StandardScaler

        # A model that takes a seed has one among its fixed keywords.
        seed_keyword = {SEED: seed} if SEED in self.model.fixed else {}
        estimator = self.model.make_estimator({**seed_keyword, **config})
        if self.metric.kind is PredictionKind.CLASSIFICATION:
            return estimator
        return TransformedTargetRegressor(estimator, transformer=StandardScaler())

    def _compute_weights(self, half_life: float, task: int, number_of_rows: int) -> FloatArray:
        """Weights of the rows before a period, by their age in periods, (rows,)."""
        starts = np.asarray(self.stream.starts)
        end = self.stream.starts[task]
        rows = np.arange(end - number_of_rows, end)
        period_of_row = np.searchsorted(starts, rows, side="right") - 1
        age = task - 1 - period_of_row  # 0 in the last period before the predicted one
        # A row that is older by a half-life has half the weight.
        weights: FloatArray = 0.5 ** (age / half_life)
        return weights


def select_model_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the hyperparameters that are keywords of the model."""
    return {name: value for name, value in config.items() if name not in HYPERPARAMETERS_OF_DATA}
