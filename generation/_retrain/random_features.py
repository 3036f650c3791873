"""Linear models of inputs and random Fourier features, fitted by ridge regression.

Rahimi and Recht (2007), "Random features for large-scale kernel machines": they approximate a
kernel machine with a Gaussian kernel in a time that is linear in the rows.
"""

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import Ridge

from hpobench_ordered._typing import FloatArray


class _RandomFeatures(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Ridge regression, with penalty `alpha`, on inputs and `n_components` random features.

    The features approximate the kernel exp(-gamma |x - y|^2), drawn by `random_state`.
    """

    def __init__(
        self, *, gamma: float, n_components: int, alpha: float, random_state: int = 0
    ) -> None:
        """Store the settings by their names, where scikit-learn looks for them.

        Args:
            gamma: Coefficient of the kernel exp(-gamma |x - y|^2), which the features approximate.
            n_components: Number of random features.
            alpha: Penalty of the ridge regression.
            random_state: Seed of the random features.
        """
        self.gamma = gamma
        self.n_components = n_components
        self.alpha = alpha
        self.random_state = random_state

    def fit(self, x: FloatArray, y: NDArray[Any], sample_weight: FloatArray | None = None) -> Self:
        """Draw the random features, and fit the ridge regression on inputs and features.

        Args:
            x: Inputs of n rows, (n, p).
            y: Targets, (n,).
            sample_weight: Weights of the rows, (n,); default: the same for all.
        """
        self.features_ = RBFSampler(
            gamma=self.gamma, n_components=self.n_components, random_state=self.random_state
        )
        self.features_.fit(x)  # draws them; only the number of inputs matters
        inputs_and_features = self._append_features(x)
        self.ridge_ = Ridge(alpha=self.alpha, solver="cholesky")
        self.ridge_.fit(inputs_and_features, y, sample_weight)
        return self

    def _append_features(self, x: FloatArray) -> FloatArray:
        """Append the random features, which `fit` has drawn, to inputs (n, p)."""
        features = self.features_.transform(x)
        return np.hstack([x, features])

    def _predict_ridge(self, x: FloatArray) -> FloatArray:
        """Predict the targets, (n,), of rows (n, p) by the ridge regression that `fit` fitted."""
        values: FloatArray = self.ridge_.predict(self._append_features(x))
        return values


class RandomFeaturesRegressor(RegressorMixin, _RandomFeatures):  # type: ignore[misc]
    """Predicts numbers."""

    def predict(self, x: FloatArray) -> FloatArray:
        """Predict numbers for rows (n, p), shape (n,)."""
        return self._predict_ridge(x)


class RandomFeaturesClassifier(ClassifierMixin, _RandomFeatures):  # type: ignore[misc]
    """Predicts the classes 0 and 1."""

    def fit(self, x: FloatArray, y: NDArray[Any], sample_weight: FloatArray | None = None) -> Self:
        """Fit the ridge regression to -1 for class 0 and to 1 for class 1.

        Args:
            x: Inputs of n rows, (n, p).
            y: Their classes, 0 and 1, (n,).
            sample_weight: Weights of the rows, (n,); default: the same for all.
        """
        self.classes_ = [0, 1]  # where scikit-learn's scorers look for them
        target = 2.0 * y - 1.0  # -1 and 1, so that the sign of a prediction tells the class
        return super().fit(x, target, sample_weight)

    def decision_function(self, x: FloatArray) -> FloatArray:
        """Score rows (n, p): class 1 is predicted where the score is above 0, shape (n,)."""
        return self._predict_ridge(x)

    def predict(self, x: FloatArray) -> NDArray[Any]:
        """Predict the classes of rows (n, p), 0 or 1, shape (n,)."""
        is_class_1 = self._predict_ridge(x) > 0
        return is_class_1.astype(int)
