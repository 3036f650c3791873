"""Share of random configurations that are nearly as good as the best.

Notation:
    n   configurations
    T   tasks
"""

import numpy as np

from hpobench_ordered._typing import FloatArray

NEAR = 0.05
"""Share of the distance from the median to the best that counts as near."""


def near_best(losses: FloatArray, *, best: FloatArray | None = None) -> FloatArray:
    """Share of configurations (n, T) with a loss near the best of each task, (T,).

    Near means within `NEAR` of the distance from the median to the best. `best` (T,) are the best
    known losses, default: the lowest of these.
    """
    lowest = losses.min(axis=0) if best is None else best
    distance = np.median(losses, axis=0) - lowest
    return np.asarray((losses - lowest <= NEAR * distance).mean(axis=0))
