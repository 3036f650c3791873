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

from hpobench_ordered.data.objective import Direction, Objective
from hpobench_ordered.errors import HPOBenchOrderedError, UnknownNameError
from hpobench_ordered.generation._custom.model import Model
from hpobench_ordered.generation._custom.split import DataSplit, PredictionKind

NEGATED_PREFIX = "neg_"
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

    kind: PredictionKind
    scorer: str | None = None

    def __post_init__(self) -> None:
        """Check that scikit-learn has a scorer of this name; None stands for the default metric."""
        from sklearn.metrics import get_scorer_names

        if self.scorer is not None and self.scorer not in get_scorer_names():
            raise UnknownNameError("metric", self.scorer, get_scorer_names())

    def objective(self, rows: int) -> Objective:
        """The objective of the benchmark, given the number of validation rows.

        Without one of scikit-learn's scorers it is the share of misclassified rows, or the mean
        squared error.
        """
        if self.scorer is None:
            names_and_units = {
                PredictionKind.CLASSIFICATION: ("error", "share misclassified"),
                PredictionKind.REGRESSION: ("squared_error", "mean"),
            }
            name, unit = names_and_units[self.kind]
            return Objective(name, f"{unit} of {rows} validation rows", Direction.MINIMIZE)

        # Scorers are to be maximised: those of errors are negated, and their names say so.
        is_error = self.scorer.startswith(NEGATED_PREFIX)
        direction = Direction.MINIMIZE if is_error else Direction.MAXIMIZE
        name = self.scorer.removeprefix(NEGATED_PREFIX)
        return Objective(name, f"on {rows} validation rows", direction)

    def measure(self, estimator: Any, split: DataSplit) -> float:
        """Measure a fitted estimator on the validation part.

        Without one of scikit-learn's scorers it is the share of misclassified rows, or the mean
        squared error.
        """
        if self.scorer is not None:
            return self._measure_by_scorer(self.scorer, estimator, split)

        target = split.validation_target
        predicted = np.asarray(estimator.predict(split.validation)).reshape(target.shape)
        if self.kind is PredictionKind.CLASSIFICATION:
            return float(np.mean(predicted != target))
        return float(np.mean((predicted - target) ** 2))

    def _measure_by_scorer(self, scorer: str, estimator: Any, split: DataSplit) -> float:
        """Measure a fitted estimator on the validation part by one of scikit-learn's scorers."""
        from sklearn.metrics import get_scorer

        score = float(get_scorer(scorer)(estimator, split.validation, split.validation_target))
        is_error = scorer.startswith(NEGATED_PREFIX)
        # The scorer of an error is negated; the objective is the error itself, to be minimised.
        return -score if is_error else score


@dataclass(frozen=True)
class EstimatorTrainer:
    """Trains a model on one split; a job's `where` is the size of its training set, as text."""

    split: DataSplit
    model: Model
    metric: Metric
    failures: Failures = Failures.STOP

    @property
    def identity(self) -> Mapping[str, Any]:
        """What determines the value of a training: data, model, metric and versions.

        The treatment of failures is no part of it, so that it may change between two runs.
        """
        return {
            **model_identity(self.model, self.metric),
            "data": self.split.digest,
            "kind": self.split.kind.value,
        }

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Train on the first rows of the pool, and measure on the validation part.

        Args:
            config: The configuration.
            where: The number of rows, as text: it also names the folder of stored trainings.

        Returns:
            "value" and "seconds"; or "failure", if failures may count as the worst value.

        Raises:
            TrainingError: The training failed, and failures stop the generation.
        """
        from threadpoolctl import threadpool_limits

        size = int(where)
        split = replace(
            self.split, pool=self.split.pool[:size], pool_target=self.split.pool_target[:size]
        )
        try:
            with threadpool_limits(1):  # several trainings may run at once
                value, seconds = fit_and_measure(
                    lambda: self.model.make_estimator(config), split, self.metric
                )
        except Exception as error:  # an estimator may raise anything
            failure = f"{type(error).__name__}: {error}"
            if self.failures is Failures.STOP:
                message = describe_failure(self.model, config, f"{where} rows", failure)
                raise TrainingError(message) from error
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


def fit_and_measure(
    make_estimator: Callable[[], Any], split: DataSplit, metric: Metric, **fit_arguments: Any
) -> tuple[float, float]:
    """Fit an estimator to the pool and measure it.

    Returns:
        The value of the metric, and the seconds that fitting and measuring took.

    Raises:
        ValueError: The value is not finite.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as warnings on convergence
        estimator = make_estimator()
        begin = time.perf_counter()
        estimator.fit(split.pool, split.pool_target, **fit_arguments)
        value = metric.measure(estimator, split)
        seconds = time.perf_counter() - begin
    if not np.isfinite(value):
        raise ValueError(f"the metric is {value}")
    return value, seconds


def describe_failure(model: Model, config: Mapping[str, Any], where: str, failure: str) -> str:
    """Describe a failed training, and what the user can do about it."""
    keywords = ", ".join(f"{name}={value!r}" for name, value in config.items())
    return (
        f"{model.name}({keywords}) failed on {where}: {failure} -- change the search space, "
        f"or let failures count as the worst value (--failures {Failures.WORST.value})"
    )
