"""Optuna's samplers, each with its defaults, and TPE after the best of earlier tasks."""

from optuna.samplers import BaseSampler, GPSampler, TPESampler

from hpobench_ordered.data.extras import Extra
from hpobench_ordered.experiment.user_methods._naming import SEED_LIMIT
from hpobench_ordered.tuning._optuna_log import quiet
from hpobench_ordered.tuning.optuna.methods import OptunaMethod
from hpobench_ordered.tuning.tools.base import EXTRA, best_configs, describe_method

MOST_ENQUEUED = 10
"""Most configurations of earlier tasks that are tried first; TPE draws its first ten at random."""


class OptunaTPE(OptunaMethod):
    """Optuna's default sampler."""

    def prepare(self) -> None:
        """Start the study of the task."""
        super().prepare()
        seed = int(self.rng.integers(SEED_LIMIT))
        with quiet():
            sampler = self.make_sampler(seed)
        self.start_study(sampler)

    def make_sampler(self, seed: int) -> BaseSampler:
        """Make the sampler, with its defaults."""
        return TPESampler(seed=seed)


class OptunaGP(OptunaTPE):
    """Optuna's Gaussian process, which needs PyTorch."""

    def make_sampler(self, seed: int) -> BaseSampler:
        """Make the sampler, with its defaults."""
        return GPSampler(seed=seed)


class OptunaTPEBestFirst(OptunaTPE):
    """TPE in a study to which the best configurations of the last tasks were added first.

    It is what Optuna's users do when they tune a model again: `study.enqueue_trial`.
    """

    def prepare(self) -> None:
        """Start the study of the task, and enqueue."""
        super().prepare()
        for config in best_configs(self.history, MOST_ENQUEUED):
            self.enqueue(config)


TPE = describe_method(
    "optuna-tpe",
    OptunaTPE,
    packages=["optuna"],
    summary="Optuna's TPESampler, its default, on each task by itself.",
)
GP = describe_method(
    "optuna-gp",
    OptunaGP,
    packages=["optuna", "torch"],
    summary="Optuna's GPSampler on each task by itself.",
    extras=(Extra(EXTRA, "torch", "torch"),),
)
TPE_BEST_FIRST = describe_method(
    "optuna-tpe-best-first",
    OptunaTPEBestFirst,
    packages=["optuna"],
    summary="Optuna's TPESampler; the best configurations of the last ten tasks are enqueued.",
    uses_history=True,
)
