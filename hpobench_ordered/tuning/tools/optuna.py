"""Optuna's samplers, each with its defaults, and TPE after the best of earlier tasks."""

from optuna.samplers import GPSampler, TPESampler

from hpobench_ordered.data.extras import Extra
from hpobench_ordered.methods.wrapping.factory import SEED_LIMIT
from hpobench_ordered.methods.wrapping.optuna_method import OptunaMethod
from hpobench_ordered.tuning.tools.base import EXTRA, describe_method, list_best_configs

MOST_ENQUEUED = 10
"""Most configurations of earlier tasks that are tried first; TPE draws its first ten at random."""


class TPEBestFirst(OptunaMethod):
    """TPE in a study to which the best configurations of the last tasks were added first.

    It is what Optuna's users do when they tune a model again: `study.enqueue_trial`.
    """

    def prepare(self) -> None:
        """Start the study of the task, and enqueue."""
        self.start_study(TPESampler(seed=int(self.rng.integers(SEED_LIMIT))))
        for config in list_best_configs(self.history, MOST_ENQUEUED):
            self.enqueue(config)


TPE = describe_method(
    "optuna-tpe",
    TPESampler,
    packages=["optuna"],
    summary="Optuna's TPESampler, its default, on each task by itself.",
)
GP = describe_method(
    "optuna-gp",
    GPSampler,
    packages=["optuna", "torch"],
    summary="Optuna's GPSampler on each task by itself.",
    extras=(Extra(EXTRA, "torch", "torch"),),
)
TPE_BEST_FIRST = describe_method(
    "optuna-tpe-best-first",
    TPEBestFirst,
    packages=["optuna"],
    summary="Optuna's TPESampler; the best configurations of the last ten tasks are enqueued.",
    uses_history=True,
)
