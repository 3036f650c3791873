"""Training any estimator on the nested training sets of a split.

Notation:
    s   size of a training set: its first s rows of the pool
    M   rows that validate
"""

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from hpobench_ordered.core.objective import Direction, Objective
from hpobench_ordered.errors import HPOBenchOrderedError, UnknownNameError
from hpobench_ordered.generation._custom.model import Model
from hpobench_ordered.generation._custom.split import Kind, Split

NEGATED = "neg_"
"""Prefix of scikit-learn's scorers that are an error times -1."""


class TrainingError(HPOBenchOrderedError):
    """A configuration could not be trained or evaluated."""


class Failures(Enum):
    """Treatment of configurations that cannot be trained."""

    STOP = "stop"
    """Stop; finished trainings remain stored."""
    WORST = "worst"
    """Assign the worst value of all configurations on the same training set."""


@dataclass(frozen=True, slots=True)
class Metric:
    """The metric on the validation part."""

    kind: Kind
    scorer: str | None = None

    def __post_init__(self) -> None:
        from sklearn.metrics import get_scorer_names

        if self.scorer is not None and self.scorer not in get_scorer_names():
            raise UnknownNameError("metric", self.scorer, get_scorer_names())

    def objective(self, rows: int) -> Objective:
        """The objective of the benchmark, given the number of validation rows."""
        if self.scorer is None:
            names = {
                Kind.CLASSIFICATION: ("error", "share misclassified"),
                Kind.REGRESSION: ("squared_error", "mean"),
            }
            name, unit = names[self.kind]
            return Objective(name, f"{unit} of {rows} validation rows", Direction.MINIMIZE)
        name = self.scorer.removeprefix(NEGATED)
        direction = Direction.MAXIMIZE if name == self.scorer else Direction.MINIMIZE
        return Objective(name, f"on {rows} validation rows", direction)

    def value(self, estimator: Any, split: Split) -> float:
        """Measure a fitted estimator on the validation part."""
        if self.scorer is not None:
            from sklearn.metrics import get_scorer

            score = get_scorer(self.scorer)(estimator, split.validation, split.validation_target)
            return float(-score if self.scorer.startswith(NEGATED) else score)
        predicted = np.asarray(estimator.predict(split.validation))
        truth = split.validation_target
        predicted = predicted.reshape(truth.shape)
        if self.kind is Kind.CLASSIFICATION:
            return float(np.mean(predicted != truth))
        return float(np.mean((predicted - truth) ** 2))


@dataclass(frozen=True)
class EstimatorTrainer:
    """Trains a model on one split; a job's place is the size of its training set."""

    split: Split
    model: Model
    metric: Metric
    failures: Failures = Failures.STOP

    @property
    def identity(self) -> Mapping[str, Any]:
        """Data, model, metric and versions; the treatment of failures changes no value."""
        return {
            **model_identity(self.model, self.metric),
            "data": self.split.digest,
            "kind": self.split.kind.value,
        }

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Train and measure."""
        from threadpoolctl import threadpool_limits

        pool, target = self.split.pool[: int(where)], self.split.pool_target[: int(where)]
        parts = replace(self.split, pool=pool, pool_target=target)
        try:
            with threadpool_limits(1):
                value, seconds = fitted_value(
                    lambda: self.model.estimator(config), parts, self.metric
                )
        except Exception as error:  # an estimator may raise anything
            failure = f"{type(error).__name__}: {error}"
            if self.failures is Failures.STOP:
                rows = f"{where} rows"
                raise TrainingError(described(self.model, config, rows, failure)) from error
            return {"failure": failure}
        return {"value": value, "seconds": seconds}


def model_identity(model: Model, metric: Metric) -> dict[str, Any]:
    """Model, metric and versions, as part of a trainer's identity."""
    import sklearn

    return {
        "model": model.path,
        "fixed": {name: repr(value) for name, value in sorted(model.fixed.items())},
        "metric": metric.scorer,
        "versions": {"model": model.version, "scikit-learn": sklearn.__version__},
    }


def fitted_value(
    make: Callable[[], Any], parts: Split, metric: Metric, **fit_arguments: Any
) -> tuple[float, float]:
    """Fit an estimator to the pool and measure it; returns value and seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as warnings on convergence
        estimator = make()
        begin = time.perf_counter()
        estimator.fit(parts.pool, parts.pool_target, **fit_arguments)
        value = metric.value(estimator, parts)
        seconds = time.perf_counter() - begin
    if not np.isfinite(value):
        raise ValueError(f"the metric is {value}")
    return value, seconds


def described(model: Model, config: Mapping[str, Any], where: str, failure: str) -> str:
    """Message on a failed training, with a way out."""
    keywords = ", ".join(f"{name}={value!r}" for name, value in config.items())
    return (
        f"{model.name}({keywords}) failed on {where}: {failure} -- change the search space, "
        f"or let failures count as the worst value (--failures {Failures.WORST.value})"
    )
