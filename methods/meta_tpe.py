"""meta-tpe: TPE whose densities are mixtures over tasks, weighted by similarity.

=========  ======  =================================================================================
symbol     shape   meaning
=========  ======  =================================================================================
T          scalar  tasks, the current one last
l_i, g_i           densities of the good and of the bad configurations of task i
N_i        (2,)    numbers of these configurations
d_i        scalar  total variation distance of l_i from the current task's
S_i        scalar  similarity, (1 - d_i) / (1 + d_i): their overlap divided by their union
k_i        scalar  weight: S_i / T, for the current task 1 minus the sum of the others
=========  ======  =================================================================================

Watanabe, Awad, Onishi and Hutter (2023), section 3.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from hpobench_ordered._typing import FloatArray, IntArray
from hpobench_ordered.methods._carry_over import convert_history
from hpobench_ordered.methods._model_based import Scorer, remove_failed_evaluations
from hpobench_ordered.methods._multi_task import sample_standardised
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.tpe import TPE

if TYPE_CHECKING:
    from hpobench_ordered.methods._tpe import Density

EACH = 100
"""Largest number of evaluations used of an earlier task, drawn at random."""
GOOD = 0.1
"""Share of a task's configurations that are good, gamma."""
EPSILON = 0.15
"""Share of the suggestions that are random."""
DRAWN = 100
"""Candidates."""
BASE = 2.5
"""Base of the logarithm of the number of evaluations that gives the number of hyperparameters in
which tasks are compared."""
POINTS = 1000
"""Number of random configurations on which densities are compared."""
LEAST = 0.1
"""Smallest bandwidth; for choices, the smallest probability of another choice."""


