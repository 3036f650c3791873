"""The plan of trainings of a retraining benchmark.

Notation:
    n, d    configurations, hyperparameters
    T       tasks
    S       seeds
    m       configurations that are trained with every seed
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.generation._retrain.training import SEED, RetrainTrainer
from hpobench_ordered.generation._training import Job
from hpobench_ordered.space import SearchSpace

REPEATED = 32
"""Number of configurations with a second seed if the others have one."""


@dataclass(frozen=True)
class RetrainPlan:
    """Trainings of n configurations on every task."""

    trainer: RetrainTrainer
    space: SearchSpace
    values: FloatArray
    seed: int
    averaged: int = 1

    @classmethod
    def drawn(
        cls,
        trainer: RetrainTrainer,
        space: SearchSpace,
        *,
        configurations: int,
        seed: int,
        averaged: int = 1,
    ) -> Self:
        """Draw the configurations."""
        drawn = space.sample_unit(np.random.default_rng(seed), configurations)
        return cls(trainer, space, space.decode(drawn), seed, averaged)

    @property
    def repeated(self) -> int:
        """Number m of configurations that are trained with every seed, from the first on."""
        if self.averaged > 1:
            return len(self.values)
        return min(REPEATED, len(self.values)) if SEED in self.trainer.model.fixed else 0

    def jobs(self) -> list[Job]:
        """All trainings: every configuration, then the first m with each further seed."""
        configs = self.space.configs(self.values)
        again = range(self.seed + 1, self.seed + max(self.averaged, 2))
        return [
            *(Job(str(self.seed), config) for config in configs),
            *(Job(str(seed), config) for seed in again for config in configs[: self.repeated]),
        ]
