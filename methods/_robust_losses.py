"""Losses of tasks, standardised by two robust numbers of each: a centre and a unit.

=======  ======  ==================================================================================
symbol   shape   meaning
=======  ======  ==================================================================================
n        scalar  evaluations of a task
d        scalar  hyperparameters
p        scalar  features of a configuration
=======  ======  ==================================================================================
"""

import math
from collections.abc import Sequence

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.data.history import Evaluations

MAX_DISTANCE = 1e6
"""Losses are clipped at this distance from the centre, in units."""
MAX_WEIGHTED = 500
"""If a task has more evaluations than this, all have the same weight."""


def compute_centre(task: Evaluations) -> float:
    """Compute the weighted median of a task's losses, an estimate of the median over the space.

    An optimiser makes many evaluations where losses are nearly the best, so that their plain median
    is lower than the median loss of configurations drawn at random from the space. Each evaluation
    is therefore weighted by the volume of the space around it (`weigh_by_volume`).

    Args:
        task: Finite evaluations of the task.

    Returns:
        The smallest loss of the task such that the evaluations with this loss or a lower one have
        at least half of the total weight.
    """
    ascending_rows = np.argsort(task.losses, kind="stable")
    ascending_losses = task.losses[ascending_rows]
    ascending_weights = weigh_by_volume(task)[ascending_rows]

    cumulative_weights = np.cumsum(ascending_weights)
    total_weight = cumulative_weights[-1]
    position_of_median = np.searchsorted(cumulative_weights, total_weight / 2.0)
    return float(ascending_losses[position_of_median])


def weigh_by_volume(task: Evaluations) -> FloatArray:
    """Weigh each of n evaluations by the volume of the search space around it, (n,).

    Where evaluations are dense, each stands for a small part of the space and has a low weight. The
    volume around an evaluation is taken to be its distance to the nearest other one, to the power
    of the number of hyperparameters. Weights are divided by the largest one.

    All weights are 1 if there is a single evaluation, if all configurations are the same, or if
    there are more than `MAX_WEIGHTED` evaluations: so many are seldom made by an optimiser.

    Args:
        task: Evaluations of one task.
    """
    from scipy.spatial import KDTree

    equal_weights = np.ones(len(task))
    if len(task) < 2 or len(task) > MAX_WEIGHTED:
        return equal_weights

    space = task.space
    unit = space.canonical(space.encode(task.values))  # points of the unit cube
    features = space.features(unit)  # (n, p)
    # `k=[2]` asks for the second nearest point alone, as the nearest one to each is itself.
    distances_to_second_nearest, _ = KDTree(features).query(features, k=[2])  # (n, 1)
    distances = distances_to_second_nearest[:, 0]
    largest_distance = distances.max()
    if largest_distance == 0.0:  # all are the same configuration
        return equal_weights

    # Divided by the largest before the power is computed, which could underflow to 0 otherwise.
    weights: FloatArray = (distances / largest_distance) ** space.dimension
    return weights


def compute_median(losses: FloatArray) -> float:
    """Compute the median of finite losses (n,); 0 if there are none."""
    if not len(losses):
        return 0.0
    # Halved first, as the mean of two losses in the middle may overflow.
    return 2.0 * float(np.median(losses / 2.0))


def compute_units(losses: Sequence[FloatArray], centres: Sequence[float]) -> list[float]:
    """Compute the unit in which each task's losses are measured from their centre.

    A task's own unit is that of `compute_unit`, which is 0 if all losses of the task are equal. The
    task then gets the geometric mean of the other tasks' units, or 1 if no task has a unit.

    Args:
        losses: Finite losses of each task, shape (n,).
        centres: The centre of each task's losses.

    Returns:
        A positive unit for each task.
    """
    own_units = []
    for losses_of_task, centre in zip(losses, centres, strict=True):
        own_units.append(compute_unit(losses_of_task, centre))

    positive_units = [unit for unit in own_units if unit > 0.0]
    substitute = compute_geometric_mean(positive_units) if positive_units else 1.0
    units = []
    for unit in own_units:
        units.append(unit if unit > 0.0 else substitute)
    return units


def compute_geometric_mean(values: Sequence[float]) -> float:
    """Compute the geometric mean of at least one positive value."""
    logarithms = [math.log(value) for value in values]
    return math.exp(sum(logarithms) / len(logarithms))


def compute_unit(losses: FloatArray, centre: float) -> float:
    """Compute the unit of one task's losses (n,): half the distance of the best from the centre.

    If the best loss is the centre itself, the unit is the root mean square of half the distances of
    all losses from the centre. It is 0 if all losses are equal to the centre.
    """
    # Losses are halved first: the difference of two finite losses may overflow, that of halves not.
    half_distances = np.abs(losses / 2.0 - centre / 2.0)
    half_distance_of_best = float(half_distances[losses.argmin()])
    if half_distance_of_best > 0.0:
        return half_distance_of_best

    largest = float(half_distances.max())
    if largest == 0.0:
        return 0.0
    # Divided by the largest first, so that squares neither overflow nor underflow.
    scaled_distances = half_distances / largest
    return largest * math.sqrt(np.mean(scaled_distances**2))


def standardise_robustly(losses: FloatArray, centre: float, unit: float) -> FloatArray:
    """Compute (loss - centre) / (2 unit) for each loss (n,), clipped at +-`MAX_DISTANCE`.

    Clipping keeps a few very bad losses from dominating the model.
    """
    # Losses and centre are halved instead of doubling the unit, as the difference of two large
    # losses may overflow.
    half_differences = losses / 2.0 - centre / 2.0
    with np.errstate(over="ignore"):  # a quotient that overflows is infinite, and then clipped
        standardised: FloatArray = half_differences / unit
    return np.clip(standardised, -MAX_DISTANCE, MAX_DISTANCE)
