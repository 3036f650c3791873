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
    """Compute the p-value of a permutation test of the hypothesis that task order says nothing.

    If the order matters, the best configurations of successive tasks are close to each other: the
    path through the best configurations, from task to task, is shorter than in most other orders.

    Args:
        best_points: Features of the best configuration of each task, oldest first, shape (t, p).
        rng: Draws `PERMUTATIONS` random orders.

    Returns:
        The share of orders whose path is not longer than that of the actual order, among the random
        orders and the actual one itself. It is low if the order matters.
    """
    from scipy.spatial.distance import cdist

    distances = cdist(best_points, best_points)  # of all pairs of tasks, (t, t)
    actual_order = np.arange(len(best_points))
    actual_length = compute_path_length(distances, actual_order)

    not_longer_count = 1  # the actual order
    for _ in range(PERMUTATIONS):
        random_order = rng.permutation(actual_order)
        if compute_path_length(distances, random_order) <= actual_length:
            not_longer_count += 1
    order_count = 1 + PERMUTATIONS
    return not_longer_count / order_count


def compute_path_length(distances: FloatArray, order: IntArray) -> float:
    """Compute the length of the path that visits all tasks in an order.

    Args:
        distances: Distances of all pairs of tasks, shape (t, t).
        order: Indices of the tasks in the order of the visits, shape (t,).
    """
    step_starts = order[:-1]
    step_ends = order[1:]
    return float(distances[step_starts, step_ends].sum())


def find_best_on_average(
    candidates: FloatArray, points: Sequence[FloatArray], losses: Sequence[FloatArray]
) -> int:
    """Find the candidate whose predicted loss is lowest on average over the tasks.

    Args:
        candidates: Features of candidates, shape (m, p).
        points: Features of the evaluated configurations of each task, shapes (n, p).
        losses: Their losses, on a scale that is common to all tasks, shapes (n,).

    Returns:
        The row of this candidate in `candidates`; the first of equally good ones.
    """
    predicted_losses = []  # of all candidates (m,), for each task
    for task_points, task_losses in zip(points, losses, strict=True):
        predicted_losses.append(predict_from_neighbours(candidates, task_points, task_losses))
    mean_over_tasks = np.mean(predicted_losses, axis=0)
    return int(mean_over_tasks.argmin())


def predict_from_neighbours(
    candidates: FloatArray, points: FloatArray, losses: FloatArray
) -> FloatArray:
    """Predict the loss of each candidate (m,): the mean over its `NEIGHBOURS` nearest evaluations.

    Args:
        candidates: Features of candidates, shape (m, p).
        points: Features of evaluated configurations, shape (n, p). If there are fewer than
            `NEIGHBOURS`, the mean is over all of them.
        losses: Their losses, shape (n,).
    """
    from scipy.spatial import KDTree

    neighbour_count = min(NEIGHBOURS, len(points))
    # Which neighbours to find: the nearest is number 1. As a range, since with the number k = 1 the
    # result would lack the second axis.
    neighbour_ranks = range(1, neighbour_count + 1)
    _, neighbour_rows = KDTree(points).query(candidates, k=neighbour_ranks)  # (m, neighbours)
    predicted: FloatArray = losses[neighbour_rows].mean(axis=1)
    return predicted
