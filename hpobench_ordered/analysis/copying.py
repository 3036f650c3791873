"""What makes methods alike: configurations that stay good, and plateaus.

Notation:
    n   configurations
    T   tasks, in the order of time
"""

import numpy as np

from hpobench_ordered._typing import FloatArray
from hpobench_ordered.core.benchmark import Benchmark

NEAR = 0.05  # share of the distance from the median to the best that counts as near


def best_and_random_losses(benchmark: Benchmark, count: int) -> tuple[FloatArray, FloatArray]:
    """Best losses known or drawn, (T,), and losses of random configurations, (count, T)."""
    objective, space = benchmark.objective, benchmark.space
    values = space.decode(space.sample_unit(np.random.default_rng(0), count))
    losses = np.stack([objective.losses(t.evaluate_many(values)) for t in benchmark.tasks], axis=1)
    known = [np.nan if t.best_value is None else t.best_value for t in benchmark.tasks]
    return np.fmin(objective.losses(np.array(known)), losses.min(axis=0)), losses


def copying_regrets(losses: FloatArray, *, best: FloatArray | None = None) -> FloatArray:
    """Regret of the configuration that was best on the previous task, (n, T) to (T - 1,).

    It is relative to the distance from the task's median loss to its best: 0 is as good as the
    best, 1 no better than half of all configurations; NaN where the median is the best. `losses`
    are those of the same configurations on all tasks; `best` (T,) are the best known losses,
    default: the lowest.
    """
    chosen = losses[:, :-1].argmin(axis=0)
    now = losses[:, 1:]
    lowest = now.min(axis=0) if best is None else best[1:]
    median = np.median(now, axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share: FloatArray = (now[chosen, np.arange(now.shape[1])] - lowest) / (median - lowest)
    return np.where(median > lowest, share, np.nan)


def shares_near_best(losses: FloatArray, *, best: FloatArray | None = None) -> FloatArray:
    """Share of configurations (n, T) within `NEAR` of the best of each task, (T,)."""
    lowest = losses.min(axis=0) if best is None else best
    distance = np.median(losses, axis=0) - lowest
    return np.asarray((losses - lowest <= NEAR * distance).mean(axis=0))
