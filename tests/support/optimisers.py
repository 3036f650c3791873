"""Other people's optimisers, which every process can import."""

import numpy as np
from optuna.samplers import TPESampler

from hpobench_ordered._typing import Config
from hpobench_ordered.space import SearchSpace


class Sampling:
    """Draws at random, and nothing else."""

    def __init__(self, space: SearchSpace, rng: np.random.Generator) -> None:
        self.space, self.rng = space, rng

    def ask(self) -> Config:
        return self.space.sample(self.rng)

    def tell(self, config: Config, loss: float) -> None:
        pass


def pair(space, rng, budget):
    """A pair of functions; the later half of the trials stays around the best of the first."""
    best: list[tuple[float, Config]] = []

    def ask() -> Config:
        if len(best) < budget / 2:
            return space.sample(rng)
        near = space.encode(space.values([min(best, key=lambda b: b[0])[1]]))
        moved = np.where(np.isnan(near), 0.5, near) + rng.normal(0, 0.01, near.shape)
        return space.configs(space.decode(np.clip(moved, 0, 1)))[0]

    return ask, lambda config, loss: best.append((loss, config))


def tpe_at_once(seed: int) -> TPESampler:
    """TPE that models after three trials."""
    return TPESampler(seed=seed, n_startup_trials=3)
