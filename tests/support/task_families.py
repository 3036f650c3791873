"""Thirty tasks on a grid of three numbers, without contexts, with or without an order.

The loss of a task is a bowl with flat edges and a ripple. Levels and scales of tasks have heavy
tails. In order, the optimum moves a little from task to task; without, it scatters around a centre.
"""

import numpy as np
import pandas as pd

import hpobench_ordered as hbo
from hpobench_ordered._typing import FloatArray

TASKS = 30
NAMES = ("a", "b", "c")
STEP = 0.06
"""Standard deviation of the move of the optimum from one task to the next."""
SCATTER = 0.2
"""Standard deviation of the optimum around the centre, without an order."""


def make_family(seed: int, *, is_ordered: bool) -> hbo.Benchmark:
    """Draw a benchmark of the family; its surrogate is the nearest configuration of the grid."""
    rng = np.random.default_rng(seed)
    grid = make_grid()
    centre = rng.uniform(0.3, 0.7, 3)
    optimum = centre
    tasks = []
    for number in range(TASKS):
        if is_ordered:
            optimum = np.clip(optimum + STEP * rng.standard_normal(3), 0.0, 1.0)
        else:
            optimum = np.clip(centre + SCATTER * rng.standard_normal(3), 0.0, 1.0)
        phase = 0.0 if is_ordered else rng.uniform(0.0, 6.0)
        task = pd.DataFrame(grid, columns=list(NAMES))
        task["loss"] = draw_losses(grid, optimum, phase, rng)
        tasks.append(task.assign(task=f"task {number:02}"))
    return hbo.from_evaluations(
        pd.concat(tasks),
        dict.fromkeys(NAMES, (0.0, 1.0)),
        name=f"{'ordered' if is_ordered else 'unordered'}-{seed}",
        objective="loss",
        direction="minimize",
    )


def make_grid() -> FloatArray:
    """The configurations, shape (288, 3)."""
    axes = [np.linspace(0.0, 1.0, points) for points in (8, 6, 6)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)


def draw_losses(
    grid: FloatArray, optimum: FloatArray, phase: float, rng: np.random.Generator
) -> FloatArray:
    """Losses of a task at the configurations of the grid, whose widths, level and scale are drawn.

    Args:
        grid: Configurations, shape (n, 3).
        optimum: Where the bowl is deepest, shape (3,).
        phase: Of the ripple.
        rng: Draws the rest.
    """
    widths = np.exp(0.3 * rng.standard_normal(3)) * [0.3, 0.5, 0.9]
    scale = np.exp(rng.standard_t(3))
    level = scale * rng.standard_t(3)
    bowl = 1.0 - np.exp(-0.5 * (((grid - optimum) / widths) ** 2).sum(axis=1))
    ripple = 0.15 * np.sin(7.0 * grid[:, 0] + 3.0 * grid[:, 1] + phase)
    losses: FloatArray = level + scale * (bowl + ripple)
    return losses
