"""The landscape of a task: which hyperparameters matter, and where losses are low.

Notation:
    n   number of configurations
    d   number of hyperparameters
    B   number of bins along a hyperparameter
    T   number of tasks

    u[i, j]  place of hyperparameter j of configuration i along its range, from 0 to 1
    r[i]     rank of the loss of configuration i, which outliers and monotone scales do not change
    b        a bin of the n configurations along a hyperparameter, of which n[b] lie in it

    share    sum over b of n[b] (mean of r in b - mean of r)^2
             / sum over i of (r[i] - mean of r)^2

The share is Fisher's correlation ratio: 0 for a hyperparameter that explains nothing by itself, 1
for one that explains everything. If configurations were chosen by a method instead of drawn at
random, it measures only association.
"""

import numpy as np
from numpy.typing import NDArray

from hpobench_ordered._typing import FloatArray

BINS = 8
WORST_ALIKE = 0.05
"""Share of the worst values that get the same colour, so that others can be distinguished."""


def explained_shares(places: FloatArray, losses: FloatArray, *, bins: int = BINS) -> FloatArray:
    """Share of the variance of ranked losses that each hyperparameter explains by itself.

    Args:
        places: u, shape (n, d); NaN where a hyperparameter is inactive, which is a bin of its own.
        losses: Losses on one task, shape (n,); infinite ones are the worst.
        bins: Number of bins B.

    Returns:
        The shares, shape (d,); 0 where all losses are the same.
    """
    from scipy.stats import rankdata

    ranks = rankdata(losses)
    centred = ranks - ranks.mean()
    total = float((centred**2).sum())
    inactive = np.isnan(places)
    bounded = np.clip(np.where(inactive, 0.0, places) * bins, 0, bins - 1).astype(np.int64)
    numbers = np.where(inactive, bins, bounded)
    shares = np.zeros(places.shape[1])
    for j, column in enumerate(numbers.T):
        counts = np.bincount(column, minlength=bins + 1)
        sums = np.bincount(column, weights=centred, minlength=bins + 1)
        between = float((sums[counts > 0] ** 2 / counts[counts > 0]).sum())
        shares[j] = between / total if total > 0 else 0.0
    return shares


def lowest_in_cells(
    x: FloatArray, y: FloatArray, losses: FloatArray, *, shape: tuple[int, int]
) -> FloatArray:
    """Lowest loss in every cell of a plane; an empty cell gets that of the nearest one.

    Args:
        x: Places along the horizontal axis, from 0 to 1, shape (n,), n above 0.
        y: Places along the vertical axis, shape (n,).
        losses: Losses on one task, shape (n,).
        shape: Number of rows and of columns.

    Returns:
        The losses, shape `shape`, the first row at y = 0.
    """
    from scipy.ndimage import distance_transform_edt

    rows, columns = shape
    row = np.clip((y * rows).astype(np.int64), 0, rows - 1)
    column = np.clip((x * columns).astype(np.int64), 0, columns - 1)
    lowest = np.full(shape, np.nan)
    order = np.argsort(losses, kind="stable")[::-1]
    lowest[row[order], column[order]] = losses[order]  # the lowest is written last
    _, nearest = distance_transform_edt(
        np.isnan(lowest), sampling=(1 / rows, 1 / columns), return_indices=True
    )
    return np.asarray(lowest[tuple(nearest)])


def colour_ends(
    losses: FloatArray, *, maximised: bool, alike: float = WORST_ALIKE
) -> tuple[float, float]:
    """Objectives at the ends of a colour scale: the best, and one that few are worse than.

    Args:
        losses: Losses of any shape; NaN where there are none.
        maximised: Whether the objective is the negative loss.
        alike: Share of the worst that look the same.
    """
    low, high = float(np.nanmin(losses)), float(np.nanquantile(losses, 1 - alike))
    return (-high, -low) if maximised else (low, high)


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
    """
    from scipy.stats import spearmanr

    centres = [coordinate[best_indices(row, count)].mean() for row in losses]
    return float(spearmanr(np.arange(len(centres)), centres).statistic)


def visible_indices(x: FloatArray, y: FloatArray, losses: FloatArray) -> NDArray[np.intp]:
    """Indices of visible points: the lowest loss at each place (x, y), the best ones last.

    Args:
        x: One hyperparameter of every configuration, shape (n,).
        y: Another, shape (n,).
        losses: Losses on one task, shape (n,).
    """
    order = np.argsort(losses, kind="stable")
    places = np.stack([x[order], y[order]], axis=1)
    _, first = np.unique(places, axis=0, return_index=True)
    return np.asarray(order[np.sort(first)[::-1]])
