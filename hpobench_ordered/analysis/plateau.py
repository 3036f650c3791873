"""Share of random configurations that are near the best.

Notation:
    n   configurations
    T   tasks
"""

import numpy as np

from hpobench_ordered._typing import FloatArray

NEAR = 0.05
"""Share of the distance from the median to the best that counts as near."""


def near_best(losses: FloatArray, *, best: FloatArray | None = None) -> FloatArray:
    """Share of the configurations whose loss is near the best of a task, (n, T) to (T,).

    Near is at most `NEAR` of the distance from the median to the best away from the best. Where
    the median is the best, more than half of the configurations are.

    Args:
        losses: Losses of random configurations, shape (n, T).
        best: Best losses known of the tasks, shape (T,); default: the lowest of these.
    """
    lowest = losses.min(axis=0) if best is None else best
    distance = np.median(losses, axis=0) - lowest
    return np.asarray((losses - lowest <= NEAR * distance).mean(axis=0))
