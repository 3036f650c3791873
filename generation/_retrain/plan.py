"""The plan of trainings of a retraining benchmark.

Notation:
    n, d    configurations, hyperparameters
    T       tasks
    S       seeds
    m       configurations that are trained with every seed
"""

from dataclasses import dataclass

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.errors import ExperimentError
from hpobench_ordered.generation._custom.data import digest_of
from hpobench_ordered.generation._custom.model import Model
from hpobench_ordered.generation._custom.split import coded_target
from hpobench_ordered.generation._custom.training import Failures, Metric
from hpobench_ordered.generation._retrain.streams import Stream
from hpobench_ordered.generation._retrain.training import SEED, RetrainTrainer
from hpobench_ordered.generation._training import Job
from hpobench_ordered.space import SearchSpace

REPEATED = 32
"""Configurations that are trained with a second seed where the others are not."""


@dataclass(frozen=True)
class RetrainPlan:
    """Trainings of n configurations on every task."""

    trainer: RetrainTrainer
    space: SearchSpace
    values: FloatArray
    seed: int
    averaged: int = 1

    @property
    def repeated(self) -> int:
        """Number m of configurations that are trained with every seed, the first ones."""
        if self.averaged > 1:
            return len(self.values)
        return min(REPEATED, len(self.values)) if SEED in self.trainer.model.fixed else 0

    def jobs(self) -> list[Job]:
        """All trainings: every configuration, then the first m again, seed by seed."""
        configs = self.space.configs(self.values)
        again = range(self.seed + 1, self.seed + max(self.averaged, 2))
        return [
            *(Job(str(self.seed), config) for config in configs),
            *(Job(str(seed), config) for seed in again for config in configs[: self.repeated]),
        ]


def retrain_plan(
    stream: Stream,
    model: Model,
    space: SearchSpace,
    metric: Metric,
    *,
    longest: int,
    configurations: int,
    failures: Failures = Failures.STOP,
    seed: int,
    averaged: int = 1,
) -> RetrainPlan:
    """Draw the configurations and make their trainer."""
    if not 1 <= longest <= len(stream.names) - 2:
        raise ExperimentError(
            f"{stream.data.name} has {len(stream.names)} periods; with two to predict, a model is "
            f"trained on 1 to {max(len(stream.names) - 2, 0)} of them, got {longest}"
        )
    target, classes = coded_target(stream.data, metric.kind)
    digest = digest_of(stream.data.numbers, stream.data.categories, target)
    trainer = RetrainTrainer(stream, target, classes, digest, longest, model, metric, failures)
    drawn = space.sample_unit(np.random.default_rng(seed), configurations)
    return RetrainPlan(trainer, space, space.decode(drawn), seed, averaged)
