"""Trains any estimator anew every period.

The model of a period is trained on the last few periods before it and measured on the period.
Features are made from its training rows alone, as in `_custom.split`; a numeric target is
standardised by these rows for training, and predictions are transformed back.

Two hyperparameters are not passed to the model:

    window      number of periods to train on; default: all that every task has
    half_life   number of periods after which the weight of a row halves; default: equal weights
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

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
    target: NDArray[Any]
    classes: tuple[str, ...]
    digest: str
    longest: int
    model: Model
    metric: Metric
    failures: Failures = Failures.STOP

    @classmethod
    def on(
        cls,
        stream: Stream,
        model: Model,
        metric: Metric,
        *,
        longest: int,
        failures: Failures = Failures.STOP,
    ) -> Self:
        """Prepare a stream for models trained on at most the `longest` last periods."""
        most = len(stream.names) - 2
        if not 1 <= longest <= most:
            raise ExperimentError(
                f"{stream.data.name} has {len(stream.names)} periods; with two to predict, a model "
                f"must be trained on 1 to {max(most, 0)} of them, but got {longest}"
            )
        target, classes = coded_target(stream.data, metric.kind)
        digest = digest_of(stream.data.numbers, stream.data.categories, target)
        return cls(stream, target, classes, digest, longest, model, metric, failures)

    @property
    def tasks(self) -> range:
        """Numbers of the periods that are predicted."""
        return range(self.longest, len(self.stream.names))

    @property
    def contexts(self) -> dict[str, dict[str, float]]:
        """Context of every task by its name."""
        return {self.stream.names[task]: {"period": float(task)} for task in self.tasks}

    @property
    def identity(self) -> Mapping[str, Any]:
        """Data, model, metric and versions; the treatment of failures changes no value."""
        return {
            **model_identity(self.model, self.metric),
            "data": self.digest,
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
        target = self.target[rows]
        return Split(
            kind=self.metric.kind,
            classes=self.classes,
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

        estimator = self._seeded(seed).estimator(config)
        if self.metric.kind is Kind.CLASSIFICATION:
            return estimator
        return TransformedTargetRegressor(estimator, transformer=StandardScaler())

    def _seeded(self, seed: int) -> Model:
        fixed = self.model.fixed
        return replace(self.model, fixed={**fixed, SEED: seed}) if SEED in fixed else self.model

    def _weights(self, config: Mapping[str, Any], task: int, parts: Split) -> dict[str, FloatArray]:
        """Weights of training rows by their age, if there is a half-life."""
        if HALF_LIFE not in config:
            return {}
        starts = np.asarray(self.stream.starts)
        last = self.stream.starts[task]
        rows = np.arange(last - len(parts.pool), last)
        age = task - np.searchsorted(starts, rows, side="right")
        return {"sample_weight": 0.5 ** (age / config[HALF_LIFE])}
