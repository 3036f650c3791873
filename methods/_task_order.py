"""Whether the order of earlier tasks says anything, and what is best on average if it does not.

=======  ======  ==================================================================================
symbol   shape   meaning
=======  ======  ==================================================================================
t        scalar  earlier tasks
n        scalar  evaluations of one of them
m        scalar  candidates
p        scalar  features of a configuration
=======  ======  ==================================================================================
"""

from collections.abc import Sequence

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray

PERMUTATIONS = 99
"""The order of tasks is compared with this many random orders."""
NEIGHBOURS = 3
"""The predicted loss of a configuration is the mean loss of this many nearest evaluations."""


def compute_order_p_value(best_points: FloatArray, rng: np.random.Generator) -> float:
    """Compute the p-value of a permutation test whether the order of tasks matters.

    If it matters, the best configurations of successive tasks are close to each other: the path
    through the best configurations, from task to task, is shorter than in most other orders.

    Args:
        best_points: Features of the best configuration of each task, oldest first, shape (t, p).
        rng: Draws `PERMUTATIONS` random orders.

    Returns:
        Share of orders with a path that is not longer, among random ones and the actual one. It is
        low if the order matters.
    """
    from scipy.spatial.distance import cdist

    distances = cdist(best_points, best_points)
    actual_order = np.arange(len(best_points))
    actual_length = measure_path(distances, actual_order)
    random_lengths = [
        measure_path(distances, rng.permutation(actual_order)) for _ in range(PERMUTATIONS)
    ]
    not_longer = sum(length <= actual_length for length in random_lengths)
    return (1 + not_longer) / (1 + PERMUTATIONS)


def measure_path(distances: FloatArray, order: IntArray) -> float:
    """Measure the path through all tasks in an order, (t,), by their distances, (t, t)."""
    return float(distances[order[:-1], order[1:]].sum())


def find_best_on_average(
    candidates: FloatArray, points: Sequence[FloatArray], losses: Sequence[FloatArray]
) -> int:
    """Find the candidate with the lowest mean of the losses predicted on each task.

    Args:
        candidates: Features of candidates, shape (m, p).
        points: Features of the evaluated configurations of each task, shapes (n, p).
        losses: Their losses, on a scale that is common to all tasks, shapes (n,).

    Returns:
        Its row; the first of equally good ones.
    """
    predicted = [
        predict_from_neighbours(candidates, task_points, task_losses)
        for task_points, task_losses in zip(points, losses, strict=True)
    ]
    return int(np.mean(predicted, axis=0).argmin())


def predict_from_neighbours(
    candidates: FloatArray, points: FloatArray, losses: FloatArray
) -> FloatArray:
    """Predict losses (m,) of candidates (m, p): the mean of the `NEIGHBOURS` nearest evaluations.

    Args:
        candidates: Features of candidates.
        points: Features of evaluated configurations, shape (n, p).
        losses: Their losses, shape (n,).
    """
    from scipy.spatial import KDTree

    neighbours = min(NEIGHBOURS, len(points))
    _, nearest = KDTree(points).query(candidates, k=range(1, neighbours + 1))  # (m, neighbours)
    predicted: FloatArray = losses[nearest].mean(axis=1)
    return predicted
