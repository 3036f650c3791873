"""scikit-learn's Gaussian process behind this package's interface, to compare with."""

import warnings
from collections.abc import Iterable

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.tuning.tools.base import ModelWithoutRepeats

CANDIDATES = 2000  # from which scikit-learn's model chooses


class ScikitLearn(ModelWithoutRepeats):
    """scikit-learn's Gaussian process and expected improvement over 2000 random candidates.

    Matern-5/2 with a length scale for each feature, a factor and noise, all learnt by maximum
    likelihood from one start; standardised losses.
    """

    def ranked(self, features: FloatArray, losses: FloatArray) -> Iterable[FloatArray]:
        """Rank random configurations by their expected improvement."""
        from scipy.stats import norm
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        # Each kernel has its initial hyperparameters, and the bounds of the fit.
        factor = ConstantKernel(1.0, (1e-2, 1e2))
        matern = Matern([0.7] * features.shape[1], (1e-2, 1e2), nu=2.5)
        noise = WhiteKernel(1e-3, (1e-6, 1.0))
        kernel = factor * matern + noise

        unit = self.space.sample_unit(self.rng, CANDIDATES)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of hyperparameters at their bounds
            model = GaussianProcessRegressor(kernel, normalize_y=True).fit(features, losses)
            mean, sd = model.predict(self.space.features(unit), return_std=True)
        z = (losses.min() - mean) / sd
        expected_improvement = sd * (z * norm.cdf(z) + norm.pdf(z))
        return unit[np.argsort(-expected_improvement, kind="stable")]
