"""SimpleOrdered and its relatives: start from the best configurations of previous tasks.

Hellan et al. (2023), section 5.2 and appendix D. After an adjustment of the search space, the
configurations are converted to the new one.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import numpy as np

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.core.history import Evaluations
from hpobench_ordered.methods._carry_over import convert_history
from hpobench_ordered.methods._model_based import DesignOnly, remove_failed_evaluations
from hpobench_ordered.methods.base import MethodSpec
from hpobench_ordered.methods.bo import BayesianOptimisation

TRANSFERRED = 5
"""N: configurations taken from previous tasks (section 5.2)."""


def order_configurations(history: Sequence[Evaluations], *, count: int) -> FloatArray:
    """Choose the configurations to start with (appendix D).

    First the best configuration of every previous task, the most recent task first; then, in the
    same order of tasks, equally good ones; then the second-best of every task, and so on. Repeated
    configurations and evaluations that are not finite are skipped.

    Args:
        history: Evaluations of the previous tasks, oldest first.
        count: Number of configurations, N.

    Returns:
        Configurations coded as values, shape (at most N, d); fewer only if the previous tasks
        hold fewer distinct ones.
    """
    chosen: dict[bytes, FloatArray] = {}
    for row in _candidates(remove_failed_evaluations(history), count):
        chosen.setdefault(row.tobytes(), row)
        if len(chosen) == count:
            break
    return np.array(list(chosen.values()))


class SimpleOrdered(BayesianOptimisation):
    """Bayesian optimisation that starts with the best configurations of the previous tasks."""

    def initial_configurations(self) -> Sequence[Config]:
        """The `TRANSFERRED` configurations to start with."""
        sources = convert_history(self.sources(), self.space, self.rng)
        return self.space.configs(order_configurations(sources, count=TRANSFERRED))

    def sources(self) -> Sequence[Evaluations]:
        """The previous tasks that configurations are taken from; the last one comes first."""
        return self.history


class SimpleOrderedShuffled(SimpleOrdered):
    """SimpleOrdered with the previous tasks in random order."""

    def sources(self) -> Sequence[Evaluations]:
        """All previous tasks, shuffled."""
        return [self.history[i] for i in self.rng.permutation(len(self.history))]


class SimplePrevious(SimpleOrdered):
    """Bayesian optimisation that starts with the best configurations of the last task."""

    def sources(self) -> Sequence[Evaluations]:
        """The last task alone."""
        return self.history[-1:]


class SimplePreviousNoBO(DesignOnly):
    """All configurations of the last task, best first; then random ones."""

    def initial_configurations(self) -> Sequence[Config]:
        """The configurations of the last task, as many as there are trials."""
        sources = convert_history(self.history[-1:], self.space, self.rng)
        return self.space.configs(order_configurations(sources, count=self.budget))


SPECS = (
    MethodSpec(
        name="simple-ordered",
        method=SimpleOrdered,
        summary="bo started with the best configurations of the 5 most recent tasks.",
        source="Hellan et al. (2023), section 5.2 and appendix D; N = 5",
        min_history=1,
        changed_spaces=True,
        version=2,
    ),
    MethodSpec(
        name="simple-ordered-shuffled",
        method=SimpleOrderedShuffled,
        summary="bo started with the best configurations of 5 previous tasks in random order.",
        source="Hellan et al. (2023), section 5.2 (ablation); N = 5",
        min_history=1,
        changed_spaces=True,
        version=2,
    ),
    MethodSpec(
        name="simple-previous",
        method=SimplePrevious,
        summary="bo started with the 5 best configurations of the last task.",
        source="Hellan et al. (2023), section 5.2, after Feurer et al. (2015); N = 5",
        min_history=1,
        changed_spaces=True,
        version=2,
    ),
    MethodSpec(
        name="simple-previous-no-bo",
        method=SimplePreviousNoBO,
        summary="The configurations of the last task, the best first; no model.",
        source="Hellan et al. (2023), section 5.2 (ablation)",
        min_history=1,
        changed_spaces=True,
        version=2,
    ),
)


def _candidates(history: Sequence[Evaluations], count: int) -> Iterator[FloatArray]:
    """Configurations of all tasks in the order of appendix D, repeats included.

    At least `count` distinct ones, unless the tasks hold fewer.
    """
    ranked = [_ranks(evaluations, count) for evaluations in reversed(history)]
    for rank in range(max(map(len, ranked), default=0)):
        # One of each task; equally good ones go to the end of the list.
        turns = zip_longest(*(task[rank] for task in ranked if rank < len(task)))
        yield from (row for turn in turns for row in turn if row is not None)


def _ranks(evaluations: Evaluations, count: int) -> list[list[FloatArray]]:
    """Distinct configurations by rank of their loss, equally good ones in order of evaluation.

    Only the first ranks with, in total, at least `count` distinct configurations, if there are as
    many.
    """
    ranks: list[dict[bytes, FloatArray]] = []
    distinct: set[bytes] = set()
    worst = -math.inf
    for i in np.argsort(evaluations.losses, kind="stable"):
        if evaluations.losses[i] > worst:
            if len(distinct) >= count:
                break
            worst = evaluations.losses[i]
            ranks.append({})
        row = evaluations.values[i]
        ranks[-1].setdefault(row.tobytes(), row)
        distinct.add(row.tobytes())
    return [list(rank.values()) for rank in ranks]