class MetaTPE(TPE):
    """TPE with the densities of the current task and of the earlier ones.

    An earlier task has the more weight, the more the distribution of its good configurations
    overlaps with the current task's in the most important hyperparameters. Until the current task
    has two evaluations, all similarities are 1. Configurations of another search space are
    converted to the current one. Without two finite evaluations of an earlier task it is `tpe`.
    """

    def prepare(self) -> None:
        """Split the earlier tasks' evaluations."""
        super().prepare()
        tasks = remove_failed_evaluations(convert_history(self.history, self.space, self.rng))
        tasks = [task for task in tasks if len(task) > 1]
        self._sources = [
            self._split(self.space.encode(task.values), task.losses)
            for task in sample_standardised(tasks, [EACH] * len(tasks), self.rng)
        ]
        if self._sources:
            self.random_trials, self.random_fraction = 0, EPSILON
            self._points = self.region.sample_unit(self.rng, POINTS)[:, self._free]

    def make_scorer(self) -> Scorer:
        """Compute the tasks' weights; the score is the log ratio of the mixtures."""
        if not self._sources:
            return super().make_scorer()
        tasks = list(self._sources)
        if self.evaluation_count > 1:
            tasks.append(self._split(self.evaluated_units(), self.evaluated_losses()))
        weights = task_weights(self.similarities(tasks), len(tasks))
        good, bad = (
            Mixture([density(task[side], self._choices) for task in tasks], weights)
            for side in (0, 1)
        )
        self._good = good
        free = self._free
        return lambda unit: good.log(unit[:, free]) - bad.log(unit[:, free])

    def iter_candidates(self) -> Iterator[FloatArray]:
        """Draw from the mixture of good configurations; if all were tried, at random."""
        if self._sources:
            unit = np.tile(self.region.middle, (DRAWN, 1))
            unit[:, self._free] = self._good.sample(self.rng, DRAWN)
            yield self.space.canonical(unit)
        yield from super().iter_candidates()

    def similarities(self, tasks: "Sequence[tuple[FloatArray, FloatArray]]") -> FloatArray:
        """S (T - 1,) of the earlier tasks; 1 if the current task has no densities yet."""
        if len(tasks) == len(self._sources):
            return np.ones(len(tasks))
        dims = np.sort(self.importance[: max(1, math.floor(math.log(self.evaluation_count, BASE)))])
        points, choices = np.ascontiguousarray(self._points[:, dims]), self._choices[dims]
        *earlier, here = (np.exp(density(good[:, dims], choices).log(points)) for good, _ in tasks)
        return np.array([similarity(p, here) for p in earlier])

    def _split(self, unit: FloatArray, losses: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Split unit vectors (n, d) into good and bad, with searched hyperparameters only."""
        order = np.argsort(losses, kind="stable")
        free = np.ascontiguousarray(unit[order][:, self._free])
        count = math.ceil(GOOD * len(free))
        return free[:count], free[count:]

    @cached_property
    def importance(self) -> IntArray:
        """Hyperparameters, by how concentrated good configurations of earlier tasks are in them."""
        total = np.zeros(len(self._choices))
        for j in range(len(total)):
            column = self._points[:, j : j + 1]
            points = np.ascontiguousarray(column[~np.isnan(column[:, 0])])
            for good, _ in self._sources:
                p = np.exp(density(good[:, j : j + 1], self._choices[j : j + 1]).log(points))
                total[j] += np.var(p / p.mean()) if len(p) else 0.0
        return np.argsort(-total, kind="stable")


@dataclass(frozen=True, eq=False, slots=True)
class Mixture:
    """A mixture of the tasks' densities.

    Attributes:
        densities: Densities of the tasks.
        weights: Weights of the tasks, shape (T,), multiplied by their numbers of configurations.
    """

    densities: "Sequence[Density]"
    weights: FloatArray

    @property
    def shares(self) -> FloatArray:
        """Share of each density, shape (T,)."""
        counts = self.weights * [len(density.data) for density in self.densities]
        shares: FloatArray = counts / counts.sum()
        return shares

    def log(self, unit: FloatArray) -> FloatArray:
        """Logarithm of the density at unit vectors (m, d); shape (m,)."""
        unit = np.ascontiguousarray(unit)
        total = sum(
            share * np.exp(density.log(unit))
            for share, density in zip(self.shares, self.densities, strict=True)
        )
        logs: FloatArray = np.log(total)
        return logs

    def sample(self, rng: np.random.Generator, m: int) -> FloatArray:
        """Draw configurations, shape (m, d)."""
        counts = rng.multinomial(m, self.shares)
        drawn = [d.sample(rng, n, wider=1.0) for d, n in zip(self.densities, counts, strict=True)]
        return np.concatenate(drawn)


def density(data: FloatArray, choices: IntArray) -> "Density":
    """Kernel density of configurations (n, d), given the numbers of choices (d,)."""
    from hpobench_ordered.methods._tpe import Density, bandwidths

    data = np.ascontiguousarray(data)
    return Density(data, choices, np.maximum(bandwidths(data, choices), LEAST))


def similarity(p: FloatArray, q: FloatArray) -> float:
    """S of two unnormalised densities (m,) at points drawn uniformly."""
    distance = 0.5 * float(np.abs(p / p.sum() - q / q.sum()).sum())
    return max(0.0, 1.0 - distance) / (1.0 + distance)


def task_weights(similarities: FloatArray, tasks: int) -> FloatArray:
    """Weights k of the tasks, shape (tasks,), the current task's last if it is included.

    Args:
        similarities: Similarities of the earlier tasks, shape (T - 1,).
        tasks: T, or T - 1 without the current task.
    """
    weights = similarities / (len(similarities) + 1)
    return np.append(weights, 1.0 - weights.sum())[:tasks]


SPECS = (
    MethodSpec(
        name="meta-tpe",
        method=MetaTPE,
        summary="TPE with the densities of all tasks, weighted by similarity.",
        source=(
            "Watanabe, Awad, Onishi and Hutter (2023), section 3: similarity by total variation, "
            f"{GOOD:.0%} are good, {EPSILON:.0%} of the suggestions random"
        ),
        min_history=1,
        changed_spaces=True,
    ),
)
