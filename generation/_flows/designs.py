"""Configurations that the learners of the OpenML flows are trained with: Sobol sequences.

Notation:
    n   number of configurations
"""

from typing import Any

import numpy as np

from hpobench_ordered._typing import Config, FloatArray, IntArray
from hpobench_ordered.space import SearchSpace

ROUND_COUNTS = 4
"""Numbers of rounds that one boosting is read at."""
LINEAR_PART = 0.2
"""Share of the boostings with linear models, which have only four hyperparameters."""
ROUNDS = "rounds"
"""Key of the numbers of rounds in a boosting's configuration, instead of nrounds."""


def svm_design(space: SearchSpace, n: int, seed: int, task: str) -> list[Config]:
    """A space-filling design; a smaller n gives the first configurations."""
    points = sobol(space.dimension, n, np.random.default_rng([seed, int(task)]))
    return space.configs(space.decode(space.canonical(points)))


def xgboost_design(space: SearchSpace, n: int, seed: int, task: str) -> list[dict[str, Any]]:
    """A space-filling design, with four numbers of rounds in place of nrounds.

    A fifth have linear models. The largest number of rounds is uniform on the range of nrounds, the
    others are log-uniform below it. A smaller n gives the first configurations.
    """
    dimension = space.dimension + ROUND_COUNTS - 1
    points = sobol(dimension, n, np.random.default_rng([seed, int(task)]))
    unit, below = points[:, : space.dimension], points[:, space.dimension :]
    booster = space.names.index("booster")
    choices = space["booster"].choices
    linear = unit[:, booster] >= 1 - LINEAR_PART
    index = np.where(linear, choices.index("gblinear"), choices.index("gbtree"))
    unit[:, booster] = (index + 0.5) / len(choices)
    values = space.decode(space.canonical(unit))
    largest = values[:, space.names.index("nrounds")]
    rounds = _round_counts(largest, below, int(space["nrounds"].lower))
    return [
        {name: value for name, value in config.items() if name != "nrounds"} | {ROUNDS: counts}
        for config, counts in zip(space.configs(values), rounds.tolist(), strict=True)
    ]


def _round_counts(largest: FloatArray, below: FloatArray, lower: int) -> IntArray:
    """Distinct ascending numbers of rounds, (n, 4), from `lower` to `largest`, (n,).

    `below`, (n, 3), in [0, 1], places the first three; `largest` is raised if there is no room for
    them.
    """
    others = below.shape[1]
    top = np.maximum(largest, lower + others)[:, None]
    scaled = np.floor(lower * (top / lower) ** np.sort(below, axis=1))
    for j in range(1, others):
        scaled[:, j] = np.maximum(scaled[:, j], scaled[:, j - 1] + 1)
    counts = np.concatenate([scaled, top], axis=1)
    for j in reversed(range(others)):
        counts[:, j] = np.minimum(counts[:, j], counts[:, j + 1] - 1)
    return counts.astype(np.int64)


def sobol(dimension: int, n: int, rng: np.random.Generator) -> FloatArray:
    """First n points of a scrambled Sobol sequence in the unit cube, shape (n, dimension)."""
    from scipy.stats.qmc import Sobol

    points: FloatArray = Sobol(dimension, rng=rng).random_base2(max(n - 1, 0).bit_length())[:n]
    return points
