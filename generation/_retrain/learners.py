"""The learners of the retraining benchmarks, and their search spaces."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hpobench_ordered.generation._custom.split import Kind
from hpobench_ordered.generation._retrain.training import HALF_LIFE, WINDOW
from hpobench_ordered.space.parameters import Parameter

RANDOM_FEATURES = "hpobench_ordered.generation._retrain.random_features:RandomFeatures"


@dataclass(frozen=True)
class Learner:
    """A learner and its search space."""

    models: Mapping[Kind, str]
    parameters: tuple[Parameter, ...]
    fixed: Mapping[str, Any] = field(default_factory=dict)


def window(least: int, most: int) -> Parameter:
    """Number of periods to train on."""
    return Parameter.number(WINDOW, least, most, integer=True)


def _models(path: str) -> dict[Kind, str]:
    return {Kind.CLASSIFICATION: f"{path}Classifier", Kind.REGRESSION: f"{path}Regressor"}


LEARNERS = {
    "xgboost": Learner(
        _models("xgboost:XGB"),
        (
            Parameter.number("learning_rate", 0.01, 1, log=True),
            Parameter.number("n_estimators", 8, 128, log=True, integer=True),
            Parameter.number("max_depth", 1, 10, integer=True),
            Parameter.number("min_child_weight", 0.5, 64, log=True),
            Parameter.number("subsample", 0.2, 1),
            Parameter.number("colsample_bytree", 0.2, 1),
            Parameter.number("reg_lambda", 1e-3, 1e3, log=True),
        ),
        fixed={"tree_method": "hist", "max_bin": 64},
    ),
    "linear": Learner(
        _models(RANDOM_FEATURES),
        (
            Parameter.number("gamma", 1e-4, 1, log=True),
            Parameter.number("n_components", 16, 256, log=True, integer=True),
            Parameter.number("alpha", 1e-4, 1e3, log=True),
            Parameter.number(HALF_LIFE, 0.5, 16, log=True),
        ),
    ),
    "mlp": Learner(
        _models("sklearn.neural_network:MLP"),
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
