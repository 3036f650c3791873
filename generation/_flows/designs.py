"""Configurations that the learners of the OpenML flows are trained with: Sobol sequences.

Notation:
    n   number of configurations
"""

from typing import Any

import numpy as np

from hpobench_ordered._typing import Config, FloatArray, IntArray
from hpobench_ordered.space import SearchSpace

COUNTS_PER_BOOSTING = 4
"""Numbers of rounds that one boosting is read at."""
LINEAR_SHARE = 0.2
"""Share of the boostings with linear models, which have only four hyperparameters."""
ROUNDS_KEY = "rounds"
"""Key of the numbers of rounds in a boosting's configuration, instead of nrounds."""


def design_svm(space: SearchSpace, n: int, seed: int, task: str) -> list[Config]:
    """Draw n configurations that fill the search space evenly, by seed and task.

    A smaller n gives the first of them.
    """
    rng = np.random.default_rng([seed, int(task)])  # tasks have numbers as names
    points = draw_sobol(space.dimension, n, rng)
    unit_values = space.canonical(points)  # without values of inactive hyperparameters
    return space.configs(space.decode(unit_values))


def design_xgboost(space: SearchSpace, n: int, seed: int, task: str) -> list[dict[str, Any]]:
    """Draw n configurations that fill the search space, with several numbers of rounds each.

    Instead of `nrounds`, a configuration has the key "rounds" with four ascending numbers. The
    largest is uniform on the range of nrounds, the others are log-uniform below it. A fifth of the
    configurations have linear models. They depend on seed and task; a smaller n gives the first of
    them.
    """
    # After the hyperparameters, a point has a coordinate for each of the smaller numbers of rounds.
    dimension = space.dimension + COUNTS_PER_BOOSTING - 1
    points = draw_sobol(dimension, n, np.random.default_rng([seed, int(task)]))
    unit_values = points[:, : space.dimension]
    places_of_smaller_counts = points[:, space.dimension :]

    booster_column = space.names.index("booster")
    unit_values[:, booster_column] = _choose_booster(space, unit_values[:, booster_column])
    values = space.decode(space.canonical(unit_values))

    counts = _choose_round_counts(
        largest=values[:, space.names.index("nrounds")],
        places=places_of_smaller_counts,
        lower=int(space["nrounds"].lower),
    )
    configs: list[dict[str, Any]] = []
    for config, counts_of_config in zip(space.configs(values), counts.tolist(), strict=True):
        others = {name: value for name, value in config.items() if name != "nrounds"}
        configs.append({**others, ROUNDS_KEY: counts_of_config})
    return configs


def _choose_booster(space: SearchSpace, coordinates: FloatArray) -> FloatArray:
    """Choose linear models for the share `LINEAR_SHARE` of configurations, and trees for the rest.

    Args:
        space: The search space.
        coordinates: Uniform random numbers, (n,); the largest stand for linear models.

    Returns:
        The coded boosters in the unit interval, (n,), which the choices share equally; each is in
        the middle of its choice's part.
    """
    choices = space["booster"].choices
    is_linear = coordinates >= 1 - LINEAR_SHARE
    booster = np.where(is_linear, choices.index("gblinear"), choices.index("gbtree"))
    return (booster + 0.5) / len(choices)


def _choose_round_counts(largest: FloatArray, places: FloatArray, lower: int) -> IntArray:
    """Choose four distinct, ascending numbers of rounds for each of n boostings, (n, 4).

    Args:
        largest: The last number of each, (n,); raised if there is no room for the others below.
        places: Where the first three lie between `lower` and `largest`, on a log scale from 0 to 1,
            in any order, (n, 3).
        lower: The smallest possible number.
    """
    n_smaller = places.shape[1]
    largest = np.maximum(largest, lower + n_smaller)[:, None]
    # Log-uniform: place 0 gives `lower`, place 1 gives `largest`.
    ascending_places = np.sort(places, axis=1)
    smaller = np.floor(lower * (largest / lower) ** ascending_places)

    # Rounding may make some equal: move each above the one before, then below the one after.
    for column in range(1, n_smaller):
        smaller[:, column] = np.maximum(smaller[:, column], smaller[:, column - 1] + 1)
    counts = np.concatenate([smaller, largest], axis=1)
    for column in reversed(range(n_smaller)):
        counts[:, column] = np.minimum(counts[:, column], counts[:, column + 1] - 1)
    return counts.astype(np.int64)


def draw_sobol(dimension: int, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw the first n points of a scrambled Sobol sequence in the unit cube, (n, dimension).

    The sequence is balanced when its length is a power of two, so the next such number of points
    is made.
    """
    from scipy.stats.qmc import Sobol

    exponent = max(n - 1, 0).bit_length()  # the smallest with 2^exponent >= n
    points: FloatArray = Sobol(dimension, rng=rng).random_base2(exponent)
    return points[:n]
