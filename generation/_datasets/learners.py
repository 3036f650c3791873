"""The ten learners of the benchmarks datasets-LEARNER, and their search spaces.

Hyperparameters have the names of scikit-learn and XGBoost, except for those of preprocessing. The
ranges are those of common guides, which each space names. Trees, rounds and epochs are fewer than
in the guides, as data sets have at most 1500 rows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hpobench_ordered.data.extras import import_extra
from hpobench_ordered.space import SearchSpace
from hpobench_ordered.space.conditions import Compare, Comparison
from hpobench_ordered.space.parameters import Parameter

NO_WEIGHTS = "none"
"""Choice of `class_weight` by which all rows count equally."""
SVM_ITERATIONS = 20_000
"""Most iterations of the solver of a support vector machine, less than a tenth of a second."""
QUANTILES = 100
"""Number of quantiles of the scaling "quantile", which makes inputs normal."""


@dataclass(frozen=True)
class Learner:
    """A learner and its search space, whose default is the estimator's own.

    Attributes:
        space: The search space.
        make_estimator: Makes an estimator, not fitted yet, of a configuration and a seed.
        needs_scaling: Whether inputs are standardised before the estimator gets them.
        package: The package on PyPI that has the estimator.
    """

    space: SearchSpace
    make_estimator: Callable[[Mapping[str, Any], int], Any]
    needs_scaling: bool = False
    package: str = "scikit-learn"

    @property
    def identity(self) -> Mapping[str, Any]:
        """What determines an estimator besides configuration and seed: versions of packages."""
        versions = {"scikit-learn": _import("sklearn").__version__}
        if self.package != "scikit-learn":
            versions[self.package] = _import(self.package, self.package).__version__
        return versions


def _import(module: str, package: str = "scikit-learn") -> Any:
    """Import a module of a learner; an error says how to install its package."""
    return import_extra(module, package=package, extra="train", purpose="training on data sets")


def _weights() -> Parameter:
    """Make the hyperparameter `class_weight`: how much the rows of each class count."""
    return Parameter.choice("class_weight", (NO_WEIGHTS, "balanced"))


def _scaling() -> Parameter:
    """Make the hyperparameter `scaling`: how each input is scaled."""
    return Parameter.choice(
        "scaling", ("none", "standard", "minmax", "quantile"), default="standard"
    )


def _variance() -> Parameter:
    """Make the hyperparameter `variance`: how much of it the principal components keep."""
    return Parameter.number("variance", 0.5, 0.999, default=0.999)


def _when(parameters: Sequence[Parameter], parent: str, *choices: str | bool) -> Compare:
    """Make the condition that a hyperparameter, the parent, has one of some choices."""
    names = [parameter.name for parameter in parameters]
    column = names.index(parent)
    codes = tuple(parameters[column].code(choice) for choice in choices)
    return Compare(column, Comparison.IN, codes)


def _convert_weights(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration whose `class_weight` is what scikit-learn takes."""
    class_weight = config["class_weight"]
    return {**config, "class_weight": None if class_weight == NO_WEIGHTS else class_weight}


def _make_pipeline(config: Mapping[str, Any], estimator: Any) -> Any:
    """Make a pipeline that scales inputs, reduces them, and passes them to an estimator.

    Args:
        config: The configuration, of which `scaling` and `variance` are used.
        estimator: The last step.
    """
    preprocessing = _import("sklearn.preprocessing")
    scalers = {
        "none": "passthrough",
        "standard": preprocessing.StandardScaler(),
        "minmax": preprocessing.MinMaxScaler(),
        "quantile": preprocessing.QuantileTransformer(
            n_quantiles=QUANTILES, output_distribution="normal", random_state=0
        ),
    }
    reducer = _import("sklearn.decomposition").PCA(config["variance"], svd_solver="full")
    make_pipeline = _import("sklearn.pipeline").make_pipeline
    return make_pipeline(scalers[config["scaling"]], reducer, estimator)


