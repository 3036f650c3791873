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

NEIGHBOURS_KEYWORD = "n_neighbors"
"""The hyperparameter that must not exceed the number of rows to learn from."""

EXAMPLE = """{"hyperparameters": [
  {"type": "uniform_float", "name": "alpha", "lower": 1e-4, "upper": 1.0, "log": true},
  {"type": "uniform_int", "name": "max_iter", "lower": 10, "upper": 500, "log": true},
  {"type": "categorical", "name": "penalty", "choices": ["l1", "l2"]}
]}"""
"""An example of a file with a search space."""
_HOW_TO = "It is in ConfigSpace's JSON, the names being keywords of the class, such as\n" + EXAMPLE
"""End of messages: how to write a file with a search space."""


def _integer(name: str, lower: int, upper: int, *, log: bool = True) -> Parameter:
    return Parameter.number(name, lower, upper, log=log, integer=True)


def _float(name: str, lower: float, upper: float, *, log: bool = True) -> Parameter:
    return Parameter.number(name, lower, upper, log=log)


def _choice(name: str, *choices: Value) -> Parameter:
    return Parameter.choice(name, choices)


_NUMBER_OF_TREES = _integer("n_estimators", 8, 128)
_SHARE_OF_FEATURES = _float("max_features", 0.05, 1.0, log=False)
_TREE = (
    _integer("max_depth", 1, 50),
    _integer("min_samples_split", 2, 128),
    _integer("min_samples_leaf", 1, 20),
    _SHARE_OF_FEATURES,
)
_FOREST = (_NUMBER_OF_TREES, *_TREE)
_BOOSTING = (
    _float("learning_rate", 0.01, 1.0),
    _NUMBER_OF_TREES,
    _integer("max_depth", 1, 10),
    _integer("min_samples_leaf", 1, 20),
    _float("subsample", 0.1, 1.0, log=False),
    _SHARE_OF_FEATURES,
)
_HISTOGRAM_BOOSTING = (
    _float("learning_rate", 0.01, 1.0),
    _integer("max_iter", 8, 128),
    _integer("max_leaf_nodes", 3, 256),
    _integer("min_samples_leaf", 1, 200),
    _float("l2_regularization", 1e-10, 1.0),
)
_SUPPORT_VECTORS = (_float("C", 2.0**-5, 2.0**15), _float("gamma", 2.0**-15, 2.0**3))
_NEIGHBOURS = (
    _integer(NEIGHBOURS_KEYWORD, 1, 100),
    _choice("weights", "uniform", "distance"),
    _choice("p", 1, 2),
)
_NETWORK = (
    _integer("hidden_layer_sizes", 16, 264),
    _choice("activation", "relu", "tanh"),
    _float("alpha", 1e-5, 1.0),
    _float("learning_rate_init", 1e-4, 0.5),
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
    "sklearn.LogisticRegression": (_float("C", 1e-4, 1e4), _integer("max_iter", 10, 1000)),
    "sklearn.MLPClassifier": _NETWORK,
    "sklearn.MLPRegressor": _NETWORK,
    "sklearn.RandomForestClassifier": (*_FOREST, _choice("bootstrap", True, False)),
    "sklearn.RandomForestRegressor": (*_FOREST, _choice("bootstrap", True, False)),
    "sklearn.Ridge": (_float("alpha", 1e-5, 1e5),),
    "sklearn.SVC": _SUPPORT_VECTORS,
    "sklearn.SVR": (*_SUPPORT_VECTORS, _float("epsilon", 1e-3, 1.0)),
    "xgboost.XGBClassifier": _XGBOOST,
    "xgboost.XGBRegressor": _XGBOOST,
}
"""Hyperparameters by package and class."""


def built_in_space(key: str, *, smallest_size: int, leave_out: Container[str] = ()) -> SearchSpace:
    """The search space of a well-known class, such as "sklearn.SVC".

    Args:
        key: Package and class.
        smallest_size: Rows of the smallest training set, which limit the number of neighbours.
        leave_out: Names of hyperparameters that are left out.

    Raises:
        ExperimentError: There is no search space for this class.
    """
    if key not in SPACES:
        # Keys are PACKAGE.CLASS.
        classes = ", ".join(name.partition(".")[2] for name in SPACES)
        raise ExperimentError(
            f"there is no built-in search space for {key}, only for {classes}; write one to a file "
            f"and give it with --space FILE. {_HOW_TO}"
        )

    parameters = []
    for parameter in SPACES[key]:  # the hyperparameters of this class
        if parameter.name in leave_out:
            continue
        if parameter.name == NEIGHBOURS_KEYWORD:
            # A row has no more neighbours than there are rows, whatever the range says.
            most_neighbours = min(int(parameter.upper), smallest_size)
            parameters.append(_integer(NEIGHBOURS_KEYWORD, 1, most_neighbours))
        else:
            parameters.append(parameter)
    return SearchSpace(parameters)


def read_space(path: Path) -> SearchSpace:
    """Read a search space from a file, in ConfigSpace's JSON."""
    try:
        return SearchSpace.from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        # The text of a LookupError, for example, is only the missing key: `repr` adds the type.
        has_message = isinstance(error, OSError | ValueError)
        reason = str(error) if has_message else repr(error)
        raise InvalidSpaceError(f"no search space in {path}: {reason}. {_HOW_TO}") from error
