"""Where the best configurations of a task are, and how they move along the tasks.

Notation:
    n   number of configurations
    T   number of tasks
"""

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray


def best_indices(losses: FloatArray, count: int) -> NDArray[np.intp]:
    """Indices of the configurations with the lowest losses, best first; of equals the first.

    Args:
        losses: Losses on one task, shape (n,).
        count: How many.
    """
    return np.argsort(losses, kind="stable")[:count]


def drift(coordinate: FloatArray, losses: FloatArray, *, count: int) -> float:
    """Rank correlation of the tasks' order with where their best configurations are.

    Args:
        coordinate: One hyperparameter of every configuration, on its scale, shape (n,).
        losses: Losses on the tasks in order, shape (T, n).
        count: How many of the best configurations count, by the mean of their coordinates.

    Returns:
        Spearman's coefficient: 1 if the hyperparameter grows from task to task.
    """
    from scipy.stats import spearmanr

    centres = [coordinate[best_indices(row, count)].mean() for row in losses]
    return float(spearmanr(np.arange(len(centres)), centres).statistic)


def visible_indices(x: FloatArray, y: FloatArray, losses: FloatArray) -> NDArray[np.intp]:
    """Indices of what is seen from above: of each place (x, y) the lowest loss, the lowest last.

    Args:
        x: One hyperparameter of every configuration, shape (n,).
        y: Another, shape (n,).
        losses: Losses on one task, shape (n,).
    """
    order = np.argsort(losses, kind="stable")
    places = np.stack([x[order], y[order]], axis=1)
    _, first = np.unique(places, axis=0, return_index=True)
    return np.asarray(order[np.sort(first)[::-1]])
