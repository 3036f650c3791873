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
    """Compute the centre of an earlier task's losses: about their median over the space.

    An optimiser makes many evaluations where losses are nearly the best, so that the plain median
    would be too low. Therefore each evaluation has a weight: the volume around it, which is the
    distance to the nearest other evaluation to the power of d. Of more than `MAX_WEIGHTED`
    evaluations all have the same weight; an optimiser seldom makes so many. If the evaluations are
    random, the centre is their median, apart from chance.

    Args:
        task: Finite evaluations of the task.

    Returns:
        The smallest loss such that those up to it have half of the weight.
    """
    order = np.argsort(task.losses, kind="stable")
    weight_up_to = np.cumsum(weigh_by_volume(task)[order])
    row = np.searchsorted(weight_up_to, weight_up_to[-1] / 2.0)
    return float(task.losses[order[row]])


def weigh_by_volume(task: Evaluations) -> FloatArray:
    """Weigh evaluations by the volume around them, (n,); see `compute_centre`.

    Distances are Euclidean, of features. The largest weight is 1.

    Args:
        task: Evaluations of one task.
    """
    from scipy.spatial import KDTree

    equal_weights = np.ones(len(task))
    has_others = len(task) > 1
    if not has_others or len(task) > MAX_WEIGHTED:
        return equal_weights
    space = task.space
    features = space.features(space.canonical(space.encode(task.values)))  # (n, p)
    # The nearest one is the configuration itself, the second one another.
    distances_to_second, _ = KDTree(features).query(features, k=[2])  # (n, 1)
    distances = distances_to_second[:, 0]
    largest = distances.max()
    if not largest:  # all are the same configuration
        return equal_weights
    # Divided by the largest first, so that powers do not underflow.
    weights: FloatArray = (distances / largest) ** space.dimension
    return weights


def compute_median(losses: FloatArray) -> float:
    """Compute the median of finite losses (n,); 0 if there are none."""
    if not len(losses):
        return 0.0
    # Halved first, as the mean of two losses in the middle may overflow.
    return 2.0 * float(np.median(losses / 2.0))


def compute_units(losses: Sequence[FloatArray], centres: Sequence[float]) -> list[float]:
    """Compute the unit of each task's losses: half the distance of the best from the centre.

    If that is 0, the unit is the root mean square of half the distances of all losses from the
    centre. If all losses of a task are equal, its unit is the geometric mean of the other tasks'
    units, or 1 if the losses of each task are equal.

    Args:
        losses: Finite losses of each task, shape (n,).
        centres: The centre of each task's losses.
    """
    units = []
    for losses_of_task, centre in zip(losses, centres, strict=True):
        units.append(compute_unit(losses_of_task, centre))
    log_units = [math.log(unit) for unit in units if unit]  # 0 where all losses are equal
    typical_unit = math.exp(sum(log_units) / len(log_units)) if log_units else 1.0
    return [unit or typical_unit for unit in units]


def compute_unit(losses: FloatArray, centre: float) -> float:
    """Compute the unit of one task's losses (n,): half the distance of the best from the centre.

    If that is 0, it is the root mean square of half the distances of all losses from the centre,
    which is 0 if all are equal.
    """
    # Losses are halved first: the difference of two finite losses may overflow, that of halves not.
    half_distances = np.abs(losses / 2.0 - centre / 2.0)
    distance_of_best = float(half_distances[losses.argmin()])
    largest = float(half_distances.max())
    if distance_of_best or not largest:
        return distance_of_best
    # Divided by the largest first, so that squares neither overflow nor underflow.
    return largest * math.sqrt(np.mean((half_distances / largest) ** 2))


def standardise_robustly(losses: FloatArray, centre: float, unit: float) -> FloatArray:
    """Subtract the centre from losses (n,), divide by twice the unit, and clip.

    Losses and centre are halved instead of doubling the unit, as the difference of two large losses
    may overflow. The result is between -`MAX_DISTANCE` and `MAX_DISTANCE`, so that a few bad losses
    do not dominate the model.
    """
    with np.errstate(over="ignore"):  # infinity is clipped
        y: FloatArray = (losses / 2.0 - centre / 2.0) / unit
    return np.clip(y, -MAX_DISTANCE, MAX_DISTANCE)
