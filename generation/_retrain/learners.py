"""The learners of the retraining benchmarks, and their search spaces."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.space.parameters import Parameter

WINDOW = "window"
"""The hyperparameter that is the number of periods to train on; default: the longest window."""
HALF_LIFE = "half_life"
"""The hyperparameter that is the number of periods after which the weight of a row halves."""


@dataclass(frozen=True)
class Learner:
    """A learner and its search space.

    Attributes:
        module: The module of its estimators.
        package: The package on PyPI that has the module.
        name: Name of the estimators without their endings, Classifier and Regressor.
        parameters: The hyperparameters, without the window.
        settings: Keywords with the same value in all configurations.
    """

    module: str
    package: str
    name: str
    parameters: tuple[Parameter, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def identity(self) -> Mapping[str, Any]:
        """What determines an estimator besides configuration and seed, with versions."""
        import sklearn

        self._import_module()  # an error says how to install it
        top_module, _, _ = self.module.partition(".")
        return {
            "estimator": f"{self.module}:{self.name}",
            "settings": dict(self.settings),
            "version": import_module(top_module).__version__,
            "scikit-learn": sklearn.__version__,
        }

    def make_estimator(self, config: Mapping[str, Any], *, is_regression: bool, seed: int) -> Any:
        """Make the estimator of a configuration.

        For a regression it standardises the target in training, and transforms predictions back.

        Args:
            config: The configuration; its hyperparameters are keywords of the estimator.
            is_regression: Whether the target is a number, else a class.
            seed: Seed of the estimator.
        """
        from sklearn.compose import TransformedTargetRegressor
        from sklearn.preprocessing import StandardScaler

        ending = "Regressor" if is_regression else "Classifier"
        estimator_class = getattr(self._import_module(), f"{self.name}{ending}")
        estimator = estimator_class(**self.settings, random_state=seed, **config)
        if not is_regression:
            return estimator
        return TransformedTargetRegressor(estimator, transformer=StandardScaler())

    def _import_module(self) -> Any:
        """Import the module of the estimators; an error says how to install its package."""
        return import_extra(
            self.module, package=self.package, extra="train", purpose="training on streams"
        )


LEARNERS = {
    "xgboost": Learner(
        "xgboost",
        "xgboost",
        "XGB",
        (
            Parameter.number("learning_rate", 0.01, 1, log=True),
            Parameter.number("n_estimators", 8, 128, log=True, integer=True),
            Parameter.number("max_depth", 1, 10, integer=True),
            Parameter.number("min_child_weight", 0.5, 64, log=True),
            Parameter.number("subsample", 0.2, 1),
            Parameter.number("colsample_bytree", 0.2, 1),
            Parameter.number("reg_lambda", 1e-3, 1e3, log=True),
        ),
        settings={"tree_method": "hist", "max_bin": 64, "n_jobs": 1},
    ),
    "linear": Learner(
        "hpobench_ordered.generation._retrain.random_features",
        "scikit-learn",
        "RandomFeatures",
        (
            Parameter.number("gamma", 1e-4, 1, log=True),
            Parameter.number("n_components", 16, 256, log=True, integer=True),
            Parameter.number("alpha", 1e-4, 1e3, log=True),
            Parameter.number(HALF_LIFE, 0.5, 16, log=True),
        ),
    ),
    "mlp": Learner(
        "sklearn.neural_network",
        "scikit-learn",
        "MLP",
        (
            Parameter.number("hidden_layer_sizes", 8, 128, log=True, integer=True),
            Parameter.choice("activation", ("relu", "tanh")),
            Parameter.number("alpha", 1e-6, 10, log=True),
            Parameter.number("learning_rate_init", 1e-4, 0.1, log=True),
            Parameter.number("batch_size", 16, 256, log=True, integer=True),
            Parameter.number("max_iter", 2, 12, log=True, integer=True),
        ),
    ),
}
"""Gradient boosting, a linear model of random features, and a network with one hidden layer."""
