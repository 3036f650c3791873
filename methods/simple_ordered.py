"""SimpleOrdered and its relatives: start from the best configurations of previous tasks.

Hellan et al. (2023), section 5.2 and appendix D. After an adjustment of the search space, the
configurations are converted to the new one.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import numpy as np

from hpobench_ordered._typing import Config, FloatArray
from hpobench_ordered.data.history import Evaluations
from hpobench_ordered.methods._carry_over import convert_history
from hpobench_ordered.methods._model_based import DesignOnly, remove_failed_evaluations
from hpobench_ordered.methods.base import MethodKind, MethodSpec
from hpobench_ordered.methods.bo import BayesianOptimisation

TRANSFERRED = 5
"""N: configurations taken from previous tasks (section 5.2)."""


def order_configurations(history: Sequence[Evaluations], *, count: int) -> FloatArray:
    """Choose the configurations to start with, in this order (appendix D).

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
    chosen: dict[bytes, FloatArray] = {}  # by its bytes, so that none is repeated
    for configuration in _iter_in_order(remove_failed_evaluations(history), count):
        chosen.setdefault(configuration.tobytes(), configuration)
        if len(chosen) == count:
            break
    return np.array(list(chosen.values()))


class SimpleOrdered(BayesianOptimisation):
    """Bayesian optimisation that starts with the best configurations of the previous tasks."""

    def initial_configurations(self) -> Sequence[Config]:
        """Choose the `TRANSFERRED` configurations to start with.

        They are among the best of the tasks of `choose_sources`, converted to this search space.
        """
        sources = convert_history(self.choose_sources(), self.space, self.rng)
        return self.space.configs(order_configurations(sources, count=TRANSFERRED))

    def choose_sources(self) -> Sequence[Evaluations]:
        """Choose the previous tasks to start from; configurations of the last one come first."""
        return self.history


class SimpleOrderedShuffled(SimpleOrdered):
    """SimpleOrdered with the previous tasks in random order."""

    def choose_sources(self) -> Sequence[Evaluations]:
        """Shuffle all previous tasks."""
        return [self.history[i] for i in self.rng.permutation(len(self.history))]


class SimplePrevious(SimpleOrdered):
    """Bayesian optimisation that starts with the best configurations of the last task."""

    def choose_sources(self) -> Sequence[Evaluations]:
        """Choose the last task alone."""
        return self.history[-1:]


class SimplePreviousNoBO(DesignOnly):
    """All configurations of the last task, best first; then random ones."""

    def initial_configurations(self) -> Sequence[Config]:
        """Choose the best configurations of the last task, as many as there are trials.

        They are converted to the current search space.
        """
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
        kind=MethodKind.ORDERED,
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
        kind=MethodKind.ORDERED,
        version=2,
    ),
    MethodSpec(
        name="simple-previous-no-bo",
        method=SimplePreviousNoBO,
        summary="The configurations of the last task, the best first; no model.",
        source="Hellan et al. (2023), section 5.2 (ablation)",
        min_history=1,
        changed_spaces=True,
        kind=MethodKind.ORDERED,
        version=2,
    ),
)


def _iter_in_order(history: Sequence[Evaluations], count: int) -> Iterator[FloatArray]:
    """Yield configurations of all tasks in the order of appendix D, repeats included.

    First come the best configurations of the tasks, then the second-best ones, and so on. If a task
    has several equally good ones, its turn comes several times: the first one of each task, newest
    task first, then the second one of each task that has one, and so on.

    Args:
        history: Finite evaluations, oldest task first.
        count: Number of distinct configurations that the caller needs.
    """
    # For each task, newest first, its groups of equally good configurations, best first.
    groups_of_tasks = [_group_by_loss(task, count) for task in reversed(history)]
    rank_count = max((len(groups) for groups in groups_of_tasks), default=0)
    for rank in range(rank_count):
        groups_of_rank = [groups[rank] for groups in groups_of_tasks if rank < len(groups)]
        for turn in zip_longest(*groups_of_rank):
            for configuration in turn:
                if configuration is not None:  # None stands for a task whose group is smaller
                    yield configuration


def _group_by_loss(evaluations: Evaluations, count: int) -> list[list[FloatArray]]:
    """Group a task's distinct configurations by their loss, the best group first.

    Equally good ones are in the order of their evaluation. Grouping ends with the first group that
    completes `count` distinct configurations, as the caller needs no more.
    """
    groups: list[dict[bytes, FloatArray]] = []  # equally good configurations, by their bytes
    distinct: set[bytes] = set()  # bytes of the configurations of all groups
    loss_of_group = -math.inf  # of the last group
    for row in np.argsort(evaluations.losses, kind="stable"):
        loss = evaluations.losses[row]
        if loss > loss_of_group:  # a new group begins
            if len(distinct) >= count:
                break
            loss_of_group = loss
            groups.append({})

        configuration = evaluations.values[row]
        key = configuration.tobytes()
        groups[-1].setdefault(key, configuration)
        distinct.add(key)
    return [list(group.values()) for group in groups]
