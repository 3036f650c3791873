"""Trains a learner on data sets: the area under the ROC curve in five-fold cross-validation.

An outcome is

    {"value", "spread", "seconds"}

    value    mean area over the folds; null if the learner failed
    spread   standard deviation of the areas of the folds (ddof 1); null if it failed
    seconds  of fitting and predicting, all folds together
"""

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.generation._datasets.data import MAX_ROWS, make_folds
from hpobench_ordered.generation._datasets.learners import LEARNERS, Learner
from hpobench_ordered.generation._flows.datasets import FOLDS, Fold


@dataclass(frozen=True)
class DataSetTrainer:
    """Trains a configuration on a data set; a job's `where` is DATA_SET/SEED.

    The seed determines the folds and the random numbers of the estimators.

    Attributes:
        learner: Name of the learner.
        files: Path of each data set, by its name.
    """

    learner: str
    files: Mapping[str, Path]

    @cached_property
    def identity(self) -> Mapping[str, Any]:
        """What determines the values of a training besides configuration and data set."""
        return {
            "learner": self.learner,
            **LEARNERS[self.learner].identity,
            "folds": FOLDS,
            "rows": MAX_ROWS,
        }

    def __call__(self, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
        """Cross-validate a configuration on a data set, and return the outcome."""
        from threadpoolctl import threadpool_limits

        name, seed_as_text = where.split("/")
        seed = int(seed_as_text)
        learner = LEARNERS[self.learner]
        folds = make_folds(self.files[name], seed, are_scaled=learner.needs_scaling)

        begin = time.perf_counter()
        with threadpool_limits(1):  # as several trainings may run at once
            areas = [_cross_validate_fold(learner, config, seed, fold) for fold in folds]
        seconds = time.perf_counter() - begin

        has_failed = np.isnan(areas).any()
        return {
            "value": None if has_failed else float(np.mean(areas)),
            "spread": None if has_failed else float(np.std(areas, ddof=1)),
            "seconds": seconds,
        }


def _cross_validate_fold(
    learner: Learner, config: Mapping[str, Any], seed: int, fold: Fold
) -> float:
    """Fit a configuration to a fold, and return the area under the ROC curve on its test rows.

    The area is NaN if the estimator cannot be fitted, as quadratic discriminant analysis cannot
    where a class has fewer rows than inputs, or if it predicts numbers that are not finite.
    """
    estimator = learner.make_estimator(config, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as warnings on convergence
        try:
            estimator.fit(fold.x, fold.y)
            scores = _score_test_rows(estimator, fold)
        except (ValueError, np.linalg.LinAlgError):
            return np.nan
    if not np.isfinite(scores).all():
        return np.nan
    return fold.compute_auc(scores)


def _score_test_rows(estimator: Any, fold: Fold) -> FloatArray:
    """Score the m test rows of a fold: for the second of two classes, (m, 1), or for each, (m, K).

    A score is the distance from a boundary where the estimator has one, else a probability.
    """
    if hasattr(estimator, "decision_function"):
        distances: FloatArray = np.asarray(estimator.decision_function(fold.x_test))
        return distances[:, None] if distances.ndim == 1 else distances
    probabilities: FloatArray = estimator.predict_proba(fold.x_test)
    has_two_classes = probabilities.shape[1] == 2
    return probabilities[:, 1:] if has_two_classes else probabilities