def _make_svm_space() -> SearchSpace:
    """Make the space of a support vector machine (Hsu, Chang and Lin 2003, section 3.2)."""
    parameters = [
        Parameter.choice("kernel", ("linear", "rbf", "poly", "sigmoid"), default="rbf"),
        Parameter.number("C", 2**-5, 2**10, log=True, default=1.0),
        Parameter.number("gamma", 2**-15, 2**3, log=True, default=2**-4),
        Parameter.number("degree", 2, 5, integer=True, default=3),
        Parameter.number("coef0", 0, 1, default=0.0),
        _weights(),
    ]
    return SearchSpace(
        parameters,
        conditions={
            "gamma": _when(parameters, "kernel", "rbf", "poly", "sigmoid"),
            "degree": _when(parameters, "kernel", "poly"),
            "coef0": _when(parameters, "kernel", "poly", "sigmoid"),
        },
    )


def _make_svm(config: Mapping[str, Any], seed: int) -> Any:
    """Make a support vector machine, whose solver stops early where it does not converge."""
    keywords = _convert_weights(config)
    return _import("sklearn.svm").SVC(**keywords, max_iter=SVM_ITERATIONS, random_state=seed)


def _make_logistic_space() -> SearchSpace:
    """Make the space of elastic-net logistic regression by stochastic gradients.

    Ranges are those of auto-sklearn's "sgd" (Feurer et al. 2015), with a number of epochs.
    """
    parameters = [
        Parameter.number("alpha", 1e-7, 0.1, log=True, default=1e-4),
        Parameter.number("l1_ratio", 0, 1, default=0.15),
        Parameter.number("max_iter", 4, 64, log=True, integer=True, default=64),
        Parameter.choice("learning_rate", ("optimal", "invscaling", "constant")),
        Parameter.number("eta0", 1e-5, 0.1, log=True, default=0.01),
        Parameter.number("power_t", 0.01, 1, default=0.5),
        _weights(),
    ]
    return SearchSpace(
        parameters,
        conditions={
            "eta0": _when(parameters, "learning_rate", "invscaling", "constant"),
            "power_t": _when(parameters, "learning_rate", "invscaling"),
        },
    )


def _make_logistic(config: Mapping[str, Any], seed: int) -> Any:
    """Make a logistic regression that is trained for a fixed number of epochs."""
    return _import("sklearn.linear_model").SGDClassifier(
        **_convert_weights(config),
        loss="log_loss",
        penalty="elasticnet",
        tol=None,  # so that it does not stop before `max_iter` epochs
        random_state=seed,
    )


def _make_neighbours_space() -> SearchSpace:
    """Make the space of k nearest neighbours: auto-sklearn's, with all Minkowski distances."""
    return SearchSpace(
        [
            Parameter.number("n_neighbors", 1, 100, log=True, integer=True, default=5),
            Parameter.choice("weights", ("uniform", "distance")),
            Parameter.number("p", 1, 5, default=2.0),
            _scaling(),
            _variance(),
        ]
    )


def _make_neighbours(config: Mapping[str, Any], seed: int) -> Any:
    """Make k nearest neighbours of scaled inputs; nothing in them is random."""
    neighbours = _import("sklearn.neighbors").KNeighborsClassifier(
        n_neighbors=config["n_neighbors"], weights=config["weights"], p=config["p"]
    )
    return _make_pipeline(config, neighbours)


def _make_tree_parameters(*, max_features: float) -> list[Parameter]:
    """Make the hyperparameters that single trees and forests share.

    Ranges are those of Mantovani et al. (2018), "An empirical study on hyperparameter tuning of
    decision trees", and of Probst, Wright and Boulesteix (2019) for forests.

    Args:
        max_features: Default share of the inputs that a split chooses among.
    """
    return [
        Parameter.choice("criterion", ("gini", "entropy")),
        Parameter.number("max_depth", 1, 30, log=True, integer=True, default=30),
        Parameter.number("min_samples_split", 2, 64, log=True, integer=True, default=2),
        Parameter.number("min_samples_leaf", 1, 64, log=True, integer=True, default=1),
        Parameter.number("max_features", 0.05, 1, default=max_features),
        _weights(),
    ]


