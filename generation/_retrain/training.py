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
from hpobench_ordered.generation._custom.data import digest_of
from hpobench_ordered.generation._custom.model import Model
from hpobench_ordered.generation._custom.split import Kind, Split, coded, coded_target, standardised
from hpobench_ordered.generation._custom.training import (
    Failures,
    Metric,
    TrainingError,
    described,
    fitted_value,
    model_identity,
)
from hpobench_ordered.generation._retrain.streams import Stream

WINDOW, HALF_LIFE = "window", "half_life"
OF_THE_DATA = (WINDOW, HALF_LIFE)
"""Hyperparameters that choose and weight the training rows."""
SEED = "random_state"


@dataclass(frozen=True)
class RetrainTrainer:
    """Trains a configuration for every task; the place of a job is the seed of the model."""

    stream: Stream
    model: Model
    metric: Metric
    longest: int  # most periods that a model is trained on
    failures: Failures = Failures.STOP

    def __post_init__(self) -> None:
        data, most = self.stream.data, len(self.stream.names) - 2
        if not 1 <= self.longest <= most:
            raise ExperimentError(
                f"{data.name} has {len(self.stream.names)} periods; with two to predict, a model "
                f"must be trained on 1 to {max(most, 0)} of them, but got {self.longest}"
            )

    @cached_property
    def coded(self) -> tuple[NDArray[Any], tuple[str, ...]]:
        """The target as numbers, and the names of classes."""
        return coded_target(self.stream.data, self.metric.kind)

    @property
    def tasks(self) -> range:
        """Numbers of the periods that are predicted."""
        return range(self.longest, len(self.stream.names))

    @property
    def contexts(self) -> dict[str, dict[str, float]]:
        """Context of every task by its name."""
        return {self.stream.names[task]: {"period": float(task)} for task in self.tasks}

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """Data, model, metric and versions; the treatment of failures changes no value."""
        data = self.stream.data
        return {
            **model_identity(self.model, self.metric),
            "data": digest_of(data.numbers, data.categories, self.coded[0]),
            "periods": list(self.stream.starts),
            "longest": self.longest,
        }

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Train for every task."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):  # once for all tasks, as it is slow
            outcomes = [self._tried(config, task, seed=int(where)) for task in self.tasks]
        values, seconds, reasons = (list(column) for column in zip(*outcomes, strict=True))
        failure = next(filter(None, reasons), None)
        failed = {} if failure is None else {"failure": failure}
        return {"values": values, "seconds": seconds, **failed}

    def _tried(
        self, config: Mapping[str, Any], task: int, *, seed: int
    ) -> tuple[float | None, float, str]:
        """Value, seconds, and the reason of a failure that counts as worst, else ""."""
        try:
            return *self.train(config, task, seed=seed), ""
        except Exception as error:  # an estimator may raise anything
            reason = f"{type(error).__name__}: {error}"
            if self.failures is Failures.STOP:
                period = f"the rows before {self.stream.names[task]}"
                raise TrainingError(described(self.model, config, period, reason)) from error
            return None, 0.0, reason

    def split(self, task: int, window: int) -> Split:
        """The rows that the model of a period is trained and measured on."""
        train = self.stream.rows(task - window, task - 1)
        rows = slice(train.start, self.stream.rows(task, task).stop)
        cut, data = train.stop - train.start, self.stream.data
        features = standardised(coded(data.numbers[rows], data.categories[rows], cut), cut)
        target, classes = self.coded[0][rows], self.coded[1]
        return Split(
            kind=self.metric.kind,
            classes=classes,
            pool=features[:cut],
            pool_target=target[:cut],
            validation=features[cut:],
            validation_target=target[cut:],
            digest="",
        )

    def train(self, config: Mapping[str, Any], task: int, *, seed: int) -> tuple[float, float]:
        """Train for the period of number `task`."""
        parts = self.split(task, int(config.get(WINDOW, self.longest)))
        own = {name: value for name, value in config.items() if name not in OF_THE_DATA}
        return fitted_value(
            lambda: self._estimator(own, seed),
            parts,
            self.metric,
            **self._weights(config, task, parts),
        )

    def _estimator(self, config: Mapping[str, Any], seed: int) -> Any:
        """A seeded estimator; a numeric target is standardised."""
        from sklearn.compose import TransformedTargetRegressor
        from sklearn.preprocessing import StandardScaler

        seeded = {SEED: seed} if SEED in self.model.fixed else {}
        estimator = self.model.estimator({**seeded, **config})
        if self.metric.kind is Kind.CLASSIFICATION:
            return estimator
        return TransformedTargetRegressor(estimator, transformer=StandardScaler())

    def _weights(self, config: Mapping[str, Any], task: int, parts: Split) -> dict[str, FloatArray]:
        """Weights of training rows by their age, if there is a half-life."""
        if HALF_LIFE not in config:
            return {}
        starts = np.asarray(self.stream.starts)
        last = self.stream.starts[task]
        rows = np.arange(last - len(parts.pool), last)
        age = task - np.searchsorted(starts, rows, side="right")
        return {"sample_weight": 0.5 ** (age / config[HALF_LIFE])}
