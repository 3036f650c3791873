"""What evaluations say of a task's landscape: which hyperparameters matter, and where it is low.

Notation:
    n   number of configurations
    d   number of hyperparameters
    B   number of bins along a hyperparameter

    u[i, j]  place of hyperparameter j of configuration i along its range, from 0 to 1
    r[i]     rank of the loss of configuration i, which outliers and monotone scales do not change
    b        a bin of the n configurations along a hyperparameter, of which n[b] lie in it

    share    sum over b of n[b] (mean of r in b - mean of r)^2
             / sum over i of (r[i] - mean of r)^2

The share is Fisher's correlation ratio: 0 for a hyperparameter that says nothing by itself, 1 for
one that says all. Of configurations that were chosen, not drawn at random, it measures association
alone.
"""

import numpy as np

from hpobench_ordered._typing import FloatArray

BINS = 8


def explained_shares(places: FloatArray, losses: FloatArray, *, bins: int = BINS) -> FloatArray:
    """Share of the variance of ranked losses that each hyperparameter explains by itself.

    Args:
        places: u, shape (n, d); NaN where a hyperparameter is inactive, which is a bin of its own.
        losses: Losses on one task, shape (n,); infinite ones are the worst.
        bins: Number of bins B.

    Returns:
        The shares, shape (d,); 0 where all losses are the same.
    """
    ranks = _ranks(losses)
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
    """Lowest loss within every cell of a plane; of an empty cell that of the nearest one.

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


WORST_ALIKE = 0.05
"""Share of the worst values that all get the same colour, which leaves more for the others."""


def colour_ends(losses: FloatArray) -> tuple[float, float]:
    """Losses at the ends of a scale of colours: the lowest, and one that few are above.

    Args:
        losses: Losses of any shape; NaN where there are none.
    """
    return float(np.nanmin(losses)), float(np.nanquantile(losses, 1 - WORST_ALIKE))


def _ranks(losses: FloatArray) -> FloatArray:
    from scipy.stats import rankdata

    return np.asarray(rankdata(losses), dtype=np.float64)