def _make_tree_space() -> SearchSpace:
    """Make the space of a decision tree."""
    return SearchSpace(
        [
            *_make_tree_parameters(max_features=1.0),
            Parameter.number("ccp_alpha", 1e-5, 0.1, log=True, default=1e-5),
            Parameter.choice("splitter", ("best", "random")),
        ]
    )


def _make_tree(config: Mapping[str, Any], seed: int) -> Any:
    """Make a decision tree."""
    return _import("sklearn.tree").DecisionTreeClassifier(
        **_convert_weights(config), random_state=seed
    )


def _make_forest_space(*, bootstrap: bool) -> SearchSpace:
    """Make the space of a random forest or of extremely randomised trees.

    Args:
        bootstrap: Whether trees are fitted to bootstrap samples by default.
    """
    parameters = [
        *_make_tree_parameters(max_features=0.3),
        Parameter.number("n_estimators", 8, 128, log=True, integer=True, default=100),
        Parameter.choice("bootstrap", (True, False), default=bootstrap),
        Parameter.number("max_samples", 0.1, 1, default=1.0),
    ]
    return SearchSpace(parameters, conditions={"max_samples": _when(parameters, "bootstrap", True)})


def _make_forest(config: Mapping[str, Any], seed: int) -> Any:
    """Make a random forest."""
    return _import("sklearn.ensemble").RandomForestClassifier(
        **_convert_weights(config), random_state=seed
    )


def _make_extra_trees(config: Mapping[str, Any], seed: int) -> Any:
    """Make extremely randomised trees."""
    return _import("sklearn.ensemble").ExtraTreesClassifier(
        **_convert_weights(config), random_state=seed
    )


def _make_boosting_space() -> SearchSpace:
    """Make the space of histogram gradient boosting (LightGBM's guide, "Parameters Tuning")."""
    return SearchSpace(
        [
            Parameter.number("learning_rate", 0.01, 1, log=True, default=0.1),
            Parameter.number("max_iter", 8, 128, log=True, integer=True, default=100),
            Parameter.number("max_leaf_nodes", 2, 64, log=True, integer=True, default=31),
            Parameter.number("min_samples_leaf", 1, 128, log=True, integer=True, default=20),
            Parameter.number("l2_regularization", 1e-6, 1e3, log=True, default=1e-6),
            Parameter.number("max_features", 0.1, 1, default=1.0),
            Parameter.number("max_bins", 4, 255, log=True, integer=True, default=255),
            _weights(),
        ]
    )


def _make_boosting(config: Mapping[str, Any], seed: int) -> Any:
    """Make histogram gradient boosting that makes all its rounds."""
    return _import("sklearn.ensemble").HistGradientBoostingClassifier(
        **_convert_weights(config), early_stopping=False, random_state=seed
    )


def _make_xgboost_space() -> SearchSpace:
    """Make the space of XGBoost (Probst, Boulesteix and Bischl 2019, "Tunability", table 1)."""
    return SearchSpace(
        [
            Parameter.number("learning_rate", 0.01, 1, log=True, default=0.3),
            Parameter.number("n_estimators", 8, 256, log=True, integer=True, default=100),
            Parameter.number("max_depth", 1, 15, log=True, integer=True, default=6),
            Parameter.number("min_child_weight", 1, 128, log=True, default=1.0),
            Parameter.number("subsample", 0.1, 1, default=1.0),
            Parameter.number("colsample_bytree", 0.1, 1, default=1.0),
            Parameter.number("colsample_bylevel", 0.1, 1, default=1.0),
            Parameter.number("reg_lambda", 2**-10, 2**10, log=True, default=1.0),
            Parameter.number("reg_alpha", 2**-10, 2**10, log=True, default=2**-10),
        ]
    )


