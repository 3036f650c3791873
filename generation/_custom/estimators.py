"""Search spaces of well-known estimators, for custom benchmarks.

Ranges follow those in common use, so far as they are hyperparameters of the class:

- neighbours, support vectors, networks and histogram boosting: auto-sklearn (Feurer et al. 2015)
- trees and forests: HPOBench (Eggensperger et al. 2021)
- `xgboost`: Hellan et al. (2023), table 2, the space of the benchmark xgboost-mnist
- numbers of trees: from 8 to 128, log-scaled, so that trainings stay short
"""

import json
from collections.abc import Container, Mapping
from pathlib import Path

from hpobench_ordered._typing import Value
from hpobench_ordered.benchmarks.xgboost_mnist import space as xgboost_space
from hpobench_ordered.errors import ExperimentError, InvalidSpaceError
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.parameters import Parameter

NEIGHBOURS = "n_neighbors"
"""Names of hyperparameters that must not exceed the number of rows to learn from."""

EXAMPLE = """{"hyperparameters": [
  {"type": "uniform_float", "name": "alpha", "lower": 1e-4, "upper": 1.0, "log": true},
  {"type": "uniform_int", "name": "max_iter", "lower": 10, "upper": 500, "log": true},
  {"type": "categorical", "name": "penalty", "choices": ["l1", "l2"]}
]}"""
"""An example of a file with a search space."""
_HOW_TO = "It is in ConfigSpace's JSON, the names being keywords of the class, such as\n" + EXAMPLE


def _whole(name: str, lower: int, upper: int, *, log: bool = True) -> Parameter:
    return Parameter.number(name, lower, upper, log=log, integer=True)


def _real(name: str, lower: float, upper: float, *, log: bool = True) -> Parameter:
    return Parameter.number(name, lower, upper, log=log)


def _choice(name: str, *choices: Value) -> Parameter:
    return Parameter.choice(name, choices)


_TREES = _whole("n_estimators", 8, 128)
_FEATURES = _real("max_features", 0.05, 1.0, log=False)
_TREE = (
    _whole("max_depth", 1, 50),
    _whole("min_samples_split", 2, 128),
    _whole("min_samples_leaf", 1, 20),
    _FEATURES,
)
_FOREST = (_TREES, *_TREE)
_BOOSTING = (
    _real("learning_rate", 0.01, 1.0),
    _TREES,
    _whole("max_depth", 1, 10),
    _whole("min_samples_leaf", 1, 20),
    _real("subsample", 0.1, 1.0, log=False),
    _FEATURES,
)
_HISTOGRAM_BOOSTING = (
    _real("learning_rate", 0.01, 1.0),
    _whole("max_iter", 8, 128),
    _whole("max_leaf_nodes", 3, 256),
    _whole("min_samples_leaf", 1, 200),
    _real("l2_regularization", 1e-10, 1.0),
)
_SUPPORT_VECTORS = (_real("C", 2.0**-5, 2.0**15), _real("gamma", 2.0**-15, 2.0**3))
_NEIGHBOURS = (
    _whole(NEIGHBOURS, 1, 100),
    _choice("weights", "uniform", "distance"),
    _choice("p", 1, 2),
)
_NETWORK = (
    _whole("hidden_layer_sizes", 16, 264),
    _choice("activation", "relu", "tanh"),
    _real("alpha", 1e-5, 1.0),
    _real("learning_rate_init", 1e-4, 0.5),
)
_XGBOOST = xgboost_space().parameters

SPACES: Mapping[str, tuple[Parameter, ...]] = {
    "sklearn.DecisionTreeClassifier": (*_TREE, _choice("criterion", "gini", "entropy")),
    "sklearn.DecisionTreeRegressor": _TREE,
    "sklearn.ExtraTreesClassifier": (*_FOREST, _choice("bootstrap", False, True)),
    "sklearn.ExtraTreesRegressor": (*_FOREST, _choice("bootstrap", False, True)),
    "sklearn.GradientBoostingClassifier": _BOOSTING,
    "sklearn.GradientBoostingRegressor": _BOOSTING,
    "sklearn.HistGradientBoostingClassifier": _HISTOGRAM_BOOSTING,
    "sklearn.HistGradientBoostingRegressor": _HISTOGRAM_BOOSTING,
    "sklearn.KNeighborsClassifier": _NEIGHBOURS,
    "sklearn.KNeighborsRegressor": _NEIGHBOURS,
    "sklearn.LogisticRegression": (_real("C", 1e-4, 1e4), _whole("max_iter", 10, 1000)),
    "sklearn.MLPClassifier": _NETWORK,
    "sklearn.MLPRegressor": _NETWORK,
    "sklearn.RandomForestClassifier": (*_FOREST, _choice("bootstrap", True, False)),
    "sklearn.RandomForestRegressor": (*_FOREST, _choice("bootstrap", True, False)),
    "sklearn.Ridge": (_real("alpha", 1e-5, 1e5),),
    "sklearn.SVC": _SUPPORT_VECTORS,
    "sklearn.SVR": (*_SUPPORT_VECTORS, _real("epsilon", 1e-3, 1.0)),
    "xgboost.XGBClassifier": _XGBOOST,
    "xgboost.XGBRegressor": _XGBOOST,
}
"""Hyperparameters by package and class."""


def built_in_space(key: str, *, smallest: int, leave_out: Container[str] = ()) -> SearchSpace:
    """The search space of a well-known class, such as "sklearn.SVC", without some hyperparameters.

    There are at most as many neighbours as rows in the smallest training set.
    """
    if key not in SPACES:
        known = ", ".join(name.partition(".")[2] for name in SPACES)
        raise ExperimentError(
            f"there is no built-in search space for {key}, only for {known}; write one to a file "
            f"and give it with --space FILE. {_HOW_TO}"
        )
    return SearchSpace(
        [
            _whole(NEIGHBOURS, 1, min(int(p.upper), smallest)) if p.name == NEIGHBOURS else p
            for p in SPACES[key]
            if p.name not in leave_out
        ]
    )


def read_space(path: Path) -> SearchSpace:
    """Read a search space from a file, in ConfigSpace's JSON."""
    try:
        return SearchSpace.from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        reason = f"{error}" if isinstance(error, OSError | ValueError) else repr(error)
        raise InvalidSpaceError(f"no search space in {path}: {reason}. {_HOW_TO}") from error
