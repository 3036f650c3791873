"""scikit-optimize's `Optimizer` with its defaults: a Gaussian process.

Notation:
    d   number of tunable hyperparameters
"""

import math
import warnings
from typing import cast

import numpy as np

from hpobench_ordered._typing import Config, Value
from hpobench_ordered.errors import MissingExtraError
from hpobench_ordered.methods.base import Method
from hpobench_ordered.methods.wrapping.factory import SEED_LIMIT
from hpobench_ordered.space.parameters import Kind, Parameter
from hpobench_ordered.tuning.tools.base import EXTRA, describe_method

try:
    from skopt import Optimizer
    from skopt.space import Categorical, Dimension, Integer, Real
except ImportError as error:
    raise MissingExtraError("scikit-optimize", extra=EXTRA, purpose="scikit-optimize") from error

Point = list[float]
"""Values of all hyperparameters as `SearchSpace` codes them: choices by their index, length d."""


class ScikitOptimize(Method):
    """`skopt.Optimizer` on the task by itself, by ask and tell.

    It knows no conditions: inactive hyperparameters are dropped from what it suggests, and told
    with their defaults. It also knows no failures: they are told with the largest loss so far, or
    only after the first loss that is finite.
    """

    def prepare(self) -> None:
        """Set up the optimiser."""
        dimensions = [_make_dimension(parameter) for parameter in self.space.parameters]
        seed = int(self.rng.integers(SEED_LIMIT))
        self._optimizer = Optimizer(dimensions, random_state=seed)
        self._untold_failures: list[Point] = []
        self._largest_loss = -math.inf  # of those that are finite

    def ask(self) -> Config:
        """Suggest the next configuration."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of random points in the place of repeated ones
            point = self._optimizer.ask()

        lower = [parameter.lower for parameter in self.space.parameters]
        upper = [parameter.upper for parameter in self.space.parameters]
        values = np.clip(np.array([point], dtype=np.float64), lower, upper)  # rounding errors
        values[~self.space.active(values)] = np.nan
        (config,) = self.space.configs(values)
        return config

    def tell(self, config: Config, loss: float) -> None:
        """Tell a loss, and what failed before if it is the first that is finite."""
        point = self._complete_point(config)
        if math.isfinite(loss):
            self._largest_loss = max(loss, self._largest_loss)
            self._tell_optimizer(point, loss)
            for failure in self._untold_failures:
                self._tell_optimizer(failure, loss)
            self._untold_failures.clear()
        elif math.isfinite(self._largest_loss):
            self._tell_optimizer(point, self._largest_loss)
        else:
            self._untold_failures.append(point)

    def _complete_point(self, config: Config) -> Point:
        """Code a configuration; inactive hyperparameters get their defaults."""
        point: Point = []
        for parameter, coded in zip(self.space.parameters, self.space.row(config), strict=True):
            is_active = not math.isnan(coded)
            value = coded if is_active else parameter.code(cast(Value, parameter.default))
            point.append(int(value) if parameter.is_discrete else float(value))
        return point

    def _tell_optimizer(self, point: Point, loss: float) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of models that did not converge
            self._optimizer.tell(point, loss)


def _make_dimension(parameter: Parameter) -> Dimension:
    """The coded values of a hyperparameter; those of an ordinal are whole numbers."""
    if parameter.kind is Kind.CATEGORICAL:
        return Categorical(range(len(parameter.choices)))
    prior = "log-uniform" if parameter.log else "uniform"
    if parameter.is_discrete:
        return Integer(int(parameter.lower), int(parameter.upper), prior=prior)
    return Real(parameter.lower, parameter.upper, prior=prior)


GP = describe_method(
    "scikit-optimize",
    ScikitOptimize,
    packages=["scikit-optimize", "scikit-learn"],
    summary="scikit-optimize's Optimizer, a Gaussian process, on each task by itself.",
)
