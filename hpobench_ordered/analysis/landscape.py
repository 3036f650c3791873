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
    """Share of the variance of ranked losses that each hyperparameter explains by itself, (d,).

    `places` are u, (n, d), NaN (a bin of its own) where inactive; `losses` (n,) may be infinite.
    The shares are 0 where all losses are the same.
    """
    from scipy.stats import rankdata

    ranks = rankdata(losses)
    centred = ranks - ranks.mean()
    total = float((centred**2).sum())
    shares = np.zeros(places.shape[1])
    if total == 0:
        return shares

    is_inactive = np.isnan(places)
    bin_of_place = np.clip(np.where(is_inactive, 0.0, places) * bins, 0, bins - 1).astype(np.int64)
    bin_of_place = np.where(is_inactive, bins, bin_of_place)  # inactive ones share the last bin
    for j, bin_of_configuration in enumerate(bin_of_place.T):
        counts = np.bincount(bin_of_configuration, minlength=bins + 1)  # n[b]
        sums = np.bincount(bin_of_configuration, weights=centred, minlength=bins + 1)
        is_occupied = counts > 0
        between_bins = float((sums[is_occupied] ** 2 / counts[is_occupied]).sum())
        shares[j] = between_bins / total
    return shares


def colour_ends(
    losses: FloatArray, *, maximised: bool, alike: float = WORST_ALIKE
) -> tuple[float, float]:
    """Ends of a colour scale: the best objective, and one that a share `alike` is worse than."""
    low, high = float(np.nanmin(losses)), float(np.nanquantile(losses, 1 - alike))
    return (-high, -low) if maximised else (low, high)


def best_indices(losses: FloatArray, count: int) -> NDArray[np.intp]:
    """Indices of the `count` configurations of lowest loss, best first; ties in the given order."""
    return np.argsort(losses, kind="stable")[:count]


def optimum_drift(coordinate: FloatArray, losses: FloatArray, *, count: int) -> float:
    """Rank correlation of task order with the mean coordinate (n,) of each task's `count` best."""
    from scipy.stats import spearmanr

    centres = [coordinate[best_indices(row, count)].mean() for row in losses]
    return float(spearmanr(np.arange(len(centres)), centres).statistic)


def visible_indices(x: FloatArray, y: FloatArray, losses: FloatArray) -> NDArray[np.intp]:
    """Indices of the lowest loss at each place (x, y), the lowest losses last (drawn on top)."""
    order = np.argsort(losses, kind="stable")
    places = np.stack([x[order], y[order]], axis=1)
    _, first = np.unique(places, axis=0, return_index=True)
    return np.asarray(order[np.sort(first)[::-1]])
