"""Gradient boosted trees behind one interface: Newton boosting with exact greedy splits.

Equivalent to XGBoost with `tree_method="exact"`. For the size of an optimiser's history a fit takes
a millisecond, and no other library is needed. Notation as in `compiled`.
"""

import math
from dataclasses import dataclass
from enum import Enum
from typing import Self

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._boosting import compiled
from hpobench_ordered.methods._boosting.compiled import Settings

XGBOOST = Settings()
"""XGBoost's defaults."""
MARGIN = 1e-6
"""Smallest distance of the share of positive targets from 0 and 1, so that log odds are finite."""


class Loss(Enum):
    """Loss function of the trees."""

    SQUARED_ERROR = "squared error"
    LOGISTIC = "logistic"


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """A sum of T regression trees, at most D deep.

    Attributes:
        start: Constant that the trees add to: the targets' mean, or its log odds.
        depths: Depth of each tree, shape (T,).
        columns: Column that each inner node splits on, shape (T, 2^D - 1).
        thresholds: Observations below go left, shape (T, 2^D - 1).
        leaves: Values that leaves add, shape (T, 2^D).
    """

    start: float
    depths: IntArray
    columns: IntArray
    thresholds: FloatArray
    leaves: FloatArray

    @classmethod
    def fit(
        cls,
        X: FloatArray,
        y: FloatArray,
        *,
        loss: Loss = Loss.SQUARED_ERROR,
        settings: Settings = XGBOOST,
    ) -> Self:
        """Fit boosted trees: each reduces the loss that the trees before it have left.

        Splits that reduce the loss by less than about 1e-6 are not made, as in XGBoost. With much
        smaller targets there would be no split at all: they should be of the order of one.

        Args:
            X: Features, finite, shape (n, p) with n >= 1.
            y: Targets, finite, shape (n,); 0 or 1 for the logistic loss.
            loss: What is minimised.
            settings: Settings of the boosting.
        """
        X = np.ascontiguousarray(X, dtype=np.float64)
        y = np.ascontiguousarray(y, dtype=np.float64)
        is_logistic = loss is Loss.LOGISTIC
        mean = float(y.mean())
        start = mean
        if is_logistic:  # the trees add up to log odds
            start = compute_log_odds(mean)
        # Indices of the observations in ascending order of each column, (p, n).
        rows = np.ascontiguousarray(np.argsort(X, axis=0, kind="stable").T)
        depths, columns, thresholds, leaves = compiled.fit(X, y, rows, start, is_logistic, settings)
        return cls(start, depths, columns, thresholds, leaves)

    def predict(self, X: FloatArray) -> FloatArray:
        """Predict the target at features X (m, p), shape (m,); log odds for the logistic loss.

        The prediction is the sum of a constant, `start`, and of all trees.
        """
        X = np.ascontiguousarray(X, dtype=np.float64)
        return compiled.predict(
            X, self.start, self.depths, self.columns, self.thresholds, self.leaves
        )


def compute_log_odds(positive_share: float) -> float:
    """Compute the log odds log(s / (1 - s)) of a share s of positive targets.

    The share is first moved from 0 and 1 by `MARGIN`, so that the log odds are finite.
    """
    lowest_share = MARGIN
    highest_share = 1.0 - MARGIN
    inner_share = min(max(positive_share, lowest_share), highest_share)
    odds = inner_share / (1.0 - inner_share)
    return math.log(odds)