def _make_xgboost(config: Mapping[str, Any], seed: int) -> Any:
    """Make XGBoost with one thread."""
    return _import("xgboost", "xgboost").XGBClassifier(
        **config, tree_method="hist", max_bin=64, n_jobs=1, random_state=seed
    )


def _make_network_space() -> SearchSpace:
    """Make the space of a multilayer perceptron: auto-sklearn's, with layers of equal size."""
    parameters = [
        Parameter.number("layers", 1, 3, integer=True, default=1),
        Parameter.number("units", 8, 128, log=True, integer=True, default=100),
        Parameter.choice("activation", ("relu", "tanh")),
        Parameter.number("alpha", 1e-7, 1, log=True, default=1e-4),
        Parameter.number("learning_rate_init", 1e-4, 0.1, log=True, default=1e-3),
        Parameter.number("batch_size", 16, 256, log=True, integer=True, default=200),
        Parameter.number("max_iter", 4, 64, log=True, integer=True, default=64),
        Parameter.choice("solver", ("adam", "sgd")),
        Parameter.number("momentum", 0, 0.99, default=0.9),
    ]
    return SearchSpace(parameters, conditions={"momentum": _when(parameters, "solver", "sgd")})


def _make_network(config: Mapping[str, Any], seed: int) -> Any:
    """Make a multilayer perceptron that is trained for a fixed number of epochs."""
    keywords = dict(config)
    layers = keywords.pop("layers")
    units = keywords.pop("units")
    return _import("sklearn.neural_network").MLPClassifier(
        hidden_layer_sizes=(units,) * layers,
        **keywords,
        n_iter_no_change=config["max_iter"],  # so that it does not stop before
        random_state=seed,
    )


def _make_gaussians_space() -> SearchSpace:
    """Make the space of Gaussian classifiers: discriminant analyses and naive Bayes.

    Their regularisation has the whole range that scikit-learn allows.
    """
    parameters = [
        Parameter.choice("model", ("linear", "quadratic", "naive")),
        Parameter.number("shrinkage", 0, 1, default=0.0),
        Parameter.number("reg_param", 1e-4, 1, log=True, default=1e-4),
        Parameter.number("var_smoothing", 1e-9, 1, log=True, default=1e-9),
        _scaling(),
        _variance(),
    ]
    return SearchSpace(
        parameters,
        conditions={
            "shrinkage": _when(parameters, "model", "linear"),
            "reg_param": _when(parameters, "model", "quadratic"),
            "var_smoothing": _when(parameters, "model", "naive"),
        },
    )


def _make_gaussians(config: Mapping[str, Any], seed: int) -> Any:
    """Make a Gaussian classifier of scaled inputs; nothing in it is random."""
    discriminants = _import("sklearn.discriminant_analysis")
    if config["model"] == "linear":
        classifier = discriminants.LinearDiscriminantAnalysis(
            solver="lsqr", shrinkage=config["shrinkage"]
        )
    elif config["model"] == "quadratic":
        classifier = discriminants.QuadraticDiscriminantAnalysis(reg_param=config["reg_param"])
    else:
        classifier = _import("sklearn.naive_bayes").GaussianNB(
            var_smoothing=config["var_smoothing"]
        )
    return _make_pipeline(config, classifier)


LEARNERS: Mapping[str, Learner] = {
    "svm": Learner(_make_svm_space(), _make_svm, needs_scaling=True),
    "logistic": Learner(_make_logistic_space(), _make_logistic, needs_scaling=True),
    "neighbours": Learner(_make_neighbours_space(), _make_neighbours),
    "tree": Learner(_make_tree_space(), _make_tree),
    "forest": Learner(_make_forest_space(bootstrap=True), _make_forest),
    "extra-trees": Learner(_make_forest_space(bootstrap=False), _make_extra_trees),
    "boosting": Learner(_make_boosting_space(), _make_boosting),
    "xgboost": Learner(_make_xgboost_space(), _make_xgboost, package="xgboost"),
    "network": Learner(_make_network_space(), _make_network, needs_scaling=True),
    "gaussians": Learner(_make_gaussians_space(), _make_gaussians),
}
