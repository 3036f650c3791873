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
    """Compute how much of the variance of ranked losses each hyperparameter explains by itself.

    It is Fisher's correlation ratio: the range of a hyperparameter is cut into bins, and the
    variance between the means of the bins is divided by the whole variance. Losses are replaced by
    their ranks, which outliers do not change.

    Args:
        places: Places of hyperparameters along their ranges, (configurations, hyperparameters),
            from 0 to 1; NaN where one is inactive, which is a bin of its own.
        losses: Losses of the configurations, (configurations,); may be infinite.
        bins: Number of bins of equal width along each hyperparameter.

    Returns:
        The shares, (hyperparameters,); 0 if all losses are the same.
    """
    from scipy.stats import rankdata

    ranks = rankdata(losses)
    centred = ranks - ranks.mean()
    total_squares = float((centred**2).sum())
    shares = np.zeros(places.shape[1])
    if total_squares == 0:
        return shares

    bins_of_configurations = _bins_of_places(places, bins)  # (configurations, hyperparameters)
    for j, bin_of_configuration in enumerate(bins_of_configurations.T):
        counts = np.bincount(bin_of_configuration)  # configurations in each bin
        sums = np.bincount(bin_of_configuration, weights=centred)  # sum of their centred ranks
        is_occupied = counts > 0
        # The mean of all centred ranks is 0. So a bin adds its count times the square of its mean,
        # count (sum / count)^2, to the squares between bins.
        squares_between_bins = sums[is_occupied] ** 2 / counts[is_occupied]
        shares[j] = float(squares_between_bins.sum()) / total_squares
    return shares


def _bins_of_places(places: FloatArray, bins: int) -> NDArray[np.int64]:
    """Find the bin of each place, from 0 to `bins` - 1.

    Places of inactive hyperparameters (NaN) get a bin of their own, with the number `bins`.
    """
    is_inactive = np.isnan(places)
    active_places = np.where(is_inactive, 0.0, places)
    # Place 1, the end of the range, is in the last bin.
    bin_of_active = np.clip(active_places * bins, 0, bins - 1).astype(np.int64)
    return np.where(is_inactive, bins, bin_of_active)


def colour_ends(
    losses: FloatArray, *, maximised: bool, alike: float = WORST_ALIKE
) -> tuple[float, float]:
    """Choose the lower and the upper end of a colour scale of objective values.

    One end is the best value. The other end is chosen so that a share `alike` of the values is
    worse. All of these get the colour of that end, which leaves more colours to tell the better
    values apart.

    Args:
        losses: Losses of the values, not finite where there are none. A loss is the value, or its
            negative if the objective is maximised.
        maximised: Whether the objective is maximised.
        alike: Share of the worst values, from 0 to 1.
    """
    finite_losses = losses[np.isfinite(losses)]
    if not len(finite_losses):
        return 0.0, 1.0  # any ends will do, as there is no value to colour
    lowest = float(finite_losses.min())
    highest_in_colour = float(np.quantile(finite_losses, 1 - alike))
    if maximised:  # a value is then the negative of its loss, so the ends change places
        return -highest_in_colour, -lowest
    return lowest, highest_in_colour


def best_indices(losses: FloatArray, count: int) -> NDArray[np.intp]:
    """Find the `count` configurations of lowest loss, best first; ties keep their order."""
    return np.argsort(losses, kind="stable")[:count]


def optimum_drift(coordinate: FloatArray, losses: FloatArray, *, count: int) -> float:
    """Measure how steadily good values of a hyperparameter rise (1) or fall (-1) over the tasks.

    The measure is Spearman's rank correlation between the index of a task and the mean value of the
    hyperparameter in the task's `count` best configurations.

    Args:
        coordinate: Value of the hyperparameter in each configuration, (configurations,).
        losses: Losses of the configurations on each task, (tasks, configurations).
        count: Number of best configurations of a task.
    """
    from scipy.stats import spearmanr

    centres = [coordinate[best_indices(task_losses, count)].mean() for task_losses in losses]
    return float(spearmanr(np.arange(len(centres)), centres).statistic)


def visible_indices(x: FloatArray, y: FloatArray, losses: FloatArray) -> NDArray[np.intp]:
    """Find the configurations to draw: at each place (x, y), the one of lowest loss.

    The lowest losses come last, so that they are drawn on top. All arrays are (configurations,).
    """
    best_first = np.argsort(losses, kind="stable")
    places = np.stack([x[best_first], y[best_first]], axis=1)
    # `unique` gives the index of the first of equal places, which is the one of lowest loss.
    _, first_at_place = np.unique(places, axis=0, return_index=True)
    worst_to_best = np.sort(first_at_place)[::-1]
    return np.asarray(best_first[worst_to_best])
