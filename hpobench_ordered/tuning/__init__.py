"""Bring your own optimiser, and take the tasks and methods out.

In: an optimiser of another package, or of your own, among the methods of an experiment.

    hbo.run(benchmarks=["newsvendor"], methods=["bo", Mine])     # a class with ask() and tell()
    as_method_spec(functools.partial(Mine, fast=True), name="fast")
    hbo.run(benchmarks=["newsvendor"], methods=[optuna.samplers.TPESampler])
    as_method_spec(functools.partial(TPESampler, n_startup_trials=3), name="tpe-3")
    import_object("my_package.my_module:Mine"), import_object("folder/mine.py:Mine")

Out: the methods on a task of your own, without or with Optuna; the tasks as objectives of other
packages.

    tuner = hbo.optimiser(space=space, direction="minimize", history="tuning.db", task="2026-07")
    config = tuner.ask(); tuner.tell(config, objective(config))
    optuna.create_study(sampler=OptunaSampler("bo", space=space)).optimize(objective, n_trials=25)
    objective_function(task)                                     # dict -> loss
    optuna.create_study().optimize(optuna_objective(task), n_trials=25)
    config = suggest_config(trial, space)                        # in an objective of your own
    OptunaHubProblem(task)                                       # as the problems of OptunaHub
    space, target = configspace_problem(task)                    # for SMAC and the like

Earlier tuning, as the history of a method:

    read_history("old.csv", space, objective="error", direction="minimize", task="month")
    read_history("tuning.db", studies="churn-*"), read_history(studies)
    history_from_results("results/", method="bo", seed=0)
    record_history(history, "tuning.db")

Tuning an estimator of scikit-learn, each search starting from earlier ones:

    OrderedSearchCV(model, space, history="churn.db", task="2026-07").fit(X, y)

What uses Optuna or scikit-learn needs the extra `optuna` or `sklearn`, and imports it on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from hpobench_ordered.data.extras import OPTUNA, Extra, import_extra
from hpobench_ordered.methods.wrapping.factory import as_method_spec
from hpobench_ordered.methods.wrapping.importing import import_object
from hpobench_ordered.space.optuna_space import suggest_config
from hpobench_ordered.tuning.problems import (
    configspace_problem,
    objective_function,
    optuna_objective,
)
from hpobench_ordered.tuning.reading.read import read_history
from hpobench_ordered.tuning.reading.results import history_from_results

if TYPE_CHECKING:
    from hpobench_ordered.tuning.optuna_sampler import OptunaSampler
    from hpobench_ordered.tuning.optunahub_problem import OptunaHubProblem
    from hpobench_ordered.tuning.recording import record_history
    from hpobench_ordered.tuning.sklearn.search import OrderedSearchCV

__all__ = [
    "OptunaHubProblem",
    "OptunaSampler",
    "OrderedSearchCV",
    "as_method_spec",
    "configspace_problem",
    "history_from_results",
    "import_object",
    "objective_function",
    "optuna_objective",
    "read_history",
    "record_history",
    "suggest_config",
]


SKLEARN = Extra("sklearn", "scikit-learn", "sklearn.model_selection")

_MODULE_AND_EXTRA_OF_NAME = {
    "OptunaHubProblem": ("hpobench_ordered.tuning.optunahub_problem", OPTUNA),
    "OptunaSampler": ("hpobench_ordered.tuning.optuna_sampler", OPTUNA),
    "OrderedSearchCV": ("hpobench_ordered.tuning.sklearn.search", SKLEARN),
    "record_history": ("hpobench_ordered.tuning.recording", OPTUNA),
}
"""Names that are imported on first use: their modules, and what these need."""


def __getattr__(name: str) -> object:
    """Import a name when it is first used: Optuna and scikit-learn may not be installed.

    Python calls this for names that the module does not have.
    """
    if name not in _MODULE_AND_EXTRA_OF_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, extra = _MODULE_AND_EXTRA_OF_NAME[name]
    import_extra(extra.module, package=extra.package, extra=extra.name, purpose=name)
    return getattr(import_module(module), name)
