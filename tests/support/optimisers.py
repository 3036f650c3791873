"""Other people's optimisers, which every process can import."""

import numpy as np
from optuna.samplers import TPESampler

from hpobench_ordered._typing import Config
from hpobench_ordered.space import SearchSpace


class Sampling:
    """Draws at random, and nothing else."""

    def __init__(self, space: SearchSpace, rng: np.random.Generator) -> None:
        self.space = space
        self.rng = rng

    def ask(self) -> Config:
        return self.space.sample(self.rng)

    def tell(self, config: Config, loss: float) -> None:
        pass


def pair(space, rng, budget):
    """An optimiser of two functions, ask and tell.

    The first half of its trials is random; the others are close to the best configuration so far.
    """
    results: list[tuple[float, Config]] = []

    def ask() -> Config:
        """Suggest a random configuration, or later a neighbour of the best one."""
        if len(results) < budget / 2:
            return space.sample(rng)
        _, best_config = min(results, key=lambda result: result[0])
        unit = space.encode(space.values([best_config]))
        # Inactive hyperparameters are NaN; should one become active, it starts in the middle.
        unit = np.where(np.isnan(unit), 0.5, unit)
        neighbour = np.clip(unit + rng.normal(0, 0.01, unit.shape), 0, 1)
        return space.configs(space.decode(neighbour))[0]

    def tell(config: Config, loss: float) -> None:
        results.append((loss, config))

    return ask, tell


def tpe_at_once(seed: int) -> TPESampler:
    """TPE that models after three trials."""
    return TPESampler(seed=seed, n_startup_trials=3)
