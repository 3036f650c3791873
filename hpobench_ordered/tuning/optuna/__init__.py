"""Optuna's samplers as methods, and methods as Optuna's samplers. Needs the extra `optuna`."""

from hpobench_ordered.data.extras import import_extra

import_extra("optuna", package="optuna", extra="optuna", purpose="an adapter for Optuna")

from hpobench_ordered.tuning.optuna.methods import OptunaMethod, optuna_method  # noqa: E402
from hpobench_ordered.tuning.optuna.samplers import OptunaSampler  # noqa: E402

__all__ = [
    "OptunaMethod",
    "OptunaSampler",
    "optuna_method",
]
